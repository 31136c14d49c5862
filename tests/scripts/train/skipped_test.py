"""Steps of which nothing counts are skipped and counted, in training and in evaluation; long runs take no more memory."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CAIRN, Case, main  # noqa: E402

# Micro-batches 10 and 11 are a prompt that fills the window: no target of them counts.
MASKED = """
local gpt2 = require "recipes.gpt2"
local recipe = {}
for key, value in pairs(gpt2) do recipe[key] = value end
recipe.training = { steps = 12, rate = 1e-3 }
recipe.options = { unpack(gpt2.options) }
table.insert(recipe.options, { "masked", "10,11,", "micro-batches of which nothing counts" })
local function batch(o, index, masked)
  local tokens, targets = {}, {}
  for i = 1, o.batch * o.seq do
    tokens[i] = (index * 7 + i) % o.vocab
    targets[i] = masked and -100 or (index * 7 + i + 1) % o.vocab
  end
  return { tokens = tokens, targets = targets }, o.batch * o.seq
end
recipe.dataset = function(o)
  return { batches = 24, batch = function(index)
    return batch(o, index, o.masked == "all" or ("," .. o.masked):find("," .. index .. ",", 1, true) ~= nil)
  end }
end
recipe.evaluation = function(o)
  return { data = function() return { batches = 2, batch = function(index) return batch(o, index, true) end } end }
end
return recipe
"""
MODEL = ["layers=1", "width=16", "heads=2", "seq=16", "batch=2", "vocab=64", "--accumulate", 2, "--threads", 1]


class Skipped(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "masked.lua").write_text(MASKED)

    def masked(self, *options, code=0):
        return json.loads(self.cairn("train", "masked.lua", *MODEL, "--json", "--quiet", *options, code=code).stdout)

    def test_a_step_of_which_nothing_counts(self):
        whole = self.masked("--out", "run", "--save-every", 4)
        self.assertEqual((whole["steps"], whole["skipped_steps"], whole["loss"][5]), (12, 1, None))
        self.assertNotIn(None, whole["loss"][:5] + whole["loss"][6:])
        lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([line["outcome"] for line in lines], ["applied"] * 5 + ["skipped_empty"] + ["applied"] * 6)
        # It changes nothing, and is gone on from.
        before, behind = self.masked("--steps", 5), self.masked("--steps", 6, "--out", "cut")
        self.assertEqual(before["parameter_digest"], behind["parameter_digest"])
        rest = json.loads(self.cairn("train", "masked.lua", "--resume", "cut", "--steps", 12, "--json", "--quiet").stdout)
        self.assertEqual((rest["parameter_digest"], rest["skipped_steps"]), (whole["parameter_digest"], 1))
        fused = self.masked("--accumulate", 1, "--fuse-update", "clip=0", "--steps", 12)
        self.assertEqual((fused["skipped_steps"], fused["loss"][9], fused["loss"][10], fused["loss"][11]),
                         (2, fused["loss"][9], None, None))

    def test_it_is_told_of(self):
        done = self.cairn("train", "masked.lua", *MODEL, "--progress-every", 1)
        self.assertIn("note: step 6 is skipped", done.stderr)
        self.assertRegex(done.stdout, "\nskipped +1 step in all")
        process = subprocess.Popen(
            ["script", "-qec", f"{CAIRN} train masked.lua {' '.join(map(str, MODEL))}", "/dev/null"], cwd=self.folder,
            env=dict(self.environment, TERM="xterm", COLUMNS="120"), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.assertIn(b"1 skipped", process.communicate()[0])

    def test_data_of_which_nothing_ever_counts(self):
        done = self.cairn("train", "masked.lua", *MODEL, "masked=all", "--max-skips", 3, "--out", "run", "--json", code=3)
        for text in ("note: step 1 is skipped", "as in the 2 steps before", "something counts", "saved in run/step-00000003"):
            self.assertIn(text, done.stderr)
        self.assertEqual(json.loads(done.stdout)["ended"], "empty")

    def test_evaluation_of_which_nothing_counts(self):
        found = self.masked("--eval-every", 3, "--best", "loss", "--early-stop", 1, "--out", "run")
        self.assertEqual([(row["step"], row["loss"]) for row in found["evaluation"]], [(n, None) for n in (3, 6, 9, 12)])
        self.assertEqual((found["early_stopped"], "best" in found), (False, False))
        done = self.cairn("train", "masked.lua", *MODEL, "--eval-every", 3)
        self.assertEqual(done.stderr.count("nothing of it counts"), 1)
        self.assertIn("evaluation        loss -", done.stdout)


class Memory(Case):
    def test_memory_does_not_grow_with_steps(self):
        for options in ((), ("--json",), ("--json", "--out", "run", "--log-every", 100)):
            peaks = []
            for steps in (2000, 12000):
                words = ["mlp", "width=4", "layers=1", "batch=4", "samples=16", "--threads", 1, "--steps", steps, "--quiet",
                         *options, *(["--force"] if "--out" in options else [])]
                with subprocess.Popen([CAIRN, "train", *map(str, words)], env=self.environment, cwd=self.folder,
                                      stdout=subprocess.PIPE) as process:
                    output = process.stdout.read()
                    _, process.returncode, usage = os.wait4(process.pid, 0)
                self.assertEqual(process.returncode, 0)
                peaks.append(usage.ru_maxrss)
                if options:
                    found = json.loads(output)
                    self.assertEqual((len(found["loss"]), len(found["step_seconds"])), (steps, steps))
            self.assertLess(peaks[1] - peaks[0], 3000, options)  # KiB; it was 16000


main()
