"""`parameters=bf16`: weights stored as bfloat16, which updates round stochastically."""
import json
import pathlib
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

    def test_what_is_refused(self):
        for amp in ("off", "fp16"):
            done = self.cairn("train", "gpt2", *TINY, "data=random", "--amp", amp, "parameters=bf16", "--steps", 1,
                              code=3)
            self.assertIn("go with amp bf16", done.stderr)
        done = self.cairn("train", "gpt2", *TINY, "data=random", "--amp", "bf16", "parameters=f16", "--steps", 1,
                          code=2)
        self.assertIn("parameters", done.stderr)


main()
