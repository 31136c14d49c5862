"""`cairn train regress`: a column predicted from the others of a table; columns of numbers and of names; what is wrong is named."""
import csv
import json
import math
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Case, main  # noqa: E402

NAMES = ["area", "kind", "year", "price"]
KINDS = {"flat, small": 0.0, "house": 50000.0, "hut": -20000.0}


def houses(count, seed=1):
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        area, kind, year = round(draw.uniform(20, 200), 2), draw.choice(list(KINDS)), draw.randint(1900, 2020)
        rows.append([area, kind, year, 1000 * area + KINDS[kind] + 200 * (year - 1900)])
    return rows


def write(path, rows, names=None):
    names = names or NAMES
    with open(path, "w", newline="", encoding="utf-8") as file:
        if path.suffix == ".jsonl":
            file.writelines(json.dumps(dict(zip(names, row))) + "\n" for row in rows)
        elif path.suffix == ".tsv":
            file.writelines("\t".join(map(str, row)) + "\n" for row in [names, *rows])
        else:
            csv.writer(file).writerows([names, *rows])
    return path


class Regress(Case):
    def run_of(self, data, *more, steps=10):
        return self.train(f"data={data}", "--steps", steps, *more, recipe="regress")

    def refused(self, content, says, *more, name="bad.csv", code=3):
        path = self.folder / name
        path.write_text(content)
        self.fails(code, "train", "regress", f"data={path}", *more, says=says)

    def test_learns_evaluates_and_predicts(self):
        data = write(self.folder / "data.csv", houses(300))
        report = self.run_of(data, "eval_fraction=0.2", "--out", "run", steps=300)
        self.assertEqual(report["peak_bytes"], report["planned_peak_bytes"])
        last = report["evaluation"][-1]
        self.assertGreater(last["r2"], 0.99)
        other = houses(50, seed=2)
        found = json.loads(self.cairn("evaluate", "run", f"data={write(self.folder / 'other.jsonl', other)}", "--json").stdout)
        lines = self.cairn("predict", "run", "--input", "other.jsonl", "--batch", 7).stdout.splitlines()
        predicted = [json.loads(line)["price"] for line in lines]
        apart = [mine - row[-1] for mine, row in zip(predicted, other)]
        mean = sum(row[-1] for row in other) / 50
        total = sum((row[-1] - mean) ** 2 for row in other)
        self.assertAlmostEqual(found["mae"], sum(map(abs, apart)) / 50, delta=1e-3 * found["mae"])
        self.assertAlmostEqual(found["mse"], sum(each * each for each in apart) / 50, delta=1e-3 * found["mse"])
        self.assertAlmostEqual(found["r2"], 1 - sum(each * each for each in apart) / total, 5)
        self.assertEqual(found["samples"], 50)

    def test_statistics_are_of_the_rows_that_are_trained_with(self):
        rows = houses(100)
        data = write(self.folder / "data.csv", rows)
        self.run_of(data, "--out", "run")
        about = json.loads((self.folder / "run/step-00000010/predictor.json").read_text())
        area, kind, _ = about["inputs"]
        mean = sum(row[0] for row in rows) / 100
        self.assertAlmostEqual(area["mean"], mean, 9)
        self.assertAlmostEqual(area["deviation"], math.sqrt(sum((row[0] - mean) ** 2 for row in rows) / 100), 9)
        self.assertEqual(kind["values"], sorted(KINDS))
        self.run_of(data, "eval_fraction=0.5", "--out", "half")
        half = json.loads((self.folder / "half/step-00000010/predictor.json").read_text())
        self.assertNotEqual(half["inputs"][0]["mean"], area["mean"])

    def test_forms_say_the_same(self):
        rows = houses(40)
        rows = [[row[0], row[1].replace(",", ""), *row[2:]] for row in rows]
        digests = {form: self.run_of(write(self.folder / f"data.{form}", rows))["parameter_digest"] for form in ("csv", "tsv")}
        by_name = sorted(range(4), key=lambda i: NAMES[i])  # JSON lines: columns by name
        ordered = write(self.folder / "ordered.csv", [[row[i] for i in by_name] for row in rows], sorted(NAMES))
        digests["ordered"] = self.run_of(ordered, "target=price")["parameter_digest"]
        digests["jsonl"] = self.run_of(write(self.folder / "data.jsonl", rows), "target=price")["parameter_digest"]
        self.assertEqual(digests["csv"], digests["tsv"])
        self.assertEqual(digests["ordered"], digests["jsonl"])
        text = (self.folder / "data.csv").read_text()
        (self.folder / "marked.csv").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").replace("\r\r", "\r").encode())
        self.assertEqual(self.run_of(self.folder / "marked.csv")["parameter_digest"], digests["csv"])

    def test_columns_by_hand(self):
        rows = [[i, *row, i % 3] for i, row in enumerate(houses(60))]
        data = write(self.folder / "data.csv", rows, ["id", *NAMES, "zone"])
        self.run_of(data, "ignore=id", "target=price", "categorical=zone", "--out", "run")
        about = json.loads((self.folder / "run/step-00000010/predictor.json").read_text())
        self.assertEqual([row["field"] for row in about["inputs"]], ["area", "kind", "year", "zone"])
        self.assertEqual(about["inputs"][-1]["values"], ["0", "1", "2"])
        row = {"area": "100", "kind": "hut", "year": 1950, "zone": 2}
        self.assertEqual(list(json.loads(self.cairn("predict", "run", input=json.dumps(row)).stdout)), ["price"])
        for option in ("ignore", "target", "categorical"):
            self.fails(2, "train", "regress", f"data={data}", f"{option}=pirce", says=["no such column", "did you mean 'price'"])

    def test_resumed_to_the_same_bits(self):
        data = write(self.folder / "data.csv", houses(50))
        for i, more in enumerate((["schedule=cosine", "schedule_steps=14"], ["remainder=own", "dropout=0.1"])):
            whole = self.run_of(data, "eval_fraction=0.2", *more, steps=14)
            self.run_of(data, "eval_fraction=0.2", *more, "--out", f"run{i}", steps=6)
            again = json.loads(self.cairn("train", "--resume", f"run{i}", "--steps", 14, "--json", "--quiet").stdout)
            self.assertEqual(again["parameter_digest"], whole["parameter_digest"])
        self.cairn("train", "--config", "run0/run.json", "--steps", 2, "--quiet")

    def test_bad_input(self):
        self.refused("", "holds no rows")
        self.refused("a,b\n", "only a header")
        self.refused("a\n1\n", "there is no column to predict it from", code=2)
        self.refused("a,b\n1,2\n3\n", ["bad.csv: line 3", "1 cell"])
        self.refused("a,b\n1,2\nx,4\n3,4\n", ["bad.csv: line 3", "'a' is 'x'", "categorical=a"])
        self.refused("a,b\n1,2\n,4\n3,4\n", ["bad.csv: line 3", "'a' is ''"])
        for word in ("none", "nan", "inf", "0x10", "1,5", "1e999", ""):
            self.refused(f'a,b\n1,2\n3,"{word}"\n', ["bad.csv: line 3", "'b', which is predicted"])
        self.refused('{"a": 1, "b": 2}\n', "target=NAME", name="bad.jsonl", code=2)
        self.refused('{"a": 1, "b": 2}\n{"b": 2}\n', ["line 2", "no 'a'"], "target=b", name="bad.jsonl")
        self.refused('{"a": [1], "b": 2}\n', ["line 1", "'a' is an array"], "target=b", name="bad.jsonl")
        self.refused("a,b\n" + "".join(f"name{i},1\n" for i in range(300)), ["more than 256", "ignore=a"])
        self.fails(2, "train", "regress", says="data=FILE is needed")

    def test_numbers_and_constants(self):
        (self.folder / "data.csv").write_text("a,b,c\n" + "".join(f" +{i}.5e1 ,7,{i}\n" for i in range(20)))
        report = self.run_of("data.csv", "--out", "run")
        self.assertTrue(all(map(math.isfinite, report["loss"])))
        answer = json.loads(self.cairn("predict", "run", input="b\ta\n7\t1e1\n").stdout)
        self.assertTrue(math.isfinite(answer["c"]))

    def test_verify_and_random(self):
        self.cairn("verify", "regress", "width=8", "batch=4", "--steps", 2, "--budgets", 1, "--quiet")
        self.run_of("random", "eval_fraction=0.1", steps=2)


main()
