#!/usr/bin/env python3
"""cairn tokenize: lines to tokens and back, and what it says of bad input."""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case, main  # noqa: E402

GOLDEN = ROOT / "tests/runtime/data/tokenizer/golden"


class Tokenize(Case):
    def lines(self, *arguments, **options):
        return self.cairn("tokenize", *arguments, **options).stdout.split("\n")[:-1]

    def test_an_array_for_each_line(self):
        rows = [row.split("|") for row in (GOLDEN / "llama3.txt").read_text().splitlines()]
        rows = [row for row in rows if b"\n" not in bytes.fromhex(row[0])]
        self.assertGreater(len(rows), 10)
        (self.folder / "lines").write_bytes(b"".join(bytes.fromhex(row[0]) + b"\n" for row in rows))
        found = [json.loads(line) for line in self.lines(GOLDEN / "llama3.json", "lines", "--json")]
        self.assertEqual(found, [[int(token) for token in row[1].split()] for row in rows])
        found = [json.loads(line)["offsets"] for line in self.lines(GOLDEN / "llama3.json", "lines", "--offsets")]
        self.assertEqual(found, [[[int(end) for end in pair.split(",")] for pair in row[2].split()] for row in rows])

    def test_a_directory_and_back(self):
        (self.folder / "model").mkdir()
        shutil.copy(GOLDEN / "bert_cased.json", self.folder / "model/tokenizer.json")
        (self.folder / "lines").write_text("the way back\n\nand the stones")
        lines = self.lines("model", "lines")
        self.assertEqual(len(lines), 3)
        self.assertEqual(json.loads(lines[1]), [2, 3])
        self.assertEqual(self.lines("model", "lines", "--no-special")[1], "[]")
        (self.folder / "tokens").write_text("\n".join(lines))
        self.assertEqual(self.lines("model", "tokens", "--decode"), ["the way back", "", "and the stones"])
        self.assertEqual(json.loads(self.lines("model", "tokens", "--decode", "--json", "--keep-special")[1]), "[CLS] [SEP]")

    def test_two_files_of_gpt2(self):
        model = json.loads((GOLDEN / "gpt2.json").read_text())["model"]
        (self.folder / "vocab.json").write_text(json.dumps(model["vocab"]))
        merges = [" ".join(pair) for pair in model["merges"]]
        (self.folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")
        (self.folder / "lines").write_text("it's the way, <|endoftext|> 1234\n")
        self.assertEqual(self.lines(self.folder, "lines"), self.lines(GOLDEN / "gpt2.json", "lines"))

    def test_bad_input(self):
        good = GOLDEN / "gpt2.json"
        content = json.loads(good.read_text())
        content["normalizer"] = {"type": "Rot13"}
        (self.folder / "odd.json").write_text(json.dumps(content))
        (self.folder / "lines").write_text("[1, 2]\n[1, 100000]\n")
        (self.folder / "empty").mkdir()
        self.fails(3, "tokenize", "odd.json", "lines", says=["Rot13", "normalizer", "NFKC"])
        self.fails(3, "tokenize", "empty", "lines", says=["tokenizer.json", "no tokenizer"])
        self.fails(3, "tokenize", good, "none", says="none")
        self.fails(3, "tokenize", good, "lines", "--decode", says=["line 2", "100000"])
        (self.folder / "lines").write_text('["a"]\n')
        self.fails(3, "tokenize", good, "lines", "--decode", says=["line 1", "item 1"])
        (self.folder / "lines").write_text("{\n")
        self.fails(3, "tokenize", good, "lines", "--decode", says="JSON array")
        self.fails(2, "tokenize", says="usage")


main()
