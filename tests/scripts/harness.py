"""Runs the `cairn` command for the tests beside this file."""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAIRN = os.environ.get("CAIRN", str(ROOT / "build/release/bin/cairn"))
HANGS = 3600  # seconds: far above what anything takes on the busiest machine
TINY = ["layers=2", "heads=2", "width=16", "vocab=256", "seq=16", "batch=4", "rate=3e-3"]
TEXT = "It is a truth universally acknowledged, that a test must be in want of a text. " * 40


class Case(unittest.TestCase):
    """A test with a folder of its own, which is also the cache."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cairn-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"), NO_COLOR="1",
                                TMPDIR=str(self.folder), CAIRN_RATES="model")
        self.text = self.folder / "text.txt"
        self.text.write_text(TEXT)

    def cairn(self, *arguments, code=0, cwd=None, **options):
        """Runs a command and expects its exit code; returns the finished process."""
        done = subprocess.run([CAIRN, *map(str, arguments)], capture_output=True, text=True, timeout=HANGS,
                              env=self.environment, cwd=cwd or self.folder, errors="replace", **options)
        self.assertEqual(done.returncode, code, f"cairn {' '.join(map(str, arguments))}\n{done.stdout}\n{done.stderr}")
        if code not in (0, 130):
            self.assertTrue(done.stderr.strip(), "a failure must say why")
            self.assertNotIn("internal error", done.stderr)
            self.assertNotIn("stack traceback", done.stderr)
        return done

    def fails(self, code, *arguments, says=(), **options):
        """A command that must fail with this code, and whose message must contain the texts; nothing on stdout."""
        done = self.cairn(*arguments, code=code, **options)
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, done.stderr)
        return done

    def smallest_budget(self, *arguments):
        """The bytes that a refused `cairn plan` names."""
        refused = self.fails(4, "plan", *arguments, "--budget", 1)
        return int(re.search(r"smallest budget that does is (\d+) bytes", refused.stderr)[1])

    def train(self, *arguments, recipe="gpt2", data=None, code=0, model=None):
        """Trains a tiny model with --json; returns the object."""
        settings = (TINY if model is None else model) if recipe in ("gpt2", "llama") else (model or [])
        if recipe in ("gpt2", "llama") and data is not False:
            settings = [*settings, f"data={data or self.text}"]
        done = self.cairn("train", recipe, *settings, "--json", "--quiet", "--threads", 2, *arguments, code=code)
        self.assertEqual(done.stderr if code == 0 else "", "")
        return json.loads(done.stdout)


def png(width, height, colour, claims=None):
    """A PNG file of one colour; claims: the size that its header says, if another."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = (b"\0" + bytes(colour) * width) * height
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", *(claims or (width, height)), 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def main():
    result = unittest.main(argv=[sys.argv[0]], verbosity=1, exit=False).result
    for test, reason in result.skipped:
        print(f"not run: {test.id()}: {reason}")
    sys.exit(not result.wasSuccessful())
