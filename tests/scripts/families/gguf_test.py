"""GGUF files in the place of a model's directory: logits, training, tokens; what cairn writes; what is refused.
tests/golden/data/gguf/make_gguf.py and make_words.py made the files with PyPI's gguf, and what is expected with Transformers and
the libraries of tokenizers."""
import json
import pathlib
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case, main

FILES = ROOT / "tests/golden/data/gguf"
MODELS = ROOT / "tests/golden/data/decoders"
WRITTEN = ("cohere2", "exaone4", "gemma", "glm4", "gpt_neox", "granite", "llama", "olmo3", "phi3", "qwen3")


class Gguf(Case):
    def logits(self, model, tokens):
        done = self.cairn("logits", model, "--tokens", ",".join(map(str, tokens)), "--positions", "all", "--json", "--threads", 1)
        return json.loads(done.stdout)["logits"]

    def near(self, what, found, wanted, close=2e-5):
        apart = max(abs(a - b) for x, y in zip(found, wanted, strict=True) for a, b in zip(x, y, strict=True))
        self.assertLessEqual(apart, close, what)

    def tokenizer(self, name="dir"):
        """A directory of a model with a vocabulary of bytes, some merges and special tokens."""
        folder = self.folder / name
        shutil.copytree(MODELS / "qwen3", folder)
        letters = [chr(c) for c in [*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324)]]
        tokens = [*letters, "he", "ll", "hell", "<|end|>", "<think>"]
        made = {
            "version": "1.0", "normalizer": {"type": "NFC"},
            "added_tokens": [{"id": len(tokens) - 2, "content": "<|end|>", "special": True, "normalized": False},
                             {"id": len(tokens) - 1, "content": "<think>", "special": False, "normalized": False}],
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "Split", "behavior": "Isolated", "invert": False, "pattern": {
                    "Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
                             "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}]},
            "post_processor": {"type": "ByteLevel", "trim_offsets": False}, "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)},
                      "merges": [["h", "e"], ["l", "l"], ["he", "ll"]]}}
        (folder / "tokenizer.json").write_text(json.dumps(made))
        (folder / "tokenizer_config.json").write_text(json.dumps({
            "eos_token": "<|end|>", "chat_template": "{{ messages[0].content }}"}))
        return folder


class Reading(Gguf):
    def test_logits_are_those_of_transformers(self):
        for path in sorted(path for path in FILES.glob("*.gguf") if not path.name.startswith("words")):
            expected = json.loads(path.with_suffix(".json").read_text())
            self.near(path.name, self.logits(path, expected["tokens"]), expected["logits"])

    def test_commands_take_a_file_for_a_directory(self):
        path, run = FILES / "gpt2.gguf", self.folder / "run"
        data = self.folder / "tokens.bin"
        data.write_bytes(bytes(i * 7 % 30 + 1 for i in range(200)))
        asked = [f"data={data}", "seq=8", "batch=2", "tokens=bytes"]
        trained = json.loads(self.cairn("train", path, *asked, "--steps", 3, "--out", run, "--json", "--threads", 1).stdout)
        self.assertEqual(trained["steps"], 3)
        self.cairn("train", path, *asked, "--steps", 4, "--resume", run, "--threads", 1)
        self.cairn("plan", path, *asked)
        self.cairn("evaluate", path, f"data={data}", "seq=8", "tokens=bytes", "--threads", 1)
        self.cairn("logits", run, "--tokens", "1,2,3", "--threads", 1)

    def test_tokens_are_those_of_the_libraries_that_made_the_vocabulary(self):
        expected = json.loads((FILES / "words.json").read_text())
        lines = self.folder / "lines.txt"
        lines.write_text("".join(line + "\n" for line in expected["lines"]), encoding="utf-8")
        for name, wanted in expected["tokens"].items():
            found = self.cairn("tokenize", FILES / f"words-{name}.gguf", lines).stdout.splitlines()
            for line, tokens in zip(found, wanted, strict=True):
                self.assertEqual(json.loads(line), json.loads(line) if tokens is None else tokens, name)

    def test_inspect(self):
        text = self.cairn("inspect", FILES / "llama.gguf").stdout
        self.assertIn("general.architecture llama", text)
        self.assertRegex(text, r"blk\.0\.attn_q\.weight +q8_0 +\[32, 32\] +1,088")
        found = json.loads(self.cairn("inspect", FILES / "llama.gguf", "--json").stdout)
        self.assertEqual(found["metadata"]["llama.block_count"], 2)
        self.assertEqual(found["tensors"]["blk.0.attn_k.weight"]["shape"], [16, 32])

    def test_refused(self):
        good = (FILES / "llama.gguf").read_bytes()
        bad = self.folder / "bad.gguf"

        def says(data, *texts):
            bad.write_bytes(data)
            self.fails(3, "logits", bad, "--tokens", "1", says=texts)
        says(good[:5000], "the file is cut short")
        says(good[:4] + struct.pack("<I", 1) + good[8:], "version 1")
        says(good[:4] + struct.pack(">I", 3) + good[8:], "big-endian")
        says(good.replace(b"\x05\x00\x00\x00\x00\x00\x00\x00llama", b"\x05\x00\x00\x00\x00\x00\x00\x00lamma"),
             "general.architecture is 'lamma'", "known: cohere2")
        at = good.index(b"blk.0.attn_q.weight") + len(b"blk.0.attn_q.weight") + 4 + 16
        says(good[:at] + struct.pack("<I", 5) + good[at + 4:], "'blk.0.attn_q.weight' is of block type 5")
        says(good.replace(b"llama.vocab_size", b"llama.vocab_sizE"), "knows nothing of: llama.vocab_sizE")


