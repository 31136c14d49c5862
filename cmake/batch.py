#!/usr/bin/env python3
"""Writes one source that holds several tests' sources, so that headers and templates are compiled once for all of them.

    batch.py OUT SOURCE...

Each source keeps its own names: its unnamed namespaces get a name of their own, so that helpers may be called alike in all.
Lines in messages are those of the sources."""
import pathlib
import re
import sys


def body(source):
    text = source.read_text(encoding="utf-8")
    name = "unit_" + re.sub(r"\W", "_", "_".join(source.parts[-4:]))
    text = re.sub(r"^namespace \{", f"namespace {name} {{", text, flags=re.M)

    def beside(found):
        path = source.parent / found[1]
        return f'#include "{path}"' if path.exists() else found[0]

    return re.sub(r'^#include "([^"]+)"', beside, text, flags=re.M)


def main():
    out, *sources = map(pathlib.Path, sys.argv[1:])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("".join(f'#line 1 "{source}"\n{body(source)}\n' for source in sources), encoding="utf-8")


main()
