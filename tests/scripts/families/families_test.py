"""Directories of models as the transformers library saves them: logits and training of every family, in both spellings of
config.json; what is refused. tests/golden/models/make_decoders.py made the models and what is expected."""
import json
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case, main

MODELS = ROOT / "tests/golden/data/decoders"
CLOSE = 1e-5


class Models(Case):
    def copy(self, name, spelling="config.json"):
        """A directory of the family's model with a config of that spelling; the weights are a link."""
        folder = self.folder / f"{name}-{spelling[:-5]}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shutil.copy(MODELS / name / spelling, folder / "config.json")
        os.symlink(MODELS / name / "model.safetensors", folder / "model.safetensors")
        return folder

    def near(self, name, found, wanted, close=CLOSE):
        apart = max(abs(a - b) for a, b in zip(found, wanted, strict=True))
        self.assertLessEqual(apart, close, name)


class Families(Models):
    def test_logits_in_the_older_spelling(self):
        for path in sorted(MODELS.iterdir()):
            expected = json.loads((path / "expected.json").read_text())
            tokens = ",".join(map(str, expected["tokens"][:-1]))
            done = self.cairn("logits", self.copy(path.name, "config_v4.json"), "--tokens", tokens, "--positions", "all", "--json",
                              "--threads", 1)
            for row, wanted in zip(json.loads(done.stdout)["logits"], expected["logits"], strict=True):
                self.near(path.name, row, wanted)

    def test_training_in_the_newer_one(self):
        for path in sorted(MODELS.iterdir()):
            expected = json.loads((path / "expected.json").read_text())
            data = self.folder / "tokens.bin"
            data.write_bytes(bytes(expected["tokens"]))
            trained = self.train(f"data={data}", f"seq={len(expected['tokens']) - 1}", "rate=1e-3", "weight_decay=0", "clip=0",
                                 "--steps", 5, recipe=path)
            self.near(path.name, trained["loss"], expected["losses"])

    def test_every_family_is_here(self):
        listed = json.loads(self.cairn("models", "--json").stdout)["models"]
        names = {row["model_type"] for row in listed if "text_config" not in row["keys"] and row["recipe"] == "decoder"}
        self.assertEqual(names, {path.name for path in MODELS.iterdir()})


