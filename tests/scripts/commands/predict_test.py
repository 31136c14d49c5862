"""`cairn predict`: rows in, answers out, without the recipe that the model was trained with; a bad row is named by its line."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CAIRN, Case, main  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recipe"))
from labelled import texts, write  # noqa: E402

# y = x w^T of pairs, and rows of a table by ids: two inputs, two outputs, four rows at a time.
OWN = """-- A model of two inputs.
local nn = require("cairn").nn
local function build(o, graph)
  local context = nn.context(graph, true)
  local y = context:child("line", nn.Linear(2, 3), graph:input("x", { o.batch, 2 }))
  local rows = context:child("rows", nn.Embedding(5, 3), graph:input("ids", { o.batch }, "i32"))
  return y + rows, rows
end
return {
  options = { { "batch", 4, "rows" } },
  training = { steps = 2 },
  model = function(o, graph)
    local y = build(o, graph)
    local loss, weight = graph:op("mse", y, graph:input("target", { o.batch, 3 }))
    return { loss = loss, weight = weight }
  end,
  predictor = function(o, graph)
    local y, rows = build(o, graph)
    return { outputs = { sum = y, cube = graph:op("reshape", rows, { shape = { o.batch, 1, 3 } }) } }
  end,
  dataset = function(o)
    return { batches = 1, batch = function()
      local x, ids, target = {}, {}, {}
      for i = 1, o.batch * 3 do
        target[i] = i / 10
        if i <= o.batch * 2 then x[i] = i / 7 end
        if i <= o.batch then ids[i] = i % 5 end
      end
      return { x = x, ids = ids, target = target }, o.batch
    end }
  end,
}
"""


class Predict(Case):
    def own(self, text=OWN, code=0):
        (self.folder / "own.lua").write_text(text)
        return self.cairn("train", "own.lua", "--out", "run", "--quiet", code=code)

    def predict(self, rows, *more, code=0):
        text = rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows)
        done = self.cairn("predict", "run", *more, code=code, input=text)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def refused(self, rows, says, *more):
        text = rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows)
        done = self.cairn("predict", "run", *more, code=3, input=text)
        for word in says:
            self.assertIn(word, done.stderr)
        return done.stdout

    def test_arrays_by_name(self):
        self.own()
        os.remove(self.folder / "own.lua")  # a checkpoint predicts without it
        rows = [{"x": [i / 3, -i], "ids": i % 5} for i in range(11)]
        answers = self.predict(rows)
        self.assertEqual(len(answers), 11)
        for answer in answers:
            self.assertEqual(list(answer), ["cube", "sum"])
            self.assertEqual((len(answer["cube"]), len(answer["cube"][0]), len(answer["sum"])), (1, 3, 3))
        self.assertEqual(answers[1]["cube"], answers[6]["cube"])
        for batch in (1, 3, 4, 100):  # which others are read with a row does not matter
            self.assertEqual(self.predict(rows, "--batch", batch), answers)
        self.assertEqual(self.predict([{"x": [[1], [2]], "ids": [3], "more": None}]), self.predict([{"x": [1, 2], "ids": 3}]))
        line = self.predict([{"x": [1, 0], "ids": 0}, {"x": [2, 0], "ids": 0}, {"x": [3, 0], "ids": 0}])
        first, second, third = (answer["sum"][0] for answer in line)
        self.assertAlmostEqual(third - second, second - first, 5)

    def test_rows_that_are_none(self):
        self.own()
        good = {"x": [1, 2], "ids": 0}
        self.refused([good, {"x": [1], "ids": 0}], ["line 2", "'x'", "1 number", "wanted: 2, f32[2]"])
        self.refused([good, {"x": [1, "a"], "ids": 0}], ["line 2", "number 2", "'a'"])
        self.refused([good, {"x": [1, 2], "ids": 0.5}], ["line 2", "'ids'", "whole number"])
        self.refused([good, {"x": [1, 2], "id": 0}], ["line 2", "no 'ids'", "did you mean 'id'", "ids, x"])
        self.refused([good, good, {"x": [1, 2], "ids": 5}], ["line 3", "ids"])  # of a table of 5 rows
        self.refused([good, {"x": [1, 2], "ids": -1}], ["line 2"])
        self.refused('{"x": [1, 2], "ids": 0}\n\nnonsense\n', ["line 3", "no JSON object"])
        self.refused("x,ids\n1,2\n", ["line 2", "'x'"])
        answered = self.refused([good] * 5 + [{}], ["line 6"], "--batch", 1)
        self.assertEqual(len(answered.splitlines()), 5)
        self.assertEqual(self.predict(""), [])

    def test_what_does_not_go(self):
        self.own()
        self.fails(2, "predict", says="usage")
        self.fails(2, "predict", "run", "x=1", says="usage")
        self.fails(2, "predict", "run", "--batch", 0, says="--batch")
        self.fails(2, "predict", "run", "--format", "cvs", says="did you mean 'csv'")
        self.fails(3, "predict", "run", "--input", "nothing.csv", says="nothing.csv")
        self.fails(3, "predict", "nothing", says="nothing")
        self.train("--steps", 1, "--out", "text")
        self.fails(3, "predict", "text", input="", says=["predicts nothing", "cairn generate"])
        self.train("--steps", 1, "--out", "points", recipe="mlp")
        self.fails(3, "predict", "points", input="", says=["no `predictor`", "--recipe FILE"])

    def test_a_recipe_that_has_it_now(self):
        before = OWN.replace("  predictor = function", "  later = function")
        self.own(before)
        self.fails(3, "predict", "run", input="", says="no `predictor`")
        (self.folder / "own.lua").write_text(OWN)
        row = '{"x": [1, 2], "ids": 0}\n'
        self.fails(3, "predict", "run", "--recipe", "own.lua", input=row, says="--recipe-changed")
        done = self.cairn("predict", "run", "--recipe", "own.lua", "--recipe-changed", input=row)
        self.assertEqual(len(json.loads(done.stdout)["sum"]), 3)

    def test_predictors_that_are_none_are_told_before_training(self):
        for new, says in [("{ outputs = {} }", "wanted: { outputs"), ("{ outputs = { sum = 1 } }", "outputs.sum"),
                          ("{ outputs = { sum = y }, inputs = { { kind = 'text', field = 'a' } } }", "the graph has no"),
                          ("{ outputs = { sum = y }, inputs = { { kind = 'array', field = 'a', input = 'x' } } }",
                           "no field goes into the input 'ids'"),
                          ("(function() graph:input('t', { 4, 8 }, 'i32') graph:input('r', { 4, 2 }) graph:input('p', { 4, 8 }) "
                           "return { outputs = { sum = y }, inputs = { { kind = 'text', field = 'a', tokens = 't', real = 'r', "
                           "padding = 'p' } } } end)()", "another input of the text"),
                          ("{ outputs = { sum = graph:op('reduce_sum', y) } }", "rows first"),
                          ("{ outputs = { sum = graph:op('reshape', y, { shape = { 6, 2 } }) } }", "counts the same rows")]:
            at = OWN.index("return { outputs")
            text = OWN[:at] + "return " + new + OWN[OWN.index("\n", at):]
            (self.folder / "own.lua").write_text(text)
            self.fails(3, "train", "own.lua", "--out", "none", says=says)
            self.assertFalse(list((self.folder / "none").glob("step-*")) if (self.folder / "none").exists() else [])

    def test_damaged_files_are_refused(self):
        self.own()
        step = next((self.folder / "run").glob("step-*"))
        for old, new, says in [("cairn.predictor/1", "cairn.predictor/2", "is no cairn.predictor/1 file"),
                               ('"input":"ids"', '"input":"tabl"', "does not go with the checkpoint"),
                               ('"kind":"array"', '"kind":"label"', "of no known kind"), ("{", "", "is no cairn.predictor/1")]:
            path = step / "predictor.json"
            whole = path.read_text()
            path.write_text(whole.replace(old, new, 1))
            done = self.cairn("predict", "run", code=3, input="")
            self.assertTrue(says in done.stderr or "predictor.json" in done.stderr, done.stderr)
            path.write_text(whole)

    def test_the_run_is_not_touched_and_tables_are_read(self):
        data = write(self.folder / "data.csv", texts(60))
        self.train(f"data={data}", "layers=1", "width=16", "heads=2", "seq=32", "batch=4", "tokens=bpe", "vocab=300", "--steps", 3,
                   "--out", "run", recipe="classify")
        before = {path: (path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in (self.folder / "run").rglob("*")}
        data.unlink()
        rows = [("quoted \"words\", and\na line", "pos"), ("", "neg"), ("plain", "neg")]
        by_json = self.predict([{"text": text} for text, _ in rows])
        self.assertEqual(self.predict(write(self.folder / "rows.csv", rows).read_text()), by_json)
        done = self.cairn("predict", "run", "--input", "rows.csv")
        self.assertEqual([json.loads(line) for line in done.stdout.splitlines()], by_json)
        plain = [{"text": "plain"}, {"text": "é"}]
        self.assertEqual(self.predict("n\ttext\r\n1\tplain\r\n2\té\r\n"), self.predict(plain))
        self.assertEqual(self.predict('{"text": "\\ud83d\\ude00"}\n'), self.predict('{"text": "\U0001F600"}\n'))
        self.refused("n\ttxt\n1\tplain\n", ["line 1", "no column 'text'", "did you mean 'txt'"])
        after = {path: (path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in (self.folder / "run").rglob("*")}
        self.assertEqual(before, after)

    def test_answers_come_as_rows_do(self):
        self.own()
        with subprocess.Popen([CAIRN, "predict", "run", "--batch", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env=self.environment, cwd=self.folder, text=True) as process:
            for i in range(3):
                process.stdin.write(json.dumps({"x": [i, i], "ids": i}) + "\n")
                process.stdin.flush()
                self.assertEqual(len(json.loads(process.stdout.readline())["sum"]), 3)
            process.stdin.close()
            self.assertEqual(process.wait(timeout=60), 0)


main()
