"""`cairn train --mlflow DIR`: a run in MLflow's file store, which goes on when the run does."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CAIRN, Case, main  # noqa: E402

RUNNING, FINISHED, FAILED, KILLED = 1, 3, 4, 5  # as MLflow stores them
EVALUATES = ["eval_fraction=0.2", "--eval-every", 2]


def yaml(path):
    """The keys of a meta.yaml, whose values are JSON or what single quotes hold."""
    rows = dict(line.split(": ", 1) for line in path.read_text().splitlines())
    return {key: json.loads(value) if value[0] in '"0123456789n[' else value.strip("'") for key, value in rows.items()}


def history(run, name):
    """The file of a metric: [(milliseconds, value, step), ...]."""
    lines = (run / "metrics" / name).read_text().splitlines()
    return [(int(at), float(value), int(step)) for at, value, step in map(str.split, lines)]


class MLflow(Case):
    def runs(self):
        """The runs of the store, the oldest first."""
        found = [path.parent for path in (self.folder / "store").glob("*/*/meta.yaml")]
        return sorted(found, key=lambda run: yaml(run / "meta.yaml")["start_time"])

    def lines(self, name, run="run"):
        return [json.loads(line) for line in (self.folder / run / name).read_text().splitlines()]

    def mlp(self, *arguments, code=0, out="run"):
        return self.cairn("train", "mlp", "width=8", *arguments, "--out", out, "--mlflow", "store", "--quiet",
                          code=code)

    def test_a_run_is_recorded_as_mlflow_records_it(self):
        before = time.time() * 1000
        self.train(*EVALUATES, "--steps", 4, "--out", "run", "--mlflow", "store")
        (run,) = self.runs()
        found, experiment = yaml(run / "meta.yaml"), yaml(run.parent / "meta.yaml")
        self.assertEqual((experiment["name"], experiment["lifecycle_stage"]), ("gpt2", "active"))
        self.assertEqual(experiment["experiment_id"], run.parent.name)
        self.assertEqual(found["experiment_id"], run.parent.name)
        self.assertEqual(found["run_id"], run.name)
        self.assertRegex(run.name, "^[0-9a-f]{32}$")
        self.assertEqual((found["run_name"], found["status"], found["lifecycle_stage"]), ("run", FINISHED, "active"))
        self.assertEqual(found["artifact_uri"], str((run / "artifacts").resolve()))
        self.assertTrue(before <= found["start_time"] <= found["end_time"] <= time.time() * 1000)
        lines = self.lines("metrics.jsonl")
        for name in ("loss", "gradient_norm", "rate", "perplexity"):
            self.assertEqual([row[1:] for row in history(run, f"train/{name}")],
                             [(line[name], line["step"]) for line in lines])
        for name in ("loss", "perplexity", "accuracy"):
            self.assertEqual([row[1:] for row in history(run, f"eval/{name}")],
                             [(line[name], line["step"]) for line in self.lines("evaluations.jsonl")])
        for at, *_ in history(run, "train/loss"):
            self.assertTrue(found["start_time"] <= at <= found["end_time"])
        started = json.loads((self.folder / "run/run.json").read_text())
        names = {**started["options"], **started["arguments"]}
        self.assertEqual({path.name for path in (run / "params").iterdir()}, set(names))
        for name, value in (("layers", "2"), ("rate", "0.003"), ("steps", "4"), ("seed", "1337"),
                            ("data", str(self.text.resolve()))):
            self.assertEqual((run / "params" / name).read_text(), value)
        self.assertEqual((run / "tags/mlflow.runName").read_text(), "run")
        self.assertNotIn("mlflow", started["arguments"])  # of the call, as --out

    def test_runs_of_a_recipe_share_an_experiment(self):
        self.mlp("--steps", 1, out="a")
        self.mlp("--steps", 1, out="b")
        first, second = self.runs()
        self.assertEqual(first.parent, second.parent)
        self.assertNotEqual(first.name, second.name)
        # One that MLflow made is taken, too.
        shutil.rmtree(self.folder / "store")
        (self.folder / "store/408796596912414467").mkdir(parents=True)
        (self.folder / "store/408796596912414467/meta.yaml").write_text(
            "experiment_id: '408796596912414467'\nlifecycle_stage: active\nname: mlp\n")
        self.mlp("--steps", 1, out="c")
        (run,) = self.runs()
        self.assertEqual(run.parent.name, "408796596912414467")

    def test_a_resumed_run_goes_on_in_its_record(self):
        self.mlp("--steps", 4, "--save-every", 1, "--keep", 9)
        (run,) = self.runs()
        began = yaml(run / "meta.yaml")["start_time"]
        self.cairn("train", "--resume", "run/step-00000002", "--steps", 6)
        self.assertEqual(self.runs(), [run])
        self.assertEqual([step for *_, step in history(run, "train/loss")], [1, 2, 3, 4, 5, 6])
        self.assertEqual([value for _, value, _ in history(run, "train/loss")],
                         [line["loss"] for line in self.lines("metrics.jsonl")])
        found = yaml(run / "meta.yaml")
        self.assertEqual((found["start_time"], found["status"]), (began, FINISHED))
        self.assertEqual((run / "params/steps").read_text(), "6")
        # Begun anew it is another run; without the option it is none, and none goes on later.
        self.mlp("--steps", 2, "--force")
        self.assertEqual(len(self.runs()), 2)
        self.cairn("train", "mlp", "width=8", "--steps", 2, "--out", "run", "--force", "--quiet")
        self.cairn("train", "--resume", "run", "--steps", 3)
        self.assertEqual([len(history(each, "train/loss")) for each in self.runs()], [6, 2])

    def test_another_directory_leads_to_no_record_of_this_one(self):
        self.mlp("--steps", 2)
        (run,) = self.runs()
        shutil.copytree(self.folder / "run", self.folder / "copy")
        said = self.cairn("train", "--resume", "copy", "--steps", 3).stderr
        self.assertIn("nothing is recorded for MLflow", said)
        self.assertEqual(len(history(run, "train/loss")), 2)
        self.cairn("train", "--resume", "copy", "--steps", 4, "--mlflow", "store")
        self.assertEqual([len(history(each, "train/loss")) for each in self.runs()], [2, 1])
        os.rename(self.folder / "run", self.folder / "moved")
        self.cairn("train", "--resume", "moved", "--steps", 3, "--mlflow", "store")
        self.assertEqual(len(history(run, "train/loss")), 3)
        # Nothing is written through a link.
        shutil.rmtree(run / "params")
        (run / "params").symlink_to(self.folder)
        self.fails(5, "train", "--resume", "moved", "--steps", 4, says="symbolic link")

    def test_how_a_run_ended(self):
        self.mlp("rate=1e30", "--max-skips", 2, "--steps", 50, code=7, out="a")
        (self.folder / "raises.lua").write_text("""local mlp = require "recipes.mlp"
            local raises = {}
            for key, value in pairs(mlp) do raises[key] = value end
            raises.on_step = function(row) if row.step == 3 then error("no more") end end
            return raises""")
        self.cairn("train", "raises.lua", "--steps", 5, "--out", "b", "--mlflow", "store", "--quiet", code=3)
        under_way = subprocess.Popen([CAIRN, "train", "mlp", "--steps", "9999999", "--out", "c", "--mlflow", "store",
                                      "--quiet"], cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
        while not any((run / "metrics/train/loss").exists() and (run / "tags/cairn.out").read_text().endswith("/c")
                      for run in self.runs()):
            self.assertIsNone(under_way.poll())
            time.sleep(0.02)
        running = {(run / "tags/mlflow.runName").read_text(): yaml(run / "meta.yaml") for run in self.runs()}["c"]
        self.assertEqual((running["status"], running["end_time"]), (RUNNING, None))
        under_way.send_signal(signal.SIGINT)
        self.assertEqual(under_way.wait(), 130)
        ended = {(run / "tags/mlflow.runName").read_text(): yaml(run / "meta.yaml")["status"] for run in self.runs()}
        self.assertEqual(ended, {"a": FAILED, "b": FAILED, "c": KILLED})
        failed = next(run for run in self.runs() if (run / "tags/mlflow.runName").read_text() == "b")
        self.assertEqual([step for *_, step in history(failed, "train/loss")], [1, 2, 3])

    def test_what_cannot_be_recorded_is_refused(self):
        self.fails(2, "train", "mlp", "--mlflow", "store", says="needs --out")
        self.fails(2, "train", "mlp", "--out", "run", "--mlflow", "http://localhost:5000", says="an address")
        self.assertFalse((self.folder / "run").exists())
        self.text.write_text("x")
        self.fails(5, "train", "mlp", "--steps", 1, "--out", "run", "--mlflow", "text.txt", says="text.txt")
        self.cairn("train", "mlp", "--dry-run", "--out", "dry", "--mlflow", "store")
        self.assertFalse((self.folder / "store").exists())

    @unittest.skipUnless(os.environ.get("MLFLOW_PYTHON"), "a Python with mlflow: $MLFLOW_PYTHON")
    def test_mlflows_own_reader(self):
        self.train(*EVALUATES, "--steps", 4, "--out", "run", "--mlflow", "store")
        program = """import json, sys
from mlflow.tracking import MlflowClient
client = MlflowClient(tracking_uri=sys.argv[1])
(run,) = client.search_runs([client.get_experiment_by_name("gpt2").experiment_id])
print(json.dumps([run.info.status, run.data.params, {name: [[each.step, each.value] for each in
      client.get_metric_history(run.info.run_id, name)] for name in run.data.metrics}]))"""
        status, params, metrics = json.loads(subprocess.run(
            [os.environ["MLFLOW_PYTHON"], "-c", program, self.folder / "store"], capture_output=True, text=True,
            check=True, env={**os.environ, "MLFLOW_ALLOW_FILE_STORE": "true"}).stdout)
        self.assertEqual((status, params["layers"]), ("FINISHED", "2"))
        self.assertEqual(metrics["train/loss"], [[line["step"], line["loss"]] for line in self.lines("metrics.jsonl")])
        self.assertIn("eval/perplexity", metrics)


main()
