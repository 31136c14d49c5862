"""Pictures as recipes are given them (cli.data.pictures): kinds of data, resuming in the middle of an epoch, bad files."""
import json
import pathlib
import struct
import sys
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case  # noqa: E402

RECIPE = pathlib.Path(__file__).with_name("picture_recipe.lua")


def png(width, height, colour, claims=None):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = (b"\0" + bytes(colour) * width) * height
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", *(claims or (width, height)), 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


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
        done = self.cairn("train", RECIPE, data, "batch=12", "bad=skip", "--steps", 2)
        self.assertIn("could not be read, and are skipped: 1 so far", done.stderr)

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
