"""`cairn evaluate` measures a trained model as its run did, or on other data, and leaves the run as it was."""
import json
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import TINY, Case, main  # noqa: E402

OTHER = "Another text altogether, of a different kind; and what of it? " * 40

OWN = """-- y = 2 x, learned from four points; evaluated with as many others as data= says.
local nn = require("cairn").nn
local function points(first, count)
  local input, target = {}, {}
  for i = 1, count do input[i], target[i] = (first + i) / 8, (first + i) / 4 end
  return { input = input, target = target }
end
return {
  options = { { "data", "", "how many points" }, { "share", 0.5, "of the points" } },
  training = { steps = 5, rate = 1e-2 },
  model = function(o, graph)
    local ends = nn.attach(graph, nn.Sequential():add(nn.Linear(1, 1)), nn.MSECriterion(), { 4, 1 })
    local squares = ends.output * ends.output
    ends.metrics = { size = { outputs = { y = ends.output }, better = "lower", measure = function(outputs)
      return #outputs.y, 4
    end } }
    return ends, squares
  end,
  dataset = function() return { batches = 1, batch = function() return points(0, 4), 4 end } end,
  evaluation = function(o)
    local batches = tonumber(o.data)
    return batches and { data = function()
      return { batches = batches, batch = function(index) return points(4 * index, 4), 4, nil, 4 end }
    end }
  end,
}
"""


def tree(folder):
    """All of a folder: names, times of change, sizes, content."""
    found = {}
    for where, below, names in os.walk(folder):
        for name in [*below, *names, "."]:
            path = pathlib.Path(where) / name
            status = path.stat()
            found[str(path)] = (status.st_mtime_ns, status.st_ctime_ns, status.st_size,
                                path.read_bytes() if path.is_file() else b"")
    return found


