#!/usr/bin/env python3
"""A folder can be taken in at one glance and a file in one sitting: at most 25 files, at most 400 lines of code."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_FILES, MOST_LINES = 25, 400
CODE = {".c", ".cc", ".cmake", ".cpp", ".cu", ".cuh", ".def", ".fbs", ".go", ".h", ".hpp", ".lua", ".py", ".rs", ".sh"}
MADE = {"__pycache__", "build", "target"}  # what builds leave behind is nobody's to read

# What may be larger, and why. A row that is no longer needed is an error, so that the list only shrinks.
FOLDERS = {
    "bench/results": "a page for each thing that was measured, and what pages are drawn from",
    "bindings/go": "one Go package lies in one folder",
    "scripts/families": "a file for each family of models, as rows of a table",
    "tests/fuzz/corpus/lua_json": "a corpus",
    "tests/fuzz/corpus/recipe_options": "a corpus",
    "tests/fuzz/corpus/tokenizer": "a corpus",
    "tests/fuzz/corpus/tokenizer_train": "a corpus",
    "tests/runtime/data/tokenizer/golden": "two files for each family of tokenizers",
}
FILES = {
    "bindings/go/ops_gen.go": "made from the table of ops",
    "bindings/lua/cairn/cdef.lua": "made from cairn.h",
    "bindings/rust/cairn-sys/src/bindings.rs": "made from cairn.h",
    "bindings/rust/cairn-sys/tests/layout.rs": "made from cairn.h",
    "bindings/rust/cairn/src/graph/ops.rs": "made from the table of ops",
    "capi/include/cairn/cairn.h": "the public header is one file, most of it contracts",
    "tests/compat/1.0/abi/cairn/cairn.h": "a file of a release, as it was",
    "tests/compat/1.0/abi/cairn/cairn.hpp": "a file of a release, as it was",
}


def complaints(root=ROOT, folders=FOLDERS, files=FILES):
    large_folders, large_files, count = set(), set(), 0
    for where, below, names in os.walk(root):
        below[:] = [name for name in below if name not in MADE and not name.startswith(".")]
        folder = pathlib.Path(where)
        path = folder.relative_to(root).as_posix()
        count += len(names)
        if len(names) > MOST_FILES:
            large_folders.add(path)
            if path not in folders:
                yield f"{path} has {len(names)} files, at most {MOST_FILES}: give one subject of it a folder of its own"
        for name in sorted(names):
            file = folder / name
            if (file.suffix not in CODE and name not in ("CMakeLists.txt", "dev")) or file.is_symlink():
                continue
            path, lines = file.relative_to(root).as_posix(), file.read_bytes().count(b"\n")
            if lines > MOST_LINES:
                large_files.add(path)
                if path not in files:
                    yield f"{path} has {lines} lines, at most {MOST_LINES}: divide it by what it does"
    yield from (f"{path} is small enough or gone: take it out of this test's list" for path in folders if path not in large_folders)
    yield from (f"{path} is small enough or gone: take it out of this test's list" for path in files if path not in large_files)
    if root == ROOT and count < 500:
        yield f"only {count} files were found: the check looks in the wrong place"


def main():
    found = list(complaints())
    print("\n".join(found) or f"no folder of more than {MOST_FILES} files, no code of more than {MOST_LINES} lines")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
