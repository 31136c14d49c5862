"""The generation graph and the names in a checkpoint: what does not go with the model, and what has no bounds, is refused."""
import json
import os
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from forging import STEP, Forging  # noqa: E402
from harness import CAIRN, ROOT, main  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/support"))
from campaign import LONG  # noqa: E402

GRAPH = """
local cairn = require "cairn"
local path = ...
local g = assert(cairn.graph())
local tokens, position = g:input("tokens", { 1, %(window)s }, "i32"), g:input("position", { 1 }, "i32")
local table_ = g:parameter("%(name)s", { 256, %(width)s })
local x = g:op("reshape", g:op("embedding", table_, tokens), { shape = { %(window)s, %(width)s } })
%(more)s
local logits = g:name(g:op("linear", g:op("embedding", x, position), table_), "%(logits)s")
assert(g:freeze { outputs = { logits, z } })
assert(g:save(path))
"""
PLAIN = {"window": 16, "name": "wte.weight", "width": 16, "more": "", "logits": "logits"}


class Bundle(Forging):
    def generator(self, **changes):
        """A checkpoint `forged` with a generation graph of its own."""
        program = self.folder / "graph.lua"
        program.write_text(GRAPH % {**PLAIN, **changes})
        self.cairn("lua", program, "generator.cairn")
        self.forge(f"forged/{STEP}", files=[self.folder / "generator.cairn", self.folder / "run" / STEP / "names.json"])

    def test_a_generator_that_is_not_the_models(self):
        self.generator()
        self.everything("forged", 0)
        for changes, says in (({"name": "strange.weight"}, ["'strange.weight'", "the trained model has not"]),
                              ({"width": 32}, ["'wte.weight'", "f32[256, 32]", "f32[256, 16]"]),
                              ({"logits": "odd"}, ["'logits'"]),
                              ({"window": 2 ** 27}, ["tokens", "1048576"])):
            with self.subTest(changes=changes):
                self.generator(**changes)
                self.everything("forged", 3, [f"forged/{STEP}/generator.cairn", *says], ("generate",))

    def test_a_generator_without_bounds(self):
        huge = 'local y = g:op("reshape", x, { shape = { 2 ^ 24, 1 } })\nlocal z = g:name(g:op("linear", y, y), "z")'
        self.generator(window=2 ** 20, more=huge)
        self.fails(4, "generate", "forged", "--prompt", "x", says=("bytes", "memory"))
        self.generator(more="local z = x\nfor _ = 1, 2 ^ 17 do z = z + z end")
        self.fails(3, "generate", "forged", "--prompt", "x", says=("values, more than 131072",))
        blob = (self.folder / "forged" / STEP / "generator.cairn").read_bytes()
        for damaged in (b"", blob[:100], blob[:-1], blob[:60] + b"\xff" * 8 + blob[68:], os.urandom(4096)):
            (self.folder / "forged" / STEP / "generator.cairn").write_bytes(damaged)
            self.fails(3, "generate", "forged", "--prompt", "x", says="generator.cairn")
        (self.folder / "forged" / STEP / "generator.cairn").unlink()
        os.mkfifo(self.folder / "forged" / STEP / "generator.cairn")
        self.fails(3, "generate", "forged", "--prompt", "x", says="generator.cairn")

    def test_names_that_are_not_the_models(self):
        names = self.folder / "names.json"
        with_names = [names, self.folder / "run" / STEP / "generator.cairn"]
        rows = json.loads((self.folder / "run" / STEP / "names.json").read_text())
        self.forge(f"forged/{STEP}")
        self.cairn("export", "forged", "good.safetensors", "--quiet")
        for wrong, says in ((dict(rows, form="cairn.names/9"), "cairn.names/1"), ([], "cairn.names/1"),
                            (dict(rows, names=rows["names"] + [["h.9.attn", "x", False]]), "'h.9.attn'"),
                            (dict(rows, names=rows["names"] + [rows["names"][0]]), "twice"),
                            (dict(rows, names=[["wte.weight", "x", False], ["wpe.weight", "x", False]]), "'x'"),
                            (dict(rows, names=[["ln_f.weight", "x", True]]), "only matrices"),
                            (dict(rows, names=[["wte.weight"]]), "row 1"), (dict(rows, names=[5]), "row 1")):
            with self.subTest(wrong=wrong):
                names.write_text(json.dumps(wrong))
                self.forge(f"forged/{STEP}", files=with_names)
                self.fails(3, "export", "forged", "bad.safetensors", says=says)
                self.assertFalse((self.folder / "bad.safetensors").exists())
        for text in ("", "[" * 100000, "{", '{"form":', "return os.exit(0)"):
            names.write_text(text)
            self.forge(f"forged/{STEP}", files=with_names)
            self.fails(3, "export", "forged", "bad.safetensors", says="names.json")
        (self.folder / "forged" / STEP / "names.json").unlink()
        os.mkfifo(self.folder / "forged" / STEP / "names.json")
        self.fails(3, "export", "forged", "bad.safetensors", says="names.json")

    def test_mutated_files(self):
        """Any bytes end in success or in an error that blames them, also behind digests that are right."""
        random_ = random.Random(20261122)
        for name, command in (("names.json", ["export", "forged", "bad.safetensors"]),
                              ("generator.cairn", ["generate", "forged", "--prompt", "x", "--tokens", "1"])):
            path = self.folder / name
            whole = (self.folder / "run" / STEP / name).read_bytes()
            other = "generator.cairn" if name == "names.json" else "names.json"
            for number in range(1000 if LONG else 12):
                blob = bytearray(whole)
                for _ in range(random_.randint(1, 4)):
                    at = random_.randrange(len(blob))
                    how = random_.randrange(4)
                    if how == 0:
                        blob[at] = random_.randrange(256)
                    elif how == 1:
                        del blob[at:at + random_.randint(1, 40)]
                    elif how == 2:
                        blob[at:at] = random_.choice([b'"', b"[", b"]", b"null,", b"\\u", b"1e999", b"\xff", b"\0", b"{}"])
                    else:
                        blob[at:at] = blob[random_.randrange(len(blob)):][:30]
                    blob = blob or bytearray(b" ")
                path.write_bytes(blob)
                self.forge(f"forged/{STEP}", files=[path, self.folder / "run" / STEP / other])
                done = subprocess.run([CAIRN, *command], capture_output=True, env=self.environment, cwd=self.folder, timeout=60)
                self.assertIn(done.returncode, (0, 3), (name, number, done.stderr))
                if done.returncode == 3:
                    self.assertNotIn(b"internal error", done.stderr)


main()
