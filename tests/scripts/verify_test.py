"""`cairn verify`: what it runs, what it says, and that it finds what is wrong."""
import json

from harness import TINY, Case, main

TIERS = ("recompute only", "host", "slow host", "host and disk")


class Verify(Case):
    def verify(self, *arguments, code=0):
        return json.loads(self.cairn("verify", *arguments, "--json", "--quiet", "--threads", 2, code=code).stdout)

    def test_gpt2(self):
        result = self.verify("gpt2", *TINY, f"data={self.text}", "--steps", 2, "--budgets", 2)
        self.assertTrue(result["ok"], result["problems"])
        runs = {(run["group"], run["name"]): run for run in result["runs"]}
        self.assertEqual(len(runs), len(result["runs"]))
        digests = {}
        for group in ("1 micro-batch", "3 micro-batches"):
            names = [name for of, name in runs if of == group]
            for name in ("keep", "recompute", "offload to host", "offload to disk", "resumed"):
                self.assertIn(name, names)
            for tiers in TIERS:
                self.assertEqual(sum(name.endswith(" B, " + tiers) for name in names), 2, tiers)
            digests[group] = {runs[group, name]["parameter_digest"] for name in names}
            self.assertEqual(len(digests[group]), 1)
            self.assertGreater(runs[group, "recompute"]["recompute_bytes"], 0)
            self.assertGreater(runs[group, "offload to host"]["peak_bytes"]["host"], 0)
            self.assertGreater(runs[group, "offload to disk"]["peak_bytes"]["disk"], 0)
        self.assertNotEqual(*digests.values())
        self.assertIn(("3 micro-batches", "resumed inside a step"), runs)
        wide = runs["1 batch", "1 batch of all 3"]
        self.assertTrue(wide["ok"])
        self.assertLess(wide["largest_difference"], 1e-2)
        self.assertLess(0, result["gradients_apart"])
        self.assertLess(result["gradients_apart"], 1e-6)
        for run in result["runs"]:
            self.assertEqual(run["peak_bytes"], run["planned_peak_bytes"])
            self.assertTrue(run["peak_is_planned"])
            if run["budget_bytes"]:
                self.assertLessEqual(run["peak_bytes"]["device"], run["budget_bytes"])
        self.assertEqual(result["peaks_as_planned"], len(runs))
        self.assertGreater(result["seconds"], 0)

    def test_it_is_the_optimizer_that_was_asked_for(self):
        words = ["mlp", "samples=64", "--steps", 2, "--budgets", 1]
        digests = {}
        for optimizer in ("adamw", "sgd", "lion"):
            result = self.verify(*words, f"optimizer={optimizer}")
            self.assertTrue(result["ok"], result["problems"])
            digests[optimizer] = result["runs"][0]["parameter_digest"]
        self.assertEqual(len(set(digests.values())), 3, digests)

    def test_mlp_for_people(self):
        text = self.cairn("verify", "mlp", "samples=256", "--steps", 2, "--budgets", 1).stdout
        for word in ("same bits", "apart", "= planned", "host and disk", " runs of 2 steps in ", "1 batch of all 3",
                     "gradients of one batch and of its parts: at most "):
            self.assertIn(word, text)
        # An epoch of one micro-batch has nothing to accumulate.
        text = self.cairn("verify", "mlp", "samples=64", "--steps", 2, "--budgets", 1).stdout
        self.assertNotIn("1 batch of all 3", text)
        self.assertNotIn("gradients of one batch", text)
        self.assertNotIn("inside a step", text)

    RECIPE = """
        local nn = require("cairn").nn
        return {
          options = { { "batch", 4, "points", whole = true, least = 1 }, { "policy", "planner", "of the region" } },
          model = function(o, g)
            local net = nn.Sequential():add(nn.Linear(2, 8)):add(nn.GELU()):add(nn.Linear(8, 1))
            return nn.attach(g, nn.Region("all", o.policy, net), nn.MSECriterion(), { o.batch, 2 })
          end,
          dataset = function(o)
            return { batch = function(index)
              local input, target = {}, {}
              for i = 1, 2 * o.batch do input[i] = math.sin(%s + i) end
              for i = 1, o.batch do target[i] = 1 end
              return { input = input, target = target }, o.batch
            end }
          end,
        }"""

    def test_a_recipe_that_draws_by_the_index_is_not_comparable(self):
        (self.folder / "drawn.lua").write_text(self.RECIPE % "100 * index")
        result = self.verify("drawn.lua", "--steps", 2, "--budgets", 1)
        self.assertTrue(result["ok"], result["problems"])
        self.assertRegex(result["notes"][0], "not comparable.*'input'.*draws by the micro-batch's number")
        self.assertNotIn("1 batch", {run["group"] for run in result["runs"]})
        self.assertIsNone(result["gradients_apart"])
        (self.folder / "counted.lua").write_text(self.RECIPE % "2 * o.batch * index")
        result = self.verify("counted.lua", "--steps", 2, "--budgets", 1)
        self.assertEqual(result["notes"], [])
        self.assertIn("1 batch", {run["group"] for run in result["runs"]})

    def test_says_that_regions_leave_nothing_to_decide(self):
        (self.folder / "fixed.lua").write_text(self.RECIPE % "2 * o.batch * index")
        text = self.cairn("verify", "fixed.lua", "policy=keep", "--steps", 2, "--budgets", 1).stdout
        self.assertIn("every run had the same plan", text)

    # Two parameters that stand for each other: with a batch of all samples they change places, which neither the loss
    # nor the norm of the gradient shows.
    SWAPPED = """
        return {
          options = { { "batch", 4, "points", whole = true, least = 1 } },
          model = function(o, g)
            local x, target = g:input("input", { o.batch, 2 }), g:input("target", { o.batch, 1 })
            local constant = { init = "constant", scale = 0.25 }
            local a, b = g:parameter("a", { 1, 2 }, constant), g:parameter("b", { 1, 2 }, constant)
            local scale = g:parameter("scale", { 1, 2 }, { init = "constant", scale = 1, frozen = true })
            local one, two = g:op("linear", x, a), g:op("linear", x, b)
            if o.batch == %d then one, two = two, one end
            local loss, weight = g:op("mse", one + 2 * two + g:op("linear", x, scale), target)
            return { loss = loss, weight = weight }
          end,
          dataset = function(o)
            return { batch = function(index)
              local input, target = {}, {}
              for i = 1, 2 * o.batch do input[i] = math.sin(2 * o.batch * index + i) end
              for i = 1, o.batch do target[i] = math.cos(o.batch * index + i) end
              return { input = input, target = target }, o.batch
            end }
          end,
        }"""

    def test_compares_gradients_tensor_by_tensor(self):
        (self.folder / "right.lua").write_text(self.SWAPPED % 5)
        for options in (["optimizer=sgd", "momentum=0.9"], ["optimizer=lion", "--amp", "bf16"]):
            with self.subTest(options=options):
                result = self.verify("right.lua", *options, "--steps", 2, "--budgets", 1)
                self.assertTrue(result["ok"], result["problems"])
                self.assertLess(result["gradients_apart"], 1e-2 if "bf16" in options else 1e-6)
        (self.folder / "swapped.lua").write_text(self.SWAPPED % 12)
        result = self.verify("swapped.lua", "rate=1e-9", "--steps", 2, "--budgets", 1, code=1)
        self.assertEqual(len(result["problems"]), 1, result["problems"])
        self.assertRegex(result["problems"][0], "^1 batch, .*the gradient of [ab] is .* apart")
        self.assertGreater(result["gradients_apart"], 0.1)

    def test_text_models_need_no_data(self):
        self.assertEqual(self.cairn("verify", "gpt2", "layers=0", code=2).stdout, "")
        result = self.verify("gpt2", *TINY, "layers=1", "dropout=0.1", "--steps", 2, "--budgets", 1)
        self.assertTrue(result["ok"], result["problems"])
        self.assertRegex(result["notes"][0], "not comparable.*draws random numbers")
        self.assertIsNone(result["gradients_apart"])

    def test_finds_numbers_that_change(self):
        # A data set that is no pure function of its index: every run trains on something else.
        (self.folder / "broken.lua").write_text("""
            local nn = require("cairn").nn
            local count = 0
            return {
              options = { { "batch", 4, "points", whole = true, least = 1 } },
              model = function(o, g) return nn.attach(g, nn.Linear(2, 1), nn.MSECriterion(), { o.batch, 2 }) end,
              dataset = function(o)
                return { batch = function()
                  local input, target = {}, {}
                  for i = 1, 2 * o.batch do count = count + 1; input[i] = math.sin(count) end
                  for i = 1, o.batch do target[i] = 1 end
                  return { input = input, target = target }, o.batch
                end }
              end,
            }""")
        result = self.verify("broken.lua", "rate=0.1", "--steps", 2, "--budgets", 1, code=1)
        self.assertFalse(result["ok"])
        self.assertTrue(any("not the parameters" in problem for problem in result["problems"]))
        wrong = [run for run in result["runs"] if not run["equal"] and run["group"] != "1 batch"]
        self.assertTrue(wrong)
        for run in wrong:
            self.assertFalse(run["ok"])
            self.assertGreater(run["largest_difference"], 0)
        self.assertIn("WRONG", self.cairn("verify", "broken.lua", "rate=0.1", "--budgets", 1, code=1).stdout)


main()
