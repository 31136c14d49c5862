"""Pictures as recipes are given them (cli.data.pictures): kinds of data, resuming in the middle of an epoch, bad files."""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case, png  # noqa: E402

RECIPE = pathlib.Path(__file__).with_name("picture_recipe.lua")


class Pictures(Case):
    def train(self, *arguments, **options):
        return super().train(*arguments, recipe=RECIPE, **options)

    def folder_of_classes(self, part=""):
        for name, colour in (("dark", (20, 30, 40)), ("light", (220, 210, 230))):
            (self.folder / "set" / part / name).mkdir(parents=True)
            for i in range(6):
                (self.folder / "set" / part / name / f"{i}.png").write_bytes(png(14 + i, 20, [c + i for c in colour]))
        return f"data=folder:{self.folder / 'set'}"

    def test_drawings_are_learned_from_and_evaluated_with(self):
        made = self.train("samples=64", "eval_samples=40", "--steps", 5)
        self.assertEqual(len(made["loss"]), 5)
        self.assertIn("accuracy", made["evaluation"][-1])

    def test_same_losses_for_any_workers_and_after_resuming(self):
        words = ["samples=40", "batch=8", "augment=randaugment", "evaluate=none"]
        losses = self.train(*words, "workers=0", "--steps", 8)["loss"]
        self.assertEqual(self.train(*words, "workers=4", "--steps", 8)["loss"], losses)
        self.train(*words, "--steps", 3, "--out", "run")
        resumed = self.cairn("train", "--resume", "run", "--recipe", RECIPE, "--steps", 8, "--json", "--quiet", "--threads", 2)
        self.assertEqual(json.loads(resumed.stdout)["loss"][-5:], losses[3:])

    def test_resuming_refuses_other_pictures(self):
        data = self.folder_of_classes()
        self.train(data, "batch=4", "--steps", 2, "--out", "run")
        (self.folder / "set/dark/9.png").write_bytes(png(9, 9, (1, 2, 3)))
        resume = ["train", "--resume", "run", "--recipe", RECIPE, "--steps", 3]
        self.assertIn("other data", self.fails(3, *resume, says="set, whose content").stderr)
        self.cairn(*resume, data)

    def test_folders(self):
        made = self.train(self.folder_of_classes(), "eval_fraction=0.25", "batch=4", "--steps", 40)
        self.assertEqual(made["evaluation"][-1]["accuracy"], 1)
        self.fails(3, "train", RECIPE, f"data=folder:{self.folder / 'set/dark'}", says="has no folders")
        (self.folder / "set/empty").mkdir()
        self.fails(3, "train", RECIPE, f"data=folder:{self.folder / 'set'}", says=["empty' is empty", "fill it"])

    def test_bad_pictures_end_the_run_or_are_counted(self):
        data = self.folder_of_classes()
        (self.folder / "set/dark/3.png").write_bytes(png(4, 4, (0, 0, 0), claims=(60000, 60000)))
        said = self.fails(3, "train", RECIPE, data, "batch=12", "--steps", 1).stderr
        self.assertIn("60000 x 60000", said)
        self.assertIn("dark/3.png", said)
        done = self.cairn("train", RECIPE, data, "batch=12", "bad=skip", "--steps", 2, "--json")
        self.assertIn("could not be read, and are skipped: 1 so far", done.stderr)
        made = json.loads(done.stdout)
        self.assertEqual(made["skipped_pictures"], 1)
        self.assertLess(made["data_seconds"], sum(made["step_seconds"]))
        self.assertNotIn("skipped_pictures", self.train("samples=64", "--steps", 1))

    def test_classes_of_files_are_predicted(self):
        self.cairn("train", "resnet", self.folder_of_classes(), "image=8", "width=4", "batch=4", "augment=none", "evaluate=none",
                   "--steps", 30, "--out", "run", "--quiet")
        rows = "\n".join(json.dumps({"image": str(self.folder / "set" / name)}) for name in ("light/2.png", "dark/1.png"))
        made = [json.loads(line) for line in self.cairn("predict", "run", input=rows).stdout.splitlines()]
        self.assertEqual([row["label"] for row in made], ["light", "dark"])
        self.assertAlmostEqual(sum(made[0]["probabilities"].values()), 1, 5)
        self.fails(3, "predict", "run", input='{"image": "nowhere.png"}', says=["line 1", "nowhere.png"])
        self.fails(3, "predict", "run", input='{"image": 3}', says="wanted: a picture's path")
        self.fails(2, "train", "resnet", "labels=a,b", says="2 names for 10 classes")

    def test_kinds(self):
        self.environment["LUA_PATH"] = f"{ROOT}/scripts/?.lua;;"
        self.assertIn("fine", self.cairn("lua", RECIPE.with_name("picture_kinds.lua")).stdout)

    def test_options_that_do_not_go_together(self):
        self.fails(3, "train", RECIPE, "data=drawings", "classes=11", says="classes")
        self.fails(2, "train", RECIPE, "data=drawings", "eval_fraction=0.5", says="eval_samples")
        self.fails(3, "train", RECIPE, "data=mnist:nowhere", says="nowhere")
        self.fails(3, "train", RECIPE, self.folder_of_classes(), "classes=1", says="has 2 classes")


if __name__ == "__main__":
    unittest.main()
