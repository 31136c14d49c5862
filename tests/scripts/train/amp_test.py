#!/usr/bin/env python3
"""--amp fp16: the loss scale, steps that are skipped, and how training goes on."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

GPT2 = ["gpt2", "layers=2", "width=32", "heads=2", "seq=32", "vocab=64", "batch=4", "data=random", "warmup=0", "rate=1e-3"]


class Amp(harness.Case):
    def gpt2(self, *words):
        return json.loads(self.cairn("train", *GPT2, *words, "--json", "--quiet").stdout)

    def test_the_loss_is_near_that_of_float32(self):
        exact, narrow = self.gpt2("--steps", 8), self.gpt2("--steps", 8, "--amp", "fp16")
        self.assertEqual((exact["loss_scale"], exact["skipped_steps"]), (1, 0))
        self.assertEqual(narrow["loss_scale"], 2 ** 16 / (4 * 32))
        self.assertEqual(narrow["skipped_steps"], 0)
        for a, b in zip(exact["loss"], narrow["loss"]):
            self.assertAlmostEqual(a, b, delta=2e-2 * a)
        self.assertNotEqual(exact["loss"], narrow["loss"])
        self.assertLess(narrow["loss"][-1], narrow["loss"][0])

    def test_training_goes_on_after_skips(self):
        found = self.gpt2("--steps", 12, "--amp", "fp16", f"loss_scale={2.0 ** 24:.0f}", "--accumulate", 2)
        self.assertGreater(found["skipped_steps"], 2)
        self.assertLess(found["skipped_steps"], 12)
        self.assertEqual(found["loss_scale"], 2 ** 24 / 2 ** found["skipped_steps"])
        self.assertEqual(found["steps"], 12)
        self.assertLess(found["loss"][-1], found["loss"][0])

    def test_the_scale_grows(self):
        found = self.gpt2("--steps", 7, "--amp", "fp16", "loss_scale=16", "loss_scale_interval=3", "loss_scale_growth=4")
        self.assertEqual(found["loss_scale"], 16 * 4 ** 2)

    def test_ranges_of_the_loss_scale(self):
        """The command refuses exactly what the stepper (runtime/step/loss_scale.cc) does, before anything is made."""
        tiny = ["gpt2", "layers=1", "width=8", "heads=1", "seq=8", "vocab=8", "batch=1", "data=random", "--amp", "fp16"]
        edges = {"loss_scale": (["0", "1e-30", "3e38"], ["-1", "9.9e-31", "1e-300", "3.1e38", "nan", "inf"]),
                 "loss_scale_growth": (["1", "1e6"], ["0", "0.999", "1000001"]),
                 "loss_scale_backoff": (["1e-6", "0.999999"], ["0", "9e-7", "0.9999999", "1"]),
                 "loss_scale_interval": (["1", "4294967295"], ["0", "1.5", "4294967296"])}
        for name, (taken, refused) in edges.items():
            for value in taken:
                self.cairn("train", *tiny, "--steps", 1, "--quiet", "--max-skips", 2, f"{name}={value}")
            for value in refused:
                self.fails(2, "train", *tiny, "--steps", 1, f"{name}={value}", says=(f"{name}={value}", "wanted: "))

    def test_it_ends_after_skips_in_a_row(self):
        done = self.fails(7, "train", *GPT2, "--amp", "fp16", "loss_scale=1e30", "loss_scale_backoff=0.999", "--steps", 80,
                          "--max-skips", 5, says=("step 5", "not finite"))
        self.assertIn("loss", done.stdout)
        self.fails(7, "train", *GPT2, "--amp", "fp16", "loss_scale=1e30", "loss_scale_backoff=0.999", "--steps", 80,
                   says="step 50")

    def test_a_resumed_run_has_its_scale(self):
        options = ["--amp", "fp16", "loss_scale=1e8", "loss_scale_interval=4"]
        whole = self.gpt2("--steps", 12, *options)
        self.gpt2("--steps", 5, *options, "--out", "run")
        lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([line["loss_scale"] * 2 ** i for i, line in enumerate(lines[:2])], [1e8, 1e8])
        rest = json.loads(self.cairn("train", "--resume", "run", "--steps", 12, "--json", "--quiet").stdout)
        for key in ("loss_scale", "skipped_steps", "parameter_digest"):
            self.assertEqual(rest[key], whole[key], key)

    def test_a_run_goes_on_in_another_precision(self):
        norms = {}
        for before, after in (("fp16", "off"), ("off", "fp16"), ("off", "off")):
            out = f"{before}-{after}"
            self.gpt2("--steps", 3, "--amp", before, "--out", out)
            rest = json.loads(self.cairn("train", "--resume", out, "--amp", after, "--steps", 4, "--json", "--quiet").stdout)
            self.assertEqual(rest["loss_scale"], 512 if after == "fp16" else 1)
            norms[out] = json.loads((self.folder / out / "metrics.jsonl").read_text().splitlines()[-1])["gradient_norm"]
        for norm in norms.values():
            self.assertAlmostEqual(norm, norms["off-off"], delta=1e-2 * norm)

    def test_a_scale_without_fp16_is_refused(self):
        for command, setting in (("train", "loss_scale=8"), ("plan", "loss_scale_growth=4"),
                                 ("verify", "loss_scale_backoff=0.25"), ("profile", "loss_scale_interval=9")):
            self.fails(2, command, *GPT2, setting, says=f"{setting} counts with --amp fp16; here it is --amp off")
            self.fails(2, command, *GPT2, setting, "--amp", "bf16", says="here it is --amp bf16")
        # What a run's own file or checkpoint says of it is no mistake of the command line.
        self.gpt2("--steps", 2, "--amp", "fp16", "loss_scale=16", "--out", "run")
        self.cairn("train", "--config", "run/run.json", "--amp", "off", "--out", "again")
        self.cairn("train", "--resume", "run", "--amp", "off", "--steps", 3)
        self.cairn("train", "--resume", "again", "--amp", "fp16", "loss_scale=8", "--steps", 3)
        self.fails(2, "train", "--resume", "run", "loss_scale=8", says="counts with --amp fp16")

    def test_plans_never_change_bits(self):
        digests = {self.gpt2("--steps", 3, "--amp", "fp16", "--policy", policy)["parameter_digest"]
                   for policy in ("keep", "recompute", "offload")}
        self.assertEqual(len(digests), 1)

    def ruled(self, rules, name="ruled", base="gpt2"):
        """A recipe that comes with cairn, with these AMP rules."""
        path = self.folder / f"{name}.lua"
        path.write_text(f"local mine = {{}}\nfor key, value in pairs(require 'recipes.{base}') do mine[key] = value end\n"
                        f"mine.amp_rules = function(o) return {rules} end\nreturn mine\n")
        return path

    def with_rules(self, recipe, *words):
        return json.loads(self.cairn("train", recipe, *GPT2[1:], "layers=1", *words, "--steps", 3, "--json",
                                     "--quiet").stdout)

    def test_a_recipes_rules(self):
        off = self.gpt2("layers=1", "--steps", 3)["parameter_digest"]
        half = self.gpt2("layers=1", "--steps", 3, "--amp", "bf16")["parameter_digest"]
        full = self.ruled('{ { op = "*", class = "full" } }', "full")
        self.assertEqual(self.with_rules(full, "--amp", "bf16")["parameter_digest"], off)
        self.assertEqual(self.with_rules(full)["parameter_digest"], off)
        some = self.ruled('{ { region = "h0", class = "full" }, { op = "layernorm", class = "full" } }')
        found = {self.with_rules(some, "--amp", "bf16", *words)["parameter_digest"]
                 for words in (["--policy", "keep"], ["--policy", "recompute"], ["--policy", "offload"])}
        self.assertEqual(len(found), 1)
        self.assertFalse(found & {off, half})
        run = self.with_rules(some, "--amp", "bf16", "--budget", "90%")
        self.assertIn(run["parameter_digest"], found)
        self.assertEqual(run["peak_bytes"], run["planned_peak_bytes"])

    def test_a_plan_shows_the_rules(self):
        recipe = self.ruled('{ { region = "h?", op = "linear", class = "full" }, { region = "h1", class = "default" } }')
        words = ["plan", recipe, *GPT2[1:], "--amp", "bf16"]
        amp = json.loads(self.cairn(*words, "--json").stdout)["amp"]
        self.assertEqual(amp["mode"], "bf16")
        self.assertEqual([(rule.get("op"), rule["region"], rule["class"]) for rule in amp["rules"]],
                         [("linear", "h?", "full"), (None, "h1", "default")])
        self.assertGreaterEqual(amp["rules"][0]["ops"], 2)
        self.assertEqual(amp["rules"][1]["ops"], 0, "what is a class of its own again is no rule's")
        text = self.cairn(*words, "--html", "plan.html").stdout
        self.assertIn(f"precision, bf16   op=linear region=h? class=full: {amp['rules'][0]['ops']} ops", text)
        self.assertIn("op=linear region=h? class=full; region=h1 class=default", (self.folder / "plan.html").read_text())
        self.assertNotIn("amp", json.loads(self.cairn("plan", *GPT2, "--amp", "bf16", "--json").stdout))

    def test_a_resumed_run_says_that_its_rules_are_others(self):
        rules = '{ { op = "*", class = "full" } }'
        recipe = self.ruled(rules)
        whole = self.with_rules(recipe, "--amp", "bf16")
        self.cairn("train", recipe, *GPT2[1:], "layers=1", "--amp", "bf16", "--steps", 2, "--out", "run", "--quiet")
        self.assertIn("op=* class=full", self.cairn("inspect", "run").stdout)
        rest = json.loads(self.cairn("train", "--resume", "run", "--recipe", recipe, "--steps", 3, "--json", "--quiet", "--out",
                                     "same").stdout)
        self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])
        self.assertNotIn("AMP rules", json.dumps(rest["resumed"]))
        self.ruled('{ { op = "*", class = "full" }, { region = "h0", class = "default" } }')
        done = self.cairn("train", "--resume", "run", "--recipe", recipe, "--recipe-changed", "--steps", 3, "--json",
                          "--out", "other")
        said = {"what": "the recipe's AMP rules", "was": "op=* class=full",
                "now": "op=* class=full; region=h0 class=default"}
        self.assertIn(said, json.loads(done.stdout)["resumed"]["differences"])
        self.assertIn("note: the recipe's AMP rules was op=* class=full and is", done.stderr)

    def test_wrong_rules(self):
        for rules, words in (("{ { op = 'sofmax', class = 'full' } }", ("sofmax", "matches no op", "layernorm")),
                             ("{ { region = 'h9', class = 'full' } }", ("h9", "h0", "h1")),
                             ("{ { op = 'linear', class = 'fp8' } }", ("fp8", "half, follow, full, default"))):
            self.fails(3, "plan", self.ruled(rules), *GPT2[1:], "--amp", "bf16", says=words)
        for rules, words in (("3", ("what amp_rules returns",)), ("{ 'linear' }", ("row 1",)),
                             ("{ { ops = 'linear', class = 'full' } }", ("row 1", "'ops'")),
                             ("{ { op = 'linear' } }", ("row 1: class",)),
                             ("{ { op = 1, class = 'full' } }", ("row 1: op", "a string"))):
            self.fails(3, "plan", self.ruled(rules), *GPT2[1:], says=("ruled.lua", *words))

    def test_verify_holds_under_rules(self):
        digests = set()
        for rules in ("{}", '{ { op = "linear", class = "full" } }'):
            found = json.loads(self.cairn("verify", self.ruled(rules, base="mlp"), "samples=64", "--amp", "bf16", "--steps", 2,
                                          "--budgets", 1, "--json", "--quiet").stdout)
            self.assertTrue(found["ok"], found["problems"])
            digests.add(found["runs"][0]["parameter_digest"])
        self.assertEqual(len(digests), 2)

    def test_bad_input(self):
        self.fails(2, "train", *GPT2, "--amp", "fp16", "--fuse-update", "clip=0", says=("fp16", "bf16"))
        self.fails(2, "train", *GPT2, "--amp", "fp16", "loss_scale=-1", says="loss_scale")
        self.fails(2, "train", *GPT2, "--amp", "fp16", "loss_scale_interval=0", says="loss_scale_interval")
        self.fails(2, "train", *GPT2, "--amp", "fp8", says=("fp8", "fp16"))
        self.fails(2, "train", *GPT2, "--amp", "f16", says="did you mean 'fp16'?")
        for wrong in ("loss_scale=4e38", "loss_scale_backoff=0", "loss_scale_backoff=1", "loss_scale_growth=1e7",
                      "loss_scale_interval=5e9"):
            self.fails(2, "train", *GPT2, "--amp", "fp16", wrong, says=(wrong, "wanted: at "))


if __name__ == "__main__":
    harness.main()
