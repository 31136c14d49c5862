"""Encoders as the transformers library saves them: logits, training and evaluation of each head, in both spellings of config.json;
pairs, tags and masks; what is refused. tests/golden/models/make_encoders.py made the models and what is expected."""
import json
import math
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case, main

MODELS = ROOT / "tests/golden/data/encoders"
CLOSE = 1e-5
PLAIN = ["rate=1e-3", "weight_decay=0", "clip=0", "beta2=0.999"]


class Encoders(Case):
    def copy(self, name, spelling="config.json", changes=None):
        """A directory of the model with a config of that spelling and with changes (None takes a key out); weights and
        tokenizer are links."""
        folder = self.folder / f"{name}-{spelling[:-5]}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        config = json.loads((MODELS / name / spelling).read_text())
        config.update(changes or {})
        (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
        for file in ("model.safetensors", "tokenizer.json"):
            os.symlink(MODELS / name / file, folder / file)
        return folder

    def expected(self, name):
        return json.loads((MODELS / name / "expected.json").read_text())

    def data(self, name):
        return "data=" + str(next((MODELS / name).glob("data.*")))

    def near(self, name, found, wanted, close=CLOSE):
        self.assertLessEqual(max(abs(a - b) for a, b in zip(found, wanted, strict=True)), close, name)

    def json(self, *arguments):
        return json.loads(self.cairn(*arguments, "--json", "--threads", 1).stdout)


class Golden(Encoders):
    def models(self):
        return sorted(path.name for path in MODELS.iterdir() if "losses" in self.expected(path.name))

    def test_logits_in_the_older_spelling(self):
        for name in self.models():
            expected = self.expected(name)
            rows = self.json("logits", self.copy(name, "config_v4.json"), "--tokens", ",".join(map(str, expected["tokens"])),
                             "--positions", "all")["logits"]
            for row, wanted in zip(rows, expected["logits"], strict=True):
                self.near(name, row, wanted)

    def test_training_in_the_newer_one(self):
        for name in self.models():
            expected = self.expected(name)
            trained = self.train(self.data(name), *expected["options"], *PLAIN, "--steps", 5, recipe=MODELS / name)
            self.near(name, trained["loss"], expected["losses"])

    def test_an_evaluation_is_of_all_data_and_no_mean_over_micro_batches(self):
        for name in self.models():
            expected = self.expected(name)
            options = [option for option in expected["options"] if not option.startswith("batch")]
            found = self.json("eval", MODELS / name, self.data(name), *options, "batch=2")
            for key, wanted in expected["found"].items():
                self.near(f"{name}: {key}", [found[key]], [wanted])
            if "mlm" in name:
                self.near(name, [found["perplexity"]], [math.exp(expected["found"]["loss"])], 1e-3)


class Runs(Encoders):
    def test_a_classifier_from_a_body(self):
        options = [self.data("bert_body"), "seq=12", "batch=4", "pair=other", "task=classify", "--threads", 1]
        done = self.cairn("train", MODELS / "bert_body", *options, "--steps", 2, "--out", "run")
        self.assertIn("lacks, and begins fresh: classifier.weight, classifier.bias", done.stderr)
        source = MODELS / "bert_body/data.jsonl"
        rows = [json.loads(line) for line in source.read_text().splitlines()]
        answers = [json.loads(line) for line in self.cairn("predict", "run", "--input", source).stdout.splitlines()]
        right = sum(answer["label"] == row["label"] for answer, row in zip(answers, rows, strict=True))
        found = self.json("eval", "run", f"data={source}")
        self.assertAlmostEqual(found["accuracy"], right / len(rows), places=9)
        self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])
        labels = sorted({row["label"] for row in rows})
        self.assertEqual(list(answers[0]["probabilities"]), labels)
        self.cairn("export", "run", "out", "--to", "hf")
        config = json.loads((self.folder / "out/config.json").read_text())
        self.assertEqual((config["architectures"], config["id2label"]), (["BertForSequenceClassification"],
                         {str(i): label for i, label in enumerate(labels)}))
        of_run = self.json("logits", "run", "--tokens", "2,5,3")
        self.assertEqual(self.json("logits", "out", "--tokens", "2,5,3"), of_run)
        again = self.json("eval", "out", f"data={source}", "seq=12", "batch=4", "pair=other")
        self.assertEqual((again["loss"], again["f1_macro"]), (found["loss"], found["f1_macro"]))
        self.fails(3, "generate", "run", "--prompt", "a", says="it is an encoder")
        self.fails(3, "generate", MODELS / "bert_mlm", "--prompt", "a", says="it is an encoder")
        self.fails(2, "train", MODELS / "bert_mlm", "data=x", "--sample-every", 1, says="it is an encoder")

    def test_a_run_goes_on(self):
        options = [f"data={self.masked_text()}", "seq=12", "batch=3"]
        through = self.train(*options, "--threads", 1, "--steps", 4, recipe=MODELS / "modernbert_mlm")
        self.cairn("train", MODELS / "modernbert_mlm", *options, "--threads", 1, "--steps", 2, "--out", "run")
        rest = self.json("train", "--resume", "run", "--steps", 4)
        self.assertEqual(rest["parameter_digest"], through["parameter_digest"])
        self.assertEqual(len(self.json("logits", "run", "--tokens", "2,5,3", "--positions", "all")["logits"]), 3)
        self.fails(3, "predict", "run", says="cairn logits prints its scores")

    def test_labels_by_number(self):
        rows = [json.loads(line) for line in (MODELS / "bert_classify/data.jsonl").read_text().splitlines()]
        for row in rows:
            row["label"] = ["no", "yes", "may be"].index(row["label"])
        numbers = self.folder / "numbers.jsonl"
        numbers.write_text("".join(json.dumps(row) + "\n" for row in rows))
        found = self.json("eval", MODELS / "bert_classify", f"data={numbers}", "seq=12", "pair=other")
        self.near("loss", [found["loss"]], [self.expected("bert_classify")["found"]["loss"]])
        numbers.write_text('{"text": "a", "label": 3}\n')
        self.fails(3, "eval", MODELS / "bert_classify", f"data={numbers}", says=["line 1", "'3' is none of", "no, yes, may be"])

    def test_tags_in_columns(self):
        rows = [json.loads(line) for line in (MODELS / "bert_tag/data.jsonl").read_text().splitlines()]
        columns = self.folder / "data.conll"
        columns.write_text("-DOCSTART- O\n\n" + "\n".join(
            "".join(f"{word} NN {tag}\n" for word, tag in zip(row["words"], row["tags"])) for row in rows))
        found = self.json("eval", MODELS / "bert_tag", f"data={columns}", "seq=14", "batch=3")
        for key, wanted in self.expected("bert_tag")["found"].items():
            self.near(key, [found[key]], [wanted])
        self.cairn("train", MODELS / "bert_tag", f"data={columns}", "seq=14", "batch=3", "--steps", 1, "rate=1e-30", "--out", "run")
        done = self.cairn("predict", "run", "--input", MODELS / "bert_tag/data.jsonl")
        said = [json.loads(line)["tags"] for line in done.stdout.splitlines()]
        told = [(tag, wanted) for tags, row in zip(said, rows, strict=True)
                for tag, wanted in zip(tags, row["tags"], strict=True) if tag is not None]
        self.assertAlmostEqual(sum(tag == wanted for tag, wanted in told) / len(told), found["accuracy"])
        self.fails(3, "predict", "run", input='{"words": "a"}\n', says="wanted: an array of words")
        self.fails(3, "predict", "run", input='{"words": ["a", 1]}\n', says="texts alone")
        columns.write_text("a O\nb\n")
        self.fails(3, "eval", MODELS / "bert_tag", f"data={columns}", says=["line 2", "'b' has no two columns"])

    def test_another_task_and_masks_of_lines(self):
        lines = self.folder / "lines.txt"
        lines.write_text("bad cab dad\na\nabc abc fed\n")
        options = [f"data={lines}", "samples=lines", "seq=10", "task=mlm", "--steps", 3, "--quiet", "--threads", 1]
        small = self.train(*options, "batch=1", "--accumulate", 3, recipe=MODELS / "bert_body")
        large = self.train(*options, "batch=3", recipe=MODELS / "bert_body")
        self.near("masks depend on the sample alone", small["loss"], large["loss"])
        own = self.train(*options, "batch=2", "remainder=own", recipe=MODELS / "bert_mlm")
        self.assertEqual(len(own["loss"]), 3)

    def test_masks(self):
        self.cairn("lua", pathlib.Path(__file__).with_name("masks.lua"), MODELS / "bert_mlm/tokenizer.json", self.masked_text())

    def masked_text(self):
        self.text.write_text("bad cab dad abc fed head gab a . " * 300)
        return self.text


