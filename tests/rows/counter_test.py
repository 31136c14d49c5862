#!/usr/bin/env python3
"""A number that plans count is a row. Adds one that does not exist to a copy of its table, counts the files that change,
and links a library with it: the number is in the command's JSON, by the Lua binding, and in C by its name.

    counter_test.py BUILD_FOLDER"""
import ctypes
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

import edits

BUILD = pathlib.Path(sys.argv[1]).resolve()
MOST_FILES = 4  # without tests
SOURCE = "capi/src/facts/plan_counters.cc"
NAME, WORDS = "copied_values", "values of forward and backward that are copied between tiers"
EDITS = [
    edits.Edit("capi/src/facts/plan_counters.def", "Nothing else lists them.\n",
               f'COUNTER({NAME}, "count", c.program().copies.size(), "{WORDS}")\n'),
]
MADE = ["capi/docs/reference/json.md"]  # by ./dev docs, from the row
# What reads counters by their names alone, and so changes with no row.
BY_NAME = ["capi/include/cairn", "capi/abi", "bindings/lua", "bindings/rust", "bindings/go"]


class Counter(edits.RowTest):
    EDITS = EDITS

    def library(self):
        """A library like the one of the build, with the made-up counter."""
        edits.apply(EDITS, self.folder)
        compiler = edits.Compiler(BUILD, self.folder)
        command, made = compiler.object(SOURCE)
        compiler.run_all([command])
        library = self.folder / "libcairn.so.1"
        linked = edits.run("ninja", "-C", BUILD, "-t", "commands", "-s", "lib/libcairn.so.1.0.0").strip().splitlines()[-1]
        words = shlex.split(linked.removeprefix(": && ").removesuffix(" && :"))
        words[words.index("-o") + 1] = library
        self.assertEqual(sum(str(word).endswith(f"{SOURCE}.o") for word in words), 1, linked)
        edits.run(*(made if str(word).endswith(f"{SOURCE}.o") else word for word in words), cwd=BUILD)
        return library

    def test_few_files_change(self):
        changed = edits.files(EDITS) + MADE
        self.assertLessEqual(len(changed), MOST_FILES, f"a counter touches {', '.join(changed)}")

    def test_no_binding_names_one(self):
        text = (edits.ROOT / "capi/src/facts/plan_counters.def").read_text(encoding="utf-8")
        names = re.findall(r"^COUNTER\((\w+),", text, flags=re.M)
        self.assertGreater(len(names), 5)
        comment = re.compile(r"//.*|--.*|/\*.*?\*/")  # examples in comments may show one
        for folder in BY_NAME:
            for path in (edits.ROOT / folder).rglob("*.*"):
                if not path.is_file() or "test" in path.name or "/tests/" in path.as_posix() or "target" in path.parts:
                    continue
                said = comment.sub("", path.read_text(encoding="utf-8", errors="replace"))
                for name in names:
                    self.assertIsNone(re.search(rf"\b{name}\b", said), f"{path} names {name}")

    def test_it_is_everywhere(self):
        library = self.library()
        loaded = ctypes.CDLL(str(library))
        value = ctypes.c_double()
        self.assertEqual(loaded.cairn_plan_counter(None, NAME.encode(), ctypes.byref(value), None), 1)  # INVALID_ARGUMENT
        environment = dict(os.environ, CAIRN_LIBRARY=str(library), CAIRN_RATES="model", CAIRN_LUA_ROOT=str(edits.ROOT))

        def cairn(*words):
            done = subprocess.run([BUILD / "bin/cairn", *words], capture_output=True, text=True, check=False, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        small = ("plan", "mlp", "--json", "--threads", "1", "--quiet")
        kept = json.loads(cairn(*small))["plan"]["counters"]
        self.assertEqual(kept[NAME], 0)
        offloaded = json.loads(cairn(*small, "--policy", "offload"))["plan"]["counters"]
        self.assertGreater(offloaded[NAME], 0)
        self.assertEqual(list(offloaded)[0], NAME)
        listed = json.loads(cairn("ops", "--counters", "--json"))
        self.assertEqual(listed[0], {"name": NAME, "unit": "count", "description": WORDS})
        program = self.folder / "counters.lua"
        program.write_text("for _, row in ipairs(require('cairn').plan_counters()) do print(row.name) end\n")
        self.assertEqual(cairn("lua", program).split(), list(offloaded))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
