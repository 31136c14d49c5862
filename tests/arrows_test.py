#!/usr/bin/env python3
"""Includes go one way, as the READMEs of the folders say: bindings, scripts -> capi -> runtime -> kernels/registry.h, with
runtime/base as the floor under all; and within a layer from folder to folder without a circle."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("bench", "bindings", "capi", "kernels", "runtime", "scripts", "tests")
SUFFIXES = {".h", ".hpp", ".c", ".cc", ".cpp", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^">]+)[">]', re.MULTILINE)

# The rules stand in the READMEs: a line "May include: `runtime/{base,ops}`, `kernels/registry.h`." is for all files below the
# README's folder, a line that begins with "`x/` may include: " for those below its folder x. The innermost rule counts. A folder may
# always include what is below it. A rule may name single files: headers that a folder has for its subfolders, which are a room of
# their own, lower than these. A README that cannot do without a circle says "Circle: `a/x`, `b/y`: " and why.
RULE = re.compile(r"^(?:`(?P<folder>[^`]+)/` may include|May include): (?P<paths>(?:`[^`]+`(?:, )?)+)\.", re.MULTILINE)
CIRCLE = re.compile(r"^Circle: (?P<paths>(?:`[^`]+`(?:, )?)+): \w+", re.MULTILINE)

# Every folder with code below these has a rule of its own.
RULED = ("bindings", "capi/src", "kernels", "runtime")
# Layers whose inner order is not written yet: only what leaves them is checked.
NOT_YET = ()


def expand(path):
    """"runtime/{base,ops}" as its paths."""
    braces = re.fullmatch(r"(.*)\{(.*)\}(.*)", path)
    if not braces:
        return [path.rstrip("/")]
    before, words, after = braces.groups()
    return [before + word + after for word in words.split(",")]


def words_of(paths):
    return [path for word in re.findall(r"`([^`]+)`", paths) for path in expand(word)]


def read_rules(root=ROOT):
    """The folders with a rule, and what their files may include, innermost first; and the circles that READMEs give reasons for."""
    rules, circles = {}, []
    for folder in FOLDERS:
        for readme in sorted((root / folder).rglob("README.md")):
            base, text = readme.parent.relative_to(root).as_posix(), readme.read_text(encoding="utf-8")
            for rule in RULE.finditer(text):
                rules[f"{base}/{rule['folder']}" if rule["folder"] else base] = words_of(rule["paths"])
            circles += [set(words_of(circle["paths"])) for circle in CIRCLE.finditer(text)]
    return dict(sorted(rules.items(), key=lambda row: -len(row[0]))), circles


def project_path(file, kind, target, root=ROOT):
    """The included file below the root, "cairn/..." for the public headers, or None for one of the system's."""
    if target.startswith("cairn/"):
        return target
    if (root / target).exists() or target.split("/")[0] in FOLDERS:
        return target
    if kind == '"':
        near = (file.parent / target).resolve()
        if near.exists() and near.is_relative_to(root):
            path = near.relative_to(root).as_posix()
            return path.removeprefix("capi/include/")
    return None


def below(path, folder):
    return path == folder or path.startswith(folder + "/")


def includes(root=ROOT):
    """{file: the files of the project that it includes}"""
    found = {}
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in SUFFIXES and not file.is_symlink():
                targets = INCLUDE.findall(file.read_text(encoding="utf-8"))
                paths = (project_path(file, kind, target, root) for kind, target in targets)
                found[file.relative_to(root).as_posix()] = [path for path in paths if path]
    return found


def parent(path):
    return path.rpartition("/")[0]


class Rooms:
    """The rooms of the sources: a folder, without its subfolders; a header that some rule names alone; a layer of NOT_YET."""

    def __init__(self, rules, files):
        self.single = {path for paths in rules.values() for path in paths if path in files and not self.later(path)}
        folders = {self.of(file) for file in files}
        self.arrows = {room: set() for room in folders}
        for file, targets in files.items():
            self.arrows[self.of(file)] |= {self.of(target) for target in targets if target in files}
        for folder, paths in rules.items():
            for room in (room for room in folders if room == folder):
                self.arrows[room] |= {other for path in paths for other in folders if below(other, path) and not below(other, folder)}
        for room, others in self.arrows.items():
            others.discard(room)

    @staticmethod
    def later(path):
        return next((layer for layer in NOT_YET if below(path, layer)), None)

    def of(self, file):
        return self.later(file) or (file if file in self.single else parent(file))

    def circles(self):
        """Sets of rooms each of which leads to every other one, but for those of a folder and headers of its own."""
        reached = {}
        for room in self.arrows:
            seen, waiting = set(), [room]
            while waiting:
                fresh = self.arrows[waiting.pop()] - seen
                seen |= fresh
                waiting += fresh
            reached[room] = seen
        found = {frozenset({room, *(other for other in seen if room in reached[other])}) for room, seen in reached.items() if room in seen}
        folders = {circle: {parent(room) if room in self.single else room for room in circle} for circle in found}
        return sorted((circle for circle, where in folders.items() if len(where) > 1), key=sorted)


def rule_complaints(rules, root=ROOT):
    """Rules that name what is not there, or more than the rule of the folder around them allows."""
    for ruled, allowed in rules.items():
        yield from (f"the README's rule for {ruled} names {path}, which is not there" for path in allowed
                    if path != "cairn" and not (root / path).exists())
        around = next((base for base in rules if base != ruled and below(ruled, base)), None)
        yield from (f"the README's rule for {ruled} allows {path}, which that of {around} does not" for path in allowed
                    if around and not below(path, around) and not any(below(path, base) for base in rules[around]))


def missing_rules(rules, files):
    folders = {parent(file) for file in files if any(below(file, base) for base in RULED)}
    yield from (f"{folder}: no README has a rule for it: what may it include?" for folder in sorted(folders)
                if folder not in rules and not Rooms.later(folder))


def violations(root=ROOT):
    (rules, reasons), files = read_rules(root), includes(root)
    yield from rule_complaints(rules, root)
    yield from missing_rules(rules, files)
    for name, targets in files.items():
        base = next((folder for folder in rules if below(name, folder)), None)
        allowed = [base, *rules[base]] if base else None
        for path in targets:
            if allowed is not None and not any(below(path, folder) for folder in allowed):
                yield f"{name} includes {path}; below {allowed} only"
            if allowed is None and not name.startswith(("tests/", "bench/")):
                yield f"{name}: no README above it says what it may include"
    for circle in Rooms(rules, files).circles():
        if all(room.startswith(RULED) for room in circle) and not any(circle <= named for named in reasons):
            yield f"a circle: {', '.join(sorted(circle))} include each other; move what they share, or say why in a README (Circle: ...)"
    if root == ROOT and len(files) < 50:
        yield f"only {len(files)} files were found: the check looks in the wrong place"


def main():
    found = list(violations())
    print("\n".join(found) or "all includes go one way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
