"""`cairn verify`: what it runs, what it says, and that it finds what is wrong."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Case, main  # noqa: E402

TIERS = ("recompute only", "host", "slow host", "host and disk")
# As small as a transformer with something to recompute gets: most of the time goes into its plans. Its values are too
# small to be sent away, which those of mlp are not.
SMALL = ["layers=1", "heads=1", "width=4", "vocab=128", "seq=4", "batch=1"]
APART = ("gradients_apart", "gradients_apart_after_skip", "gradients_apart_frozen")


class Verify(Case):
    def verify(self, *arguments, code=0):
        return json.loads(self.cairn("verify", *arguments, "--json", "--quiet", "--threads", 2, code=code).stdout)

    def test_gpt2(self):
        result = self.verify("gpt2", *SMALL, f"data={self.text}", "--steps", 2, "--budgets", 1)
        self.assertTrue(result["ok"], result["problems"])
        runs = {(run["group"], run["name"]): run for run in result["runs"]}
        self.assertEqual(len(runs), len(result["runs"]))
        digests = {}
        for group in ("1 micro-batch", "3 micro-batches"):
            names = [name for of, name in runs if of == group]
            for name in ("keep", "recompute", "offload to host", "offload to disk", "resumed"):
                self.assertIn(name, names)
            for tiers in TIERS:
                self.assertEqual(sum(name.endswith(" B, " + tiers) for name in names), 1, tiers)
            digests[group] = {runs[group, name]["parameter_digest"] for name in names}
            self.assertEqual(len(digests[group]), 1)
            self.assertGreater(runs[group, "recompute"]["recompute_bytes"], 0)
        self.assertNotEqual(*digests.values())
        self.assertIn(("3 micro-batches", "resumed inside a step"), runs)
        wide = runs["1 batch", "1 batch of all 3"]
        self.assertTrue(wide["ok"])
        self.assertLess(wide["largest_difference"], 1e-2)
        for key in APART:
            self.assertLess(0, result[key])
            self.assertLess(result[key], 1e-6)
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
            for tier in ("host", "disk"):
                (run,) = [run for run in result["runs"]
                          if (run["group"], run["name"]) == ("3 micro-batches", f"offload to {tier}")]
                self.assertGreater(run["peak_bytes"][tier], 0)
        self.assertEqual(len(set(digests.values())), 3, digests)

    def test_parameters_that_are_rounded_at_random(self):
        for recipe, words in (("mlp", ["samples=256"]), ("gpt2", [*SMALL, f"data={self.text}"])):
            with self.subTest(recipe):
                result = self.verify(recipe, *words, "--amp", "bf16", "parameters=bf16", "--steps", 2, "--budgets", 1)
                self.assertTrue(result["ok"], result["problems"])

    def test_one_step_is_too_few(self):
        self.fails(2, "verify", "mlp", "--steps", 1, says=("--steps: '1'", "at least 2"))

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

    def test_freezes_so_that_something_learns(self):
        model = """
            return {
              model = function(o, g)
                local x, target = g:input("input", { 2, 3 }), g:input("target", { 2, 3 })
                local learns = g:parameter("learns", { 3 }, { init = "constant", scale = 1 })
                g:parameter("unused", { 3 })
                local loss, weight = g:op("mse", %s, target)
                return { loss = loss, weight = weight }
              end,
              dataset = function()
                return { batch = function() return { input = { 1, 2, 3, 4, 5, 6 }, target = { 1, 2, 3, 4, 5, 7 } }, 2 end }
              end,
            }"""
        fixed = 'x * learns * g:parameter("fixed", { 3 }, { init = "constant", scale = 1, frozen = true })'
        for product in ("x * learns", fixed):
            with self.subTest(product):
                (self.folder / "one.lua").write_text(model % product)
                result = self.verify("one.lua", "--steps", 2, "--budgets", 1)
                self.assertTrue(result["ok"], result["problems"])

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
        self.assertEqual(len(result["problems"]), 3, result["problems"])
        for key, problem in zip(APART, result["problems"]):
            self.assertRegex(problem, "^1 batch, .*: the gradient of [ab] is .* apart")
            self.assertGreater(result[key], 0.1)

    def test_skipped_steps_and_frozen_parameters(self):
        words = ["mlp", "samples=512", "--steps", 3, "--budgets", 1]
        for options in (["loss=mse", "optimizer=muon"], ["--amp", "bf16", "optimizer=adamw8", "width=128"],
                        ["--amp", "fp16", "optimizer=sgd", "momentum=0.9"], ["--amp", "fp16", "loss_scale=3e5"]):
            with self.subTest(options=options):
                result = self.verify(*words, *options)
                self.assertTrue(result["ok"], result["problems"])
                self.assertEqual(result["notes"], [])
                for key in APART:
                    self.assertLess(result[key], 2e-2 if "--amp" in options else 1e-6, key)
                by_itself = ", a step skipped" if "fp16" in options else ""
                natural = "loss_scale=3e5" in options  # the first steps are skipped in all runs
                for count in ("1 micro-batch", "3 micro-batches"):
                    for name in ("after a skipped step", "after a skipped step, recompute"):
                        (run,) = [run for run in result["runs"]
                                  if (run["group"], run["name"]) == (count + by_itself, name)]
                        self.assertTrue(run["equal"])
                        self.assertGreaterEqual(run["skipped_steps"], 3 if natural else 1)
                frozen = [run for run in result["runs"] if run["group"] == "3 micro-batches, some frozen"]
                self.assertEqual([run["name"] for run in frozen], ["keep", "recompute", "resumed"])
                self.assertEqual({run["frozen_parameters"] for run in frozen}, {2})  # of weights and biases of three layers
                for run in result["runs"]:
                    self.assertTrue(run["group"].endswith("frozen") or run["frozen_parameters"] == 0)
                    if "skipped" not in run["name"]:
                        self.assertGreater(run["skipped_steps"], 0) if natural else self.assertEqual(run["skipped_steps"], 0)

    def test_a_run_of_nothing_but_skipped_steps_ends(self):
        self.fails(7, "verify", "mlp", "samples=64", "--amp", "fp16", "loss_scale=1e30", "loss_scale_backoff=0.999",
                   "--budgets", 1, "--quiet", says="step 1 was not applied (skipped_nonfinite)")

    # A run that is not what it should be: micro-batches end as `outcome`, the digest is `after` then. "w" is frozen.
    UPSET = """
        local ffi, upsets = require "ffi", require "cli.verify.upsets"
        local value, digest = { w = ffi.new("float[1]", 1), v = ffi.new("float[1]", 1) }, "one"
        local session = {}
        function session.read(_, name, buffer, bytes)
          if name == "w/gradient" then return nil, { status = "NOT_FOUND" } end
          if value[name] then ffi.copy(buffer, value[name], bytes) end
          return true
        end
        function session.write(_, name, buffer, bytes) ffi.copy(value[name], buffer, bytes) return true end
        local seen = {}
        local run = { session = session, sums = { clear = function() end }, recipe = {},
          graph = { parameters = function()
            return { { name = "w", bytes = 4, dtype = "f32" }, { name = "v", bytes = 4, dtype = "f32" } }
          end },
          digest = function() return digest end,
          micro = function(_, index)
            seen[#seen + 1] = ("%%d:%%s"):format(index, value.v[0] ~= value.v[0] and "nan" or value.v[0])
            digest = "%s"
            return { outcome = "%s" }
          end }
        local frozen = upsets.frozen(run)
        print(upsets.skipped_step(run, 4, 3), table.concat(seen, " "), value.v[0], upsets.thawed(run, frozen))
        value.w[0] = 2
        print(upsets.thawed(run, frozen))"""

    def test_finds_steps_that_were_not_skipped_and_parameters_that_thawed(self):
        for after, outcome, says in (("one", "skipped_nonfinite", "nil"), ("two", "skipped_nonfinite", "changed parameters"),
                                     ("two", "applied", "was not skipped, but applied")):
            (self.folder / "upset.lua").write_text(self.UPSET % (after, outcome))
            first, second = self.cairn("lua", "upset.lua").stdout.splitlines()
            self.assertIn(says, first.split("\t")[0])
            self.assertEqual(first.split("\t")[1:], ["4:1 5:nan 6:1", "1"])
            self.assertEqual(second, "w")

    TEXT = """
        local nn = require("cairn").nn
        return {
          options = { { "batch", 2, "windows", whole = true, least = 1 }, { "seq", 8, "tokens", whole = true, least = 1 },
                      { "vocab", 256, "tokens", whole = true, least = 2 }, { "data", "", "text file, or random" },
                      { "tokens", "bytes", "kind of tokens" }, { "lengths", "", "of windows" },
                      { "remainder", "pad", "of an epoch" }, { "eval_data", "", "text" }, { "eval_fraction", 0, "share" } },
          model = function(o, g)
            local context = nn.context(g, true)
            local net = nn.Sequential():add(nn.Embedding(o.vocab, 4)):add(nn.Dropout(0.5))
            local hidden = net:build(context, g:input("tokens", { o.batch, o.seq }, "i32"))
            local criterion = nn.LinearCrossEntropyCriterion(4, o.vocab)
            local loss, weight = criterion:build(context, hidden, g:input("targets", { o.batch, o.seq }, "i32"))
            return { loss = loss, weight = weight }
          end,
          dataset = function(o, run) return run.text(o) end,
        }"""

    def test_text_models_need_no_data(self):
        self.assertEqual(self.cairn("verify", "gpt2", "layers=0", code=2).stdout, "")
        (self.folder / "text.lua").write_text(self.TEXT)
        result = self.verify("text.lua", "seq=4", "--steps", 2, "--budgets", 1)
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
