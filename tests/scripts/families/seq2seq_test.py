"""Directories of models with an encoder and a decoder as the transformers library saves them: logits, training, greedy texts,
in both spellings of config.json; what is refused. tests/golden/models/make_seq2seq.py made the models and what is expected."""
import json
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case, main

MODELS = ROOT / "tests/golden/data/seq2seq"
CLOSE = 1e-5
LAST = 1  # the token that ends texts


def ids(tokens):
    return ",".join(map(str, tokens))


class Models(Case):
    def expected(self, path):
        return json.loads((path / "expected.json").read_text())

    def copy(self, path, spelling="config.json", **changes):
        """A directory of the model with a config of that spelling, changed (None takes a key out); the weights are a link."""
        folder = self.folder / f"{path.name}-{spelling[:-5]}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        config = {**json.loads((path / spelling).read_text()), **changes}
        config = {key: value for key, value in config.items() if value is not None or key not in changes}
        (folder / "config.json").write_text(json.dumps(config))
        os.symlink(path / "model.safetensors", folder / "model.safetensors")
        return folder

    def table(self, pairs):
        data = self.folder / "pairs.jsonl"
        data.write_text("".join(json.dumps({"source": bytes(a).decode(), "target": bytes(b).decode()}) + "\n" for a, b in pairs))
        return data

    def options(self, pairs):
        longest = [1 + max(map(len, side)) for side in zip(*pairs)]
        return [f"data={self.table(pairs)}", f"seq={longest[0]}", f"target_seq={longest[1]}", f"batch={len(pairs)}"]

    def near(self, name, found, wanted):
        apart = max(abs(a - b) for a, b in zip(found, wanted, strict=True))
        self.assertLessEqual(apart, CLOSE, name)

    def logits(self, folder, pair, *arguments):
        done = self.cairn("logits", folder, "--tokens", ids(pair[0]), "--decoder-tokens", ids([0, *pair[1]]), "--json",
                          "--threads", 1, *arguments)
        return json.loads(done.stdout)["logits"]


class Values(Models):
    def test_logits(self):
        for path in sorted(MODELS.iterdir()):
            expected = self.expected(path)
            for spelling in sorted(path.glob("config*.json")):
                found = self.logits(self.copy(path, spelling.name), expected["pairs"][0], "--positions", "all")
                for row, wanted in zip(found, expected["logits"], strict=True):
                    self.near(spelling, row, wanted)

    def test_training(self):
        """Texts of several lengths in one micro-batch: what fills up counts for nothing."""
        for path in sorted(MODELS.iterdir()):
            expected = self.expected(path)
            trained = self.train(*self.options(expected["pairs"]), "rate=1e-3", "weight_decay=0", "clip=0", "beta2=0.95",
                                 "--steps", 5, recipe=path)
            self.near(path.name, trained["loss"], expected["losses"])

    def test_greedy_texts(self):
        for path in sorted(MODELS.iterdir()):
            expected = self.expected(path)
            done = self.cairn("generate", path, "--prompt", bytes(expected["pairs"][0][0]).decode(), "--max-tokens",
                              len(expected["made"]), "--temperature", 0, "--json", "--threads", 1)
            self.assertEqual(json.loads(done.stdout)["tokens"], [0, *expected["made"]])

    def test_evaluation(self):
        path = MODELS / "t5_v1_1"
        expected = self.expected(path)
        found = json.loads(self.cairn("eval", path, *self.options(expected["pairs"]), "batch=2", "--json").stdout)
        self.near("loss", [found["loss"]], expected["losses"][:1])
        self.assertEqual(found["tokens"], sum(len(b) + 1 for _, b in expected["pairs"]))
        self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])


