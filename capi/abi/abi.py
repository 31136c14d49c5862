#!/usr/bin/env python3
"""The ABI as text: what the library exports, where every field lies, what every constant is.

    abi.py --library LIBRARY [--compiler CC] [--update]

Reads cairn.h, has the compiler say sizes, offsets and values, and nm what LIBRARY exports; compares all with
symbols.txt, layout.txt and enums.txt beside this file, or writes these with --update. Also fails on padding that no
field names, on functions of the header that the library lacks, and the other way round."""
import argparse
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HEADER = HERE.parent / "include" / "cairn" / "cairn.h"


def declarations():
    """(functions, structs {typedef: [field]}, constants) of the header, comments removed."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
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


def ask_compiler(compiler, structs, constants):
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
        subprocess.run([compiler, "-std=c11", f"-I{HEADER.parent.parent}", source, "-o", program], check=True)
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
    if not options.update:
        symbols = set(exported(options.library))
        problems += [f"not exported: {name}" for name in sorted(set(functions) - symbols)]
        problems += [f"exported, but not in the header: {name}" for name in sorted(symbols - set(functions))]
    print("\n".join(problems) or f"{len(functions)} functions, {len(structs)} structs, {len(constants)} constants")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
