"""Decoders that learn to prefer, to score and to tell texts apart: losses of TRL and Transformers
(tests/golden/models/make_objectives.py), exact resuming, budgets and accumulation, what pairs may be, what is refused."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case, main

MADE = ROOT / "tests/golden/data/objectives"
PLAIN = ["weight_decay=0", "clip=0", "rate=1e-3", "beta1=0.9", "beta2=0.95"]
STRENGTHS = {"sigmoid": 0.3, "hinge": 0.1, "ipo": 0.3}
CLOSE = 1e-5


class Objectives(Case):
    def train(self, model, data, *arguments, code=0):
        done = self.cairn("train", MADE / model, f"data={data}", "seq=64", *arguments, "--json", "--quiet", "--threads", 1,
                          code=code)
        return json.loads(done.stdout)

    def dpo(self, *arguments, data=MADE / "pairs.jsonl", batch=4):
        return self.train("model", data, "objective=dpo", f"batch={batch}", "rate=1e-3", *arguments)

    def rows(self, *rows):
        path = self.folder / "rows.jsonl"
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return path


class Values(Objectives):
    def near(self, name, found, wanted):
        for a, b in zip(found["loss"], wanted, strict=True):
            self.assertLessEqual(abs(a - b), CLOSE * max(1, abs(b)), name)

    def test_losses(self):
        expected = json.loads((MADE / "expected.json").read_text())
        for loss, beta in STRENGTHS.items():
            found = self.dpo(f"dpo_loss={loss}", f"beta={beta}", *PLAIN, "--steps", 5, batch=6)
            self.near(loss, found, expected[f"dpo {loss}"])
        for model, data, name in ("scored", "pairs", "reward"), ("labelled", "labels", "classify"):
            found = self.train(model, MADE / f"{data}.jsonl", "batch=6", *PLAIN, "--steps", 5)
            self.near(name, found, expected[name])

    def test_distillation(self):
        """From a file of what another model expects: the same model with another epsilon."""
        expected = json.loads((MADE / "expected.json").read_text())
        teacher, file = self.folder / "teacher", self.folder / "teacher.safetensors"
        teacher.mkdir()
        for path in (MADE / "model").iterdir():
            (teacher / path.name).write_bytes(path.read_bytes())
        config = json.loads((teacher / "config.json").read_text())
        (teacher / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 0.5}))
        data = self.rows(*({"prompt": row["prompt"], "completion": row["chosen"]} for row in
                           map(json.loads, (MADE / "pairs.jsonl").read_text().splitlines())))
        self.cairn("logits", teacher, f"data={data}", "seq=64", "batch=4", "--top", 258, "--out", file)
        for temperature in 1.0, 2.0:
            options = ["objective=distill", f"teacher={file}", "batch=8", f"temperature={temperature}"]
            found = self.train("model", data, *options, "top=258", *PLAIN, "--steps", 5)
            self.near("distill", found, expected[f"distill {temperature}"])
        packed = self.train("model", data, *options, "top=8", "--steps", 2)
        self.assertEqual(packed["parameter_digest"], self.train("model", data, *options, "top=8", "--steps", 2, "--budget",
                                                                "80%")["parameter_digest"])
        run = ["train", MADE / "model", "seq=64", "objective=distill", "top=8"]
        self.fails(3, *run, f"data={data}", f"teacher={MADE / 'model/model.safetensors'}", says="is no file of a teacher")
        other = self.folder / "other.jsonl"
        other.write_text(json.dumps({"prompt": "a ", "completion": "b"}) + "\n")
        self.fails(3, *run, f"data={other}", f"teacher={file}", says="is of other data")
        file.write_bytes(file.read_bytes()[:-1])
        self.fails(3, *run, f"data={data}", f"teacher={file}", says="is damaged")

    def test_whatever_the_plan(self):
        """A reference that is computed once: the same bits under budgets and when a run goes on; K x m is 1 x Km."""
        once = self.dpo("dropout=0.1", "--steps", 4, "--budget", "90%")
        self.assertEqual(once["planned_peak_bytes"], once["peak_bytes"])
        self.assertEqual(once["parameter_digest"], self.dpo("dropout=0.1", "--steps", 4)["parameter_digest"])
        self.dpo("dropout=0.1", "--steps", 1, "--out", self.folder / "run")
        went_on = json.loads(self.cairn("train", "--resume", self.folder / "run", "--steps", 4, "--json", "--quiet").stdout)
        self.assertEqual(once["parameter_digest"], went_on["parameter_digest"])
        parts, whole = self.dpo("--steps", 3, "--accumulate", 3, batch=2), self.dpo("--steps", 3, batch=6)
        for a, b in zip(parts["loss"], whole["loss"], strict=True):
            self.assertAlmostEqual(a, b, delta=1e-6)

    def test_without_the_reference_a_run_does_not_go_on(self):
        self.dpo("--steps", 1, "--out", self.folder / "run")
        (self.folder / "run/prepared.json").unlink()
        self.fails(3, "train", "--resume", self.folder / "run", "--steps", 2, says="has no prepared.json of these data")

    def test_evaluation(self):
        found = self.dpo("eval_fraction=0.34", "--steps", 2, batch=2)["evaluation"][-1]
        self.assertLessEqual(abs(found["accuracy"] * 2 - round(found["accuracy"] * 2)), 1e-9)  # of two pairs
        apart = self.dpo(f"eval_data={MADE / 'pairs.jsonl'}", "--steps", 1, batch=2)["evaluation"][-1]
        self.assertGreater(apart["margin"], 0)


class Pairs(Objectives):
    def test_forms_of_pairs(self):
        """Prompts that both begin with are the same prompt, said or not."""
        said = [{"prompt": "a cairn", "chosen": " marks", "rejected": " began"}]
        unsaid = [{"chosen": "a cairn marks", "rejected": "a cairn began"}]
        losses = [self.dpo("dpo_loss=ipo", "--steps", 3, batch=1, data=self.rows(*rows))["loss"] for rows in (said, unsaid)]
        self.assertEqual(*losses)

    def test_directory_of_transformers(self):
        """A head that scores comes from the seed where the files have none, and goes into a directory of its class."""
        self.train("model", MADE / "labels.jsonl", "objective=classify", "batch=3", "--steps", 2, "--out", self.folder / "run")
        self.cairn("export", self.folder / "run", self.folder / "hf", "--to", "hf")
        config = json.loads((self.folder / "hf/config.json").read_text())
        self.assertEqual(config["architectures"], ["LlamaForSequenceClassification"])
        self.assertEqual(config["id2label"], {"0": "a", "1": "b", "2": "c"})
        scores = json.loads(self.cairn("logits", self.folder / "hf", "--tokens", "97,98", "--json").stdout)["logits"]
        self.assertEqual(len(scores if isinstance(scores[0], float) else scores[0]), 3)

    def test_bad_input(self):
        good = {"prompt": "a ", "chosen": "b", "rejected": "c"}
        for row, says in (("{", "line 2: it is no JSON object"), ({"prompt": "a ", "chosen": "b"}, "line 2: it has no 'rejected'"),
                          ({"chosen": "ab", "rejected": ""}, "line 2: 'rejected' is empty"),
                          ({**good, "chosen": 3}, "line 2: 'chosen' is 3; wanted: a text"),
                          ({**good, "chosen": "b" * 99}, "line 2: 102 tokens, more than seq=64; long=cut")):
            for objective in "dpo", "reward":
                self.fails(3, "train", MADE / "model", f"data={self.rows(good, row)}", f"objective={objective}", "seq=64", says=says)
        self.fails(3, "train", MADE / "model", f"data={self.rows(good)}", "seq=64",
                   says="objective=dpo and reward train with")
        self.fails(2, "train", MADE / "scored", f"data={self.rows(good)}", "objective=dpo", "seq=64",
                   says="has no head over its vocabulary")


if __name__ == "__main__":
    main()
