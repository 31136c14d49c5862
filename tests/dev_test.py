#!/usr/bin/env python3
"""./dev's help prints what there is, and does nothing: not even what its words name."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ("bash", "env", "dirname", "cat", "id")  # all that help needs; a command that builds or installs finds nothing here


class Dev(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for path in ("dev", "cmake/aarch64.sh"):
            (self.folder / path).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / path, self.folder / path)
        (self.folder / "tools").mkdir()
        for tool in TOOLS:
            os.symlink(shutil.which(tool), self.folder / "tools" / tool)

    def dev(self, *words):
        return subprocess.run([self.folder / "dev", *words], env={"PATH": str(self.folder / "tools")}, text=True, timeout=60,
                              capture_output=True, stdin=subprocess.DEVNULL)

    def test_help_does_nothing_else(self):
        for words in ((), ("help",), ("--help",), ("bench", "--help"), ("test", "-h"), ("quickstart", "--help")):
            with self.subTest(words):
                done = self.dev(*words)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("`./dev build aarch64`", done.stdout)
                self.assertIn("\n./dev quickstart ", done.stdout)
        self.assertFalse((self.folder / "build").exists())

    def test_what_it_does_not_know(self):
        done = self.dev("foo")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertTrue(done.stderr.startswith("dev: unknown command 'foo'\n./dev deps "), done.stderr)


if __name__ == "__main__":
    unittest.main()
