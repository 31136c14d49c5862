"""Families of models against the transformers library: random sizes, both spellings of config.json, logits and five steps.
CAIRN_TRANSFORMERS names a Python that has torch and transformers; CAIRN_SEEDS, how many sizes are tried (1)."""
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import families_test
from harness import ROOT, main

PYTHON = os.environ.get("CAIRN_TRANSFORMERS")


@unittest.skipUnless(PYTHON, "CAIRN_TRANSFORMERS names no Python with torch and transformers")
class Peer(families_test.Families):
    test_every_family_is_here = None

    def setUp(self):
        super().setUp()
        self.before = families_test.MODELS
        self.addCleanup(lambda: setattr(families_test, "MODELS", self.before))

    def of_seeds(self, test):
        for seed in range(int(os.environ.get("CAIRN_SEEDS", "1"))):
            families_test.MODELS = self.folder / f"seed-{seed}"
            subprocess.run([PYTHON, ROOT / "tests/golden/make_decoders.py", families_test.MODELS, str(seed)], check=True,
                           capture_output=True)
            test()

    def test_logits_in_the_older_spelling(self):
        self.of_seeds(super().test_logits_in_the_older_spelling)

    def test_training_in_the_newer_one(self):
        self.of_seeds(super().test_training_in_the_newer_one)


if __name__ == "__main__":
    main()