class Writing(Gguf):
    def test_what_is_written_is_the_same_model(self):
        for name in WRITTEN:
            out = self.folder / f"{name}.gguf"
            self.cairn("convert", MODELS / name, out, "--format", "f32", "--quiet")
            expected = json.loads((MODELS / name / "expected.json").read_text())
            self.near(name, self.logits(out, expected["tokens"][:-1]), expected["logits"], 1e-5)

    def test_what_a_file_cannot_say_is_refused(self):
        for name, lost in (("gemma2", "attention_scales"), ("smollm3", "rotary"), ("qwen3_moe", "routed")):
            self.fails(3, "convert", MODELS / name, self.folder / "out.gguf", says=["cannot say of this model", lost])
        self.assertFalse((self.folder / "out.gguf").exists())
        self.fails(3, "convert", MODELS / "ministral3", self.folder / "out.gguf", says="family ministral3")
        self.fails(3, "convert", FILES, self.folder / "out.gguf", says="no model's directory")

    def test_files_of_files(self):
        """A quantised file as another one: matrices that nothing changed have the same bytes."""
        for name in ("llama", "gpt-oss"):
            out = self.folder / f"{name}.gguf"
            self.cairn("convert", FILES / f"{name}.gguf", out, "--format", "q8_0" if name == "llama" else "f16", "--quiet")
            expected = json.loads((FILES / f"{name}.json").read_text())
            self.near(name, self.logits(out, expected["tokens"]), expected["logits"])
        one, other = (json.loads(self.cairn("inspect", path, "--json").stdout)
                      for path in (FILES / "llama.gguf", self.folder / "llama.gguf"))
        self.assertEqual({key: (row["dtype"], row["shape"]) for key, row in one["tensors"].items()},
                         {key: (row["dtype"], row["shape"]) for key, row in other["tensors"].items()})

        def data(path, read, key):
            at = read["tensors"][key]["offset"]
            return path.read_bytes()[at:at + read["tensors"][key]["bytes"]]
        for key in ("blk.0.attn_q.weight", "rope_freqs.weight", "output_norm.weight"):
            self.assertEqual(data(FILES / "llama.gguf", one, key), data(self.folder / "llama.gguf", other, key), key)

    def test_tokenizer_and_template(self):
        folder, out = self.tokenizer(), self.folder / "out.gguf"
        self.cairn("convert", folder, out, "--quiet")
        found = json.loads(self.cairn("inspect", out, "--json").stdout)["metadata"]
        self.assertEqual(found["tokenizer.ggml.pre"], "qwen2")
        self.assertEqual(found["tokenizer.ggml.merges"], ["h e", "l l", "he ll"])
        self.assertEqual(found["tokenizer.ggml.eos_token_id"], len(found["tokenizer.ggml.tokens"]) - 2)
        self.assertEqual(found["tokenizer.chat_template"], "{{ messages[0].content }}")
        lines = self.folder / "lines.txt"
        lines.write_text("hello hell 123 don't\nA\u030a <|end|><think> x\n  two\n", encoding="utf-8")
        self.assertEqual(self.cairn("tokenize", out, lines).stdout, self.cairn("tokenize", folder, lines).stdout)
        again = self.folder / "again.gguf"
        self.cairn("convert", out, again, "--quiet")
        self.assertEqual(json.loads(self.cairn("inspect", again, "--json").stdout)["metadata"], {
            **found, "general.name": "out"})

    def test_a_run_as_a_file(self):
        data, run, out = self.folder / "tokens.bin", self.folder / "run", self.folder / "run.gguf"
        data.write_bytes(bytes(i * 7 % 30 + 1 for i in range(200)))
        self.cairn("train", MODELS / "llama", f"data={data}", "seq=8", "--steps", 2, "--out", run, "--threads", 1, "--quiet")
        self.cairn("export", run, out, "--to", "gguf", "--quiet")
        self.near("run", self.logits(out, [1, 2, 3]), self.logits(run, [1, 2, 3]), 1e-5)
        self.fails(3, "export", run, out, "--to", "gguf-adapter", says="has no adapter")
        self.fails(2, "export", run, self.folder / "run", "--dtype", "q8_0", says="goes with --to gguf")


