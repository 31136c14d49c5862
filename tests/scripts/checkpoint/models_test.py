"""What is done with a trained model: generating, exporting, starting from it; and damaged ones."""
import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Case, main  # noqa: E402


PROGRAM = """
local cairn = require "cairn"
local nn = cairn.nn
local graph = assert(cairn.graph())
local net = nn.Sequential():add(nn.Linear(2, 1))
assert(graph:freeze(nn.attach(graph, net, nn.MSECriterion(), { 4, 2 })))
local session = assert(cairn.session(assert(cairn.plan(graph, assert(cairn.device("cpu"))))))
assert(session:initialise(1))
local stepper = assert(cairn.stepper(session, { rate = 0.1 }))
assert(session:write("input", { 1, 2, 3, 4, 5, 6, 7, 8 }))
assert(session:write("target", { 1, 2, 3, 4 }))
assert(stepper:micro())
assert(stepper:save((...)))
"""


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

    def test_what_a_program_saved_is_exported_by_its_own_names(self):
        program = self.folder / "program.lua"
        program.write_text(PROGRAM)
        self.cairn("lua", program, self.folder / "own")
        self.cairn("export", "own", "own.safetensors", "--quiet")
        blob = (self.folder / "own.safetensors").read_bytes()
        header = json.loads(blob[8:8 + struct.unpack("<Q", blob[:8])[0]])
        self.assertEqual({name: row["shape"] for name, row in header.items() if name != "__metadata__"},
                         {"1.weight": [1, 2], "1.bias": [1]})
        self.fails(3, "generate", "own", "--prompt", "x", says="was not saved by `cairn train`")

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