class Evaluate(Case):
    def evaluate(self, *arguments):
        done = self.cairn("evaluate", *arguments, "--json", "--quiet", "--threads", 2)
        self.assertEqual(done.stderr, "")
        found = json.loads(done.stdout)
        self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])
        return found

    def agrees(self, last, *arguments):
        """The command finds what the run found in its last evaluation, to the bit."""
        found = self.evaluate(*arguments)
        for name, value in last.items():
            if name != "seconds":
                self.assertEqual(found[name], value, name)
        return found

    def test_as_the_run_did(self):
        for i, more in enumerate((["--amp", "bf16", "parameters=bf16"], ["--amp", "fp16"], ["tokens=bpe", "vocab=300"],
                                  ["dropout=0.1", "remainder=own"])):
            report = self.train("eval_fraction=0.25", "--steps", 3, "--out", f"run{i}", *more)
            found = self.agrees(report["evaluation"][-1], f"run{i}")
            self.assertEqual(found["checkpoint"], f"run{i}/step-00000003")
            self.assertEqual(found["tokens"], 16 * found["samples"])
        report = self.train("eval_fraction=0.3", "--steps", 4, "--out", "points", recipe="mlp")
        found = self.agrees(report["evaluation"][-1], "points")
        self.assertEqual(found["samples"], 307)
        self.assertNotIn("tokens", found)
        report = self.train("eval_fraction=0.3", "loss=mse", "batch=1", "samples=40", "--steps", 4, "--out", "mse", recipe="mlp")
        self.agrees(report["evaluation"][-1], "mse")

    def test_texts_by_length(self):
        self.text.write_text("\n\n".join("word " * (i % 7 + 1) for i in range(60)))
        report = self.train("lengths=8,16", "eval_fraction=0.25", "--steps", 3, "--out", "run")
        self.agrees(report["evaluation"][-1], "run")

    def test_other_data_and_the_run_is_not_touched(self):
        other = self.folder / "other.txt"
        other.write_text(OTHER)
        self.train("tokens=bpe", "vocab=300", "--steps", 3, "--save-every", 1, "--out", "run")
        for path in pathlib.Path(self.folder / "run").rglob("*"):
            os.utime(path, ns=(10**18, 10**18))
        before = tree(self.folder / "run")
        self.text.unlink()  # what it was trained on is not needed
        os.chmod(self.folder / "run", 0o555)
        found = self.evaluate("run", f"data={other}")
        self.assertEqual(found, {**self.evaluate("run", f"eval_data={other}"), "seconds": found["seconds"]})
        self.assertEqual(self.evaluate("run/step-00000002", f"data={other}")["step"], 2)
        self.assertGreater(found["tokens"], 100)
        self.fails(2, "evaluate", "run", says=["nothing to evaluate with", "data=FILE"])
        table = self.cairn("evaluate", "run", f"data={other}").stdout
        self.assertIn("perplexity ", table)
        self.assertIn(" equal", table)
        os.chmod(self.folder / "run", 0o755)
        after = tree(self.folder / "run")
        self.assertEqual({path: (*was[:1], *was[2:]) for path, was in before.items()},
                         {path: (*now[:1], *now[2:]) for path, now in after.items()})

    def test_all_of_a_text_as_a_run_with_eval_data(self):
        other = self.folder / "other.txt"
        other.write_text(OTHER)
        report = self.train(f"eval_data={other}", "--steps", 3, "--out", "run")
        self.train("--steps", 3, "--out", "plain")
        self.agrees(report["evaluation"][-1], "plain", f"data={other}")
        self.cairn("export", "plain", "plain.safetensors", "--quiet")
        weights = self.evaluate("plain.safetensors", "gpt2", *TINY, f"data={other}")
        self.assertEqual(weights["loss"], report["evaluation"][-1]["loss"])
        self.assertEqual(weights["checkpoint"], "plain.safetensors")
        self.fails(2, "evaluate", "plain.safetensors", says="name the recipe")
        self.fails(3, "evaluate", "plain.safetensors", "gpt2", f"data={other}", says=["does not fit", "layers=2"])

    def test_best(self):
        report = self.train("eval_fraction=0.25", "rate=0.1", "--steps", 6, "--eval-every", 1, "--save-every", 1, "--best",
                            "accuracy", "--keep", 1, "--out", "run")
        best = report["best"]
        found = self.evaluate("run", "--best")
        self.assertEqual((found["step"], found["accuracy"]), (best["step"], best["value"]))
        self.assertEqual(self.evaluate("run")["step"], 6)
        shutil.rmtree(self.folder / found["checkpoint"])
        self.fails(3, "evaluate", "run", "--best", says=[found["checkpoint"], "no such checkpoint"])
        self.fails(2, "evaluate", "run/step-00000006", "--best", says="no run's directory")

    def test_what_was_held_out_is_known_by_the_content(self):
        self.train("eval_fraction=0.25", "--steps", 2, "--out", "run")
        self.text.write_text(OTHER)
        self.fails(3, "evaluate", "run", says=["text.txt", "held out", "data=FILE"])
        self.assertIn("note: eval_fraction was 0.25",
                      self.cairn("evaluate", "run", f"data={self.text}", "eval_fraction=0.5").stderr)

    def test_a_recipe_of_ones_own(self):
        (self.folder / "own.lua").write_text(OWN)
        report = json.loads(self.cairn("train", "own.lua", "data=2", "--out", "run", "--json", "--quiet").stdout)
        found = self.evaluate("run", "--recipe", "own.lua")
        self.assertEqual((found["loss"], found["size"], found["samples"]), (report["evaluation"][-1]["loss"], 1, 8))
        self.assertEqual(self.evaluate("run", "--recipe", "own.lua", "data=3")["samples"], 12)
        self.fails(3, "evaluate", "run", says="--recipe FILE")
        (self.folder / "own.lua").write_text(OWN + "\n")
        self.fails(3, "evaluate", "run", "--recipe", "own.lua", says="--recipe-changed")

    def test_what_does_not_go(self):
        self.train("--steps", 2, "--out", "run")
        self.fails(2, "evaluate", says="usage")
        self.fails(2, "evaluate", "run", "gpt2", says="unexpected 'gpt2'")
        self.fails(3, "evaluate", "nothing", says="nothing")
        self.assertTrue(self.fails(3, "evaluate", "run", "data=nothing.txt").stderr.startswith("cairn: data: nothing.txt: "))
        self.fails(3, "evaluate", "run", "eval_data=nothing.txt", says="eval_data: nothing.txt: ")
        self.fails(2, "evaluate", "run", "dta=x", says="did you mean 'data'")
        self.fails(3, "evaluate", "run", f"data={self.text}", "width=32", says=["not of the model", "in the trained model"])
        self.fails(4, "evaluate", "run", f"data={self.text}", "--budget", 1, says="smallest budget")


main()