class Adapters(Gguf):
    def test_the_file_of_an_adapter(self):
        """Of rows by hand: of a query, whose rows lie in another order there, as those of its base do."""
        out, script = self.folder / "adapter.gguf", pathlib.Path(__file__).parent / "gguf_adapter.lua"
        printed = self.cairn("lua", script, MODELS / "llama", out, "false").stdout.split()
        found = json.loads(self.cairn("inspect", out, "--json").stdout)
        self.assertEqual({key: value for key, value in found["metadata"].items() if "adapter" in key or key == "general.type"}, {
            "general.type": "adapter", "adapter.type": "lora", "adapter.lora.alpha": 8})
        self.assertEqual({key: row["shape"] for key, row in found["tensors"].items()}, {
            "blk.0.attn_q.weight.lora_a": [2, 16], "blk.0.attn_q.weight.lora_b": [24, 2]})
        row = found["tensors"]["blk.0.attn_q.weight.lora_b"]
        there = struct.unpack("<48f", out.read_bytes()[row["offset"]:row["offset"] + row["bytes"]])
        ours = [float(word) for word in printed]
        for number in range(24):  # four heads of six rows, whose halves take turns
            head, place = divmod(number, 6)
            at = head * 6 + place % 2 * 3 + place // 2
            for column in range(2):
                self.assertAlmostEqual(there[number * 2 + column], ours[at * 2 + column], 6)
        self.assertIn("a magnitude (DoRA)", self.cairn("lua", script, MODELS / "llama", out, "true", code=1).stderr)

    def test_merged_onto_the_blocks_of_a_file(self):
        """What is written is what was trained: blocks that adapters are added to become float32, the others keep their bytes."""
        data, small = self.folder / "tokens.bin", self.folder / "q4_0.gguf"
        data.write_bytes(bytes(i * 7 % 30 + 1 for i in range(200)))
        self.cairn("convert", FILES / "llama.gguf", small, "--format", "q4_0", "--quiet")
        for file in (small, FILES / "llama.gguf", FILES / "mixtral.gguf"):
            run = self.folder / f"{file.stem}-run"
            self.cairn("train", file, f"data={data}", "seq=8", "lora=2", "rate=1e-2", "--steps", 3, "--out", run, "--threads", 1,
                       "--quiet")
            trained = self.logits(run, [1, 2, 3])
            self.assertNotEqual(trained, self.logits(file, [1, 2, 3]))
            for target in ("hf", "gguf"):
                out = self.folder / f"{file.stem}-merged.{target}"
                self.cairn("export", run, out, "--to", target, "--merge", "dequantised", "--quiet")
                self.near(f"{file.stem} {target}", self.logits(out, [1, 2, 3]), trained, 1e-5)


if __name__ == "__main__":
    main()
