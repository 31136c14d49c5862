#!/usr/bin/env python3
"""The ABI as text: what the library exports, where every field lies, what every constant is.

    abi.py --library LIBRARY [--compiler CC] [--update] [--older HEADER ...]

Reads cairn.h, has the compiler say sizes, offsets and values, and nm what LIBRARY exports; compares all with
symbols.txt, layout.txt and enums.txt beside this file, or writes these with --update. Also fails on padding that no
field names, on functions of the header that the library lacks, and the other way round; and on anything that a program
compiled with an older HEADER relies on and that is not so any more."""
import argparse
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HEADER = HERE.parent / "include" / "cairn" / "cairn.h"


def declarations(header=HEADER):
    """(functions, structs {typedef: [field]}, constants) of the header, comments removed."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    functions = re.findall(r"\b(cairn_\w+)\(", re.sub(r"^#.*?[^\\]$", "", text, flags=re.S | re.M))
    structs = {}
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\}\s*(\w+);", text, flags=re.S):
        fields = []
        for line in filter(None, (part.strip() for part in body.split(";"))):
            pointer = re.search(r"\(\*\s*(\w+)\)", line)
            fields += [pointer.group(1)] if pointer else [
                re.search(r"(\w+)\s*(\[\d+\])?$", part.strip()).group(1) for part in line.split(",")]
        structs[name] = fields
    constants = []
    for body in re.findall(r"\benum \{(.*?)\}", text, flags=re.S):
        constants += re.findall(r"\b(CAIRN_\w+)\s*=", body)
    return sorted(set(functions)), structs, constants


def prototypes(header):
    """{function: its declaration, without names of arguments}."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    found = re.finditer(r"CAIRN_API\s+(?:CAIRN_NODISCARD\s+)?([^;{}#]*?\b(cairn_\w+)\([^;]*\));", text)
    return {each[2]: re.sub(r"\s*\b\w+(?=[,)])", "", " ".join(each[1].split())) for each in found}


def broken_promises(older, compiler, today=HEADER):
    """What a program compiled with the header `older` relies on, and today's header says otherwise: functions, constants, and the
    fields of structs, which may have got more at the end only where they say their size. A reserved field, which such a program leaves
    0, may have got a name."""
    functions, structs, constants = declarations(older)
    layout, enums = ask_compiler(compiler, structs, constants, older)
    _, structs_now, constants_now = declarations(today)
    layout_now, enums_now = ask_compiler(compiler, structs_now, constants_now, today)
    found = [f"constant {line}: is otherwise now" for line in sorted(set(enums.splitlines()) - set(enums_now.splitlines()))]
    was, now = prototypes(older), prototypes(today)
    found += [f"function {name}: was '{was[name]}', is '{now.get(name, 'not there')}'" for name in functions
              if was[name] != now.get(name)]

    def by_struct(text):
        return {part.split()[0]: part.splitlines() for part in re.split(r"^(?=\w)", text, flags=re.M) if part}

    def named(lines, lines_now):
        return [now if line.split()[0].startswith("reserved") and line.split()[1:] == now.split()[1:] else line
                for line, now in zip(lines, lines_now)] + lines[len(lines_now):]
    layouts_now = by_struct(layout_now)
    for name, lines in by_struct(layout).items():
        lines_now = layouts_now.get(name, [""])
        lines = named(lines, lines_now)
        grows = len(lines) > 1 and lines[1].split()[0] == "struct_size"
        same = lines_now[1:len(lines)] == lines[1:] if grows else lines_now == lines
        if not same:
            found.append(f"struct {name}: its fields are others, or elsewhere")
    return found


def ask_compiler(compiler, structs, constants, header=HEADER):
    lines = ["#include <stdio.h>", '#include "cairn/cairn.h"', "int main(void) {"]
    for name, fields in structs.items():
        lines.append(f'printf("{name} size %zu\\n", sizeof({name}));')
        for field in fields:
            member = f"((({name}*)0)->{field})"
            lines.append(f'printf("  {field} at %zu size %zu\\n", offsetof({name}, {field}), sizeof{member});')
    lines.append('printf("---\\n");')
    lines += [f'printf("{name} = %d\\n", (int){name});' for name in constants]
    lines += ["return 0;", "}"]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "dump.c")
        source.write_text("\n".join(lines))
        program = pathlib.Path(folder, "dump")
        subprocess.run([compiler, "-std=c11", f"-I{header.parent.parent}", source, "-o", program], check=True)
        out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    layout, enums = out.split("---\n")
    return layout, enums


def padding(layout):
    """Bytes of a struct that belong to no field."""
    found, name, end, size = [], "", 0, 0
    for line in layout.splitlines() + ["end size 0"]:
        words = line.split()
        if not line.startswith(" "):
            if end != size:
                found.append(f"{name}: {size - end} bytes of padding at the end")
            name, size, end = words[0], int(words[2]), 0
        else:
            if int(words[2]) != end:
                found.append(f"{name}: padding before {words[0]}")
            end = int(words[2]) + int(words[4])
    return found


def exported(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    names = [line.split()[-1].split("@")[0] for line in out.splitlines()]
    return sorted(name for name in names if name != "CAIRN_1.0")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--older", nargs="*", type=pathlib.Path, default=[])
    options = parser.parse_args()
    functions, structs, constants = declarations()
    layout, enums = ask_compiler(options.compiler, structs, constants)
    problems = padding(layout)
    listing = "".join(f"{name}\n" for name in functions)
    for name, now in {"symbols.txt": listing, "layout.txt": layout, "enums.txt": enums}.items():
        golden = HERE / name
        if options.update:
            golden.write_text(now)
            continue
        before = golden.read_text()
        if before != now:
            problems.append(f"{name} differs from the header (see capi/docs/versioning.md):")
            problems += difflib.unified_diff(before.splitlines(), now.splitlines(), "golden", "now", lineterm="")
    for older in options.older:
        problems += [f"{older}: {problem}" for problem in broken_promises(older, options.compiler)]
    if not options.update:
        symbols = set(exported(options.library))
        problems += [f"not exported: {name}" for name in sorted(set(functions) - symbols)]
        problems += [f"exported, but not in the header: {name}" for name in sorted(symbols - set(functions))]
    print("\n".join(problems) or f"{len(functions)} functions, {len(structs)} structs, {len(constants)} constants")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
