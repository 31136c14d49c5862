"""`evaluation` and metrics: their values, what they leave alone, the best checkpoint, early stops."""
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import TEXT, TINY, Case, main  # noqa: E402
from lengths_test import texts  # noqa: E402

MLP = ["samples=200", "batch=16", "layers=1", "width=16", "rate=0.02"]
# A recipe on numbers of its own: inputs x and w of two rows, so that its metrics can be worked out by hand.
METRICS = """
local nn = require("cairn").nn
return {
  training = { steps = 2, rate = 1e-30 },
  model = function(o, graph)
    local x, w = graph:input("x", { 2, 1 }), graph:input("w", { 2, 1 })
    local y = nn.Linear(1, 1):build(nn.context(graph, true), x)
    local loss, weight = graph:op("mse", y, graph:input("y", { 2, 1 }))
    return { loss = loss, weight = weight, metrics = {
      mean = { sum = graph:op("reduce_sum", x * w), weight = graph:op("reduce_sum", w), better = "lower" },
      largest = { outputs = { x = x }, better = "higher", training = true, measure = function(outputs, arrays)
        assert(math.abs(outputs.x[2] - arrays.x[2]) <= 1e-6 * math.abs(arrays.x[2]) or arrays.x[2] > 1e38)
        return math.max(outputs.x[1], outputs.x[2]), %s
      end },
      root = { of = "loss", apply = math.sqrt, better = "lower" },
      %s
    } }
  end,
  dataset = function()
    return { batch = function(index)
      %s
      return { x = { index, 2 * index }, w = { 1, index }, y = { 0, 0 } }, 2
    end }
  end,
  evaluation = function()
    return { data = function() return { batches = %s, batch = function(index)
      return { x = { index, %s }, w = { 1, 1 }, y = { 0, 0 } }, 2
    end } end }
  end,
}
"""
# Interrupts the run once, as Ctrl-C would, when micro-batch 4 is asked for.
INTERRUPT = """
      if index == 4 and not io.open("there") then
        io.open("there", "w"):close()
        local ffi = require "ffi"
        ffi.cdef "int getpid(void); int kill(int process, int signal);"
        ffi.C.kill(ffi.C.getpid(), 2)
      end"""


def metrics_recipe(weight="1", more="", batch="", batches="3", x="index"):
    return METRICS % (weight, more, batch, batches, x)


PLAIN = """local nn = require("cairn").nn
return {
  model = function(o, graph) return nn.attach(graph, nn.Linear(2, 1), nn.MSECriterion(), { 4, 2 }) end,
  dataset = function()
    return { batch = function() return { input = { 0, 0, 0, 1, 1, 0, 1, 1 }, target = { 0, 1, 1, 0 } } end }
  end,
}
"""


