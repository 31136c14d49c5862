"""--region of `cairn plan`, `train`, `verify` and `profile`; segments= of gpt2 and llama."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import TINY, Case, main  # noqa: E402

LONG = os.environ.get("CAIRN_TEST") == "long"
SMALL = ["heads=2", "width=32", "vocab=64", "seq=32", "batch=4", "data=random"]


class Regions(Case):
    def plan(self, *arguments, recipe="gpt2", model=TINY):
        return json.loads(self.cairn("plan", recipe, *model, "--json", "--threads", 2, *arguments).stdout)

    def decisions(self, *arguments, model=TINY):
        """(region, decision, tier) of all values of a plan that are not kept."""
        plan = json.loads(self.cairn("plan", "gpt2", *model, "--json", "--threads", 2, "--problem-out", "problem.json",
                                     *arguments).stdout)
        problem = json.loads((self.folder / "problem.json").read_text())
        region = {}
        for op in problem["ops"]:
            for value in op["outputs"]:
                region[value] = op.get("region", "")
        return {(region.get(row["name"], ""), row["decision"]) for row in plan["values"]
                if row["decision"] not in ("keep", "persistent")}

    def regions(self, decision, *arguments, model=TINY):
        return {region for region, what in self.decisions(*arguments, model=model) if what == decision}

    def test_the_innermost_policy_counts(self):
        every = {"h0/attn", "h0/mlp", "h1/attn", "h1/mlp"}
        self.assertEqual(self.regions("recompute"), set())
        self.assertEqual(self.regions("recompute", "--region", "h*=recompute"), every)
        self.assertEqual(self.regions("recompute", "--region", "*/attn=recompute"), {"h0/attn", "h1/attn"})
        # A child of a region that is kept is kept, whatever --policy says; a row for the child itself counts more.
        self.assertEqual(self.regions("recompute", "--policy", "recompute", "--region", "h0=keep"), {"h1/attn", "h1/mlp"})
        self.assertEqual(self.regions("recompute", "--policy", "recompute", "--region", "h0=keep", "--region=h0/mlp=recompute"),
                         {"h0/mlp", "h1/attn", "h1/mlp"})
        # The last that matches counts.
        self.assertEqual(self.regions("recompute", "--region", "**=recompute", "--region", "**/attn=keep"),
                         {"h0/mlp", "h1/mlp"})
        self.assertEqual(self.regions("recompute", "--region", "**/attn=keep", "--region", "**=recompute"), every)

    def test_a_policy_of_the_recipe(self):
        recipe = self.folder / "kept.lua"
        recipe.write_text("""
            local nn = require("cairn").nn
            return {
              options = { { "batch", 64, "rows" } },
              model = function(o, graph)
                local function part(name) return nn.Region(name, nil, nn.Sequential():add(nn.Linear(8, 8)):add(nn.GELU())) end
                local net = nn.Sequential():add(nn.Region("first", "keep", nn.Sequential():add(part("in"))))
                  :add(nn.Region("second", nil, part("in"))):add(nn.Linear(8, 1))
                return nn.attach(graph, net, nn.MSECriterion(), { o.batch, 8 })
              end,
              dataset = function() error("not here") end,
            }""")

        def recomputed(*arguments):
            return self.plan("--policy", "recompute", *arguments, recipe=recipe, model=[])["plan"]["recompute_bytes"]
        both, one = recomputed("--region", "first=recompute"), recomputed()
        self.assertEqual((both, recomputed("--region", "second=keep")), (2 * one, 0))
        self.assertGreater(one, 0)

    def test_rows_hold_on_with_segments(self):
        def recomputed(*arguments):
            return self.plan(*arguments, model=["layers=4", *SMALL])["plan"]["recompute_bytes"]
        for segments in "2", "sqrt", "3":
            whole, less = recomputed(f"segments={segments}"), recomputed(f"segments={segments}", "--region", "h*/attn=keep")
            self.assertTrue(0 < less < whole, (segments, less, whole))
            self.assertEqual(less, recomputed(f"segments={segments}", "--region", "**/attn=keep"))
            self.assertLess(less, recomputed(f"segments={segments}", "--region", "h1/attn=keep"))
        self.fails(2, "plan", "gpt2", *TINY, "layers=4", "segments=2", "--region", "h7=keep", says=("'h7'", "'s0/h0'"))

    def test_tiers(self):
        def offloaded(*arguments):
            plan = self.plan("layers=1", *arguments)["plan"]
            return plan["offload_host_bytes"], plan["offload_disk_bytes"]
        host, disk = offloaded("--region", "h0/*=offload")
        self.assertEqual((host > 0, disk), (True, 0))
        self.assertEqual(offloaded("--region", "h0/*=offload:disk"), (0, host))
        self.assertEqual(offloaded("--region", "h0/*=offload", "--tiers", "disk,host"), (0, host))
        half = offloaded("--region", "h0/*=offload:disk", "--region", "h0/mlp=offload:host")
        self.assertTrue(0 < half[0] < host and 0 < half[1] < host, half)
        self.fails(2, "plan", "gpt2", *TINY, "--tiers", "host", "--region", "h0=offload:disk",
                   says=("--region h0=offload:disk", "the tier disk is not among --tiers host"))

    def test_bad_input(self):
        for row, says in (("h*/atn=keep", ("--region", "'h*/atn'", "'h0/attn', 'h1/attn'", "'*' ends at a '/'")),
                          ("atn=keep", ("'atn'", "'h0/attn'")), ("h*", ("'h*' has no '='", "PATTERN=keep")),
                          ("=keep", ("empty pattern", "wanted")), ("h0=", ("'' is none of: keep", "offload:disk")),
                          ("h0=recomputed", ("'recomputed' is none of", "did you mean 'recompute'")),
                          ("h0=auto", ("'auto' is none of",)), ("h0=keep:host", ("a tier goes with offload only",)),
                          ("h0=offload:", ("'' is no tier",)), ("h0=offload:tape", ("'tape' is no tier", "host or disk")),
                          (b"h\xff=keep", ("is not UTF-8",)), ("", ("has no '='",))):
            with self.subTest(row):
                self.fails(2, "plan", "gpt2", *TINY, "--region", row if isinstance(row, str) else os.fsdecode(row), says=says)
        self.fails(2, "train", "gpt2", *TINY, "data=random", "--region", "x=keep", says="no region matches the pattern 'x'")
        self.fails(2, "train", "gpt2", *TINY, f"data={self.text}", "eval_fraction=0.2", "--region", "x=keep", says="'x'")
        self.fails(2, "profile", "gpt2", *TINY, "data=random", "--region", "x=keep", says="'x'")
        self.fails(2, "verify", "gpt2", *TINY, "--region", "x=keep", says="'x'")
        self.fails(2, "plan", "mlp", "--region", "h0=keep", says="'h0'")
        self.fails(2, "plan", "--region", "h0=keep", "--problem", "none.json", says="--region does not go with --problem")
        self.fails(2, "plan", "gpt2", *TINY, "batch=auto", "global_batch=8", "--region", "x=keep", says="'x'")
        for bad in ("0", "-1", "1.5", "", "root", "3"):
            for recipe in ("gpt2", "llama"):
                with self.subTest(segments=bad, recipe=recipe):
                    self.fails(2, "plan", recipe, *TINY, f"segments={bad}", says=(f"segments={bad}", "wanted: auto, block, sqrt"))

    def test_the_same_bits(self):
        rows = [["--region", "h*=recompute"], ["--region", "**/attn=offload", "--region", "h1=recompute"],
                ["--region", "h0=keep", "--policy", "recompute"], ["--region", "h*=offload:disk"], ["segments=block"],
                ["segments=2"], ["segments=sqrt", "--region", "**/attn=keep"], ["--region", "h0=recompute", "--budget", "80%"]]
        for recipe, options in ("gpt2", ["dropout=0.2"]), ("llama", ["kv_heads=1"]):
            model = [*TINY, "layers=3", *options]
            whole = self.train("--steps", 3, recipe=recipe, model=model)
            for row in rows if LONG or recipe == "gpt2" else rows[2::4]:
                with self.subTest(recipe=recipe, row=row):
                    run = self.train("--steps", 3, *row, recipe=recipe, model=model)
                    self.assertEqual(run["parameter_digest"], whole["parameter_digest"])
                    self.assertEqual(run["loss"], whole["loss"])
                    self.assertEqual(run["peak_bytes"], run["planned_peak_bytes"])

    def test_segments_are_what_the_sweep_prices_by_hand(self):
        cases = [("gpt2", []), ("gpt2", ["--amp", "bf16", "dropout=0.1"]), ("llama", ["kv_heads=1", "--accumulate", 2]),
                 ("gpt2", ["clip=0", "--device-model", "h100", "width=256", "seq=128"]),
                 # With ops in place groups take less, and all that is kept does not.
                 ("llama", ["layers=5", "heads=4", "width=128", "seq=64", "batch=4", "vocab=1000", "clip=0", "--fuse-update"])]
        for recipe, options in cases if LONG else (cases[0], cases[-1]):
            model = ["layers=9", *SMALL, *options]
            hand = self.plan("--sweep", recipe=recipe, model=model)[0]["by_hand"]
            # Both of what is the same regions where there is time.
            for segments, row in (("sqrt", "sqrt_n"), ("block", "per_layer"), ("3", "sqrt_n"), ("1", "per_layer"))[:4 if LONG else 2]:
                with self.subTest(recipe=recipe, options=options, segments=segments):
                    plan = self.plan(f"segments={segments}", recipe=recipe, model=model)
                    self.assertEqual({"budget_bytes": plan["planned_peak_bytes"]["device"],
                                      "predicted_step_seconds": plan["plan"]["predicted_step_seconds"]}, hand[row])
            rows = self.plan("--region", "h*=recompute", recipe=recipe, model=model)
            self.assertEqual(rows["planned_peak_bytes"]["device"], hand["per_layer"]["budget_bytes"])
            self.assertEqual(self.plan("segments=auto", recipe=recipe, model=model)["planned_peak_bytes"],
                             self.plan(recipe=recipe, model=model)["planned_peak_bytes"])

    def test_a_run_is_replayed_with_its_rows(self):
        rows = ["--region", "h0=recompute", "--region", "*/attn=offload"]
        first = self.train("--steps", 2, *rows, "--out", "a")
        said = json.loads((self.folder / "a/run.json").read_text())["arguments"]["region"]
        self.assertEqual(said, ["h0=recompute", "*/attn=offload"])
        self.assertIn("regions h0 recompute", (self.folder / "a/plan.html").read_text())
        again = json.loads(self.cairn("train", "--config", "a/run.json", "--json", "--quiet").stdout)
        self.assertEqual(again["plan"]["recompute_bytes"], first["plan"]["recompute_bytes"])
        self.assertEqual(again["plan"]["offload_host_bytes"], first["plan"]["offload_host_bytes"])
        self.assertEqual(again["parameter_digest"], first["parameter_digest"])
        other = json.loads(self.cairn("train", "--config", "a/run.json", "--region", "h1=recompute", "--json", "--quiet").stdout)
        self.assertEqual(other["plan"]["offload_host_bytes"], 0)  # what is given counts in the place of the file's
        resumed = self.train("--resume", "a", "--steps", 3, "--region", "h*=recompute", model=[], data=False)
        straight = self.train("--steps", 3)
        self.assertEqual(resumed["parameter_digest"], straight["parameter_digest"])
        for wrong in ('"h0=keep"', '{"a": "h0=keep"}', "[]", "[1]", '["h0"]'):
            (self.folder / "run.json").write_text('{"recipe": "gpt2", "arguments": {"region": %s}}' % wrong)
            code = 0 if wrong == '"h0=keep"' else 3
            self.cairn("train", "--config", "run.json", *TINY, "data=random", "--steps", 1, "--quiet", code=code)

    def test_verify(self):
        verified = json.loads(self.cairn("verify", "mlp", "layers=2", "width=8", "--steps", 2, "--budgets", 1, "--region",
                                         "layer1=recompute", "--region", "layer2=offload:host", "--json", "--quiet").stdout)
        self.assertTrue(verified)


if __name__ == "__main__":
    main()
