#!/usr/bin/env python3
"""The bundle for a machine with a GPU: its programs find their libraries wherever it lies, and what the machine must
have beside it is said at once, before anything runs."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))
from harness import CAIRN, ROOT, Case, main  # noqa: E402

sys.path.insert(0, str(ROOT / "bench/gpu"))
import needs  # noqa: E402

BIN = pathlib.Path(CAIRN).resolve().parent
NEEDS = {"versions": {"GLIBC": "2.36", "GLIBCXX": "3.4.9"}, "driver": 580, "libraries": ["libcublasLt.so.13"],
         "architecture": "90a"}
GOOD = {"versions": {"GLIBC": "2.36", "GLIBCXX": "3.4.30"}, "driver": "580.65.06", "capability": "9.0",
        "libraries": ["libcublasLt.so.13"], "missing": []}


class Lacking(unittest.TestCase):
    def one(self, says, **changed):
        lines = needs.lacking(NEEDS, dict(GOOD, **changed))
        self.assertEqual(len(lines), 1, lines)
        for word in says:
            self.assertIn(word, lines[0])

    def test_nothing(self):
        self.assertEqual(needs.lacking(NEEDS, GOOD), [])
        self.assertEqual(needs.lacking(NEEDS, dict(GOOD, driver="595.1")), [])

    def test_each_is_named_with_what_is_there_and_what_is_wanted(self):
        self.one(["glibc", "2.31", "2.36"], versions={"GLIBC": "2.31", "GLIBCXX": "3.4.30"})
        self.one(["GLIBCXX", "3.4.8", "3.4.9"], versions={"GLIBC": "2.40", "GLIBCXX": "3.4.8"})
        self.one(["570.1", "580"], driver="570.1")
        self.one(["no NVIDIA driver", "580"], driver="")
        self.one(["8.0", "9.0", "CAIRN_GPU_ARCH"], capability="8.0")
        self.one(["libcublasLt.so.13", "CUDA 13"], libraries=[])
        self.one(["libfoo.so.1"], missing=["libfoo.so.1"])

    def test_all_at_once(self):
        self.assertEqual(len(needs.lacking(NEEDS, dict(GOOD, driver="", libraries=[], missing=["x", "y"]))), 4)


class Bundle(Case):
    def setUp(self):
        super().setUp()
        self.bundle = self.folder / "bundle"
        for part in ("bin", "lib"):
            (self.bundle / part).mkdir(parents=True)
        self.programs = [BIN / "cairn"] + [p for p in [BIN / "cairn_gpu_rates"] if p.exists()]
        for program in self.programs:
            shutil.copy(program, self.bundle / "bin")
        shutil.copy(BIN.parent / "lib/libcairn.so.1", self.bundle / "lib")
        for folder in ("scripts", "bindings/lua"):
            shutil.copytree(ROOT / folder, self.bundle / "share/cairn" / folder)
        # What libcairn takes from the system, as `./dev gpu --bundle` copies it.
        for program in [*self.programs, BIN.parent / "lib/libcairn.so.1"]:
            text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
            for name in ("libhwy", "libonig", "libutf8proc", "libxxhash", "libsimdjson", "libluajit", "libspng", "libturbojpeg",
                         "libwebp", "libz."):
                for line in text.splitlines():
                    if line.strip().startswith(name):
                        shutil.copy(line.split()[2], self.bundle / "lib")

    def test_programs_take_their_libraries_from_beside_them(self):
        self.assertGreater(len(list((self.bundle / "lib").iterdir())), 2)
        self.assertEqual(needs.strangers(self.bundle), [])
        moved = self.folder / "elsewhere"
        self.bundle.rename(moved)
        self.assertEqual(needs.strangers(moved), [])
        environment = {"PATH": "/usr/bin:/bin", "LANG": "C"}
        done = subprocess.run([moved / "bin/cairn", "devices"], capture_output=True, text=True, env=environment, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_it_needs_is_noted_and_checked(self):
        noted = needs.write(self.bundle, "90a")
        self.assertRegex(noted["versions"]["GLIBC"], r"^2\.\d+")
        self.assertRegex(noted["versions"]["GLIBCXX"], r"^3\.4")
        self.assertEqual(needs.number(noted["versions"]["GLIBC"]) <= needs.number(needs.version_here("GLIBC")), True)
        self.assertEqual(needs.number(noted["versions"]["GLIBCXX"]) <= needs.number(needs.version_here("GLIBCXX")), True)

    def test_gpu_py_says_it_first_and_runs_nothing(self):
        noted = needs.write(self.bundle, "90a")
        noted["versions"]["GLIBC"] = "9.99"
        (self.bundle / needs.NAME).write_text(json.dumps(noted))
        words = [sys.executable, ROOT / "bench/gpu/gpu.py", "--bundle", self.bundle, "--quick", "--out",
                 self.folder / "results"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=self.folder,
                              env=dict(os.environ, PATH="/usr/bin:/bin"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot run the bundle", done.stderr)
        self.assertIn("9.99 or later is needed", done.stderr)
        self.assertFalse((self.folder / "results").exists())


if __name__ == "__main__":
    main()