class Runs(Models):
    def test_a_run_goes_on_without_its_directory(self):
        folder = self.copy("gpt2")
        self.text.write_bytes(bytes(i % 40 for i in range(200)))
        options = [f"data={self.text}", "seq=8", "--threads", 1, "--quiet"]
        whole = self.train(*options, "--steps", 4, recipe=folder)
        self.cairn("train", folder, *options, "--steps", 2, "--out", "run")
        shutil.rmtree(folder)
        rest = json.loads(self.cairn("train", "--resume", "run", "--steps", 4, "--threads", 1, "--quiet", "--json").stdout)
        self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])
        last = json.loads(self.cairn("logits", "run", "--tokens", "1,2,3", "--json").stdout)["logits"]
        every = json.loads(self.cairn("logits", "run", "--tokens", "1,2,3", "--json", "--positions", "all").stdout)["logits"]
        self.assertEqual(every[-1], last)
        made = json.loads(self.cairn("generate", "run", "--prompt", "", "--max-tokens", 3, "--temperature", 0, "--json").stdout)
        self.assertEqual(len(made["tokens"]), made["prompt_tokens"] + 3)

    def test_generating_and_evaluating(self):
        folder, expected = self.copy("gpt2"), json.loads((MODELS / "gpt2/expected.json").read_text())
        self.text.write_bytes(bytes(expected["tokens"]))
        found = json.loads(self.cairn("eval", folder, f"data={self.text}", f"seq={len(expected['tokens']) - 1}", "--json").stdout)
        self.near("loss", [found["loss"]], expected["losses"][:1])
        self.assertEqual(found["tokens"], len(expected["tokens"]) - 1)
        made = json.loads(self.cairn("generate", folder, "--prompt", bytes(expected["tokens"][:5]).decode(), "--max-tokens", 1,
                                     "--temperature", 0, "--json").stdout)
        logits = expected["logits"][4]
        self.assertEqual(made["tokens"], expected["tokens"][:5] + [logits.index(max(logits))])
        self.assertEqual(made["peak_bytes"], made["planned_peak_bytes"])
        half = json.loads(self.cairn("generate", folder, "--prompt", bytes(expected["tokens"][:5]).decode(), "--max-tokens", 1,
                                     "--temperature", 0, "--amp", "bf16", "--json").stdout)
        self.assertEqual((half["cache_bytes"], len(half["tokens"])), (made["cache_bytes"] // 2, 6))
        self.assertEqual(half["peak_bytes"], half["planned_peak_bytes"])

    def test_a_config_alone_is_trained_from_the_start(self):
        config = MODELS / "gpt2/config.json"
        trained = self.train("data=random", f"model={config}", "seq=8", "--steps", 1, recipe="decoder")
        self.assertEqual(trained["parameter_count"], self.train("data=random", "seq=8", "--steps", 1,
                                                                recipe=config.parent)["parameter_count"])
        self.fails(2, "train", "decoder", "data=random", says="model=config.json is needed")

    def test_logits_of_a_large_vocabulary(self):
        config = self.folder / "config.json"
        config.write_text(json.dumps({"model_type": "gpt2", "vocab_size": 20000, "n_embd": 8, "n_layer": 1, "n_head": 1}))
        self.cairn("train", "decoder", f"model={config}", "data=random", "seq=4", "batch=1", "--steps", 1, "--out", "run")
        done = self.cairn("logits", "run", "--tokens", "1,2,3", "--positions", "all", "--json")
        self.assertEqual([len(row) for row in json.loads(done.stdout)["logits"]], [20000] * 3)


class Refused(Models):
    def refused(self, changes, *says, name="gpt2", code=3, arguments=()):
        """A directory whose config has these changes (None takes a key out) is not loaded, and the message says why."""
        folder = self.folder / "changed"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(MODELS / name, folder)
        config = json.loads((folder / "config.json").read_text())
        for key, value in changes.items():
            if value is None:
                del config[key]
            else:
                config[key] = value
        (folder / "config.json").write_text(json.dumps(config))
        self.fails(code, "logits", folder, "--tokens", "1,2", *arguments, says=says)

    def test_configs(self):
        self.refused({"model_type": "gpt3"}, "'gpt3'", "did you mean 'gpt2'", "known:")
        self.refused({"model_type": None}, "names no family of models")
        self.refused({"rotary_magic": 7}, "rotary_magic (7)", "gpt2 knows nothing of")
        self.refused({"add_cross_attention": True}, "add_cross_attention is true; cairn has only false")
        self.refused({"quantization_config": {"quant_method": "aqlm"}}, "quantization_config", "quant_method is aqlm")
        self.refused({"quantization_config": {"quant_method": "gptq", "bits": 8}}, "bits is 8; cairn reads 4")
        self.refused({"num_experts_per_tok": 9}, "num_experts_per_tok=9 is more than the 7 experts", name="mixtral")
        self.refused({"router_jitter_noise": 0.1}, "router_jitter_noise is 0.1; cairn has only 0", name="mixtral")
        self.refused({"mlp_only_layers": [3]}, "mlp_only_layers names layer 3; wanted: 0 to 2", name="qwen3_moe")
        self.refused({"swiglu_alpha": 1}, "swiglu_alpha is 1; cairn has only 1.702", name="gpt_oss")
        self.refused({"n_layer": 1e300}, "n_layer", "wanted: a whole number")
        self.refused({"n_layer": 1.5}, "n_layer is 1.5; wanted: a whole number")
        self.refused({"n_head": 3}, "num_attention_heads=3 does not divide hidden_size=16")
        self.refused({"activation_function": "mish"}, "'mish'", "known:")
        self.refused({"rope_scaling": {"type": "linear", "factor": 2}}, "rope_scaling")
        self.refused({"tie_word_embeddings": False}, "tie_word_embeddings is false", "'lm_head.weight'")
        self.refused({"n_embd": 32}, "of another shape")
        self.refused({"n_layer": 3}, "missing in the file")

    def test_rotary_positions(self):
        rope = {"rope_theta": 700.0, "rope_type": "default"}
        for changes, says in [({"rope_type": "spiral"}, "rope_type is 'spiral'; known: default"),
                              ({"rope_type": "linear"}, "linear needs 'factor'"),
                              ({"rope_type": "linear", "factor": 0}, "factor is 0; wanted: a number above 0"),
                              ({"mrope_section": [1, 2]}, "'mrope_section' is not known of default"),
                              ({"partial_rotary_factor": 2}, "partial_rotary_factor is 2")]:
            self.refused({"rope_parameters": {**rope, **changes}}, says, name="mistral")
        self.refused({"layer_types": ["full_attention"]}, "layer_types has 1 entries, of 2 layers", name="qwen2")
        self.refused({"layer_types": ["full_attention", "linear_attention"]}, "'linear_attention'", name="qwen2")

    def test_changes_at_random(self):
        configs = sorted(MODELS.glob("*/config*.json"))
        self.cairn("lua", pathlib.Path(__file__).with_name("mutations.lua"), 1, *configs)

    def test_words(self):
        self.refused({}, "number 2 is 40; the model has 40 tokens", arguments=["--tokens", "1,40"])
        self.refused({}, "seq=49 is more than the model's 48 positions", code=2, arguments=["--tokens", ",".join("1" * 49)])
        self.refused({}, "is no token", code=2, arguments=["--tokens", "1,x"])
        (self.folder / "empty").mkdir()
        self.fails(3, "train", "empty", says="a directory without config.json")
        (self.folder / "empty/config.json").write_text("[1, 2")
        self.fails(3, "train", "empty", says="is no JSON object")
        shutil.copy(MODELS / "gpt2/config.json", self.folder / "empty/config.json")
        self.fails(3, "train", "empty", "data=random", says="has no weights")


if __name__ == "__main__":
    main()
