"""Names and texts from files: their bytes are kept, and none of them steers a terminal."""
import json
import os
import pathlib
import pty
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CAIRN, TINY, Case, main  # noqa: E402

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m"


class Screen(Case):
    def test_control_characters_are_made_visible(self):
        config = {"recipe": "gpt2", "options": {"schedule": EVIL}, "arguments": {}}
        (self.folder / "run.json").write_text(json.dumps(config))
        self.unseen(self.fails(3, "train", "--config", "run.json", says="\\x1b"))
        config = {"recipe": EVIL, "options": {}}
        (self.folder / "run.json").write_text(json.dumps(config))
        self.unseen(self.fails(3, "train", "--config", "run.json"))
        self.unseen(self.fails(2, "train", "gpt2", f"{EVIL}=1", "a" + EVIL))
        self.unseen(self.fails(2, "train", EVIL))
        (self.folder / EVIL).write_bytes(b"\x1b[31m" * 100)
        self.unseen(self.cairn("train", "gpt2", *TINY, f"data={EVIL}", "seq=512", "--steps", 1, code=3))

    def unseen(self, done):
        for text in (done.stdout, done.stderr):
            for character in ("\x1b", "\x07", "\x9b"):
                self.assertNotIn(character, text)

    def test_the_commands_own_codes_pass(self):
        """On a terminal: the bar, its colours, and a sample on one line."""
        self.environment.pop("NO_COLOR")
        self.environment["TERM"] = "xterm"
        parent, child = pty.openpty()
        done = subprocess.Popen([CAIRN, "train", "gpt2", *TINY, f"data={self.text}", "--steps", "3",
                                 "--sample-every", "2"], stdout=child, stderr=child, env=self.environment,
                                cwd=self.folder)
        os.close(child)
        shown = b""
        while True:
            try:
                block = os.read(parent, 65536)
            except OSError:
                break
            if not block:
                break
            shown += block
        os.close(parent)
        self.assertEqual(done.wait(), 0, shown)
        self.assertIn(b"\r\x1b[K", shown)
        self.assertIn(b"\x1b[32m", shown)
        self.assertIn(b"\x1b[1mloss\x1b[0m", shown)
        self.assertNotIn(b"\x01", shown)
        self.assertEqual(len([line for line in shown.split(b"\n") if b"sample after" in line]), 1)

    def test_recipes_write_what_they_like(self):
        (self.folder / "loud.lua").write_text(
            'io.stderr:write("\\27[31mloud\\27[0m\\n")\nlocal mlp = require "recipes.mlp"\nreturn mlp\n')
        done = self.cairn("train", "loud.lua", "--steps", 1)
        self.assertIn("\x1b[31mloud", done.stderr)


class Names(Case):
    def test_bytes_of_names_are_kept(self):
        """A file whose name is no UTF-8 is found again by the run.json that a run leaves, and by --resume."""
        name = os.path.join(os.fsencode(self.folder), b"bad\xff\xc3 \xf0\x9f\x98\x80.txt")
        os.rename(os.fsencode(self.text), name)
        command = [os.fsencode(part) for part in (CAIRN, "train", "gpt2", *TINY)]

        def run(*more):
            done = subprocess.run([*command[:2], *more, b"--json", b"--quiet"], env=self.environment, cwd=self.folder,
                                  capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)["parameter_digest"]

        first = run(*command[2:], b"data=" + name, b"--steps", b"2", b"--out", b"o")
        written = json.loads((self.folder / "o/run.json").read_text())
        self.assertEqual(os.fsencode(written["options"]["data"]), os.path.realpath(name))
        self.assertEqual(run(b"--config", b"o/run.json"), first)
        run(b"--resume", b"o", b"--steps", b"3")

    RECIPE = """local mlp = require "recipes.mlp"
local own = {}
for key, value in pairs(mlp) do own[key] = value end
own.options = { unpack(mlp.options) }
table.insert(own.options, { "points", "points.txt", "a file of its own" })
own.dataset = function(o, run)
  local file = io.open(run.file(o.points))
  file:close()
  return mlp.dataset(o, run)
end
return own
"""

    def test_files_of_a_recipe_are_recorded(self):
        (self.folder / "own.lua").write_text(self.RECIPE)
        points = self.folder / "points.txt"
        points.write_text("1 2 3")
        train = ("train", "own.lua", "--quiet")
        self.cairn(*train, "--steps", 2, "--out", "o")
        self.cairn(*train, "--resume", "o", "--steps", 3)
        points.write_text("1 2 4")
        self.fails(3, *train, "--resume", "o", "--steps", 4, says=("points.txt", "whose content", "--recipe-changed"))
        self.cairn(*train, "--resume", "o", "--steps", 4, "points=points.txt")
        self.cairn(*train, "--resume", "o", "--steps", 5)  # the checkpoint of step 4 has the new one
        points.unlink()
        os.mkfifo(points)
        self.fails(3, *train, "--resume", "o", "--steps", 6, says=("points.txt", "a pipe"))

    def test_eval_data_that_changed(self):
        other = self.folder / "other.txt"
        other.write_text(self.text.read_text()[::-1])
        command = ("train", "gpt2", *TINY, f"data={self.text}", f"eval_data={other}", "--quiet")
        self.cairn(*command, "--steps", 2, "--out", "o")
        other.write_text("changed " * 100)
        self.fails(3, "train", "--resume", "o", "--steps", 3, says=("other.txt", "eval_data=FILE"))
        self.cairn("train", "--resume", "o", "--steps", 3, f"eval_data={other}", "--quiet")

    def test_pairs_of_surrogates_are_one_character(self):
        other = self.folder / "😀é.txt"
        self.text.rename(other)
        for escape in (True, False):
            (self.folder / "run.json").write_text(json.dumps({"recipe": "gpt2", "options": {"data": str(other)}},
                                                             ensure_ascii=escape))
            self.cairn("train", *TINY, "--config", "run.json", "--steps", 1, "--quiet")

    def test_seq_beside_lengths_is_said(self):
        train = ("train", "gpt2", *TINY, f"data={self.text}", "lengths=16,32", "--steps", 1)
        self.assertIn("seq=4 counts for nothing with lengths=16,32", self.cairn(*train, "seq=4").stderr)
        self.assertNotIn("counts for nothing", self.cairn(*train, "seq=32", "--out", "o").stderr)
        done = self.cairn("train", "--config", "o/run.json", "lengths=8,16")
        self.assertNotIn("counts for nothing", done.stderr)


main()
