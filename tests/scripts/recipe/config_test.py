"""`--config`, run.json, `--dry-run`, and what a resumed run may change."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, TINY, Case, main  # noqa: E402

FULL = ["eval_fraction=0.2", "--eval-every", 2, "--best", "perplexity", "--keep", 3, "--save-every", 2, "dropout=0.1",
        "--accumulate", 2, "--seed", 7, "--budget", "90%", "--log-every", 2]


class Config(Case):
    def json(self, *arguments, code=0):
        return json.loads(self.cairn("train", *arguments, "--json", "--quiet", code=code).stdout)

    def write(self, **keys):
        (self.folder / "mine.json").write_text(json.dumps(keys))
        return ["train", "--config", "mine.json"]

    def test_a_file_replays_its_run(self):
        for options in ([], FULL, ["optimizer=sgd", "momentum=0.9", "nesterov=true", "--amp", "bf16", "clip=0"],
                        ["lengths=8,16", "remainder=own", "--epochs", 1], ["batch=auto", "global_batch=8"]):
            with self.subTest(options=options):
                first = self.train("--steps", 5, *options, "--out", "run", "--force") if "--epochs" not in options \
                    else self.train(*options, "--out", "run", "--force")
                again = self.json("--config", "run/run.json", "--out", "again", "--force")
                for key in ("parameter_digest", "loss", "steps", "evaluation", "batch", "accumulate", "peak_bytes"):
                    a, b = first.get(key), again.get(key)
                    if key == "evaluation" and a:
                        a, b = ([{k: v for k, v in row.items() if k != "seconds"} for row in rows] for rows in (a, b))
                    self.assertEqual(a, b, key)
                self.assertEqual((self.folder / "run/run.json").read_text(), (self.folder / "again/run.json").read_text())

    def test_what_it_says_and_what_counts(self):
        self.train("--steps", 4, *FULL, "--out", "run")
        read = json.loads((self.folder / "run/run.json").read_text())
        self.assertEqual((read["form"], read["recipe"]), ("cairn.run/1", "gpt2"))
        self.assertEqual(read["options"]["dropout"], 0.1)
        self.assertEqual(read["options"]["data"], str(self.text))  # wherever it is called from
        self.assertEqual(read["arguments"], {
            "accumulate": 2, "best": "perplexity", "budget": "90%", "eval-every": 2, "keep": 3, "log-every": 2,
            "save-every": 2, "seed": 7, "steps": 4, "threads": 2})
        changed = self.json("--config", "run/run.json", "--steps", 2, "dropout=0")
        plain = self.train("--steps", 2, "eval_fraction=0.2", "--accumulate", 2, "--seed", 7)
        self.assertEqual(changed["parameter_digest"], plain["parameter_digest"])
        self.assertIsNone(changed["checkpoint"])

    def test_by_hand(self):
        found = self.json(*self.write(recipe="mlp", options={"samples": 64, "activation": "gelu"},
                                      arguments={"steps": 3, "fuse-update": False})[1:])
        self.assertEqual(found["parameter_digest"], self.train("--steps", 3, recipe="mlp", model=[
            "samples=64", "activation=gelu"])["parameter_digest"])

    def test_a_resumed_run_takes_it_with_more_steps(self):
        whole = self.train("--steps", 8, *FULL, "--out", "whole")
        self.train("--steps", 4, *FULL, "--out", "run")
        rest = self.json("--config", "run/run.json", "--resume", "run", "--steps", 8)
        self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])
        self.assertEqual([row["step"] for row in rest["evaluation"]], [6, 8])
        self.assertEqual(rest["best"]["value"], whole["best"]["value"])
        self.assertEqual(json.loads((self.folder / "run/run.json").read_text())["arguments"]["steps"], 8)
        again = self.json("--resume", "run", "--steps", 10)  # by the directory alone
        self.assertEqual((again["first_step"], again["steps"]), (8, 10))
        replayed = self.json("--config", "run/run.json", "--out", "other")
        self.assertEqual(replayed["steps"], 10)

    def test_no_file_picks_a_program_that_runs(self):
        recipe = self.folder / "mine.lua"
        recipe.write_text((ROOT / "scripts/recipes/mlp.lua").read_text())
        first = self.json(recipe, "samples=64", "--steps", 2, "--out", "run")
        self.fails(3, "train", "--config", "run/run.json", says=("mine.lua", "never says what runs"))
        again = self.json("mine.lua", "--config", "run/run.json")
        self.assertEqual(again["parameter_digest"], first["parameter_digest"])

    def test_mistakes(self):
        for keys, says in {
                ("recip", "gpt2"): ("unknown key 'recip'", "did you mean 'recipe'", "known: form"),
                ("options", "x=1"): ("options is a string", "object"), ("arguments", 5): "arguments is a number",
                ("options", (("layerz", 2),)): ("unknown option 'layerz'", "did you mean 'layers'"),
                ("options", (("layers", "many"),)): ("layers=many", "a number"),
                ("options", (("layers", 0),)): ("layers=0", "at least 1"),
                ("options", (("layers", (("a", 1),)),)): ("'layers'", "no text, number or boolean"),
                ("arguments", (("stepz", 2),)): ("unknown 'stepz'", "did you mean 'steps'"),
                ("arguments", (("steps", 0),)): ("--steps", "at least 1"),
                ("arguments", (("out", "x"),)): "unknown 'out'", ("arguments", (("force", True),)): "unknown 'force'",
                ("arguments", (("help", True),)): "unknown 'help'", ("arguments", (("", True),)): "unknown ''",
                ("arguments", (("fuse-update", 1),)): "--fuse-update takes no value",
                ("form", "cairn.plan/1"): ("'cairn.plan/1'", "cairn.run/1"), ("recipe", 5): "recipe is no text",
                ("recipe", "nowhere"): ("'nowhere'", "does not come with cairn")}.items():
            with self.subTest(keys=keys):
                given = {"recipe": "gpt2", keys[0]: self.objects(keys[1])}
                self.fails(3, *self.write(**given), *TINY[1:], "data=random", says=("mine.json", *(
                    [says] if isinstance(says, str) else says)))
        for text in ("", "{", "[1", "5", "null", '{"recipe": "gpt2"} x'):
            (self.folder / "bad.json").write_text(text)
            self.fails(3, "train", "--config", "bad.json", says=("bad.json", "no JSON object"))
        self.fails(3, "train", "--config", "nowhere.json", says="nowhere.json")
        self.fails(3, "train", "--config", ".", says="--config: .")
        self.fails(2, *self.write(options={}), says="names no recipe")

    def objects(self, value):
        return {key: self.objects(each) for key, each in value} if isinstance(value, tuple) else value

    def test_a_dry_run_writes_nothing(self):
        self.train("--steps", 1)  # fills the cache of tokens
        def files():
            return sorted((str(path), path.stat().st_mtime_ns) for path in self.folder.rglob("*") if path.is_file())
        before = files()
        found = self.train("--steps", 50, *FULL[:5], "--save-every", 1, "--dry-run", "--out", "run")
        self.assertEqual(found["dry_run"], True)
        self.assertEqual((found["steps"], len(found["loss"]), found["checkpoint"]), (1, 1, None))
        self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])
        self.assertEqual(found["evaluation"], [])
        self.assertFalse((self.folder / "run").exists())
        cached = [row for row in files() if "/cache/" not in row[0]]
        self.assertEqual(cached, [row for row in before if "/cache/" not in row[0]])
        text = self.cairn("train", "gpt2", *TINY, f"data={self.text}", "--steps", 9, "--dry-run", "--quiet").stdout
        self.assertIn("dry run", text)
        self.train("--steps", 2, "--out", "run")
        before = files()
        self.fails(2, "train", "gpt2", *TINY, f"data={self.text}", "--dry-run", "--out", "run", says="checkpoints already")
        rest = self.json("--resume", "run", "--steps", 9, "--dry-run")
        self.assertEqual((rest["first_step"], rest["steps"]), (2, 3))
        self.cairn("train", "gpt2", *TINY, f"data={self.text}", "--dry-run", "--out", "run", "--force", "--quiet")
        self.assertEqual(files(), before)
        self.fails(4, "train", "gpt2", *TINY, f"data={self.text}", "--dry-run", "--budget", 1000, says="budget")


main()
