#!/usr/bin/env python3
"""Windows with several samples: the losses of the transformers library, of the samples alone, and that no sample knows of another;
how full windows are."""
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from words import Words, words
from harness import ROOT, main

GOLDEN = json.loads((ROOT / "tests/golden/data/packed.json").read_text())
CLOSE = 1e-6
SGD = ["optimizer=sgd", "rate=0.1", "weight_decay=0", "clip=0", "--steps", 3]


class Packed(Words):
    def golden_rows(self):
        return self.rows([{"prompt": words(prompt), "completion": words(answer)} for prompt, answer in GOLDEN["rows"]])

    def near(self, found, wanted, close=CLOSE):
        self.assertLessEqual(max(abs(a - b) for a, b in zip(found, wanted, strict=True)), close)

    def test_losses_of_the_transformers_library(self):
        data = self.golden_rows()
        for family, wanted in GOLDEN["losses"].items():
            found = self.json("eval", self.model(family), f"data={data}", "seq=24", "batch=2")
            self.near([found["loss"]], [wanted])

    def test_losses_and_gradients_are_those_of_samples_alone(self):
        data = self.golden_rows()
        for family in ("gpt2", "gpt_oss", "ministral3", "qwen3_moe", "gemma2"):
            common = [self.model(family), f"data={data}", "seq=24", *SGD]
            packed = self.json("train", *common, "batch=8")
            alone = self.json("train", *common, "packing=none", "batch=12")
            self.near(packed["loss"], alone["loss"])
            buckets = self.json("train", *common, "lengths=12,24", "batch=12", "--accumulate", 2)
            self.near(buckets["loss"], alone["loss"])
            self.assertEqual(packed["tokens_supervised_share"], alone["tokens_supervised_share"])

    def test_no_sample_knows_of_another(self):
        for family in ("gpt2", "llama", "gpt_oss", "gemma2", "ministral3"):
            done = self.cairn("lua", pathlib.Path(__file__).with_name("apart.lua"), self.model(family), ROOT)
            self.assertEqual(done.stdout.split(), ["true", "false"], family)

    def test_windows_are_full(self):
        draw = random.Random(1)
        rows = [{"text": "x" * min(int(draw.lognormvariate(4, 1)) + 2, 512)} for _ in range(2000)]
        made = self.json("train", "gpt2", "layers=1", "width=8", "heads=1", "seq=512", "batch=4", f"data={self.rows(rows)}",
                         "--steps", 1)
        self.assertLessEqual(made["tokens_padding_share"], 0.02)
        tokens = sum(len(row["text"]) for row in rows)
        self.assertAlmostEqual(made["tokens_supervised_share"], 1 - len(rows) / tokens)

    def test_a_run_goes_on_inside_an_epoch_and_inside_a_step(self):
        model, data = self.model("llama"), self.golden_rows()
        options = [model, f"data={data}", "seq=20", "batch=1", "rate=1e-3", "--accumulate", 2]
        through = self.json("train", *options, "--steps", 6)
        self.assertEqual(through["epochs"], 1.5)
        self.json("train", *options, "--steps", 3, "--out", "run")
        rest = self.json("train", "--resume", "run", "--steps", 6)
        self.assertEqual(rest["parameter_digest"], through["parameter_digest"])
        ahead = self.json("train", *options, "--steps", 6, "--prefetch", 2)
        self.assertEqual(ahead["parameter_digest"], through["parameter_digest"])
        other = self.json("train", *options, "--steps", 6, "--seed", 7)
        self.assertNotEqual(other["loss"], through["loss"])
        inside = self.cairn("lua", pathlib.Path(__file__).with_name("inside.lua"), model, data, ROOT)
        self.assertEqual(len(set(inside.stdout.split())), 1)
        data.write_text(data.read_text() + data.read_text().splitlines()[0] + "\n")
        self.fails(3, "train", "--resume", "run", "--steps", 9, says="content")


if __name__ == "__main__":
    main()
