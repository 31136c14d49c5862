"""Encoders that bring texts that belong together near each other (task=embed): losses, plans, embeddings, bad input."""
import csv
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case, main  # noqa: E402

MODEL = ROOT / "tests/golden/data/encoders/bert_body"
WORDS = "ab cab dad bad gab fed bed head age each".split()


class Embed(Case):
    def setUp(self):
        super().setUp()
        with open(self.folder / "pairs.csv", "w", newline="", encoding="utf-8") as file:
            rows = ((f"{WORDS[i % 10]} {WORDS[i * 3 % 7]}", f"{WORDS[i % 10]} {WORDS[i // 2]} {WORDS[i * 3 % 7]}")
                    for i in range(16))
            csv.writer(file).writerows([("pair", "text"), *rows])

    def embed(self, *options):
        return json.loads(self.cairn("train", MODEL, "task=embed", "data=pairs.csv", "seq=16", "rate=3e-3", "--json",
                                     "--quiet", "--threads", 1, *options).stdout)

    def test_the_loss_goes_down_and_accuracy_is_found(self):
        for pooling in ("mean", "cls"):
            found = self.embed("batch=8", "--steps", 30, "pooling=" + pooling, "eval_data=pairs.csv")
            self.assertLess(sum(found["loss"][-4:]), 0.9 * sum(found["loss"][:4]), pooling)
            self.assertGreater(found["evaluation"][-1]["accuracy"], 1 / 8, pooling)

    def test_micro_batches_are_one_batch(self):
        given = ["--steps", 3]
        one = self.embed("batch=16", *given)
        parts = self.embed("batch=4", "--accumulate", 4, *given)
        plain = self.embed("batch=4", "--accumulate", 4, "effective=false", *given)
        for whole, other, apart in zip(one["loss"], parts["loss"], plain["loss"], strict=True):
            self.assertAlmostEqual(other / whole, 1, delta=2e-6)
            self.assertGreater(abs(apart / whole - 1), 1e-2)
        self.assertEqual(parts["plan"]["counters"]["two_passes"], 1)

    def test_plans_change_no_bit(self):
        given = ["batch=4", "--accumulate", 2, "dropout=0.1", "--steps", 3]
        wanted = self.embed(*given)["parameter_digest"]
        for other in (["--budget", "85%", "--tiers", "host"], ["--policy", "recompute"]):
            self.assertEqual(self.embed(*given, *other)["parameter_digest"], wanted, other)

    def test_padding_changes_no_embedding(self):
        for pooling in ("mean", "cls"):
            found = []
            for seq in (16, 32):
                self.embed("batch=4", "--steps", 1, "rate=1e-12", f"seq={seq}", "pooling=" + pooling, "--out", f"{pooling}{seq}")
                rows = self.cairn("predict", f"{pooling}{seq}", "--quiet", input='{"text": "bad dad"}\n').stdout
                found.append(json.loads(rows)["embedding"])
            self.assertAlmostEqual(sum(x * x for x in found[0]), 1, delta=1e-5)
            for one, other in zip(*found, strict=True):
                self.assertAlmostEqual(one, other, delta=1e-6)

    def test_bad_input(self):
        given = ["train", MODEL, "task=embed", "seq=16", "data=pairs.csv", "--steps", 1, "--quiet"]
        self.fails(2, *given, "batch=1", says="give batch=2 or more")
        self.fails(3, *given, "pair=other", says="the header has no column 'other'")
        self.fails(3, *given, "batch=17", says="16 rows to train with are fewer than batch=17")
        self.fails(2, *given, "temperature=0", says="temperature")


if __name__ == "__main__":
    main()
