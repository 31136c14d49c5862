#!/usr/bin/env python3
"""Includes go one way, as the READMEs of the folders say: bindings, scripts -> capi -> runtime -> kernels/registry.h, with
runtime/base as the floor under all."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("bench", "bindings", "capi", "kernels", "runtime", "scripts", "tests")
SUFFIXES = {".h", ".hpp", ".c", ".cc", ".cpp", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^">]+)[">]', re.MULTILINE)

# The rules stand in the READMEs, beside what they rule: a line "May include: `runtime/{base,ops}`, `kernels/registry.h`." is
# for all files below the README's folder, one that begins with "`x/` may include: " for those below its folder x. The
# innermost rule counts; every folder may include itself.
RULE = re.compile(r"^(?:`(?P<folder>[^`]+)/` may include|May include): (?P<paths>(?:`[^`]+`(?:, )?)+)\.", re.MULTILINE)


def expand(path):
    """"runtime/{base,ops}" as its paths."""
    braces = re.fullmatch(r"(.*)\{(.*)\}(.*)", path)
    if not braces:
        return [path.rstrip("/")]
    before, words, after = braces.groups()
    return [before + word + after for word in words.split(",")]


def read_rules():
    """The folders with a rule, and what their files may include, innermost first."""
    rules = {}
    for folder in FOLDERS:
        for readme in (ROOT / folder).rglob("README.md"):
            base = readme.parent.relative_to(ROOT).as_posix()
            for rule in RULE.finditer(readme.read_text(encoding="utf-8")):
                ruled = f"{base}/{rule['folder']}" if rule["folder"] else base
                paths = [path for word in re.findall(r"`([^`]+)`", rule["paths"]) for path in expand(word)]
                rules[ruled] = [ruled, *paths]
    return sorted(rules.items(), key=lambda row: -len(row[0]))


def project_path(file, kind, target):
    """The included file below the root, "cairn/..." for the public headers, or None for one of the system's."""
    if target.startswith("cairn/"):
        return target
    if (ROOT / target).exists() or target.split("/")[0] in FOLDERS:
        return target
    if kind == '"':
        beside = (file.parent / target).resolve()
        if beside.exists() and beside.is_relative_to(ROOT):
            path = beside.relative_to(ROOT).as_posix()
            return path.removeprefix("capi/include/")
    return None


def below(path, folder):
    return path == folder or path.startswith(folder + "/")


def violations():
    count, rules = 0, read_rules()
    for ruled, allowed in rules:
        yield from (f"the README's rule for {ruled} names {path}, which is not there" for path in allowed
                    if path != "cairn" and not (ROOT / path).exists())
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            name = file.relative_to(ROOT).as_posix()
            count += 1
            allowed = next((paths for base, paths in rules if below(name, base)), None)
            for kind, target in INCLUDE.findall(file.read_text(encoding="utf-8")):
                path = project_path(file, kind, target)
                if path is None:
                    continue
                if allowed is not None and not any(below(path, base) for base in allowed):
                    yield f"{name} includes {path}; below {allowed} only"
                if allowed is None and folder not in ("tests", "bench"):
                    yield f"{name}: no README above it says what it may include"
    if count < 50:
        yield f"only {count} files were found: the check looks in the wrong place"


def main():
    found = list(violations())
    print("\n".join(found) or "all includes go one way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
