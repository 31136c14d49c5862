#!/usr/bin/env python3
"""Rust of what describes the library: a filter from stdin to stdout, called by make_bindings.sh.

    make_bindings.py bindings    what bindgen prints, set as one reads it
    make_bindings.py layout      capi/abi/layout.txt as tests of size and offset
    make_bindings.py ops         `cairn ops --json` as methods that add ops to a graph
"""
import json
import re
import sys
import textwrap

WIDTH = 120


def bindings(text):
    for pattern, by in ((r" ?:: ?", "::"), (r" : ", ": "), (r" ([;,\])])", r"\1"), (r"([\[(]) ", r"\1"), (r"\* (const|mut)", r"*\1"),
                        (r"# \[", "#["), (r"(\w) \(", r"\1("), (r",([ ]?[)}])", r"\1"), (r"(->|=|:|<|,|\() ?::std", r"\1 ::std"),
                        (r"([(<]) ::std", r"\1::std"), (r"\*(const|mut)::", r"*\1 ::"), (r"\[::std", "[::std")):
        text = re.sub(pattern, by, text)
    text = re.sub(r"pub struct (\w+) \{ (.*?) \}",
                  lambda m: f"pub struct {m[1]} {{\n    " + re.sub(r", (?=pub |_)", ",\n    ", m[2]) + ",\n}", text)
    text = re.sub(r"pub type __u?int\d+_t = [^;]*; ?", "", text)  # the C library's own, which nothing here names
    text = text.replace("Option < unsafe", "Option<unsafe").replace(" >,", ">,").replace(" : ::", ": ::")
    text = re.sub(r'extern "C" \{ (.*?;) \}', r'extern "C" {' + r"\n    \1\n}", text)
    return ("// Made from capi/include/cairn/cairn.h by make_bindings.sh. Do not edit.\n"
            + re.sub(r"(?<=[;}\]]) (?=pub |extern |#\[)", "\n", text.strip()) + "\n")


def layout(text):
    out = ["//! Every struct lies in memory as the C header promises. Made from capi/abi/layout.txt by make_bindings.sh.",
           "use cairn_sys::*;", "use std::mem::{size_of, MaybeUninit};", "use std::ptr::addr_of;", "",
           "macro_rules! place {", "    ($type:ident, $field:ident) => {{",
           "        let base = MaybeUninit::<$type>::zeroed();",
           "        let at = base.as_ptr();",
           "        // Only addresses inside `base` are taken; all fields may be zero.",
           "        unsafe { (addr_of!((*at).$field) as usize - at as usize, size_of_field(addr_of!((*at).$field))) }",
           "    }};", "}", "", "fn size_of_field<T>(_: *const T) -> usize {", "    size_of::<T>()", "}"]
    struct = ""
    for line in text.splitlines():
        words = line.split()
        if words[1] == "size":
            if struct:
                out.append("}")
            struct = words[0]
            out += ["", "#[test]", f"fn {struct}_lies_as_promised() {{",
                    f"    assert_eq!(size_of::<{struct}>(), {words[2]});"]
        else:
            out.append(f"    assert_eq!(place!({struct}, {words[0]}), ({words[2]}, {words[4]}));")
    return "\n".join(out + ["}", ""])


RUST_TYPES = {"integer": "i64", "real": "f64", "word": "&str", "list": "&[i64]", "reals": "&[f64]"}
KEYWORDS = {"as", "box", "do", "fn", "for", "if", "in", "loop", "mod", "move", "ref", "type", "use", "where", "yield"}


def identifier(name):
    return name + "_" if name in KEYWORDS else name


def type_name(name):
    return "".join(part.capitalize() for part in name.split("_"))


def prose(text):
    """A description as a Markdown doc comment: brackets and stars are no markup."""
    return re.sub(r"([\[\]<>*_|\\])", r"\\\1", text)


def commented(text, indent=""):
    text = re.sub(r" ([-+*]) ", "\0\\1 ", text)  # at the beginning of a line these would be items of a list
    lines = textwrap.wrap(text, WIDTH, initial_indent=indent + "/// ", subsequent_indent=indent + "/// ",
                          break_long_words=False, break_on_hyphens=False)
    return [line.rstrip().replace("\0", " ") for line in lines]


def listed(items):
    return ", ".join(items)


