"""`parameters=bf16`: weights stored as bfloat16, which updates round stochastically; `parameters=split`: float32 as two
halves."""
import json
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import TINY, Case, main  # noqa: E402

ROUNDED = ["--amp", "bf16", "parameters=bf16"]


class Parameters(Case):
    def test_weights_take_half_the_bytes(self):
        def planned(*options):
            done = self.cairn("plan", "gpt2", *TINY, "width=128", "heads=4", "data=random", "--amp", "bf16", *options,
                              "--policy", "recompute", "--json")
            return json.loads(done.stdout)["memory_bytes"]
        wide, narrow = planned(), planned("parameters=bf16")
        self.assertLess(narrow["parameters"], wide["parameters"])
        for part in ("gradients", "optimizer"):
            self.assertEqual(narrow[part], wide[part])

    def test_every_plan_gives_the_same_bits(self):
        kept = self.train("--steps", 3, "--policy", "keep", *ROUNDED)
        for options in (["--budget", "70%", "--tiers", "host"], ["--policy", "recompute"]):
            found = self.train("--steps", 3, *ROUNDED, *options)
            self.assertEqual(found["parameter_digest"], kept["parameter_digest"])
            self.assertEqual(found["loss"], kept["loss"])
            self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])
        apart = self.train("--steps", 3, *ROUNDED, "clip=0")
        fused = self.train("--steps", 3, *ROUNDED, "clip=0", "--fuse-update")
        self.assertEqual(fused["parameter_digest"], apart["parameter_digest"])
        other = self.train("--steps", 3, *ROUNDED, "--seed", 2)
        self.assertNotEqual(other["parameter_digest"], kept["parameter_digest"])

    def test_resumed_is_uninterrupted(self):
        whole = self.train("--steps", 4, *ROUNDED)
        self.train("--steps", 2, *ROUNDED, "--out", "rounded")
        tensors = json.loads(self.cairn("inspect", "rounded", "--json").stdout)["tensors"]
        self.assertEqual(tensors["wte.weight"]["dtype"], "bf16")
        self.assertEqual(tensors["wte.weight/m"]["dtype"], "f32")
        rest = json.loads(self.cairn("train", "--resume", "rounded", "--steps", 4, "--json", "--quiet").stdout)
        self.assertEqual(rest["loss"], whole["loss"][2:])
        self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])

    def test_checkpoints_go_on_only_as_they_are_and_begin_anything(self):
        self.train("--steps", 2, *ROUNDED, "--out", "narrow")
        refused = self.cairn("train", "--resume", "narrow", "parameters=f32", "--steps", 4, "--quiet", code=3)
        self.assertIn("plan with parameters in bf16", refused.stderr)
        # Weights of one kind are where training of the other kind may begin.
        self.train("--steps", 2, "--amp", "bf16", "--out", "wide")
        for begun, options in (("narrow", ["--amp", "bf16"]), ("wide", ROUNDED)):
            self.cairn("export", begun, f"{begun}.safetensors")
            kind = b'"BF16"' if begun == "narrow" else b'"F32"'
            self.assertIn(kind, (self.folder / f"{begun}.safetensors").read_bytes()[:8192])
            self.assertEqual(self.train("--steps", 1, "--init", f"{begun}.safetensors", *options)["steps"], 1)
        self.assertTrue(self.cairn("generate", "narrow", "--prompt", "It is", "--tokens", 4).stdout)

    def test_losses_follow_those_of_float32_masters(self):
        """Updates of a rate that rounding to nearest would lose: far below half a unit in the last place."""
        def last(*options):
            found = self.train("--steps", 60, "--amp", "bf16", "rate=3e-4", "width=64", "heads=4", *options)["loss"]
            return sum(found[-10:]) / 10, found[0]
        (wide, first), (narrow, _) = last(), last("parameters=bf16")
        self.assertLess(abs(narrow - wide), 0.02 * (first - wide))

    def has_products(self):
        """Whether this processor has products of bfloat16 numbers."""
        return json.loads(self.cairn("devices", "--json").stdout)[0]["isa"] in ("amx", "avx512_bf16")

    def test_halves_are_float32_masters(self):
        """One step: no initial number is a tie between two bfloat16 numbers, where the forms round otherwise."""
        if not self.has_products():
            self.skipTest("without bfloat16 products ops read float32 masters whole")
        halves, masters = ["--amp", "bf16", "parameters=split"], ["--amp", "bf16"]
        for options in ([], ["clip=0", "--fuse-update"], ["--accumulate", 2], ["optimizer=adamw8"], ["optimizer=muon"],
                        ["optimizer=adafactor"], ["optimizer=sgd"], ["optimizer=lion"], ["optimizer=adam"]):
            with self.subTest(options):
                whole, found = (self.train("--steps", 1, *form, *options) for form in (masters, halves))
                self.assertEqual(found["parameter_digest"], whole["parameter_digest"])
                self.assertEqual(found["loss"], whole["loss"])
                self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])

    def test_halves_under_every_plan(self):
        halves = ["--amp", "bf16", "parameters=split"]
        kept = self.train("--steps", 3, "--policy", "keep", *halves)
        for options in (["--budget", "60%", "--tiers", "host"], ["--budget", "60%", "--tiers", "disk"],
                        ["--policy", "recompute"], ["--budget", "60%", "--tiers", "host", "--accumulate", 1]):
            found = self.train("--steps", 3, *halves, *options)
            self.assertEqual(found["parameter_digest"], kept["parameter_digest"])
            self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])
        # The lower halves go where optimizer state goes. Without bfloat16 products ops need both halves together.
        def smallest(*options):
            done = self.cairn("plan", "gpt2", *TINY, "width=128", "heads=4", "data=random", "--amp", "bf16", "--budget", 1,
                              "--tiers", "host", "--json", *options, code=4)
            return int(re.search(r"smallest budget[^0-9]*([0-9]+) bytes", done.stderr.replace(",", "")).group(1))
        if self.has_products():
            self.assertLess(smallest("parameters=split"), smallest())

    def test_checkpoints_of_halves_are_those_of_masters(self):
        halves = ["--amp", "bf16", "parameters=split"]
        whole = self.train("--steps", 4, *halves)
        self.train("--steps", 2, *halves, "--out", "halves")
        tensors = json.loads(self.cairn("inspect", "halves", "--json").stdout)["tensors"]
        self.assertEqual(tensors["wte.weight"]["dtype"], "f32")
        self.assertNotIn("wte.weight/low", tensors)
        def resumed(*options):
            done = self.cairn("train", "--resume", "halves", *options, "--steps", 4, "--json", "--quiet")
            return json.loads(done.stdout)
        shutil.copytree(self.folder / "halves", self.folder / "begun")
        self.assertEqual(resumed()["parameter_digest"], whole["parameter_digest"])
        shutil.rmtree(self.folder / "halves")
        (self.folder / "begun").rename(self.folder / "halves")
        other = resumed("parameters=f32")  # goes on in the other form
        self.assertEqual(len(other["loss"]), 2)
        self.assertAlmostEqual(other["loss"][0], whole["loss"][2], places=3)
        self.cairn("export", "halves", "halves.safetensors")
        self.assertIn(b'"F32"', (self.folder / "halves.safetensors").read_bytes()[:8192])
        self.assertEqual(self.train("--steps", 1, "--init", "halves.safetensors", *halves)["steps"], 1)
        self.assertTrue(self.cairn("generate", "halves", "--prompt", "It is", "--tokens", 4).stdout)

    def test_what_is_refused(self):
        for amp in ("off", "fp16"):
            for form in ("bf16", "split"):
                done = self.cairn("train", "gpt2", *TINY, "data=random", "--amp", amp, f"parameters={form}", "--steps", 1,
                                  code=2)
                self.assertIn("goes with --amp bf16", done.stderr)
        done = self.cairn("train", "gpt2", *TINY, "data=random", "--amp", "bf16", "parameters=f16", "--steps", 1,
                          code=2)
        self.assertIn("parameters", done.stderr)


main()
