"""The recipes convnext and swin, whose nets have stages: the same parameters under every plan, regions, a directory of
Transformers and back, what is refused. tests/scripts/families/picture_models_test.py has their numbers."""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case, main

MODELS = ROOT / "tests/golden/data/pictures"
DATA = ["batch=2", "samples=16", "eval_samples=4"]
SMALL = {
    "convnext": ["image=32", "depths=1,2", "widths=6,8", "patch=2", *DATA],
    "swin": ["image=16", "width=8", "depths=2,2", "heads=1,2", "patch=2", "window=4", *DATA],
}
REGIONS = {"convnext": ["stem", "s1/b0", "s2/down", "s2/b0", "s2/b1"],
           "swin": ["stem", "s1/b0/attn", "s1/b0/mlp", "s1/b1/attn", "s1/down", "s2/b1/mlp"]}
REFUSED = {
    "convnext": ((["depths=1,2,3"], ["widths=6,8", "2 stages", "3"]), (["depths=1,"], "whole numbers with commas"),
                 (["widths=6,0"], "whole numbers with commas"), (["patch=5"], ["image=32", "patches of 10 pixels"]),
                 (["layer_scale=-1"], "layer_scale")),
    "swin": ((["window=3"], ["window=3", "8 patches"]), (["heads=3,6"], ["heads=3", "8 channels", "stage 1"]),
             (["heads=1"], ["2 stages", "1"]), (["patch=3"], ["image=16", "patch=3"])),
}
CONFIGS = {
    "convnext": (({"depths": [1]}, "one for each stage"), ({"hidden_sizes": "x"}, "one for each stage"),
                 ({"hidden_act": "swosh"}, "swosh")),
    "swin": (({"num_heads": [1, 0.5]}, "one for each stage"), ({"use_absolute_embeddings": True}, "use_absolute"),
             ({"window_size": 3}, ["window=3", "does not divide"])),
}


class Stages(Case):
    def test_plans_train_the_same_parameters(self):
        for name, small in SMALL.items():
            digests = set()
            for plan in ([], ["--budget", "90%"], ["--policy", "recompute"]):
                made = self.cairn("train", name, *small, "drop_path=0.3", "--threads", 1, "--steps", 2, "--json", *plan)
                digests.add(json.loads(made.stdout)["parameter_digest"])
            self.assertEqual(len(digests), 1, name)

    def test_regions_are_blocks(self):
        for name, regions in REGIONS.items():
            rules = [word for region in regions for word in ("--region", region + "=recompute")]
            self.cairn("plan", name, *SMALL[name], *rules)

    def test_a_directory_and_back(self):
        for name in SMALL:
            self.cairn("train", MODELS / name, *DATA, "rate=1e-30", "weight_decay=0", "--threads", 1, "--steps", 1,
                       "--out", name)
            self.cairn("export", name, name + "-hf", "--to", "hf")
            out = self.folder / (name + "-hf")
            for file in ("model.safetensors", "config.json"):
                found, wanted = self.content(out / file), self.content(MODELS / name / file)
                self.assertEqual(found, wanted, name)

    def content(self, file):
        """A config's object, or tensors by name: type, shape and bytes."""
        data = file.read_bytes()
        if file.suffix == ".json":
            return json.loads(data)
        size = int.from_bytes(data[:8], "little")
        table, rest = json.loads(data[8:8 + size]), data[8 + size:]
        return {name: (row["dtype"], row["shape"], rest[slice(*row["data_offsets"])])
                for name, row in table.items() if name != "__metadata__"}

    def test_refusals(self):
        for name, rows in REFUSED.items():
            for options, says in rows:
                given = {option.split("=")[0]: option for option in [*SMALL[name], *options]}
                self.fails(2, "plan", name, *given.values(), says=says)
        for name, rows in CONFIGS.items():
            for changes, says in rows:
                folder = self.folder / "changed"
                shutil.copytree(MODELS / name, folder)
                config = json.loads((folder / "config.json").read_text())
                (folder / "config.json").write_text(json.dumps({**config, **changes}))
                done = self.cairn("plan", folder, *DATA, code=2 if "window_size" in changes else 3)
                for text in [says] if isinstance(says, str) else says:
                    self.assertIn(text, done.stderr)
                shutil.rmtree(folder)


if __name__ == "__main__":
    main()
