"""Saving, resuming, generating, exporting; the signal that ends a run."""
import json
import signal
import struct
import subprocess
import time

from harness import CAIRN, TINY, Case, main


class Resume(Case):
    def test_resumed_is_uninterrupted(self):
        whole = self.train("--steps", 6, "dropout=0.1")
        self.train("--steps", 3, "dropout=0.1", "--out", "run")
        done = self.cairn("train", "--resume", "run", "--steps", 6, "--json", "--quiet")
        rest = json.loads(done.stdout)
        self.assertEqual(rest["steps"], 6)
        self.assertEqual(rest["loss"], whole["loss"][3:])
        self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])
        again = json.loads(self.cairn("train", "--resume", "run", "--steps", 6, "--json", "--quiet").stdout)
        self.assertEqual(again["loss"], [])
        self.assertEqual(again["parameter_digest"], whole["parameter_digest"])

    def test_resumed_under_another_plan(self):
        whole = self.train("--steps", 4)
        self.train("--steps", 2, "--out", "run", "--policy", "keep")
        done = self.cairn("train", "gpt2", "--resume", "run", "--steps", 4, "--json", "--quiet", "--policy", "recompute",
                          "--out", "other")
        self.assertEqual(json.loads(done.stdout)["parameter_digest"], whole["parameter_digest"])
        self.assertTrue((self.folder / "other/step-00000004").is_dir())

    def test_the_newest_two_are_kept(self):
        self.train("--steps", 7, "--save-every", 2, "--out", "run")
        names = sorted(path.name for path in (self.folder / "run").iterdir() if path.is_dir())
        self.assertEqual(names, ["step-00000006", "step-00000007"])

    def test_nothing_is_silently_begun_anew(self):
        self.train("--steps", 2, "--out", "run")
        self.fails(2, "train", "gpt2", *TINY, f"data={self.text}", "--steps", 2, "--out", "run", says="--resume")
        self.train("--steps", 1, "--out", "run", "--force")
        self.fails(3, "train", "--resume", "nowhere", "--steps", 2, says="nowhere")
        self.fails(2, "train", "--resume", "run", "colour=red", "--steps", 2, says="colour")
        self.fails(3, "train", "--resume", "run", "width=32", "--steps", 2, says="resume")

    def interrupt(self, *arguments):
        command = [CAIRN, "train", "gpt2", *TINY, f"data={self.text}", "--steps", "1000000", "--threads", "1", *arguments]
        process = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        self.assertIsNone(process.poll(), "it must still be training")
        process.send_signal(signal.SIGINT)
        output, problems = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, problems)
        return output, problems

    def test_interrupt_saves(self):
        output, problems = self.interrupt("--out", "run", "--json")
        result = json.loads(output)
        self.assertIn("saved run/step-", problems)
        more = result["steps"] + 2
        rest = json.loads(self.cairn("train", "--resume", "run", "--steps", more, "--json", "--quiet").stdout)
        self.assertEqual(rest["steps"], more)
        whole = json.loads(self.cairn(
            "train", "gpt2", *TINY, f"data={self.text}", "--steps", more, "--threads", 1, "--json", "--quiet").stdout)
        self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])

    def test_interrupt_inside_an_accumulation(self):
        self.interrupt("--out", "run", "--accumulate", "100000")
        rest = json.loads(self.cairn("inspect", "run", "--json").stdout)
        self.assertTrue(rest)

    def test_kill_during_saves_leaves_a_checkpoint(self):
        command = [CAIRN, "train", "gpt2", *TINY, f"data={self.text}", "--steps", "1000000", "--out", "run",
                   "--save-every", "1", "--quiet"]
        process = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=subprocess.DEVNULL)
        deadline = time.time() + 30
        while len(list((self.folder / "run").glob("step-*"))) < 2 and time.time() < deadline:
            time.sleep(0.05)
        process.kill()
        process.wait()
        steps = max(int(path.name[5:]) for path in (self.folder / "run").glob("step-*"))
        self.cairn("train", "--resume", "run", "--steps", steps + 2, "--quiet")


