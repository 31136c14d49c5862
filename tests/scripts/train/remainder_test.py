"""`remainder=`: what becomes of the samples that fill no micro-batch at an epoch's end; `cairn plan` of several programs."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import TINY, Case, main  # noqa: E402
from lengths_test import batches_of, texts  # noqa: E402

MLP = ["samples=10", "batch=4", "layers=1", "width=8", "noise=0.1"]


class Remainder(Case):
    def mlp(self, *arguments):
        return self.train(*arguments, recipe="mlp", model=MLP)

    def test_an_epoch_in_parts_is_the_epoch_at_once(self):
        for loss in ("mse", "cross_entropy"):
            with self.subTest(loss=loss):
                whole = self.mlp(f"loss={loss}", "batch=10", "--steps", 6)
                own = self.mlp(f"loss={loss}", "remainder=own", "--accumulate", 3, "--steps", 6)
                for a, b in zip(whole["loss"], own["loss"]):
                    self.assertAlmostEqual(a, b, delta=1e-5 * abs(a))
                self.assertEqual([(row["name"], row["micro_batches"], row["tokens"]) for row in own["programs"]],
                                 [("train", 12, 48), ("remainder", 6, 12)])
                self.assertEqual(own["peak_bytes"], own["planned_peak_bytes"])

    def test_what_is_dropped_is_not_trained_with(self):
        dropped = self.mlp("remainder=drop", "--accumulate", 3, "--steps", 2)
        self.assertNotIn("programs", dropped)
        self.assertEqual(dropped["parameter_digest"], self.mlp("remainder=drop", "--accumulate", 2, "--steps", 2)
                         ["parameter_digest"])  # an epoch of two micro-batches ends the step
        self.assertNotEqual(dropped["loss"], self.mlp("--accumulate", 3, "--steps", 2)["loss"])
        self.assertEqual(self.mlp("loss=mse", "--steps", 3)["parameter_digest"],
                         self.mlp("loss=mse", "remainder=drop", "--steps", 3)["parameter_digest"])
        self.fails(3, "train", "gpt2", *TINY, f"data={self.text}", "batch=1000", "remainder=drop",
                   says=("windows", "batch=1000", "remainder=drop"))

    def test_text(self):
        windows = (len(self.text.read_text()) - 1) // 16
        self.assertNotEqual(windows % 6, 0)
        steps = -(-windows // 6) + 3  # into the second epoch
        padded = self.train("batch=6", "--steps", steps)
        own = self.train("batch=6", "remainder=own", "--steps", steps)
        for a, b in zip(padded["loss"], own["loss"]):
            self.assertAlmostEqual(a, b, delta=1e-5)
        rest = own["programs"][1]
        self.assertEqual((rest["name"], rest["micro_batches"], rest["tokens"]), ("remainder", 1, windows % 6 * 16))
        self.train("batch=6", "remainder=own", "--steps", steps - 4, "--out", "run")  # before the remainder
        resumed = json.loads(self.cairn("train", "--resume", "run", "--steps", steps, "--json", "--quiet").stdout)
        self.assertEqual(resumed["parameter_digest"], own["parameter_digest"])

    def test_lengths(self):
        documents = self.folder / "documents.txt"
        documents.write_text(texts(50))
        options = ["lengths=8,16,32", "batch=4"]
        batches, predictions = batches_of(documents.read_text(), 4)
        steps = sum(batches.values())  # an epoch
        padded = self.train(*options, "--steps", steps, data=documents)
        own = self.train(*options, "remainder=own", "--steps", steps, data=documents)
        for a, b in zip(padded["loss"], own["loss"]):
            self.assertAlmostEqual(a, b, delta=1e-5)
        found = {length: 0 for length in predictions}
        for row in own["programs"]:
            found[row["length"]] += row["tokens"]
        self.assertEqual(found, predictions)
        self.assertTrue(any(row["name"].endswith("-remainder") for row in own["programs"]))
        dropped = self.train(*options, "remainder=drop", "--steps", steps, data=documents)
        self.assertEqual([row["name"] for row in dropped["programs"]], ["length-8", "length-16", "length-32"])

    def test_plans_are_those_of_the_run(self):
        documents = self.folder / "documents.txt"
        documents.write_text(texts(50))
        for options in (["lengths=8,16,32"], ["remainder=own", "batch=6"], ["lengths=8,32", "remainder=own"],
                        ["eval_fraction=0.2"]):
            with self.subTest(options=options):
                options = [*TINY, f"data={documents}", *options, "--threads", 2]
                planned = json.loads(self.cairn("plan", "gpt2", *options, "--json").stdout)
                trained = json.loads(self.cairn("train", "gpt2", *options, "--steps", 1, "--json", "--quiet").stdout)
                self.assertEqual([(row["name"], row["length"]) for row in planned["programs"]],
                                 [(row["name"], row["length"]) for row in trained["programs"]])
                self.assertEqual(planned["planned_peak_bytes"], trained["peak_bytes"])
                self.assertEqual(planned["planned_peak_bytes"]["device"],
                                 max(row["planned_peak_bytes"]["device"] for row in planned["programs"]))
                text = self.cairn("plan", "gpt2", *options).stdout
                self.assertIn("programs of the store", text)
        self.assertNotIn("programs", json.loads(self.cairn("plan", "gpt2", *TINY, "--json").stdout))

    def test_mistakes(self):
        plan = ["plan", "gpt2", *TINY, "lengths=8,16"]
        self.fails(2, *plan, "--sweep", says=("--sweep", "2 on one store", "length-16"))
        self.fails(2, *plan, "--problem-out", "x.json", says="--problem-out is of one program")
        self.fails(2, "train", "gpt2", *TINY, "remainder=keep", says=("remainder=keep", "pad, own, drop"))
        for command in ("verify", "profile"):
            self.fails(2, command, "gpt2", *TINY, f"data={self.text}", "remainder=own",
                       says=("remainder=own", "cairn train"))


if __name__ == "__main__":
    main()
