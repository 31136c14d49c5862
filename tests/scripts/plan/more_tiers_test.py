"""More tiers never need more of the device: what one of them does with, both do, and a run takes what was planned."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Case, main  # noqa: E402

MODELS = {
    "gpt2": ["gpt2", "data=random", "layers=1", "heads=2", "width=32", "seq=16", "batch=2", "--threads", "1"],
    "gpt2, a large vocabulary": ["gpt2", "data=random", "layers=1", "heads=2", "width=64", "seq=64", "batch=2",
                                 "vocab=4000", "--threads", "1"],
    "gpt2, in micro-batches": ["gpt2", "data=random", "layers=1", "heads=2", "width=32", "seq=16", "batch=2",
                               "vocab=2000", "--accumulate", "2", "--threads", "1"],
    "llama": ["llama", "data=random", "layers=1", "heads=2", "width=32", "seq=16", "batch=2", "vocab=2000",
              "--threads", "1"],
    "mlp": ["mlp", "layers=2", "width=32", "batch=16", "--threads", "1"],
}


class MoreTiers(Case):
    def test_never_need_more(self):
        for name, model in MODELS.items():
            with self.subTest(name):
                least = {tiers: self.smallest_budget(*model, "--tiers", tiers)
                         for tiers in ("host", "disk", "host,disk")}
                self.assertLessEqual(least["host,disk"], min(least["host"], least["disk"]))
                run = self.cairn("train", *model, "--tiers", "host,disk", "--budget", least["host,disk"],
                                 "--steps", "1", "--json", "--quiet")
                found = json.loads(run.stdout)
                self.assertEqual(found["peak_bytes"]["device"], found["planned_peak_bytes"]["device"])
                self.assertLessEqual(found["peak_bytes"]["device"], least["host,disk"])


if __name__ == "__main__":
    main()
