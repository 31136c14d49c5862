#!/usr/bin/env python3
"""Compares texts with jinja2: of every template that PyPI's trl ships with every conversation, and of random templates.

    PYTHON_WITH_JINJA2_AND_TRL tests/runtime/data/template/compare.py LIBCAIRN [--random 20000] [--seed 1]

LIBCAIRN: libcairn.so. Texts are equal, or both are errors; exit code 1: some differ."""
import argparse
import importlib.util
import pathlib
import random
import re
import sys

import conversations
import judge
import random_templates

MOST_SHOWN = 20
# What differs on purpose: whole numbers of more than 64 bits, text that tells where an object lies.
BEYOND = re.compile("beyond 64 bits|has no slices|range\\(|complex number|is repeated|not supported| object at 0x|<Macro|<built-in|<function|LoopContext|<generator")


def shipped():
    found = importlib.util.find_spec("trl")
    folder = pathlib.Path(found.origin).parent / "chat_templates" if found else None
    for path in sorted(folder.glob("*.jinja")) if folder else []:
        source = path.read_text()
        for name, values in conversations.cases():
            yield f"{path.name} {name}", source, values


def drawn(count, seed):
    for number in range(count):
        yield f"random {number}", random_templates.Maker(random.Random(f"{seed}/{number}")).template(), random_templates.VALUES


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--random", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    cairn, count, errors, different = judge.Cairn(options.library), 0, 0, 0
    for cases in (shipped(), drawn(options.random, options.seed)):
        for name, source, values in cases:
            expected, found = judge.rendered(source, values), cairn.rendered(source, values)
            count, errors = count + 1, errors + (expected[0] == "error")
            if judge.same(expected, found) or BEYOND.search(found[1]) or BEYOND.search(expected[1]):
                continue
            different += 1
            if different <= MOST_SHOWN:
                shown = "" if "jinja " in name else f"\n  template {source!r}"
                print(f"{name}:{shown}\n  jinja2 {expected!r:.300}\n  cairn  {found!r:.300}")
    print(f"{count} texts, of which {errors} are errors; {different} differ")
    return 1 if different or count < options.random else 0


if __name__ == "__main__":
    sys.exit(main())