class Evaluation(Case):
    def steps_of(self, found):
        return [row["step"] for row in found["evaluation"]]

    def test_digests_are_the_same_with_and_without(self):
        other = self.folder / "other.txt"
        other.write_text(TEXT[500:1500])
        evaluates = [f"eval_data={other}", "--eval-every", 2]
        for options in ([], ["dropout=0.1", "--accumulate", 2], ["--amp", "bf16", "optimizer=lion"],
                        ["--policy", "recompute"], ["batch=6", "remainder=own", "--accumulate", 3]):
            with self.subTest(options=options):
                plain = self.train("--steps", 5, *options)
                samples = ["--sample-every", 3] if "bf16" in options else []
                found = self.train("--steps", 5, *options, *evaluates, *samples)
                self.assertEqual(found["parameter_digest"], plain["parameter_digest"])
                self.assertEqual(found["loss"], plain["loss"])
                self.assertEqual(self.steps_of(found), [2, 4, 5])
                self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])
                self.assertNotIn("evaluation", plain)
                self.assertNotIn("best", plain)

    def test_nor_where_values_are_in_a_tier(self):
        model = ["samples=500", "batch=100", "layers=3", "width=64", "eval_fraction=0.2", "--policy", "offload"]
        plain = self.train("--steps", 6, recipe="mlp", model=[*model, "--eval-every", 6])
        found = self.train("--steps", 6, recipe="mlp", model=[*model, "--eval-every", 1])
        self.assertGreater(found["plan"]["offload_host_bytes"], 0)
        self.assertEqual(found["parameter_digest"], plain["parameter_digest"])
        self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])

    def test_values_are_the_loss_of_all_the_data(self):
        other = self.folder / "other.txt"
        other.write_text(TEXT[500:1517])  # of a last micro-batch that is not full
        windows = (len(TEXT[500:1517]) - 1) // 16
        self.assertNotEqual(windows % 4, 0)
        found = self.train("--steps", 3, f"eval_data={other}", "dropout=0.3", "--out", "run")
        self.assertEqual(self.steps_of(found), [3])
        self.cairn("export", "run", "weights.safetensors")
        again = self.train("--steps", 1, "rate=1e-30", "--init", self.folder / "weights.safetensors", "--accumulate",
                           math.ceil(windows / 4), data=other)
        row = found["evaluation"][0]
        self.assertAlmostEqual(row["loss"], again["loss"][0], delta=1e-6)
        self.assertAlmostEqual(row["perplexity"], math.exp(row["loss"]), delta=1e-9)
        self.assertEqual(found["metrics"]["perplexity"], [math.exp(loss) for loss in found["loss"]])

    def test_a_held_out_share_is_not_trained_with(self):
        marked = self.folder / "marked.txt"
        marked.write_text("a" * 400 + "\n" + "b" * 99 + "\n")
        whole = self.train("--steps", 1, "seq=8", "--accumulate", 99, data=marked)
        part = self.train("--steps", 1, "seq=8", "--accumulate", 99, "eval_fraction=0.2", data=marked)
        self.assertEqual(part["epochs"], 1)
        self.assertEqual(part["programs"][0]["tokens"], 400 // 8 * 8)  # "a...a\n" is 401 bytes
        self.assertEqual(part["programs"][1]["tokens"], 99 // 8 * 8)
        self.assertEqual(whole["epochs"], 1)
        again = self.train("--steps", 1, "seq=8", "--accumulate", 99, "eval_fraction=0.2", data=marked)  # from the cache
        self.assertEqual(again["parameter_digest"], part["parameter_digest"])

    def test_every_recipe_evaluates(self):
        for recipe, arguments, metrics in (
                ("gpt2", ["eval_fraction=0.2"], {"loss", "accuracy", "perplexity"}),
                ("llama", ["eval_fraction=0.2", "kv_heads=1"], {"loss", "accuracy", "perplexity"}),
                ("mlp", ["eval_fraction=0.25"], {"loss", "accuracy"}),
                ("mlp", ["eval_fraction=0.24", "loss=mse", "remainder=drop"], {"loss", "accuracy"})):
            with self.subTest(recipe=recipe, arguments=arguments):
                found = self.train("--steps", 2, "--eval-every", 1, *arguments, recipe=recipe,
                                   model=MLP if recipe == "mlp" else None)
                self.assertEqual(self.steps_of(found), [1, 2])
                self.assertEqual(set(found["evaluation"][0]) - {"step", "seconds"}, metrics)
        self.assertEqual(self.train("--steps", 1, "eval_fraction=0.5", data="random")["evaluation"][0]["step"], 1)
        documents = self.folder / "documents.txt"
        documents.write_text(texts())
        found = self.train("--steps", 1, "lengths=8,16,32", "eval_fraction=0.25", data=documents)
        self.assertEqual(found["programs"][-1]["name"], "evaluation")
        left = texts().strip().split("\n\n")[36:]
        self.assertEqual(found["programs"][-1]["tokens"], sum(len(text) - 1 for text in left))

    def test_accuracy_is_the_share_told_apart(self):
        found = self.train("--steps", 200, "--eval-every", 50, "eval_fraction=0.25", "--best", "accuracy", "noise=0",
                           recipe="mlp", model=MLP)
        values = [row["accuracy"] for row in found["evaluation"]]
        self.assertTrue(all(abs(value * 50 - round(value * 50)) < 1e-9 for value in values), values)  # of 50 points
        self.assertGreater(max(values), 0.8)
        best = found["best"]
        self.assertEqual((best["metric"], best["value"]), ("accuracy", max(values)))
        self.assertEqual(best["step"], found["evaluation"][values.index(max(values))]["step"])  # the first of equals

    def test_accuracy_in_training_is_exact_whatever_the_split(self):
        for loss in ("cross_entropy", "mse"):
            options = ["rate=1e-30", "metrics=accuracy", f"loss={loss}", "--epochs", 1]
            whole = self.train(*options, "batch=400", recipe="mlp", model=["samples=400"])
            (wanted,) = whole["metrics"]["accuracy"]
            self.assertEqual(wanted, round(wanted * 400) / 400)
            for split in (["batch=16", "--accumulate", 25], ["batch=7", "remainder=own", "--accumulate", 99],
                          ["batch=80", "--accumulate", 5]):
                with self.subTest(loss=loss, split=split):
                    parts = self.train(*options, *split, recipe="mlp", model=["samples=400"])
                    self.assertEqual(parts["metrics"]["accuracy"], [wanted])
        (self.folder / "tiny.txt").write_text(TEXT[:16 * 13 + 1])
        for recipe in ("gpt2", "llama"):
            options = ["rate=1e-30", "metrics=accuracy", "--epochs", 1, "kv_heads=1"][:4 + (recipe == "llama")]
            whole = self.train(*options, "batch=13", recipe=recipe, data=self.folder / "tiny.txt")
            parts = self.train(*options, "--accumulate", 9, recipe=recipe, data=self.folder / "tiny.txt")
            self.assertEqual(parts["metrics"]["accuracy"], whole["metrics"]["accuracy"])

    def test_the_best_checkpoint_is_kept_beside_the_newest(self):
        # Data that are further off from one evaluation to the next, but for the third, which is the best.
        worse = "(function() calls = (calls or 4) - 1; return math.abs(calls - 1) + 1 end)()"
        options = ["--eval-every", 1, "--best", "loss", "--save-every", 1]
        found = json.loads(self.own("--steps", 8, *options, "--keep", 3, "--out", "run", batches="1", x=worse).stdout)
        losses = [row["loss"] for row in found["evaluation"]]
        self.assertEqual(losses.index(min(losses)), 2)
        self.assertEqual(found["best"], {"step": 3, "metric": "loss", "value": min(losses),
                                         "checkpoint": "run/step-00000003"})
        kept = sorted(path.name for path in (self.folder / "run").glob("step-*"))
        self.assertEqual(kept, [f"step-{n:08d}" for n in (3, 6, 7, 8)])
        self.cairn("inspect", found["best"]["checkpoint"])
        # A resumed run knows the best, and keeps it, and as many of the newest as before; evaluations of later steps than it goes on from are forgotten.
        rest = json.loads(self.cairn("train", "mine.lua", "--resume", "run/step-00000006", "--steps", 8, *options,
                                     "--json", "--quiet").stdout)
        self.assertEqual(self.steps_of(rest), [7, 8])
        self.assertEqual(rest["best"], found["best"])
        kept = sorted(path.name for path in (self.folder / "run").glob("step-*"))
        self.assertEqual(kept, [f"step-{n:08d}" for n in (3, 6, 7, 8)])
        lines = [json.loads(line)["step"] for line in (self.folder / "run/evaluations.jsonl").read_text().splitlines()]
        self.assertEqual(lines, list(range(1, 9)))

    def test_early_stop(self):
        still = ["rate=1e-30", "eval_fraction=0.2", "--eval-every", 2, "--early-stop", 3, "--steps", 50]
        found = self.train(*still, recipe="mlp", model=MLP[:-1])
        self.assertEqual((found["steps"], found["early_stopped"]), (8, True))
        self.assertEqual(self.steps_of(found), [2, 4, 6, 8])
        self.train(*still[:4], "--eval-every", 2, "--early-stop", 3, "--steps", 4, "--out", "run", recipe="mlp",
                   model=MLP[:-1])
        rest = json.loads(self.cairn("train", "--resume", "run", *still[2:], "--json", "--quiet").stdout)
        self.assertEqual(rest["steps"], 8)  # evaluations before the resume count
        self.assertIn("stopped early", self.cairn("train", "mlp", *MLP[:-1], *still, "--quiet").stdout)
        going = self.train("--steps", 6, "eval_fraction=0.2", "--eval-every", 2, "--early-stop", 3, recipe="mlp", model=MLP)
        self.assertEqual((going["steps"], going["early_stopped"]), (6, False))

    def test_epochs_and_times(self):
        found = self.train("--epochs", 2, "--accumulate", 3, "remainder=own", recipe="mlp", model=MLP)
        self.assertEqual((found["steps"], found["epochs"]), (2 * 5, 2))  # 13 micro-batches of at most 16
        self.assertEqual(sum(row["tokens"] for row in found["programs"]), 400)
        self.assertGreater(found["samples_per_second"], 0)
        self.assertAlmostEqual(found["samples_per_second"], found["tokens_per_second"], delta=1e-6)
        self.assertGreaterEqual(found["total_seconds"], sum(found["step_seconds"]))
        text = self.train("--steps", 3)
        self.assertAlmostEqual(text["samples_per_second"] * 16, text["tokens_per_second"], delta=1e-3)
        self.assertIsNone(self.train("--steps", 1, data="random")["epochs"])
        shown = self.cairn("train", "mlp", *MLP, "--epochs", 1, "--quiet").stdout
        for words in ("samples/s", "in all", "; 1 epochs"):
            self.assertIn(words, shown)
        self.assertNotIn("tokens", shown)
        shown = self.cairn("train", "mlp", *MLP, "--epochs", 1, "remainder=own", "--out", "run", "--progress-every", 1)
        self.assertRegex(shown.stdout, r"\nremainder +1 micro-batches, \d+ samples\n")
        self.assertNotIn("tokens", shown.stdout + shown.stderr)
        page = (self.folder / "run/report.html").read_text()
        self.assertIn("Samples per second", page)
        self.assertNotIn("Tokens per", page)

    def test_metrics_of_training_are_shown(self):
        shown = self.cairn("train", "mlp", *MLP, "metrics=accuracy", "--steps", 3, "--quiet").stdout
        found = self.train("--steps", 3, "metrics=accuracy", recipe="mlp", model=MLP)
        self.assertIn(f"\nmetrics           accuracy {found['metrics']['accuracy'][-1]:.4g}\n", shown)

    def test_a_recipe_that_counts_nothing(self):
        (self.folder / "plain.lua").write_text(PLAIN)
        shown = self.cairn("train", "plain.lua", "--steps", 3, "--out", "run").stdout
        self.assertRegex(shown, r"\nrate  [\d.]+ m?u?s per step[,\n]")
        self.assertNotIn("per second", (self.folder / "run/report.html").read_text())

    def own(self, *arguments, code=0, **changes):
        (self.folder / "mine.lua").write_text(metrics_recipe(**changes))
        return self.cairn("train", "mine.lua", "--json", "--quiet", "--threads", 2, *arguments, code=code)

    def test_metrics_have_weights_of_their_own(self):
        found = json.loads(self.own("--accumulate", 3).stdout)
        for step in range(2):
            batches = range(3 * step, 3 * step + 3)
            total = sum(i + 2 * i * i for i in batches)
            self.assertAlmostEqual(found["metrics"]["mean"][step], total / sum(1 + i for i in batches), delta=1e-6)
            self.assertAlmostEqual(found["metrics"]["largest"][step], sum(2 * i for i in batches) / 3, delta=1e-6)
            self.assertAlmostEqual(found["metrics"]["root"][step], math.sqrt(found["loss"][step]), delta=1e-12)
        row = found["evaluation"][-1]
        self.assertAlmostEqual(row["mean"], sum(2 * i for i in range(3)) / 6, delta=1e-6)
        self.assertAlmostEqual(row["largest"], 1, delta=1e-6)
        text = self.own("--out", "run").stdout
        lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([line["mean"] for line in lines], json.loads(text)["metrics"]["mean"])

    def test_metrics_go_on_inside_an_effective_batch(self):
        whole = json.loads(self.own("--accumulate", 3).stdout)
        self.own("--accumulate", 3, "--out", "run", batch=INTERRUPT, code=130)
        rest = json.loads(self.cairn("train", "mine.lua", "--resume", "run", "--json", "--quiet").stdout)
        self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])
        for name in ("mean", "largest", "root"):
            self.assertEqual(rest["metrics"][name], whole["metrics"][name][1:])

    def test_a_metric_that_is_not_finite_is_named(self):
        done = self.own("--steps", 3, weight="arrays.x[1] < 1 and 1 or 0 / 0", code=7, x="0 / 0", batches="1",
                        more="")
        self.assertIn("step 2: largest is", done.stderr)
        self.assertEqual(json.loads(done.stdout)["steps"], 2)
        done = self.own("--steps", 3, "--eval-every", 2, "--out", "run", batches="2", x="index * 1e39", code=7)
        self.assertIn("evaluation after step 2: loss is inf, which is not finite, saved in run/step-00000002", done.stderr)
        self.assertEqual(json.loads(done.stdout)["evaluation"][0]["loss"], None)

    def test_a_metric_that_is_made_of_a_finite_one_may_overflow_in_training(self):
        odd = 'odd = { of = "loss", apply = function(loss) return loss == 0 and math.huge or 1 end, better = "lower" },'
        found = json.loads(self.own("--steps", 2, more=odd).stdout)
        self.assertEqual(found["loss"][0], 0)
        self.assertEqual(found["metrics"]["odd"], [None, 1])

    def test_interrupted_while_it_evaluates(self):
        whole = json.loads(self.own("--steps", 4).stdout)
        interrupt = INTERRUPT.replace("index == 4", "index == 1").replace("\n", " ")
        x = f"(function() {interrupt} return 1 end)()"
        done = self.own("--steps", 4, "--eval-every", 2, "--out", "run", x=x, code=130)
        self.assertIn("saved run/step-00000002", done.stderr)
        self.assertEqual(json.loads(done.stdout)["evaluation"], [])  # a part of it tells nothing
        rest = json.loads(self.cairn("train", "mine.lua", "--resume", "run", "--eval-every", 2, "--json", "--quiet").stdout)
        self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])
        self.assertEqual(self.steps_of(rest), [2, 4])  # that of step 2 was due, and is made before all else

    def test_mistakes(self):
        gpt2 = ["train", "gpt2", *TINY, f"data={self.text}"]
        for options, says in {
                ("--eval-every", "2"): ("--eval-every", "nothing to evaluate with", "eval_fraction"),
                ("--best", "loss"): ("--best", "nothing to evaluate with"),
                ("--early-stop", "2", "eval_fraction=0.2"): "--early-stop needs --eval-every",
                ("--best", "perplexty", "eval_fraction=0.2"): ("perplexty", "did you mean 'perplexity'", "loss accuracy perplexity"),
                ("--best", "bleu", "eval_fraction=0.2"): ("bleu", "no such metric", "loss accuracy perplexity"),
                ("--keep", "0"): ("--keep", "at least 1"), ("--eval-every", "0"): "--eval-every",
                ("--early-stop", "-1"): "--early-stop", ("--log-every", "x"): "--log-every", ("--epochs", "0"): "--epochs",
                ("--epochs", "2", "--steps", "3"): ("--epochs", "--steps"),
                ("--epochs", "2", "data=random"): ("--epochs", "no end"),
                ("eval_fraction=1",): ("eval_fraction=1", "below 1"), ("eval_fraction=-0.1",): "eval_fraction=-0.1",
                ("eval_fraction=nan",): "eval_fraction=nan",
                ("eval_fraction=0.2", f"eval_data={self.text}"): ("eval_data", "eval_fraction"),
                ("data=random", f"eval_data={self.text}"): "eval_data=FILE goes with data=FILE",
                ("--sample-every", "1", "data=random"): "--sample-every",
                ("--sample-prompt", "x"): "--sample-every"}.items():
            with self.subTest(options=options):
                self.fails(2, *gpt2, *options, says=says)
        (self.folder / "empty.txt").write_text("")
        (self.folder / "short.txt").write_text("short")
        for options, says in {
                ("eval_data=empty.txt",): ("eval_data", "empty.txt is empty"),
                ("eval_data=short.txt",): ("eval_data: short.txt", "window"),
                ("eval_data=nowhere.txt",): ("eval_data", "nowhere.txt"),
                ("eval_fraction=0.001",): ("eval_fraction=0.001",),
                ("eval_fraction=0.999",): ("eval_fraction=0.999", "window")}.items():
            with self.subTest(options=options):
                self.fails(3, *gpt2, *options, says=says)
        self.fails(3, "train", "mlp", *MLP, "eval_fraction=0.001", says="no point")
        self.fails(2, "train", "mlp", *MLP, "--sample-every", 1, says="generates no text")

    def test_mistakes_in_metrics(self):
        for more, says in {
                "loss = { of = 'mean', apply = math.exp, better = 'lower' }": ("'loss'", "taken"),
                "other = 5": ("'other'", "5, a number"), "other = { better = 'lower' }": ("'other'", "measure"),
                "other = { of = 'loss', apply = math.exp }": ("'other'", "better", "which way"),
                "other = { of = 'los', apply = math.exp, better = 'lower' }": ("'other'", "no metric 'los'"),
                "other = { sum = x, weight = loss, better = 'lower' }": ("'other'", "[2, 1]", "scalar"),
                "other = { sum = 1, weight = loss, better = 'lower' }": ("'other': sum", "1, a number"),
                "other = { outputs = { 1 }, measure = print, better = 'lower' }": ("'other'", "1, a number")}.items():
            with self.subTest(more=more):
                problem = self.own(more=more, code=3).stderr
                for words in says:
                    self.assertIn(words, problem)
        self.assertIn("two numbers", self.own(weight="nil", code=3).stderr)
        self.assertIn("no end", self.own(batches="nil", code=3).stderr)


main()
