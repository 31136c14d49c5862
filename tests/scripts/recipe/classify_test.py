"""`cairn train classify`: texts with labels from csv, tsv and JSON lines; what pads them has no part in the result; runs go on to
the same bits."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Case, main  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from labelled import texts, write  # noqa: E402

SMALL = ["layers=1", "width=16", "heads=2", "seq=48", "batch=8"]

# Other ids where the text has ended: the probabilities must have the same bits.
PADDING = """
local cairn = require "cairn"
local graph = assert(cairn.load_graph(arg[1] .. "/predictor.cairn"))
local device = assert(cairn.device("cpu", { threads = 2, rates = "model" }))
local session = assert(cairn.session(assert(cairn.plan(graph, device, { no_optimizer = true }))))
assert(session:load(assert(cairn.checkpoint(arg[1]))))
local shape, first = graph:info("tokens").shape, nil
for _, id in ipairs { 0, 97, 255 } do
  local tokens, real, padding = {}, {}, {}
  for row = 0, shape[1] - 1 do
    for i = 1, shape[2] do
      local there = i <= row % 7 * 4 + 1
      local at = row * shape[2] + i
      tokens[at], real[at], padding[at] = there and 90 + (row + i) % 30 or id, there and 1 or 0, there and 0 or -30000
    end
  end
  assert(session:write("tokens", tokens) and session:write("real", real) and session:write("padding", padding))
  assert(session:run())
  local found = table.concat(assert(session:read("probabilities")), " ")
  first = first or found
  assert(found == first, id)
