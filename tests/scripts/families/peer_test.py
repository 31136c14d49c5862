"""Families of models against the transformers library: random sizes, both spellings of config.json, logits and five steps.
CAIRN_TRANSFORMERS names a Python that has torch and transformers; CAIRN_SEEDS, how many sizes are tried (1)."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import encoders_test
import families_test
import seq2seq_test
from harness import ROOT, main

EXPORTED = """
import json, sys, torch, transformers
model = getattr(transformers, "AutoModelFor" + sys.argv[1]).from_pretrained(sys.argv[2]).eval()
logits = model(torch.tensor([[2, 5, 7, 3]])).logits
print(json.dumps(logits.reshape(-1, logits.shape[-1]).tolist()))
"""
PYTHON = os.environ.get("CAIRN_TRANSFORMERS")


class Drawn:
    """Tests whose models are not those of `module`, but drawn from seeds by `maker`."""

    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, self.module, "MODELS", self.module.MODELS)

    def of_seeds(self, test):
        for seed in range(int(os.environ.get("CAIRN_SEEDS", "1"))):
            self.module.MODELS = self.folder / f"seed-{seed}"
            subprocess.run([PYTHON, ROOT / "tests/golden/models" / self.maker, self.module.MODELS, str(seed)], check=True,
                           capture_output=True)
            test()


@unittest.skipUnless(PYTHON, "CAIRN_TRANSFORMERS names no Python with torch and transformers")
class Peer(Drawn, families_test.Families):
    module, maker = families_test, "make_decoders.py"
    test_every_family_is_here = None

    def test_logits_in_the_older_spelling(self):
        self.of_seeds(super().test_logits_in_the_older_spelling)

    def test_experts_go_back(self):
        """What is exported, Transformers loads without a word, and it computes what cairn computes."""
        self.of_seeds(self.loaded)

    def loaded(self):
        script = ("import sys, torch, transformers, json\n"
                  "model, info = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], output_loading_info=True,\n"
                  "  experts_implementation='eager')\n"
                  "assert not any(info.values()), info\n"
                  "print(json.dumps(model(torch.tensor([[1, 2, 3]])).logits[0, -1].tolist()))")
        for name in ("gpt_oss", "mixtral", "qwen3_moe"):
            self.text.write_bytes(bytes(i % 30 for i in range(100)))
            run, out = self.folder / f"run-{name}", self.folder / f"out-{name}"
            for folder in (run, out):
                shutil.rmtree(folder, ignore_errors=True)
            self.cairn("train", families_test.MODELS / name, f"data={self.text}", "seq=8", "--steps", 2, "--out", run, "--quiet")
            self.cairn("export", run, out, "--to", "hf", "--shard-size", "20KB", "--quiet")
            done = subprocess.run([PYTHON, "-c", script, out], check=True, capture_output=True, text=True)
            found = json.loads(self.cairn("logits", run, "--tokens", "1,2,3", "--json").stdout)["logits"]
            self.near(name, found, json.loads(done.stdout.splitlines()[-1]))

    def test_training_in_the_newer_one(self):
        self.of_seeds(super().test_training_in_the_newer_one)


@unittest.skipUnless(PYTHON, "CAIRN_TRANSFORMERS names no Python with torch and transformers")
class Seq2Seq(Drawn, seq2seq_test.Values):
    module, maker = seq2seq_test, "make_seq2seq.py"
    test_evaluation = None

    def test_logits(self):
        self.of_seeds(super().test_logits)

    def test_training(self):
        self.of_seeds(super().test_training)

    def test_greedy_texts(self):
        self.of_seeds(super().test_greedy_texts)


@unittest.skipUnless(PYTHON, "CAIRN_TRANSFORMERS names no Python with torch and transformers")
class Encoders(Drawn, encoders_test.Golden):
    module, maker = encoders_test, "make_encoders.py"

    def test_logits_in_the_older_spelling(self):
        self.of_seeds(super().test_logits_in_the_older_spelling)

    def test_training_in_the_newer_one(self):
        self.of_seeds(super().test_training_in_the_newer_one)

    def test_an_evaluation_is_of_all_data_and_no_mean_over_micro_batches(self):
        self.of_seeds(super().test_an_evaluation_is_of_all_data_and_no_mean_over_micro_batches)

    def test_transformers_goes_on_with_exports(self):
        for name, options, kind in [("bert_body", ["task=classify", "pair=other"], "SequenceClassification"),
                                    ("modernbert_tag", ["seq=14"], "TokenClassification"), ("bert_mlm", ["seq=9"], "MaskedLM")]:
            self.train(self.data(name), *options, "batch=1", "--steps", 2, "--out", name, recipe=encoders_test.MODELS / name)
            self.cairn("export", name, name + "-out", "--to", "hf")
            done = subprocess.run([PYTHON, "-c", EXPORTED, kind, self.folder / (name + "-out")], check=True, capture_output=True)
            found = self.json("logits", name + "-out", "--tokens", "2,5,7,3", "--positions", "all")["logits"]
            for row, wanted in zip(found, json.loads(done.stdout), strict=True):
                self.near(name, row, wanted)


if __name__ == "__main__":
    main()