def one_op(op):
    """(the method that begins the op, its type with the methods that complete it)."""
    name, kind = op["name"], type_name(op["name"])
    needed = [i["name"] for i in op["inputs"] if not i["optional"]]
    attributes = op["attributes"]
    required = [a for a in attributes if a["required"]]
    optional_inputs = [(at, i["name"]) for at, i in enumerate(op["inputs"]) if i["optional"]]
    argument = {a["name"]: identifier(a["name"]) + ("_attr" if a["name"] in needed else "") for a in required}
    parameters = [f"{identifier(n)}: Value" for n in needed] + [f"{argument[a['name']]}: {RUST_TYPES[a['type']]}" for a in required]
    method = commented(f"Begins the op `{name}`: " + prose(op["description"]), "    ")
    method.append(f"    pub fn {identifier(name)}(&mut self, {listed(parameters)}) -> {kind}<'_> {{"
                  if parameters else f"    pub fn {identifier(name)}(&mut self) -> {kind}<'_> {{")
    call = f'Op::new(self, "{name}", &[{listed(identifier(n) for n in needed)}])'
    for a in required:
        call += f".attr(\"{a['name']}\", {argument[a['name']]})"
    method += [f"        {kind}({call})", "    }"]

    outputs = op["outputs"]
    made = [f"/// The op `{name}`, begun by [`GraphBuilder::{identifier(name)}`] and added by `build`.",
            '#[must_use = "an op is added by build"]', "#[derive(Debug)]", f"pub struct {kind}<'g>(Op<'g>);", "", f"impl<'g> {kind}<'g> {{"]
    for at, n in optional_inputs:
        made += [f"    /// The operand `{n}`, which may be left out.", f"    pub fn {identifier(n)}(self, {identifier(n)}: Value) -> Self {{",
                 f"        Self(self.0.input({at}, {identifier(n)}))", "    }", ""]
    for a in attributes:
        if not a["required"]:
            n = a["name"]
            made += [f"    /// The attribute `{n}`, which may be left out.",
                     f"    pub fn {identifier(n)}(self, {identifier(n)}: {RUST_TYPES[a['type']]}) -> Self {{",
                     f"        Self(self.0.attr(\"{n}\", {identifier(n)}))", "    }", ""]
    made += [f"    /// Adds the op and returns `{outputs[0]['name']}`.", "    pub fn build(self) -> Result<Value> {", "        self.0.build()",
             "    }"]
    if len(outputs) > 1:
        made += ["", "    /// Adds the op and returns all that it makes.", f"    pub fn build_all(self) -> Result<{kind}Outputs> {{",
                 f"        let [{listed(identifier(o['name']) for o in outputs)}] = self.0.build_all()?;"]
        fields = []
        for at, o in enumerate(outputs):
            n = identifier(o["name"])
            fields.append(n if o["optional"] else f"{n}: made({n})?")
        made += [f"        Ok({kind}Outputs {{ {listed(fields)} }})", "    }"]
    made += ["}", ""]
    if len(outputs) > 1:
        made += [f"/// What the op `{name}` makes; its text is at [`GraphBuilder::{identifier(name)}`].", "#[non_exhaustive]",
                 "#[derive(Clone, Copy, Debug)]", f"pub struct {kind}Outputs {{"]
        for o in outputs:
            made += [f"    /// The output `{o['name']}`" + (", where the op makes it." if o["optional"] else "."),
                     f"    pub {identifier(o['name'])}: " + ("Option<Value>," if o["optional"] else "Value,")]
        made += ["}", ""]
    return method, made


def ops(text):
    table = json.loads(text)
    out = ["//! A method for every op of the library. Made from `cairn ops --json` by make_bindings.sh. Do not edit.",
           "use super::builder::GraphBuilder;", "use super::op::{made, Op};", "use super::value::Value;", "use crate::error::Result;", "",
           "/// One method for each op that the library of this crate's version knows; [`GraphBuilder::op`] takes any by its name.",
           "/// Operands and attributes that must be given are arguments, others are methods of what is returned.",
           "impl GraphBuilder {"]
    rows = [one_op(op) for op in table]
    for at, (method, _) in enumerate(rows):
        out += ([""] if at else []) + method
    out += ["}", ""]
    for _, made in rows:
        out += made
    out += ["/// The names of the ops that have a method.", "#[cfg(test)]", "pub(crate) const NAMES: &[&str] = &["]
    return "\n".join(out + [f'    "{op["name"]}",' for op in table] + ["];", ""])


if __name__ == "__main__":
    sys.stdout.write({"bindings": bindings, "layout": layout, "ops": ops}[sys.argv[1]](sys.stdin.read()))
