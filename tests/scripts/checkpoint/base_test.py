"""Runs whose checkpoints leave frozen parameters out: what goes on with them brings the base, and another one is refused."""
import json
import os
import pathlib
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case, main  # noqa: E402

MODEL = ROOT / "tests/golden/data/decoders/llama"
FROZEN = "model.layers.*"


class Base(Case):
    def setUp(self):
        super().setUp()
        self.text.write_bytes(bytes(i * 7 % 40 for i in range(300)))
        self.base = self.folder / "base"
        self.base.mkdir()
        for name in ("config.json", "model.safetensors"):
            shutil.copy(MODEL / name, self.base / name)

    def run_of(self, *options, base=None):
        return self.train(f"data={self.text}", "seq=8", "batch=2", f"frozen={FROZEN}", "save_frozen=false", *options,
                          recipe=base or self.base)

    def logits(self, *arguments):
        return json.loads(self.cairn("logits", *arguments, "--tokens", "1,2,3", "--json").stdout)["logits"]

    def another(self):
        """The base with one byte of a frozen parameter changed."""
        other = self.folder / "other"
        shutil.copytree(self.base, other)
        data = bytearray((other / "model.safetensors").read_bytes())
        begin = 8 + struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:begin])
        data[begin + header["model.layers.1.self_attn.q_proj.weight"]["data_offsets"][0]] ^= 1
        (other / "model.safetensors").write_bytes(data)
        return other

    def test_going_on_gives_the_same_bits(self):
        whole = self.run_of("--steps", 5, "--out", "whole")
        first = self.run_of("--steps", 3, "--save-every", 2, "--keep", 1, "--out", "run")
        self.assertEqual(first["base_digest"], whole["base_digest"])
        self.assertLess(first["trainable_parameters"], first["parameter_count"])
        self.assertEqual(sorted(path.name for path in (self.folder / "run").glob("step-*")), ["step-00000003"])
        told = json.loads(self.cairn("inspect", "run", "--json").stdout)
        self.assertEqual(told["base"]["digest"], first["base_digest"])
        self.assertEqual(told["metadata"]["base.path"], str(self.base))
        self.assertEqual(told["metadata"]["base.digest"], first["base_digest"])
        self.assertFalse([name for name in told["tensors"] if name.startswith("model.layers")])
        self.assertTrue(all(name.startswith("model.layers") for name in told["base"]["tensors"]))
        rest = json.loads(self.cairn("train", "--resume", "run", "--steps", 5, "--json", "--quiet").stdout)
        self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])
        self.assertEqual(rest["base_digest"], whole["base_digest"])

    def test_what_reads_a_run(self):
        self.run_of("--steps", 2, "--out", "run")
        self.run_of("save_frozen=true", "--steps", 2, "--out", "all")
        self.assertEqual(self.logits("run"), self.logits("all"))
        for command in (["generate", "--prompt", "", "--max-tokens", 4, "--temperature", 0, "--json"],
                        ["evaluate", f"data={self.text}", "--json"]):
            made = [json.loads(self.cairn(command[0], run, *command[1:]).stdout) for run in ("run", "all")]
            for each in made:
                for key in ("checkpoint", "seconds", "prefill_seconds", "decode_tokens_per_second"):
                    each.pop(key, None)
            self.assertEqual(*made)
        for run in ("run", "all"):
            self.cairn("export", run, f"{run}.safetensors")
        self.assertEqual((self.folder / "run.safetensors").read_bytes(), (self.folder / "all.safetensors").read_bytes())

    def test_a_base_that_is_not_there_or_another(self):
        self.run_of("--steps", 2, "--out", "run")
        expected, other = self.logits("run"), self.another()
        moved = self.folder / "moved"
        os.rename(self.base, moved)
        for command in (["logits", "run", "--tokens", "1"], ["train", "--resume", "run", "--steps", 3],
                        ["export", "run", "x.safetensors"], ["evaluate", "run", f"data={self.text}"],
                        ["generate", "run", "--prompt", ""]):
            self.fails(3, *command, says=[str(self.base), "not there any more", "--base"])
            self.fails(3, *command, "--base", other, says=["not the base", "model.layers.1.self_attn.q_proj.weight",
                                                           "other values", "--base"])
            self.fails(3, *command, "--base", "nothing", says="there is no nothing")
        gpt2 = ROOT / "tests/golden/data/decoders/gpt2"
        self.fails(3, "logits", "run", "--tokens", "1", "--base", gpt2, says=["not the base", "is not there"])
        self.assertEqual(self.logits("run", "--base", moved), expected)
        self.cairn("train", "--resume", "run", "--steps", 3, "--base", moved, "--quiet")
        self.logits("run")  # which now says where the base is

    def test_parameters_that_begin_fresh_are_held(self):
        self.run_of("--init-missing", "model.layers.0.*", "--steps", 1, "--out", "whole")
        data = json.loads(self.cairn("inspect", "whole", "--json").stdout)
        self.assertIn("base", data)  # the file has them
        self.train("data=random", f"model={self.base}/config.json", "seq=8", "batch=2", f"frozen={FROZEN}", "save_frozen=false",
                   "--steps", 1, "--out", "fresh", recipe="decoder")
        data = json.loads(self.cairn("inspect", "fresh", "--json").stdout)
        self.assertNotIn("base", data)
        self.assertIn("model.layers.0.self_attn.q_proj.weight", data["tensors"])

    def test_the_best_checkpoint(self):
        whole = self.run_of("--steps", 4, "--out", "whole")
        saved = self.run_of("--steps", 4, "--save-every", 1, "--best", "loss", "--eval-every", 2, f"eval_data={self.text}",
                            "--out", "best")
        self.assertEqual(saved["parameter_digest"], whole["parameter_digest"])
        self.assertEqual(saved["base_digest"], whole["base_digest"])
        found = json.loads(self.cairn("evaluate", "best", "--best", f"data={self.text}", "--json").stdout)
        self.assertEqual(found["loss"], saved["best"]["value"])


if __name__ == "__main__":
    main()
