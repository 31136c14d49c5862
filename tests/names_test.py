#!/usr/bin/env python3
"""Trees with sanitizers compile the sources of a layer together (CMakeLists.txt, cairn_together), so that no two of them may give one name to
two things in their unnamed namespaces. Found here without compiling; functions may share a name where their parameters differ, which a
compiler judges."""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
APART = {"cairn_cpu"}  # compiled source by source
LAYER = re.compile(r"^\s*cairn_layer\((cairn_\w+) ([^\s)]+)", re.M)
PLAN = re.compile(r"^set\(plan_folders ([^\s)]+)\)", re.M)
UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.S | re.M)
NAMED = re.compile(r"^(?:struct|class|enum class|enum|union) (\w+)|^using (\w+) =|^(?:const|constexpr)\b[^=({]*?\b(k[A-Z]\w*)", re.M)
MORE = re.compile(r", (k[A-Z]\w*) =")  # the second constant of a line, and those after it


def folders(words):
    """The folders of "a/b" or of "a/{.,b}"."""
    if found := re.match(r"(.*)/\{(.*)\}$", words):
        return [f"{found[1]}/{below}" for below in found[2].split(",")]
    return [words]


def layers(text):
    plan = PLAN.search(text)[1]
    found = {name: folders(words) for name, words in LAYER.findall(text) if not words.startswith("$")}
    return {**found, "cairn_plan": folders(plan)}


def names(source):
    for body in UNNAMED.findall(source):
        for line in body.split("\n"):
            if found := NAMED.match(line):
                yield next(name for name in found.groups() if name)
                if line.startswith("const"):
                    yield from MORE.findall(line)


def complaints(files):
    places = collections.defaultdict(set)
    for file in files:
        for name in names(file.read_text(encoding="utf-8")):
            places[name].add(file.relative_to(ROOT).as_posix())
    return [f"'{name}' is in the unnamed namespaces of {' and '.join(sorted(at))}"
            for name, at in sorted(places.items()) if len(at) > 1]


def main():
    wrong, count = [], 0
    for layer, where in layers((ROOT / "CMakeLists.txt").read_text(encoding="utf-8")).items():
        if layer in APART:
            continue
        files = sorted({file for folder in where for file in (ROOT / folder).glob("*.cc")})
        count += len(files)
        wrong += [f"{layer}: {line}" for line in complaints(files)]
    for line in wrong:
        print(line)
    print(f"{count} sources, {len(wrong)} names given twice in a layer")
    return 1 if wrong or count < 100 else 0


sys.exit(main())
