#!/usr/bin/env python3
"""Trees with sanitizers compile the sources of a layer together (CMakeLists.txt, cairn_together), so that no two of them may give one name to
two things in their unnamed namespaces, nor to a constant that of a header: the others would get it instead. Found here without
compiling; functions may share a name where their parameters differ, which a compiler judges."""
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
IN_HEADER = re.compile(r"^(?:inline )?constexpr\b[^=({]*?\b(k[A-Z]\w*)", re.M)
MORE = re.compile(r",\s+(k[A-Z]\w*) =")  # the second constant of a declaration, and those after it
CONSTANTS = re.compile(r"^const(?:expr)?\b[^;]*;", re.M)


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
        for constants in CONSTANTS.findall(body):
            yield from MORE.findall(constants)


def headers(where):
    """{constant: header} of what a layer's sources surely see: the floor's headers and their own."""
    found = {}
    for header in sorted({*(ROOT / "runtime/base").rglob("*.h"), *(h for folder in where for h in (ROOT / folder).glob("*.h"))}):
        text = header.read_text(encoding="utf-8")
        for name in [*IN_HEADER.findall(text), *(n for line in text.split("\n") if IN_HEADER.match(line) for n in MORE.findall(line))]:
            found[name] = header.relative_to(ROOT).as_posix()
    return found


def complaints(files, where):
    places, declared = collections.defaultdict(set), headers(where)
    for file in files:
        for name in names(file.read_text(encoding="utf-8")):
            places[name] |= {file.relative_to(ROOT).as_posix(), *([declared[name]] if name in declared else [])}
    return [f"'{name}' is in the unnamed namespaces of a layer, or in a header: {' and '.join(sorted(at))}"
            for name, at in sorted(places.items()) if len(at) > 1]


def main():
    wrong, count = [], 0
    for layer, where in layers((ROOT / "CMakeLists.txt").read_text(encoding="utf-8")).items():
        if layer in APART:
            continue
        files = sorted({file for folder in where for file in (ROOT / folder).glob("*.cc")})
        count += len(files)
        wrong += [f"{layer}: {line}" for line in complaints(files, where)]
    for line in wrong:
        print(line)
    print(f"{count} sources, {len(wrong)} names given twice in a layer")
    return 1 if wrong or count < 100 else 0


sys.exit(main())
