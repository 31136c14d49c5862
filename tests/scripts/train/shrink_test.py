#!/usr/bin/env python3
"""--on-oom shrink: smaller micro-batches where memory does not suffice, with the parameters of a run begun that way."""
import json
import pathlib
import resource
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

MODEL = ["layers=2", "width=32", "heads=2", "seq=32"]
# A recipe whose step under way is refused memory once, as a micro-batch that the system gives no memory is.
REFUSED = """
local core = require "cairn.core"
local stepper = require "cairn.stepper"
local micro, calls = stepper.Stepper.micro, 0
function stepper.Stepper:micro(...)
  calls = calls + 1
  if calls ~= %d then return micro(self, ...) end
  self:discard()
  return nil, core.make_error(core.C.CAIRN_STATUS_OUT_OF_MEMORY, "no memory")
end
return dofile("%s")
"""


class Shrink(harness.Case):
    def gpt2(self, *words, recipe="gpt2", data=None, **options):
        data = data or self.text
        return json.loads(self.cairn("train", recipe, *MODEL, f"data={data}", "--threads", 1, "--json", "--quiet",
                                     *words, **options).stdout)

    def smallest(self, batch):
        return self.smallest_budget("gpt2", *MODEL, "data=random", f"batch={batch}", "--threads", 1)

    def test_a_budget(self):
        budget = (self.smallest(8) + self.smallest(4)) // 2
        run = ["batch=8", "--budget", budget, "--steps", 9]
        self.fails(4, "train", "gpt2", *MODEL, f"data={self.text}", *run, "--threads", 1)
        found = self.gpt2(*run, "--on-oom", "shrink", "--out", "run")
        begun = self.gpt2("batch=4", "--accumulate", 2, "--budget", budget, "--steps", 9)
        self.assertEqual((found["batch"], found["accumulate"], found["steps"]), (4, 2, 9))
        self.assertLessEqual(found["peak_bytes"]["device"], budget)
        self.assertEqual([(row["step"], row["batch"], row["accumulate"]) for row in found["shrunk"]], [(0, 4, 2)])
        self.assertIn("no plan fits", found["shrunk"][0]["why"])
        self.assertEqual(found["parameter_digest"], begun["parameter_digest"])
        self.assertEqual(found["loss"], begun["loss"])
        # A resumed run goes on with what it had come to; so does its run.json.
        more = json.loads(self.cairn("train", "--resume", "run", "--steps", 12, "--json", "--quiet").stdout)
        begun = self.gpt2("batch=4", "--accumulate", 2, "--steps", 12)
        self.assertEqual((more["batch"], more["accumulate"]), (4, 2))
        self.assertEqual(more["parameter_digest"], begun["parameter_digest"])
        self.fails(2, "train", "--resume", "run", "batch=8", "--steps", 15, says=("batch=8", "batch=4"))
        again = json.loads(self.cairn("train", "--config", "run/run.json", "--steps", 12, "--json", "--quiet").stdout)
        self.assertEqual(again["parameter_digest"], begun["parameter_digest"])

    def test_odd_sizes_and_the_smallest(self):
        budget = (self.smallest(9) + self.smallest(3)) // 2
        found = self.gpt2("batch=9", "--budget", budget, "--steps", 2, "--on-oom", "shrink")
        self.assertEqual((found["batch"], found["accumulate"]), (3, 3))
        self.fails(4, "train", "gpt2", *MODEL, f"data={self.text}", "batch=2", "--budget", 1000, "--on-oom", "shrink",
                   says=("smallest budget", "one sample cannot be made smaller"))
        self.fails(4, "train", "gpt2", *MODEL, f"data={self.text}", "batch=8", "--budget", 1000, "--on-oom", "shrink",
                   "remainder=own", says="take pad or drop")
        self.fails(4, "train", "gpt2", *MODEL, f"data={self.text}", "batch=8", "--budget", 1000, "--on-oom", "shrink",
                   "--fuse-update", "clip=0", says=("smallest budget", "does not go with --fuse-update"))

    def test_the_system_refuses_memory(self):
        big = ["width=128", "seq=256", "vocab=512", "batch=64", "--steps", 1]
        limit = self.gpt2(*big, data="random")["peak_bytes"]["device"]  # what else the process takes is beside it

        def limited():
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        found = self.gpt2(*big, "--on-oom", "shrink", data="random", preexec_fn=limited)
        self.assertLess(found["batch"], 64)
        self.assertEqual(found["batch"] * found["accumulate"], 64)

    def test_in_the_middle_of_a_run(self):
        # No sample is lost or seen twice: over several epochs with remainders, losses are those of an undisturbed run.
        short = self.folder / "short"
        short.write_text(harness.TEXT[:1500])
        run = ["--accumulate", 2, "--epochs", 3, "rate=1e-3"]
        whole = self.gpt2("batch=4", *run, data=short)
        self.assertGreater(whole["steps"], 6)
        for call in (1, 2, 3, 8):
            with self.subTest(call=call):
                recipe = self.folder / f"refused{call}.lua"
                recipe.write_text(REFUSED % (call, harness.ROOT / "scripts/recipes/gpt2.lua"))
                samples = ["--sample-every", 1] if call == 8 else []  # by programs of the store that there is
                found = self.gpt2("batch=4", "--on-oom", "shrink", *run, *samples, "--out", f"run{call}", recipe=recipe,
                                  data=short)
                self.assertEqual(found["steps"], whole["steps"])
                self.assertEqual((found["batch"], found["accumulate"]), (2, 4))
                row, = found["shrunk"]
                self.assertEqual((row["step"], row["batch"], row["accumulate"]), ((call - 1) // 2, 2, 4))
                for a, b in zip(found["loss"], whole["loss"]):
                    self.assertAlmostEqual(a, b, delta=1e-5 * b)
                # Where it was is saved as ever, so that nothing is lost if it cannot go on.
                saved = {path.name for path in (self.folder / f"run{call}").glob("step-*")}
                self.assertEqual(saved, {f"step-{step:08d}" for step in ((call - 1) // 2, whole["steps"])})
                if samples:
                    self.assertEqual(len((self.folder / "run8/samples.jsonl").read_text().splitlines()), whole["steps"])
        recipe = self.folder / "refused.lua"
        recipe.write_text(REFUSED % (4, harness.ROOT / "scripts/recipes/gpt2.lua"))
        self.fails(4, "train", recipe, *MODEL, f"data={short}", "batch=1", *run, "--on-oom", "shrink", "--out", "one",
                   "--threads", 1, says="one sample cannot be made smaller")
        self.assertTrue((self.folder / "one/step-00000001").exists())
        aside = self.folder / "aside"  # where a run goes through that saves nowhere
        aside.mkdir()
        self.environment["TMPDIR"] = str(aside)
        found = self.gpt2("batch=4", "--on-oom", "shrink", *run, recipe=recipe, data=short)
        self.assertEqual((found["batch"], found["steps"]), (2, whole["steps"]))
        self.assertEqual(list(aside.iterdir()), [])
        first = self.gpt2("batch=2", "--accumulate", 4, "--epochs", 3, "rate=1e-3", data=short)
        refused = json.loads((self.folder / "run1/metrics.jsonl").read_text().splitlines()[0])
        self.assertEqual(refused["loss"], first["loss"][0])

    def test_a_recipe_of_ones_own(self):
        recipe = self.folder / "own.lua"
        recipe.write_text("""
        return {
          options = { { "batch", 4, "samples of a micro-batch" } },
          model = function(o, g)
            local x, scale = g:input("x", { o.batch, 3 }), g:input("scale", { 3 })
            local w = g:parameter("w", { 2, 3 }, { init = "normal", scale = 0.1 })
            return { loss = g:op("mse", g:op("linear", g:op("add", x, scale), w), g:input("y", { o.batch, 2 })) }
          end,
          dataset = function(o)
            return { batches = 5, batch = function(index)
              local x, y = {}, {}
              for i = 1, o.batch * 3 do x[i] = math.sin(index %% 5 * 100 + i) end
              for i = 1, o.batch * 2 do y[i] = math.cos(index %% 5 * 100 + i) end
              return { x = x, y = y, scale = { 1, 2, 3 } }, o.batch
            end }
          end,
        }
        """.replace("%%", "%"))
        options = [str(recipe), "--threads", 1, "--steps", 7, "--json", "--quiet"]
        whole = json.loads(self.cairn("train", *options).stdout)
        budget = whole["planned_peak_bytes"]["device"] - 1
        found = json.loads(self.cairn("train", *options, "--budget", budget, "--policy", "keep", "--on-oom", "shrink").stdout)
        self.assertEqual(found["batch"], 2)
        for a, b in zip(found["loss"], whole["loss"]):
            self.assertAlmostEqual(a, b, delta=1e-5 * b)


if __name__ == "__main__":
    harness.main()