class Refused(Encoders):
    def refused(self, name, changes, *says, code=3, arguments=("--tokens", "1,2")):
        self.fails(code, "logits", self.copy(name, changes=changes), *arguments, says=says)

    def test_configs(self):
        self.refused("bert_mlm", {"is_decoder": True}, "is_decoder is true; cairn has only false")
        self.refused("bert_mlm", {"position_embedding_type": "relative_key"}, "'relative_key'"[1:-1], "only absolute")
        self.refused("bert_mlm", {"rotary_magic": 7}, "rotary_magic (7)", "bert knows nothing of")
        self.refused("bert_mlm", {"hidden_act": "mish"}, "'mish'", "known:")
        self.refused("bert_mlm", {"hidden_size": 16}, "of another shape")
        self.refused("bert_mlm", {"num_hidden_layers": 3}, "missing in the file")
        self.refused("bert_mlm", {"tie_word_embeddings": False}, "tie_word_embeddings is false", "'cls.predictions.decoder.weight'")
        self.refused("bert_mlm", {"architectures": ["BertForQuestionAnswering"]}, "has no head that is known", "task=mlm", code=2)
        self.refused("bert_classify", {"problem_type": "regression"}, "problem_type is regression")
        self.refused("bert_classify", {"id2label": {"0": "a", "2": "b"}}, "id2label: 1 is not there")
        self.refused("bert_classify", {"id2label": {"0": "a", "x": "b"}}, "id2label has the key 'x'")
        self.refused("bert_classify", {"id2label": {"0": "a", "1": "b"}}, "classifier.weight is [3, 12], the model needs [2, 12]")
        self.refused("modernbert_classify", {"classifier_pooling": "last"}, "classifier_pooling is 'last'; known: cls mean")
        self.refused("modernbert_classify", {"layer_types": ["full_attention"]}, "layer_types has 1 entries, of 4 layers")
        self.refused("modernbert_tag", {"local_attention": 0}, "local_attention is 0; wanted: a whole number of at least 1")

    def test_a_config_of_another_recipe(self):
        self.fails(3, "plan", "decoder", "data=random", f"model={MODELS / 'bert_mlm/config.json'}",
                   says="the family bert is of the recipe encoder, and not of decoder")
        self.fails(3, "plan", "encoder", "data=random", f"model={MODELS.parent / 'decoders/gpt2/config.json'}", says="not of encoder")

    def test_changes_at_random(self):
        configs = sorted(MODELS.glob("*/config*.json"))
        self.cairn("lua", pathlib.Path(__file__).with_name("mutations.lua"), 1, *configs)

    def test_options(self):
        self.refused("bert_mlm", {}, "seq=41 is more than the model's 40 positions", code=2,
                     arguments=["--tokens", ",".join("1" * 41)])
        for option, says in [("mask_rate=0", "mask_rate=0"), ("mask_token=31", "the model has 31 tokens"),
                             ("random_share=0.5", "are more than 1"), ("pair=x", "goes with task=classify"), ("seq=2", "no room")]:
            self.fails(2, "train", MODELS / "bert_mlm", self.data("bert_mlm"), option, says=says)
        self.fails(2, "train", MODELS / "bert_tag", self.data("bert_tag"), "eval_fraction=0.5", "--best", "counts", "--out", "run",
                   says="known: loss accuracy f1_macro f1_micro")
        bare = self.copy("bert_mlm")
        (bare / "tokenizer.json").unlink()
        self.fails(2, "train", bare, f"data={self.text}", "seq=8", says="mask_token=N is needed")
        (bare / "vocab.txt").write_text("a\n")
        self.fails(3, "train", bare, f"data={self.text}", "seq=8", says="vocab.txt alone")

    def test_data(self):
        bad = self.folder / "bad.jsonl"
        for text, says in [('{"words": ["a", "b"], "tags": ["O"]}', "an array of 2 tags"),
                           ('{"words": "a", "tags": ["O"]}', "an array of words"),
                           ('{"words": ["a"], "tags": ["X"]}', "'X' is none of those of the model: O, B, I")]:
            bad.write_text(text + "\n")
            self.fails(3, "train", MODELS / "bert_tag", f"data={bad}", says=["line 1", says])
        bad.write_text('{"text": "a", "label": "no"}\n')
        self.fails(3, "train", MODELS / "bert_classify", f"data={bad}", "pair=other", says=["line 1", "'other' is missing"])


if __name__ == "__main__":
    main()
