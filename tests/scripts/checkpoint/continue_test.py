"""Going on from a checkpoint: what is otherwise is said, every step is in the metrics once, one run at a time."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CAIRN, ROOT, TINY, Case, main  # noqa: E402


# gpt2 with a part that is not right; and one whose graph, while it generates, has a method that changes what it is given.
CHANGED = """local gpt2 = require "recipes.gpt2"
local mine = {}
for key, value in pairs(gpt2) do mine[key] = value end
%s
return mine
"""
RENAMED = """mine.generator = function(o, graph)
  local own = graph.%s
  function graph.%s(self, value, name, ...)
    %s
    return own(self, value, name, ...)
  end
  return gpt2.generator(o, graph)
end"""


class Continue(Case):
    def resume(self, *arguments, directory="run"):
        return self.cairn("train", "--resume", directory, "--json", *arguments)

    def metrics(self):
        return [json.loads(line)["step"] for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]

    def test_what_is_otherwise_is_said(self):
        self.train("--steps", 2, "--out", "run", "schedule=cosine")
        (self.folder / "other.txt").write_text("another text " * 100)
        done = self.resume("--steps", 4, "rate=1e-3", "data=other.txt", "--amp", "bf16", "--seed", 7, "--accumulate", 2,
                           "--threads", 1)
        wanted = {"rate": ("0.003", "0.001"), "data": (str(self.text), str(self.folder / "other.txt")),
                  "--amp": ("off", "bf16"), "--seed": ("1337", "7"), "--accumulate": ("1", "2"), "--threads": ("2", "1"),
                  "the schedule's last step": ("2", "4")}
        for what, (was, now) in wanted.items():
            self.assertIn(f"note: {what} was {was} and is {now} after step 2\n", done.stderr)
        self.assertEqual(done.stderr.count("note: "), len(wanted), done.stderr)
        resumed = json.loads(done.stdout)["resumed"]
        self.assertEqual({row["what"]: (row["was"], row["now"]) for row in resumed["differences"]}, wanted)
        self.assertEqual((resumed["checkpoint"], resumed["step"]), ("run/step-00000002", 2))
        self.assertEqual(self.resume("--steps", 6, "--quiet").stderr, "")

    def test_nothing_is_said_where_nothing_is_otherwise(self):
        self.train("--steps", 2, "--out", "run")
        done = self.resume("--steps", 4)
        self.assertEqual(done.stderr, "")
        self.assertEqual(json.loads(done.stdout)["resumed"]["differences"], [])

    def test_where_nothing_is_left_to_do_no_peak_is_compared(self):
        self.train("--steps", 2, "--out", "run")
        text = self.cairn("train", "--resume", "run", "--steps", 1, "--quiet").stdout
        self.assertIn("nothing to do: step 2 is done already", text)
        self.assertRegex(text, "peak, device +planned [0-9,]+ bytes\n")
        # Nor are parts listed that did nothing.
        data = [*TINY, f"data={self.text}", f"eval_data={self.text}", "--quiet"]
        self.assertRegex(self.cairn("train", "gpt2", *data, "--steps", 1, "--out", "other").stdout, "\nevaluation .*micro-batches")
        text = self.cairn("train", "--resume", "other", "--quiet").stdout
        self.assertIn("nothing to do: step 1 is done already; a greater --steps", text)
        self.assertNotIn("micro-batches", text)

    def test_a_file_of_data_with_another_content(self):
        self.train("--steps", 2, "--out", "run")
        self.text.write_text(self.text.read_text() + "more")
        saved = sorted(path.name for path in (self.folder / "run").iterdir())
        refused = self.fails(3, "train", "--resume", "run", "--steps", 3, says=("--resume", "content", str(self.text), "data=FILE"))
        self.assertEqual(refused.stdout, "")
        self.assertEqual(sorted(path.name for path in (self.folder / "run").iterdir()), saved)
        # Named on the command line, other data are meant.
        done = self.resume("--steps", 3, f"data={self.text}")
        self.assertIn("note: the content of data", done.stderr)

    # 64 bits of FNV-1a over 8-byte words are the same for these two, whose words differ in their last bytes.
    ALIKE = "the quick brown ", "the quidk brownE"

    def test_texts_that_are_nearly_alike_are_not_taken_for_each_other(self):
        more = "fox jumps over the lazy dog. " * 40
        self.text.write_text(self.ALIKE[0] + more)
        one = self.train("--epochs", 1, "--out", "run")["parameter_digest"]
        self.text.write_text(self.ALIKE[1] + more)
        self.fails(3, "train", "--resume", "run", "--steps", 100, says=("--resume", "content"))
        other = self.train("--epochs", 1)["parameter_digest"]
        self.assertNotEqual(one, other)
        self.environment["XDG_CACHE_HOME"] = str(self.folder / "another")
        self.assertEqual(self.train("--epochs", 1)["parameter_digest"], other)

    def test_the_content_of_data_as_checkpoints_of_before_tell_it(self):
        whole = self.train("--steps", 4)["parameter_digest"]
        self.train("--steps", 2, "--out", "run")
        metadata = json.loads(self.cairn("inspect", "run", "--json").stdout)["metadata"]
        words, hashed = self.text.read_bytes(), 0xcbf29ce484222325
        for at in range(0, len(words), 8):
            hashed = (hashed ^ int.from_bytes(words[at:at + 8], "little")) * 0x100000001b3 % 2**64
        metadata["data.content"] = f"{hashed:016x}-{len(words)}"
        checkpoint, old = (self.folder / run / "step-00000002" for run in ("run", "old"))
        old.parent.mkdir()
        (self.folder / "changes.json").write_text(json.dumps(
            {"metadata": metadata, "files": [str(checkpoint / name) for name in ("generator.cairn", "names.json")]}))
        self.cairn("lua", ROOT / "tests/scripts/checkpoint/forge.lua", checkpoint, old, "changes.json")
        done = json.loads(self.resume("--steps", 4, directory="old").stdout)
        self.assertEqual(done["parameter_digest"], whole)
        self.assertEqual(done["resumed"]["differences"], [])
        self.text.write_text(self.text.read_text().upper())
        self.fails(3, "train", "--resume", "old", "--steps", 6, says=("--resume", "content"))

    def interrupted(self):
        """Begins a run with an epoch per step and interrupts it; returns what its checkpoint says."""
        command = [CAIRN, "train", "gpt2", *TINY, f"data={self.text}", "--accumulate", "100000", "--steps", "1000000",
                   "--out", "run", "--force"]
        process = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        deadline = time.time() + 30
        while not (self.folder / "run/plan.html").exists() and time.time() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        return json.loads(self.cairn("inspect", "run", "--json").stdout)["state"]

    def test_options_count_also_after_an_interrupted_step(self):
        self.text.write_text(self.text.read_text() * 5)
        before = self.interrupted()
        while before["micro"] == 0:  # between two steps: once in some two hundred times
            before = self.interrupted()
        steps = before["step"] + 1
        done = json.loads(self.resume("--steps", steps, "--quiet", "--accumulate", 2, "rate=1e-3").stdout)
        self.assertEqual((done["steps"], len(done["loss"])), (steps, 1))
        after = json.loads(self.cairn("inspect", "run", "--json").stdout)["state"]
        self.assertEqual((before["rate"], before["micro_steps"]), (0.003, 100000))
        self.assertEqual((after["rate"], after["micro_steps"]), (0.001, 2))

    def test_every_step_is_in_the_metrics_once(self):
        whole = self.train("--steps", 6, "--save-every", 4, "--out", "run")
        done = self.resume("--steps", 8, directory="run/step-00000004")
        self.assertEqual(self.metrics(), list(range(1, 9)))
        self.assertIn("run/step-00000006 is of a later step", done.stderr)
        names = sorted(path.name for path in (self.folder / "run").iterdir() if path.is_dir())
        self.assertEqual(names, ["set-aside-step-00000006", "step-00000004", "step-00000008"])
        aside = json.loads(self.cairn("inspect", "run/set-aside-step-00000006", "--json").stdout)
        self.assertEqual(aside["state"]["step"], 6)
        self.assertEqual(json.loads(done.stdout)["loss"][:2], whole["loss"][4:])
        with open(self.folder / "run/metrics.jsonl", "a") as file:
            file.write('{"step":7,"loss":1}\n{"step":9,"lo')  # doubled by an older cairn, and torn by a crash
        self.resume("--steps", 9)
        self.assertEqual(self.metrics(), list(range(1, 10)))
        self.resume("--steps", 9, "--out", "branch")
        self.assertFalse((self.folder / "branch/metrics.jsonl").exists())
        self.train("--steps", 1, "--out", "run", "--force")
        self.assertEqual(self.metrics(), [1])

    def test_a_checkpoint_given_by_name_is_of_its_run(self):
        self.train("--steps", 2, "--out", "run")
        for where, name in ((self.folder / "run", "step-00000002"), (self.folder / "run/step-00000002", "."),
                            (self.folder / "run", ".")):
            steps = len(self.metrics()) + 1
            self.assertTrue((self.folder / "run/step-00000002").exists())
            self.cairn("train", "--resume", name, "--steps", steps, "--quiet", "--save-every", 100, cwd=where)
            self.assertTrue((self.folder / f"run/step-{steps:08}").is_dir())
            for path in (self.folder / "run").glob("step-*"):
                if path.name != "step-00000002":
                    path.rename(self.folder / f"{where.name}-{name}-{path.name}")
            lines = (self.folder / "run/metrics.jsonl").read_text().splitlines(keepends=True)
            (self.folder / "run/metrics.jsonl").write_text("".join(lines[:2]))
        (self.folder / "run/step-00000002").rename(self.folder / "best")
        self.fails(2, "train", "--resume", "best", "--steps", 3, says=("best", "--out"))
        self.cairn("train", "--resume", "best", "--steps", 3, "--out", "new", "--quiet")
        self.assertTrue((self.folder / "new/step-00000003").is_dir())

    def test_a_damaged_checkpoint_is_named(self):
        self.train("--steps", 6, "--save-every", 4, "--out", "run")
        manifest = self.folder / "run/step-00000006/manifest.cairn"
        blob = manifest.read_bytes()
        manifest.write_bytes(blob[:200] + bytes([blob[200] ^ 1]) + blob[201:])
        for command in (["generate", "run", "--prompt", "x", "--tokens", 1], ["export", "run", "o.safetensors", "--quiet"],
                        ["train", "--resume", "run", "--steps", 7, "--quiet"]):
            done = self.cairn(*command)
            for text in ("warning", "run/step-00000006 is damaged", "older run/step-00000004", "digest"):
                self.assertIn(text, done.stderr, command)
        self.assertEqual(self.metrics(), list(range(1, 8)))
        self.assertTrue((self.folder / "run/set-aside-step-00000006").is_dir())
        self.assertEqual(self.cairn("generate", "run", "--prompt", "x", "--tokens", 1).stderr, "")

    def test_damaged_tensors_are_passed_over(self):
        whole = self.train("--steps", 7)
        self.train("--steps", 6, "--save-every", 4, "--out", "run")

        def damage(step):
            tensors = self.folder / f"run/step-{step:08}/tensors.bin"
            blob = tensors.read_bytes()
            tensors.write_bytes(blob[:1000] + bytes([blob[1000] ^ 1]) + blob[1001:])

        damage(6)
        for command in (["generate", "run", "--prompt", "x", "--tokens", 1], ["export", "run", "o.safetensors", "--quiet"]):
            self.assertIn("older run/step-00000004", self.cairn(*command).stderr, command)
        self.fails(3, "train", "--resume", "run/step-00000006", "--steps", 7,
                   says=("step-00000006", "is damaged", "--resume DIR/step-N"))
        done = self.resume("--steps", 7)
        self.assertIn("warning: run/step-00000006 is damaged and passed over for the older run/step-00000004", done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual([row["checkpoint"] for row in found["resumed"]["damaged"]], ["run/step-00000006"])
        self.assertEqual(found["parameter_digest"], whole["parameter_digest"])
        self.assertEqual(self.metrics(), list(range(1, 8)))
        damage(4)
        damage(7)
        self.fails(3, "train", "--resume", "run", "--steps", 8, says=("step-00000007", "is damaged", "no older checkpoint"))

    def test_one_run_at_a_time(self):
        command = [CAIRN, "train", "gpt2", *TINY, f"data={self.text}", "--steps", "1000000", "--save-every", "50", "--out", "run"]
        first = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        try:
            deadline = time.time() + 30
            while not list((self.folder / "run").glob("step-*")) and time.time() < deadline:
                time.sleep(0.05)
            again = ["train", "gpt2", *TINY, f"data={self.text}", "--steps", 1]
            for more in (["--out", "run"], ["--out", "run", "--force"], ["--out", "./run/"], ["--resume", "run"],
                         ["--resume", "run", "--force"]):
                self.fails(2, *(again if "--resume" not in more else ["train", "--steps", 1]), *more,
                           says=(f"process {first.pid} on", "another --out"))
            self.cairn("train", "--resume", "run", "--steps", 1, "--out", "other", "--quiet")
        finally:
            os.kill(first.pid, signal.SIGKILL)
            first.communicate()
        (self.folder / "run/.saving").mkdir(exist_ok=True)  # as if it had been killed inside a save
        for name in ("names.json", ".generator.cairn.12345.partial"):
            (self.folder / "run/.saving" / name).touch()
        more = int(max(path.name for path in (self.folder / "run").glob("step-*"))[5:]) + 1
        self.cairn("train", "--resume", "run", "--steps", more, "--quiet")  # a dead process holds nothing
        self.assertFalse((self.folder / "run/.saving").exists())

    def test_a_recipe_that_could_not_be_saved_fails_before_it_trains(self):
        recipe = self.folder / "mine.lua"
        for part, says in ((RENAMED % ("name", "name", 'if name == "logits" then name = "odd" end'), "'logits'"),
                           (RENAMED % ("input", "input", 'if value == "position" then name = { 2 } end'), "i32[1]"),
                           ("mine.names = function(o) local rows = gpt2.names(o) rows[1].ours = 'odd' return rows end", "'odd'"),
                           ("mine.generator = function() return 5 end", "what generator returns"),
                           ("mine.generator = function(o, graph) return gpt2.generator(setmetatable({ layers = o.layers + 1 }, "
                            "{ __index = o }), graph) end", "'h.2.ln_1.weight'")):
            with self.subTest(says):
                recipe.write_text(CHANGED % part)
                self.fails(3, "train", recipe, *TINY, f"data={self.text}", "--steps", 1, "--out", "run",
                           says=(says, "mine.lua"))
                self.assertFalse((self.folder / "run").exists())


main()
