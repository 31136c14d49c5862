"""Recipes over pictures: each trains and evaluates, plans, and says what does not go together; BatchNorm over an effective
batch equals one batch of all its pictures, under a budget and resumed, too."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Case, main

DATA = ["image=8", "samples=64", "eval_samples=8", "--threads", 1]
TOWER = ["width=16", "layers=2", "heads=2"]
TINY = {
    "resnet": ["width=4", "classes=6"],
    "vit": [*TOWER, "classes=6"],
    "unet": ["width=8", "levels=2"],
    "clip": TOWER,
    "siglip": TOWER,
    "dalle": TOWER,
}


class Pictures(Case):
    def made(self, recipe, *options):
        return json.loads(self.cairn("train", recipe, *TINY[recipe], *DATA, *options, "--json").stdout)

    def refused(self, *arguments, code=2):
        return self.cairn(*arguments, code=code).stderr

    def test_each_trains_and_evaluates(self):
        for recipe in TINY:
            made = self.made(recipe, "batch=4", "--steps", 2)
            self.assertGreater(made["images_per_second"], 0, recipe)
            self.assertEqual(made["images_per_second"], made["samples_per_second"])
            self.assertEqual(made["peak_bytes"], made["planned_peak_bytes"], recipe)
            last = made["evaluation"][-1]
            self.assertEqual("accuracy" in last, recipe != "siglip", recipe)
            self.assertEqual("top5" in last, "classes=6" in TINY[recipe] or "top5" in last, recipe)

    def test_any_budget_gives_the_same_bits(self):
        for recipe, options in (("resnet", []), ("vit", ["drop_path=0.1", "layer_scale=0.1"]), ("clip", []),
                                ("unet", ["task=denoise"])):
            whole = self.made(recipe, *options, "batch=4", "--steps", 2)
            half = self.made(recipe, *options, "batch=4", "--steps", 2, "--policy", "recompute")
            self.assertEqual(whole["parameter_digest"], half["parameter_digest"], recipe)
            self.assertGreater(half["plan"]["recompute_bytes"], 0, recipe)

    def test_batchnorm_of_an_effective_batch(self):
        for recipe, options in (("resnet", []), ("unet", ["norm=batch"])):
            one = self.made(recipe, *options, "batch=8", "--steps", 3)
            four = self.made(recipe, *options, "batch=2", "--steps", 3, "--accumulate", 4, "batchnorm=effective")
            self.assertEqual(four["loss"], one["loss"], recipe)
            self.assertEqual(four["parameter_digest"], one["parameter_digest"])
            self.assertEqual((four["batch"], four["accumulate"]), (2, 4))
            self.assertEqual(four["plan"]["predicted_step_seconds"], one["plan"]["predicted_step_seconds"])
            micro = self.made(recipe, *options, "batch=2", "--steps", 3, "--accumulate", 4)
            self.assertGreater(abs(micro["loss"][0] - one["loss"][0]), 1e-5)

    def test_an_effective_batch_goes_on_where_it_was(self):
        effective = ["batch=2", "--accumulate", 4, "batchnorm=effective", "schedule=constant"]
        whole = self.made("resnet", *effective, "--steps", 3)
        self.made("resnet", *effective, "--steps", 2, "--out", "run")
        rest = json.loads(self.cairn("train", "--resume", "run", "--steps", 3, "--json").stdout)
        self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])
        self.assertEqual((rest["batch"], rest["accumulate"]), (2, 4))

    def test_plans_show_blocks(self):
        for recipe in ("resnet", "unet", "vit"):
            self.cairn("plan", recipe, *TINY[recipe], *DATA, "batch=4", "--html", f"{recipe}.html")
        self.assertIn("s4", (self.folder / "resnet.html").read_text())
        self.assertIn("up1", (self.folder / "unet.html").read_text())
        text = self.cairn("plan", "resnet", *TINY["resnet"], *DATA, "batch=4", "--region", "s1/**=recompute", "--json").stdout
        self.assertGreater(json.loads(text)["plan"]["recompute_bytes"], 0)

    def test_a_plan_holds_the_representations_of_all_micro_batches(self):
        def peak(effective):
            given = [*TINY["clip"], *DATA, "batch=4", "--accumulate", 8, f"effective={effective}", "--json"]
            return json.loads(self.cairn("plan", "clip", *given).stdout)["planned_peak_bytes"]["device"]
        self.assertGreater(peak("true"), peak("false"))

    def test_what_does_not_go_together(self):
        for arguments, words in (
            (["vit", "image=16", "patch=5"], ["patch=5", "image=16"]),
            (["vit", "width=10", "heads=3"], ["heads=3", "width=10"]),
            (["clip", "batch=1"], ["batch=1", "batch=2"]),
            (["resnet", "batch=auto", "global_batch=8", "batchnorm=effective"], ["batch=auto", "batchnorm=effective"]),
            (["resnet", "depth=20"], ["depth=20", "18, 34, 50"]),
            (["resnet", "batch=2", "batchnorm=effective", "--accumulate", 2, "--on-oom", "shrink"], ["--on-oom shrink"]),
        ):
            said = self.refused("train", *arguments, "--steps", 1)
            for word in words:
                self.assertIn(word, said)


if __name__ == "__main__":
    main()
