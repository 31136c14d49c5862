"""Adapters of PEFT's, read and written: tests/golden/models/make_peft.py made the files and what they compute. With a Python that
has torch, transformers and peft ($PEFT_PYTHON), PEFT reads what is exported."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CAIRN, ROOT, Case, main  # noqa: E402

DATA = ROOT / "tests/golden/data"
PEFT = DATA / "peft"
CLOSE = 1e-5
JUDGE = """import json, sys, torch, peft, transformers
kind = getattr(transformers, sys.argv[1])
model = kind.from_pretrained(sys.argv[2], dtype=torch.float32)
if len(sys.argv) > 4: model = peft.PeftModel.from_pretrained(model, sys.argv[4])
with torch.no_grad(): found = model.eval()(torch.tensor([json.loads(sys.argv[3])])).logits[0]
print(json.dumps(found.tolist() if found.dim() > 1 else [found.tolist()]))"""
HAS_LORA = "lora=" in subprocess.run([CAIRN, "train", "gpt2", "--help"], capture_output=True, text=True).stdout


def read(path):
    """Tensors of a safetensors file by name: (dtype, shape, bytes), and its metadata."""
    data = path.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    metadata = header.pop("__metadata__", {})
    return {name: (row["dtype"], row["shape"], data[begin + row["data_offsets"][0]:begin + row["data_offsets"][1]])
            for name, row in header.items()}, metadata


def write(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


@unittest.skipUnless(HAS_LORA, "a command without lora=")
class Adapters(Case):
    def setUp(self):
        super().setUp()
        self.text.write_bytes(bytes(i * 7 % 40 for i in range(300)))

    def near(self, found, wanted, close=CLOSE):
        self.assertEqual(len(found), len(wanted))
        for a, b in zip(found, wanted, strict=True):
            self.assertLessEqual(max(abs(x - y) for x, y in zip(a, b, strict=True)), close)

    def logits(self, place, tokens, *options):
        done = self.cairn("logits", place, "--tokens", ",".join(map(str, tokens)), "--positions", "all", "--json",
                          "--threads", 1, *options)
        return json.loads(done.stdout)["logits"]

    def copy(self, name):
        folder = self.folder / name
        shutil.copytree(PEFT / name, folder)
        return folder

    def change(self, folder, **fields):
        path = folder / "adapter_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))

    def trained(self, *options, model="decoders/llama", out="run", steps=3):
        return self.train(f"data={self.text}", "seq=8", "batch=2", "rate=1e-2", "lora=2", *options, "--steps", steps,
                          "--out", out, recipe=DATA / model)


class Read(Adapters):
    def test_logits_are_those_of_peft(self):
        for path in sorted(PEFT.iterdir()):
            with self.subTest(path.name):
                expected = json.loads((path / "expected.json").read_text())
                found = self.logits(DATA / expected["model"], expected["tokens"], "--adapter", path)
                self.near(found, expected["logits"])

    def test_training_goes_on_and_is_exported_as_it_was_read(self):
        for name in ("patterns", "dora", "rank_stabilised", "table", "head"):
            with self.subTest(name):
                expected = json.loads((PEFT / name / "expected.json").read_text())
                self.train(f"data={self.text}", "seq=16", "batch=2", "rate=1e-30", "weight_decay=0", "--init", PEFT / name,
                           "--steps", 1, "--out", name, recipe=DATA / expected["model"])
                self.near(self.logits(name, expected["tokens"]), expected["logits"])
                self.cairn("export", name, f"{name}-out", "--to", "adapter")
                was, _ = read(PEFT / name / "adapter_model.safetensors")
                now, metadata = read(self.folder / f"{name}-out" / "adapter_model.safetensors")
                self.assertEqual(now, {key: row for key, row in was.items() if "base_layer" not in key})
                told = json.loads(self.cairn("inspect", name, "--json").stdout)
                self.assertEqual(metadata, {"format": "pt", "base_digest": told["base"]["digest"]})
                again = self.logits(DATA / expected["model"], expected["tokens"], "--adapter", self.folder / f"{name}-out")
                self.near(again, expected["logits"])

    def test_magnitudes_of_both_spellings(self):
        folder = self.copy("dora")
        tensors, _ = read(folder / "adapter_model.safetensors")
        write(folder / "adapter_model.safetensors",
              {key + ".weight" if key.endswith("magnitude_vector") else key: row for key, row in tensors.items()})
        expected = json.loads((folder / "expected.json").read_text())
        self.near(self.logits(DATA / expected["model"], expected["tokens"], "--adapter", folder), expected["logits"])

    def test_what_is_refused(self):
        model = DATA / "decoders/llama"
        folder = self.copy("plain")

        def refused(*says):
            self.fails(3, "logits", model, "--tokens", "1", "--adapter", folder, says=says)
        for field, value in (("bias", "all"), ("peft_type", "LOHA"), ("use_qalora", True), ("layer_replication", [[0, 1]])):
            self.change(folder, **{field: value})
            refused(field, *[value] if isinstance(value, str) else [])
            shutil.rmtree(folder)
            folder = self.copy("plain")
        self.change(folder, r=3)
        refused("the rank of model.layers.0.mlp.down_proj is 2", "3 in adapter_config.json")
        self.change(folder, r=2, rank_pattern={"(q|v)_proj": 2})
        refused("(q|v)_proj", "rank_pattern")
        self.change(folder, rank_pattern={}, target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "down_proj", "fc9"])
        refused("without tensors", "model.layers.0.self_attn.k_proj", "fc9")
        self.change(folder, target_modules=["q_proj"], use_dora=True)
        refused("has no magnitude", "use_dora is true")
        shutil.rmtree(folder)
        folder = self.copy("plain")
        tensors, _ = read(folder / "adapter_model.safetensors")
        odd = {key.replace("layers.1.", "layers.7."): row for key, row in tensors.items()}
        write(folder / "adapter_model.safetensors", odd)
        refused("match nothing of the model", "model.layers.7.mlp.down_proj.lora_A.weight")
        write(folder / "adapter_model.safetensors", {key: row for key, row in tensors.items() if "1.mlp.down_proj.lora_B" not in key})
        refused("one of lora_A and lora_B only", "model.layers.1.mlp.down_proj")
        (folder / "adapter_model.safetensors").write_bytes(b"\0" * 5)
        refused("adapter_model.safetensors")
        (folder / "adapter_model.safetensors").unlink()
        refused("has no adapter_model.safetensors")
        (folder / "adapter_config.json").write_text("{")
        refused("adapter_config.json")

    def test_options_that_say_otherwise(self):
        for option, words in (("lora=4", "lora=2"), ("lora_alpha=2", "lora_alpha=6"), ("lora_kind=dora", "use_rslora"),
                              ("modules_to_save=lm_head", "modules_to_save")):
            self.fails(2, "train", DATA / "decoders/llama", f"data={self.text}", "seq=8", option, "--init", PEFT / "plain",
                       says=[option, words, str(PEFT / "plain")])
        self.fails(2, "train", "gpt2", f"data={self.text}", "--init", PEFT / "plain", says="model's directory")


class Written(Adapters):
    def test_a_run_onto_its_base(self):
        tokens = [1, 2, 3, 4]
        self.trained("lora_kind=rslora", "lora_ranks=*.v_proj=3")
        expected = self.logits("run", tokens)
        model = DATA / "decoders/llama"
        self.assertEqual(self.logits(model, tokens, "--adapter", self.folder / "run"), expected)
        self.cairn("export", "run", "out", "--to", "adapter")
        self.near(self.logits(model, tokens, "--adapter", self.folder / "out"), expected, 1e-6)
        config = json.loads((self.folder / "out/adapter_config.json").read_text())
        self.assertEqual((config["r"], config["use_rslora"], config["fan_in_fan_out"]), (2, True, False))
        self.assertIn("v_proj", config["target_modules"])
        other = DATA / "decoders/mistral"
        done = self.cairn("logits", other, "--tokens", "1", "--adapter", self.folder / "out", code=3)
        self.assertIn("another base", done.stderr)
        for command in (["generate", "--prompt", "", "--max-tokens", 2, "--temperature", 0, "--json"],
                        ["evaluate", f"data={self.text}", "seq=8", "--json"]):
            found = [json.loads(self.cairn(command[0], model, *command[1:], "--adapter", self.folder / name).stdout)
                     for name in ("run", "out")]
            self.assertEqual(*[each.get("tokens") for each in found])

    def test_a_run_goes_on_by_its_adapter(self):
        """On its base, also where that is stored in fewer bits; another base is refused, of whatever type."""
        self.trained()
        model, rows = DATA / "decoders/llama", [f"data={self.text}", "seq=8", "batch=2", "rate=1e-9", "--steps", 1, "--init", "run"]
        self.train(*rows, "--out", "further", recipe=model)
        self.near(self.logits("further", [1, 2, 3]), self.logits("run", [1, 2, 3]), 1e-6)
        self.train(f"data={self.text}", "seq=8", "batch=2", "--steps", 1, "--out", "whole", recipe=model)
        for dtype in ("f32", "bf16"):
            self.cairn("export", "whole", dtype, "--to", "hf", "--dtype", dtype)
            self.fails(3, "train", self.folder / dtype, *rows, says=["was trained on another base"])
        self.fails(3, "train", model, *rows[:-1], "whole", says=["is a checkpoint"])

    def test_merging(self):
        tokens = [1, 2, 3, 4]
        for kind, model in (("lora", "llama"), ("dora", "llama"), ("pissa", "llama"), ("lora", "gpt2"), ("lora", "mixtral")):
            with self.subTest(f"{kind} {model}"):
                run = f"{kind}-{model}"
                self.trained(f"lora_kind={kind}", model=f"decoders/{model}", out=run)
                self.fails(2, "export", run, "x", "--to", "hf", says=["--merge base", "--merge dequantised"])
                self.cairn("export", run, f"{run}-hf", "--to", "hf", "--merge", "base")
                self.near(self.logits(self.folder / f"{run}-hf", tokens), self.logits(run, tokens))
                names, _ = read(self.folder / f"{run}-hf/model.safetensors")
                self.assertFalse([name for name in names if "lora" in name])
                if kind == "pissa":  # of the base as it was
                    self.cairn("export", run, f"{run}-adapter", "--to", "adapter")
                    self.near(self.logits(DATA / "decoders" / model, tokens, "--adapter", self.folder / f"{run}-adapter"),
                              self.logits(run, tokens))
        self.fails(3, "export", "lora-mixtral", "x", "--to", "adapter", says=["experts", "--merge"])

    def test_merging_into_a_rounded_base(self):
        config = json.loads((DATA / "decoders/llama/config.json").read_text())
        config.update(hidden_size=64, head_dim=16, intermediate_size=64)
        (self.folder / "config.json").write_text(json.dumps(config))
        self.train("data=random", f"model={self.folder}/config.json", "seq=8", "batch=2", "--steps", 1, "--out", "first",
                   recipe="decoder")
        self.cairn("export", "first", "model", "--to", "hf")
        self.train(f"data={self.text}", "seq=8", "batch=2", "rate=1e-2", "lora=2", "--format", "*_proj.weight=int8", "--steps", 2,
                   "--out", "run", recipe=self.folder / "model")
        found = {}
        for way in ("base", "dequantised"):
            told = json.loads(self.cairn("export", "run", way, "--to", "hf", "--merge", way, "--json").stdout)
            self.assertEqual(told["merged"], way)
            self.assertGreater(told["merge_difference_largest"], told["merge_difference_mean"])
            found[way] = self.logits(self.folder / way, [1, 2, 3])
        self.near(found["dequantised"], self.logits("run", [1, 2, 3]))
        self.assertNotEqual(found["base"], found["dequantised"])
        shown = self.cairn("export", "run", "again.safetensors", "--merge", "base")
        self.assertIn("differ by at most", shown.stderr)

    def test_resuming_gives_the_same_bits(self):
        for kind in ("lora", "pissa", "dora"):
            with self.subTest(kind):
                whole = self.trained(f"lora_kind={kind}", "lora_dropout=0.1", out=f"{kind}-whole", steps=5)
                self.trained(f"lora_kind={kind}", "lora_dropout=0.1", out=kind, steps=2)
                rest = json.loads(self.cairn("train", "--resume", kind, "--steps", 5, "--json", "--quiet").stdout)
                self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])
                self.assertEqual(rest["base_digest"], whole["base_digest"])

    def test_a_run_without_adapters(self):
        self.train(f"data={self.text}", "seq=8", "batch=2", "--steps", 1, "--out", "run", recipe=DATA / "decoders/llama")
        self.fails(3, "export", "run", "x", "--to", "adapter", says="no adapters")
        self.fails(2, "export", "run", "x.safetensors", "--merge", "base", says="has no adapters")
        self.fails(3, "logits", DATA / "decoders/llama", "--tokens", "1", "--adapter", self.folder / "run", says="no adapters")
        self.fails(3, "logits", DATA / "decoders/llama", "--tokens", "1", "--adapter", self.text, says="is no adapter")

    @unittest.skipUnless(os.environ.get("PEFT_PYTHON"), "a Python with peft: $PEFT_PYTHON")
    def test_peft_reads_what_is_exported(self):
        def judge(kind, model, tokens, *adapter):
            done = subprocess.run([os.environ["PEFT_PYTHON"], "-c", JUDGE, kind, model, json.dumps(tokens), *map(str, adapter)],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("missing adapter keys", done.stderr)
            return json.loads(done.stdout)
        tokens = [1, 2, 3, 4]
        for kind, model, more in (("lora", "llama", ["lora_ranks=*.v_proj=3", "lora_alphas=*.q_proj=7"]), ("rslora", "gpt2", []),
                                  ("dora", "llama", []), ("pissa", "llama", []), ("lora", "gpt_neox", []),
                                  ("lora", "qwen3", ["lora_targets=embed_tokens,*.v_proj"]),
                                  ("lora", "qwen3", ["modules_to_save=lm_head", "lora_targets=*.v_proj"])):
            with self.subTest(f"{kind} {model} {more}"):
                shutil.rmtree(self.folder / "run", ignore_errors=True)
                shutil.rmtree(self.folder / "out", ignore_errors=True)
                self.trained(f"lora_kind={kind}", *more, model=f"decoders/{model}")
                self.cairn("export", "run", "out", "--to", "adapter")
                found = judge("AutoModelForCausalLM", DATA / "decoders" / model, tokens, self.folder / "out")
                self.near(self.logits("run", tokens), found, 1e-5)


if __name__ == "__main__":
    main()
