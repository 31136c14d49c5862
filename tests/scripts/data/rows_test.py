#!/usr/bin/env python3
"""Rows of instruction data without a template: forms, columns, shards, rows that are too long, what is refused and its line."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from words import LAST, Words
from harness import main

TINY = ["layers=1", "width=8", "heads=1", "batch=2"]


class Rows(Words):
    def bare(self):
        """A directory without tokenizer and template: text is bytes."""
        (self.folder / "bare").mkdir(exist_ok=True)
        return self.folder / "bare"

    def learned(self, *arguments):
        """Of each row the text before what is learned, and that."""
        made = []
        for row in self.templated(self.bare(), *arguments):
            self.assertEqual(bytes(row["ids"]).decode(), row["text"])
            first = row["mask"].index(1)
            self.assertEqual(row["mask"], [0] * first + [1] * (len(row["ids"]) - first))
            made.append((row["text"][:first], row["text"][first:]))
        return made

    def test_forms_by_their_keys(self):
        rows = [{"prompt": "a", "completion": "b"}, {"question": "a", "answer": "b"}, {"prompt": "a", "response": "b", "text": "c"},
                {"instruction": "a", "input": "i", "output": "b"}, {"instruction": "a", "input": "", "output": "b"},
                {"prompt": "a", "completion": "b", "system": "s"}, {"text": "all"}]
        self.assertEqual(self.learned(self.rows(rows)), [("a", "b"), ("a", "b"), ("a", "b"), ("a\ni", "b"), ("a", "b"), ("s\na", "b"),
                                                         ("", "all")])
        self.assertEqual(self.learned(self.rows(rows), "train_on=all", "--limit", 1), [("", "ab")])

    def test_an_array_of_rows(self):
        rows = [{"prompt": 'a"{[\\', "completion": "é]}"}, {"instruction": "c", "output": "d"}]
        data = self.folder / "rows.json"
        for indent in (None, 1):
            data.write_text(json.dumps(rows * 2000, indent=indent))
            made = self.templated(self.bare(), data)
            self.assertEqual([row["text"] for row in made], ['a"{[\\é]}', "cd"] * 2000)
            self.assertEqual(made[2]["line"], 10 if indent else 1)
        for text, says in (('[{"prompt": "a", "completion": "b"},\n 3]', "line 2: it is no array of objects"),
                           ('[{"prompt": "a", "completion": "b"}', "no end"), ("[]", "no rows"),
                           ('[\n\n{"prompt": "a" "completion": 1}]', "line 3: it is no JSON object")):
            data.write_text(text)
            self.assertIn(says, self.cairn("template", self.bare(), data, code=3).stderr)

    def test_columns(self):
        table = self.folder / "table.csv"
        table.write_text('id,q,a\n1,"two\nlines, ""quoted""",yes\n2,next,no\n')
        made = self.templated(self.bare(), table, "prompt=q", "answer=a")
        self.assertEqual([(row["line"], row["text"]) for row in made], [(2, 'two\nlines, "quoted"yes'), (4, "nextno")])
        (self.folder / "table.tsv").write_text("prompt\tcompletion\na\tb\n")
        self.assertEqual(self.learned(self.folder / "table.tsv"), [("a", "b")])
        self.fails(3, "template", self.bare(), table, says=["line 2", "none of the forms", "a, id, q"])
        self.fails(3, "template", self.bare(), table, "prompt=p", says=["line 2", "no 'p'", "prompt="])

    def test_what_ends_a_text_is_learned(self):
        row = self.templated(self.model("llama"), self.rows([{"prompt": "w7 ", "completion": "w8 "}]))[0]
        self.assertEqual((row["text"], row["ids"], row["mask"]), ("w7 w8 <e>", [7, 8, LAST], [0, 1, 1]))
        said = self.cairn("train", self.model("llama"), f"data={self.folder}/rows.jsonl", "seq=8", "--steps", 1, "--threads", 1).stderr
        self.assertIn("no template: an answer follows its prompt as it is, and then <e>", said)
        for command in ("train", "verify"):  # by the tokenizer of the directory
            self.fails(3, command, self.model("llama"), f"data={self.folder}/rows.jsonl", "seq=2", "--steps", 2,
                       says="it has 3 tokens, more than seq=2")

    def test_refusals_name_the_line(self):
        good = {"prompt": "a", "completion": "b"}
        for number, (bad, says) in enumerate([
            ('{"prompt": "a", ', "no JSON object"), ('["a"]', "no JSON object"), ({"prompt": 1, "completion": "b"}, "'prompt' is"),
            ({"prompt": "a", "completion": ["b"]}, "'completion' is"), ({"prompt": "a", "completion": ""}, "no answer"),
            ({"prompt": "a", "completion": "b", "history": [["c", "d"]]}, "history"), ({"prompt": "a"}, "no answer"), ({}, "no keys"), ({"text": ""}, "'text' is empty"), ({"text": "a"}, "no token that is learned"),
            ({"chosen": "a", "rejected": "b"}, "preferences"), ({"messages": []}, "empty"), ({"messages": "a"}, "array of messages"),
            ({"messages": [{"role": "user", "content": "a"}]}, "no answer"), ({"messages": [1]}, "message 1 is"),
            ({"messages": [{"role": "boss", "content": "a"}]}, "its role is"), ({"messages": [{"content": "a"}]}, "role is missing"),
            ({"messages": [{"role": "user", "content": 3}]}, "its content is"),
            ({"messages": [{"role": "assistant", "content": "a", "weight": 0}]}, "no answer"),
            ({"messages": [{"role": "assistant", "content": "a"}], "tools": 3}, "'tools' is"),
            ({"messages": [{"role": "assistant", "content": "a"}]}, "template=FILE"),
            ({"conversations": [{"from": "alien", "value": "a"}]}, "turn 1: it is from"),
            ({"conversations": [{"from": "gpt"}]}, "its value is"),
            ({"conversations": [{"from": "function_call", "value": "no call"}]}, "the call is no JSON"),
        ]):
            data = self.rows([good, bad])
            found = self.cairn("template", self.bare(), data, code=3)
            self.assertIn("line 1: prompts and answers", found.stdout)
            for text in (f"{data}: line 2: ", says):
                self.assertIn(text, found.stderr)
            if number % 8 == 0:
                self.fails(3, "train", "gpt2", *TINY, f"data={data}", "seq=8", "--steps", 1, says=[f"{data}: line 2: ", says])

    def test_long_rows(self):
        data = self.rows([{"prompt": "ab", "completion": "cd"}, {"prompt": "ab", "completion": "c" * 20}, {"prompt": "a" * 20, "completion": "b"}])

        def train(*settings):
            return self.cairn("train", "gpt2", *TINY, f"data={data}", "seq=8", "--steps", 1, "--threads", 1, *settings).stderr
        for long in ("auto", "refuse"):
            self.fails(3, "train", "gpt2", *TINY, f"data={data}", "seq=8", f"long={long}", "--steps", 1,
                       says=[f"{data}: line 2: it has 22 tokens, more than seq=8 (2 of 3 rows have, at most 22)", "long=cut"])
        said = train("long=cut")
        self.assertIn("2 of 3 rows have more than seq=8 tokens (at most 22) and are cut", said)
        self.assertIn("1 pieces have nothing to learn", said)
        self.assertIn(" 12 tokens, 66.7 % of them learned, in 2 windows", said)
        self.assertIn(" 4 tokens, 50 % of them learned, in 1 window", train("long=drop"))
        # 22 tokens are 0..8, 7..15, 14..22: of the first piece 6 are learned, then 7 and 7; of "a...ab" the last piece alone, of 7.
        said = train("long=split")
        self.assertIn(" 35 tokens, 65.7 % of them learned", said)
        self.assertIn("2 pieces have nothing to learn", said)
        data = self.rows([{"text": "a" * 22}])
        self.assertIn(" 24 tokens, 87.5 % of them learned", self.cairn("train", "gpt2", *TINY, f"data={data}", "seq=8", "--steps", 1).stderr)
        self.fails(3, "train", "gpt2", *TINY, f"data={data}", "seq=8", "long=refuse", "--steps", 1, says="line 1")

    def test_shards(self):
        rows = [{"prompt": f"{i}", "completion": "b" * (i % 5 + 1)} for i in range(24)]
        one = self.rows(rows)
        for i in range(3):
            self.rows(rows[8 * i:8 * i + 8], f"shards/part-{i}.jsonl")
        (self.folder / "shards/README").write_text("no rows")
        digests = {self.json("train", "gpt2", *TINY, f"data={data}", "seq=12", "--steps", 3)["parameter_digest"]
                   for data in (one, "shards", "shards/part-*.jsonl", "shards/part-0.jsonl,shards/part-1.jsonl,shards/part-2.jsonl")}
        self.assertEqual(len(digests), 1)
        self.assertEqual([row["file"] for row in self.templated(self.bare(), "shards")][::8],
                         [f"shards/part-{i}.jsonl" for i in range(3)])
        (self.folder / "shards/part-1.jsonl").write_text('{"prompt": "a"}\n')
        self.fails(3, "train", "gpt2", *TINY, "data=shards", "seq=12", "--steps", 1, says="shards/part-1.jsonl: line 1: ")
        self.fails(3, "template", self.bare(), "shards/none-*.jsonl", says="is the name of no file")
        for name, content in (("table.parquet", "PAR1"), ("table.jsonl", "PAR1")):
            (self.folder / name).write_text(content)
            self.fails(3, "train", "gpt2", *TINY, f"data={name}", "seq=12", "--steps", 1, says=["Parquet", "JSON lines"])

    def test_rows_are_held_out(self):
        data = self.rows([{"prompt": f"{i} ", "completion": f"{i * i}"} for i in range(40)])
        options = ["gpt2", *TINY, f"data={data}", "seq=16", "--steps", 2]
        made = self.json("train", *options, "eval_fraction=0.25", "--out", "run")
        self.assertEqual(len(made["evaluation"]), 1)
        again = self.json("evaluate", "run")
        self.assertEqual(again["loss"], made["evaluation"][0]["loss"])
        whole = self.json("evaluate", "run", f"data={data}")
        other = self.json("evaluate", "run", f"data={data}", "packing=none")
        self.assertAlmostEqual(whole["loss"], other["loss"], delta=1e-6)

    def test_a_text_is_a_text(self):
        data = self.rows([{"prompt": "a", "completion": "b"}] * 40)
        made = self.json("train", "gpt2", *TINY, f"data={data}", "seq=16", "--steps", 1, "form=text")
        self.assertNotIn("tokens_padding_share", made)
        self.fails(2, "train", "gpt2", *TINY, f"data={data}", "tokens=bpe", "--steps", 1, says="running text")
        self.fails(2, "train", "gpt2", *TINY, f"data={data}", "packing=buckets", "--steps", 1, says="lengths=")
        self.fails(2, "train", "gpt2", *TINY, f"data={data}", "packing=none", "lengths=8,16", "--steps", 1, says="packing=none")

    def test_what_is_kept_is_what_is_made(self):
        data = self.rows([{"prompt": "a", "completion": "b"}, {"prompt": "c", "completion": "dd"}])
        options = ["gpt2", *TINY, f"data={data}", "seq=8", "--steps", 2]
        first = self.json("train", *options)
        kept = list((self.folder / "cache/cairn").glob("*.rows"))
        self.assertEqual(len(kept), 1)
        self.assertEqual(self.json("train", *options)["loss"], first["loss"])
        kept[0].write_bytes(kept[0].read_bytes()[:-8])
        self.assertEqual(self.json("train", *options)["loss"], first["loss"])
        self.json("train", *options, "train_on=all")
        self.assertEqual(len(list((self.folder / "cache/cairn").glob("*.rows"))), 2)


if __name__ == "__main__":
    main()
