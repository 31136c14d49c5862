#!/usr/bin/env python3
"""--prefetch: micro-batches made ahead by a thread are those that the run would have made, and so are its failures."""
import json
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

# Rows of sines; batch(fail) fails, batch(hang) never ends, and where `once` names a file, the data open but once.
RECIPE = """
local nn = require("cairn").nn
return {
  options = { { "batch", 4, "rows", whole = true, least = 1 }, { "fail", -1, "" }, { "hang", -1, "" }, { "once", "", "" } },
  training = { steps = 9, rate = 0.01 },
  model = function(o, graph)
    local net = nn.Sequential():add(nn.Linear(8, 16)):add(nn.ReLU()):add(nn.Linear(16, 1))
    return nn.attach(graph, net, nn.MSECriterion(), { o.batch, 8 })
  end,
  dataset = function(o, run)
    if o.once ~= "" then
      if io.open(o.once) then error("the data are open already") end
      io.open(o.once, "w"):close()
    end
    return { batches = 5, batch = function(index)
      if index == o.fail then error("no such row") end
      while index == o.hang do os.getenv("HOME") end
      local input, target = {}, {}
      for i = 1, o.batch * 8 do input[i] = math.sin(i * (index + 1)) end
      for i = 1, o.batch do target[i] = math.cos(i + index) end
      return { input = input, target = target }, o.batch
    end }
  end,
}
"""


class Prefetch(harness.Case):
    def setUp(self):
        super().setUp()
        self.recipe = self.folder / "rows.lua"
        self.recipe.write_text(RECIPE)

    def both(self, recipe, *arguments):
        """The parameters are the same with and without micro-batches made ahead, and a thread did make them."""
        plain, ahead = [self.cairn("train", recipe, *arguments, "--json", "--threads", 2, *more)
                        for more in ([], ["--prefetch", 3])]
        self.assertNotIn("note: --prefetch", ahead.stderr)
        plain, ahead = json.loads(plain.stdout), json.loads(ahead.stdout)
        self.assertEqual(plain["parameter_digest"], ahead["parameter_digest"])
        self.assertEqual(plain["loss"], ahead["loss"])

    def test_the_same_bits(self):
        text = [*harness.TINY, f"data={self.text}"]
        self.both(self.recipe, "--steps", 12)
        self.both("gpt2", *text, "--steps", 5, "--accumulate", 2)
        self.both("gpt2", *text, "--steps", 5, "lengths=8,16", "remainder=own")
        self.both("mlp", "--steps", 5, "metrics=accuracy", "loss=mse")
        self.both("mlp", "--steps", 5, "samples=100", "remainder=own", "eval_fraction=0.2")

    def test_goes_on_where_a_run_stopped(self):
        whole = self.train("--steps", 8, "--prefetch", 2)
        self.train("--steps", 3, "--prefetch", 2, "--out", self.folder / "run")
        done = self.cairn("train", "--resume", self.folder / "run", "--steps", 8, "--prefetch", 2, "--json", "--quiet")
        self.assertEqual(json.loads(done.stdout)["parameter_digest"], whole["parameter_digest"])

    def test_a_micro_batch_that_fails_is_named_as_without(self):
        said = [self.fails(3, "train", self.recipe, "fail=6", *more).stderr for more in ([], ["--prefetch", 4])]
        self.assertIn("rows.lua", said[0])
        self.assertIn("no such row", said[0])
        self.assertEqual(*[text.strip().split("\n")[-1] for text in said])

    def test_data_that_open_but_once_are_read_without_a_thread(self):
        done = self.cairn("train", self.recipe, f"once={self.folder}/lock", "--prefetch", 2, "--steps", 3)
        self.assertIn("note: --prefetch: no micro-batch is made ahead", done.stderr)
        self.assertIn("the data are open already", done.stderr)

    def test_a_signal_ends_a_run_whose_data_hang(self):
        out = self.folder / "run"
        process = subprocess.Popen(
            [harness.CAIRN, "train", str(self.recipe), "hang=4", "--prefetch", "2", "--out", str(out)],
            env=self.environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        while not (out / "plan.html").exists():
            time.sleep(0.02)
        time.sleep(1)  # the four steps before the one that hangs take milliseconds
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=harness.HANGS)
        self.assertEqual(process.returncode, 130, said)
        self.assertTrue((out / "step-00000004").exists(), said)


if __name__ == "__main__":
    harness.main()
