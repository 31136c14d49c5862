#!/usr/bin/env python3
"""Includes go one way: bindings, scripts -> capi -> runtime -> kernels, with runtime/base as the floor under all."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("bench", "bindings", "capi", "kernels", "runtime", "scripts", "tests")
SUFFIXES = {".h", ".hpp", ".c", ".cc", ".cpp", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^">]+)[">]', re.MULTILINE)

# Files below `folder` may include project files below these only; the first row that matches a file counts.
ALLOWED = (
    ("runtime/base", ("runtime/base",)),
    ("runtime/plan", ("runtime/base", "runtime/plan")),
    ("runtime/ops", ("runtime/base", "runtime/ops")),
    ("runtime/graph", ("runtime/base", "runtime/ops", "runtime/plan", "runtime/graph")),
    ("runtime/device", ("runtime/base", "runtime/ops", "runtime/device", "kernels")),
    ("runtime/costs", ("runtime/base", "runtime/ops", "runtime/plan", "runtime/device", "runtime/costs")),
    ("runtime/engine", ("runtime/base", "runtime/ops", "runtime/graph", "runtime/plan", "runtime/device",
                        "runtime/costs", "runtime/engine", "kernels")),
    ("runtime/data", ("runtime/base", "runtime/data")),
    ("runtime", ("runtime", "kernels")),
    ("kernels", ("runtime/base", "kernels")),
    ("capi/examples", ("cairn", "capi/examples")),
    ("capi", ("cairn", "capi", "runtime")),
    ("bindings", ("cairn",)),
    ("scripts", ("cairn",)),
)


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
    count = 0
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            name = file.relative_to(ROOT).as_posix()
            count += 1
            allowed = next((rows for base, rows in ALLOWED if below(name, base)), None)
            for kind, target in INCLUDE.findall(file.read_text(encoding="utf-8")):
                path = project_path(file, kind, target)
                if path is None:
                    continue
                if allowed is not None and not any(below(path, base) for base in allowed):
                    yield f"{name} includes {path}; below {allowed} only"
                if allowed is None and folder not in ("tests", "bench"):
                    yield f"{name} is in no row of the table"
    if count < 50:
        yield f"only {count} files were found: the check looks in the wrong place"


def main():
    found = list(violations())
    print("\n".join(found) or "all includes go one way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