class Runs(Models):
    def test_a_run_is_what_its_export_is(self):
        path = MODELS / "t5_v1_1"
        expected = self.expected(path)
        pair = expected["pairs"][1]
        self.cairn("train", path, *self.options(expected["pairs"]), "rate=1e-3", "--steps", 2, "--out", "run", "--quiet", "--threads", 1)
        self.cairn("export", "run", "out", "--to", "hf", "--quiet")
        self.assertEqual(json.loads((self.folder / "out/config.json").read_text())["model_type"], "t5")
        self.near("export", self.logits("out", pair), self.logits("run", pair))
        self.assertGreater(max(abs(a - b) for a, b in zip(self.logits("run", pair), self.logits(path, pair))), CLOSE)
        prompt = ["--prompt", bytes(pair[0]).decode(), "--max-tokens", 3, "--temperature", 0, "--json", "--threads", 1]
        made = [json.loads(self.cairn("generate", folder, *prompt).stdout)["tokens"] for folder in ("run", "out")]
        self.assertEqual(*made)

    def test_texts_that_are_too_long(self):
        data = self.table([([5] * 30, [6] * 20)])
        done = self.cairn("train", MODELS / "t5", f"data={data}", "seq=8", "target_seq=7", "--steps", 1, "--threads", 1)
        for option in ("seq=8", "target_seq=7"):
            self.assertIn(f"1 of 1 texts have more than {option} tokens", done.stderr)

    def test_random_data_and_frozen_parts(self):
        trained = self.train("data=random", "seq=6", "target_seq=5", "batch=2", "frozen=encoder.*", "eval_fraction=0.01",
                             "--steps", 1, recipe=MODELS / "t5")
        self.assertEqual(len(trained["loss"]), 1)

    def test_mixed_precision(self):
        """Scores are bent by distance in float32 whatever the products are in."""
        expected = self.expected(MODELS / "t5")
        trained = self.train(*self.options(expected["pairs"]), "rate=1e-3", "weight_decay=0", "clip=0", "beta2=0.95", "--steps", 5,
                             "--amp", "bf16", recipe=MODELS / "t5")
        for found, wanted in zip(trained["loss"], expected["losses"], strict=True):
            self.assertLess(abs(found - wanted), 0.03)


class Refused(Models):
    def refused(self, says, name="t5", spelling="config.json", code=3, arguments=("--decoder-tokens", "0"), **changes):
        folder = self.copy(MODELS / name, spelling, **changes)
        self.fails(code, "logits", folder, "--tokens", "1,2", *arguments, says=says)

    def test_configs(self):
        self.refused("t5 knows nothing of: rotary_magic (7)", rotary_magic=7)
        self.refused("is_encoder_decoder is false; cairn has only true", is_encoder_decoder=False)
        self.refused("feed_forward_proj is 'mish'; known:", feed_forward_proj="mish", dense_act_fn=None)
        self.refused("wanted: an activation, as relu, or gated-ACTIVATION", feed_forward_proj="half-gelu")
        self.refused("is_gated_act is true, but feed_forward_proj is 'relu'", is_gated_act=True)
        self.refused("relative_attention_num_buckets is 3", relative_attention_num_buckets=3)
        self.refused("relative_attention_max_distance 4; wanted:", relative_attention_max_distance=4)
        self.refused("decoder_start_token_id is 40; wanted: one of the 40 tokens", decoder_start_token_id=40)
        self.refused("d_model is 1.5; wanted: a whole number", d_model=1.5)
        self.refused("missing in the file", num_decoder_layers=3)
        self.refused("tie_word_embeddings is false, and the files have no 'lm_head.weight'", spelling="config_v4.json",
                     tie_word_embeddings=False)
        self.refused("'lm_head.weight' is not 'shared.weight'", "t5_v1_1", "config_v4.json", tie_word_embeddings=True)

    def test_changes_at_random(self):
        configs = sorted(MODELS.glob("*/config*.json"))
        self.cairn("lua", pathlib.Path(__file__).with_name("mutations.lua"), 1, *configs)

    def test_words(self):
        path = MODELS / "t5"
        self.refused("--decoder-tokens is needed", code=2, arguments=())
        self.refused("--decoder-tokens: number 2 is 40; the model has 40 tokens", arguments=("--decoder-tokens", "0,40"))
        self.fails(2, "logits", ROOT / "tests/golden/data/decoders/gpt2", "--tokens", "1", "--decoder-tokens", "1",
                   says="goes with a model that has an encoder and a decoder")
        data = self.table([([5], [6])])
        self.fails(3, "train", path, f"data={data}", "target=summary", "--steps", 1, says="'summary' is missing")
        csv = self.folder / "pairs.csv"
        csv.write_text("source,answer\na,b\n")
        self.fails(3, "train", path, f"data={csv}", "--steps", 1, says=["no column 'target'", "target=NAME names another"])
        self.fails(2, "train", path, f"data={data}", "--sample-every", 1, "--steps", 1, says="goes with models that go on")
        self.fails(3, "train", "seq2seq", f"model={ROOT / 'tests/golden/data/decoders/gpt2/config.json'}", "data=random",
                   says="is of the recipe decoder")


if __name__ == "__main__":
    main()