end
"""


class Classify(Case):
    def run_of(self, data, *more, steps=8):
        return self.train(f"data={data}", *SMALL, "--steps", steps, *more, recipe="classify")

    def refused(self, content, says, *more, name="bad.csv", code=3):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.fails(code, "train", "classify", f"data={path}", *SMALL, *more, says=says)

    def test_learns_and_predicts(self):
        data = write(self.folder / "data.tsv", texts(400))
        report = self.run_of(data, "rate=4e-3", "eval_fraction=0.25", "metrics=accuracy", "--out", "run", steps=120)
        self.assertEqual(report["peak_bytes"], report["planned_peak_bytes"])
        self.assertGreater(report["evaluation"][-1]["accuracy"], 0.85)  # 0.7 have the larger label
        self.assertGreater(report["metrics"]["accuracy"][-1], 0.8)
        other = write(self.folder / "other.jsonl", texts(100, seed=2))
        found = json.loads(self.cairn("evaluate", "run", f"data={other}", "--json", "--quiet").stdout)
        self.assertEqual(found["samples"], 100)
        positive = sum(label == "pos" for _, label in texts(100, seed=2))
        self.assertEqual(found["labels"], {"neg": 100 - positive, "pos": positive})
        self.assertRegex(self.cairn("evaluate", "run").stdout, r"labels +neg \d+, pos \d+\n")
        lines = self.cairn("predict", "run", "--input", other).stdout.splitlines()
        answers = [json.loads(line) for line in lines]
        right = sum(answer["label"] == label for answer, (_, label) in zip(answers, texts(100, seed=2)))
        self.assertEqual(right / 100, found["accuracy"])
        for answer in answers:
            self.assertEqual(sorted(answer["probabilities"]), ["neg", "pos"])
            self.assertAlmostEqual(sum(answer["probabilities"].values()), 1, 5)
            self.assertEqual(max(answer["probabilities"], key=answer["probabilities"].get), answer["label"])

    def test_forms_say_the_same(self):
        pairs = [*texts(40), ('a "quoted" word, and\na second line', "pos"), ("ümläut 🙂 日本", "neg")]
        plain = [(text.replace("\n", " "), label) for text, label in pairs]
        digests = {self.run_of(write(self.folder / f"data.{form}", pairs))["parameter_digest"] for form in ("csv", "jsonl")}
        self.assertEqual(len(digests), 1)
        digests = {self.run_of(write(self.folder / f"plain.{form}", plain))["parameter_digest"]
                   for form in ("csv", "tsv", "jsonl")}
        self.assertEqual(len(digests), 1)
        csv = (self.folder / "plain.csv").read_bytes()
        (self.folder / "marked.csv").write_bytes(b"\xef\xbb\xbf" + csv)
        (self.folder / "returns.csv").write_bytes(csv.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
        (self.folder / "lines.csv").write_bytes(csv.replace(b"\r\n", b"\n"))
        for name in ("marked", "returns", "lines"):
            self.assertIn(self.run_of(self.folder / f"{name}.csv")["parameter_digest"], digests, name)

    def test_any_bytes(self):
        pairs = texts(30)
        (self.folder / "plain.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in pairs))
        odd = "".join(f"{text}\0\x80 and more,{label}\n" for text, label in pairs)
        (self.folder / "odd.csv").write_bytes(b"text,label\n" + odd.encode("latin-1"))
        self.assertNotEqual(self.run_of("odd.csv")["metrics"], None)
        even = odd.replace("\0\x80 and more", "\0\x80 and less")
        (self.folder / "even.csv").write_bytes(b"text,label\n" + even.encode("latin-1"))
        self.assertNotEqual(self.run_of("odd.csv")["parameter_digest"], self.run_of("even.csv")["parameter_digest"])
        (self.folder / "none").mkdir()
        self.fails(3, "train", "classify", "data=none", says="none")

    def test_padding_has_no_part(self):
        data = write(self.folder / "data.tsv", texts(60))
        for amp in ("off", "bf16"):
            self.run_of(data, "--out", amp, "--amp", amp, "heads=1" if amp == "off" else "heads=4")
            (self.folder / "padding.lua").write_text(PADDING)
            self.cairn("lua", "padding.lua", f"{amp}/step-00000008")

    def test_many_heads(self):
        data = write(self.folder / "data.tsv", texts(20))
        self.run_of(data, "heads=20", "width=40", steps=1)
        self.fails(2, "train", "classify", f"data={data}", "heads=3", says="heads=3")
        self.fails(2, "train", "classify", f"data={data}", "heads=8", "width=8", says="at least 2")

    def test_resumed_to_the_same_bits(self):
        data = write(self.folder / "data.csv", texts(50))
        for i, more in enumerate(([], ["tokens=bpe", "vocab=300"], ["remainder=own", "dropout=0.1"])):
            whole = self.run_of(data, "eval_fraction=0.2", *more, steps=14)
            self.run_of(data, "eval_fraction=0.2", *more, "--out", f"run{i}", steps=6)
            again = json.loads(self.cairn("train", "--resume", f"run{i}", "--steps", 14, "--json", "--quiet").stdout)
            self.assertEqual(again["parameter_digest"], whole["parameter_digest"])
            self.assertEqual(again["evaluation"], [{**whole["evaluation"][0], "seconds": again["evaluation"][0]["seconds"]}])

    def test_labels_are_the_runs(self):
        data = write(self.folder / "data.tsv", [*texts(40), ("who knows", "un, sure")])
        self.run_of(data, "--out", "run", steps=2)
        few = write(self.folder / "few.tsv", texts(10, seed=3))
        answer = json.loads(self.cairn("predict", "run", input="text\nwho knows\n").stdout)
        self.assertEqual(list(answer["probabilities"]), ["neg", "pos", "un, sure"])
        self.assertEqual(json.loads(self.cairn("evaluate", "run", f"data={few}", "--json").stdout)["samples"], 10)
        write(few, [("a", "pos"), ("b", "neutral")])
        self.fails(3, "evaluate", "run", f"data={few}", says=["few.tsv: line 3", "'neutral'", "neg, pos"])
        given = write(self.folder / "given.tsv", texts(20))
        self.run_of(given, "labels=pos,neg,maybe", "--out", "given", steps=1)
        answer = json.loads(self.cairn("predict", "given", input="text\nx\n").stdout)
        self.assertEqual(list(answer["probabilities"]), ["pos", "neg", "maybe"])

    def test_the_order_of_the_file_does_not_matter_for_what_is_held_out(self):
        pairs = sorted(texts(100), key=lambda pair: pair[1])
        data = write(self.folder / "sorted.tsv", pairs)
        self.run_of(data, "eval_fraction=0.2", "--out", "run", steps=2)
        done = self.cairn("train", "classify", f"data={data}", *SMALL, "eval_fraction=0.2", "--steps", 1)
        self.assertRegex(done.stderr, r"texts to train with: 80 \(neg [45]\d, pos [123]\d\)")

    def test_bad_input(self):
        self.refused("", "holds no rows")
        self.refused("text,label\n", "only a header")
        self.refused("text,lable\na,b\n", ["no column 'label'", "text, lable", "label=NAME"])
        self.refused("text,label\na,b\nc\n", ["bad.csv: line 3", "1 cell"])
        self.refused("text,label\na,b\nc,d,e\n", ["bad.csv: line 3", "3 cells"])
        self.refused('text,label\n"a\nb",c\n"x,y\n', ["line 4", "not closed"])
        self.refused('text,label\n"a"b,c\n', ["line 2", "follows a quoted cell"])
        self.refused("text,text\na,b\n", "'text' twice")
        self.refused("text,label\na,b\nc,\n", ["line 3", "'label' is ''"])
        self.refused("text,label\na,b\nc,b\n", "one label alone, 'b'")
        self.refused("text,label\n".encode("utf-16"), "UTF-16")
        self.refused('{"text": "a", "label": 1}\n{"text": "b"}\n', ["line 2", "'label' is missing"], name="bad.jsonl")
        self.refused('{"text": "a", "label": 1}\n[1]\n', ["line 2", "no JSON object"], name="bad.jsonl")
        self.refused('{"text": 3, "label": 1}\n', ["line 1", "wanted: a text"], name="bad.jsonl")
        self.refused("text,label\na,b\nc,d\n", "fewer than batch=8", "remainder=drop", name="few.csv")
        self.refused("text,label\na,b\nc,d\n", "leaves no row to train with", "eval_fraction=0.9", name="few.csv")
        self.refused("text,label\na,b\nc,d\n", "of the 2 rows", "eval_fraction=0.1", name="few.csv")
        self.fails(2, "train", "classify", says="data=FILE is needed")
        self.fails(3, "train", "classify", "data=nothing.csv", says="nothing.csv")

    def test_plan_and_random(self):
        data = write(self.folder / "data.tsv", texts(30))
        planned = json.loads(self.cairn("plan", "classify", f"data={data}", *SMALL, "--json").stdout)
        report = self.run_of(data, steps=1)
        self.assertEqual(planned["planned_peak_bytes"], report["planned_peak_bytes"])
        self.run_of("random", "eval_fraction=0.1", steps=2)


main()