class Models(Case):
    def setUp(self):
        super().setUp()
        self.train("--steps", 30, "--out", "run", "rate=1e-2")

    def test_generate(self):
        one = self.cairn("generate", "run", "--prompt", "It is", "--tokens", 20, "--seed", 3).stdout
        self.assertTrue(one.startswith("It is"))
        self.assertEqual(one, self.cairn("generate", "run", "--prompt", "It is", "--tokens", 20, "--seed", 3).stdout)
        self.assertNotEqual(one, self.cairn("generate", "run", "--prompt", "It is", "--tokens", 20, "--seed", 4).stdout)
        greedy = json.loads(self.cairn("generate", "run/step-00000030", "--prompt", "", "--tokens", 40, "--temperature", 0,
                                       "--json").stdout)
        self.assertEqual(len(greedy["tokens"]), greedy["prompt_tokens"] + 40)
        self.fails(2, "generate", "run", says="--prompt")
        self.fails(3, "generate", "nowhere", "--prompt", "x", says="nowhere")

    def test_generate_with_a_trained_vocabulary(self):
        self.train("--steps", 2, "--out", "bpe", "tokens=bpe", "vocab=300")
        self.text.unlink()
        self.assertTrue(self.cairn("generate", "bpe", "--prompt", "It is", "--tokens", 5).stdout.startswith("It is"))

    def test_export_and_init(self):
        self.cairn("export", "run", "model.safetensors", "--quiet")
        blob = (self.folder / "model.safetensors").read_bytes()
        header = json.loads(blob[8:8 + struct.unpack("<Q", blob[:8])[0]])
        self.assertEqual(header["wte.weight"]["shape"], [256, 16])
        self.assertEqual(header["h.0.attn.c_attn.weight"]["shape"], [16, 48])  # [in, out], as Hugging Face has it
        self.assertEqual(header["h.1.mlp.c_fc.weight"]["shape"], [16, 64])
        warm = self.train("--steps", 1, "--init", "model.safetensors")
        self.assertLess(warm["loss"][0], 4.5)
        self.assertIn("wte.weight", self.cairn("inspect", "model.safetensors").stdout)

    def test_init_with_the_prefix_of_the_whole_model(self):
        self.cairn("export", "run", "model.safetensors", "--quiet")
        blob = (self.folder / "model.safetensors").read_bytes()
        size = struct.unpack("<Q", blob[:8])[0]
        header = json.loads(blob[8:8 + size])
        renamed = {key if key == "__metadata__" else "transformer." + key: row for key, row in header.items()}
        text = json.dumps(renamed).encode()
        text += b" " * (-len(text) % 8)
        (self.folder / "prefixed.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + blob[8 + size:])
        plain = self.train("--steps", 1, "--init", "model.safetensors")
        self.assertEqual(self.train("--steps", 1, "--init", "prefixed.safetensors")["loss"], plain["loss"])

    def test_a_model_without_text_generates_nothing(self):
        self.train("--steps", 1, "--out", "spiral", recipe="mlp")
        self.fails(3, "generate", "spiral", "--prompt", "x", says="generat")
        self.cairn("export", "spiral", "spiral.safetensors", "--quiet")

    def test_corrupt_checkpoint(self):
        (manifest,) = (self.folder / "run/step-00000030").glob("manifest*")
        blob = manifest.read_bytes()
        for name, damaged in {"truncated": blob[:len(blob) // 2], "flipped": blob[:100] + bytes([blob[100] ^ 1]) + blob[101:],
                              "foreign": b"not a manifest", "empty": b""}.items():
            with self.subTest(name):
                manifest.write_bytes(damaged)
                self.fails(3, "generate", "run", "--prompt", "x")
                self.fails(3, "train", "--resume", "run", "--steps", 40)
        manifest.write_bytes(blob)
        tensors = self.folder / "run/step-00000030/tensors.bin"
        blob = tensors.read_bytes()
        tensors.write_bytes(blob[:1000] + bytes([blob[1000] ^ 1]) + blob[1001:])
        self.fails(3, "generate", "run", "--prompt", "x")


main()
