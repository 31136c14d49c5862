"""A resumed run goes on as the run was set up: what it keeps, when it evaluates and saves, what was due when it was cut off."""
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CAIRN, TINY, Case, main  # noqa: E402


class Settings(Case):
    def setUp(self):
        super().setUp()
        self.model = ["gpt2", *TINY, f"data={self.text}", "eval_fraction=0.2", "--threads", 1]

    def start(self, *options, code=0, run="run"):
        return json.loads(self.cairn("train", *self.model, *options, "--json", "--quiet", "--out", run, code=code).stdout)

    def resume(self, *options, run="run"):
        return json.loads(self.cairn("train", "--resume", run, *options, "--json", "--quiet").stdout)

    def saved(self, run="run"):
        return sorted(int(path.name[5:]) for path in (self.folder / run).glob("step-*"))

    def lines(self, name, run="run"):
        return [json.loads(line)["step"] for line in (self.folder / run / name).read_text().splitlines()]

    def state_of(self, run="run"):
        """Every file of a run, with its content and time."""
        return {str(path.relative_to(self.folder)): (path.stat().st_mtime_ns, hashlib.md5(path.read_bytes()).hexdigest() if path.is_file() else "")
                for path in sorted((self.folder / run).rglob("*"))}

    def test_what_was_kept_stays_kept(self):
        self.start("--steps", 12, "--save-every", 2, "--keep", 4, "--eval-every", 2, "--best", "loss", "rate=0.5")
        (best,) = set(self.saved()) - {6, 8, 10, 12} or {None}
        found = self.resume("--steps", 16)
        self.assertEqual([row["step"] for row in found["evaluation"]], [14, 16])
        kept = set(self.saved())
        self.assertGreaterEqual(kept, {10, 12, 14, 16})
        if best:
            self.assertIn(best, kept)
        self.assertEqual(found["best"]["checkpoint"], f"run/step-{found['best']['step']:08}")
        self.assertEqual(found["resumed"]["differences"], [])
        # What is given counts, and is said.
        found = self.resume("--steps", 18, "--keep", 1, "--eval-every", 3)
        said = {row["what"]: (row["was"], row["now"]) for row in found["resumed"]["differences"]}
        self.assertEqual(said, {"--keep": ("4", "1"), "--eval-every": ("2", "3")})
        self.assertLessEqual(set(self.saved()), {18, found["best"]["step"], best})

    def test_a_run_that_is_done_knows_its_best(self):
        found = self.start("--steps", 6, "--eval-every", 2, "--best", "loss", "rate=0.5")
        before = self.state_of()
        self.assertEqual(self.resume()["best"], found["best"])
        self.assertEqual(self.state_of(), before)
        path = self.folder / "run/evaluations.jsonl"
        path.write_text(path.read_text().replace('"loss":', '"loss":{},"was":', 1) + "nonsense\n")
        self.assertEqual(self.resume()["best"]["metric"], "loss")

    def test_nothing_to_do_touches_nothing(self):
        self.start("--steps", 6, "--save-every", 2, "--keep", 9, "--eval-every", 2)
        before = self.state_of()
        for where, steps in (("run", 6), ("run", 3), ("run/step-00000004", 4), ("run/step-00000002", 1)):
            text = self.cairn("train", "--resume", where, "--steps", steps, "--quiet").stdout
            self.assertIn("nothing to do", text)
            self.assertEqual(self.state_of(), before, (where, steps))

    def test_a_directory_that_holds_a_run_says_how_far_it_got(self):
        self.start("--steps", 6, "--save-every", 2)
        self.fails(2, "train", *self.model, "--out", "run", says=("that is done (step 6)", "--resume run", "--force"))
        (self.folder / "run/step-00000006").rename(self.folder / "gone")
        self.fails(2, "train", *self.model, "--out", "run", says=("was not finished (step 4 of 6)", "--resume run", "--force"))

    def test_saving_by_time(self):
        whole = self.start("--steps", 30, run="whole")
        self.cairn("train", *self.model, "--steps", 30, "--save-every", "0.001s", "--keep", 40, "--out", "run", "--quiet")
        self.assertGreater(len(self.saved()), 3)
        (self.folder / "run/step-00000030").rename(self.folder / "gone")
        self.assertEqual(self.resume()["parameter_digest"], whole["parameter_digest"])
        for bad, says in (("15x", "--save-every"), ("0", "--save-every"), ("0s", "15m"), ("1.5", "15m"), ("s", "15m")):
            self.fails(2, "train", *self.model, "--save-every", bad, "--out", "new", says=says)

    def test_an_evaluation_beside_the_grid_decides_nothing(self):
        options = ["--eval-every", 4, "--early-stop", 2, "--best", "loss", "rate=1"]
        whole = self.start("--steps", 40, *options, run="whole")
        for cut in (2, 5, 6, 7, 9, 11):
            self.start("--steps", cut, *options, run=f"run{cut}")
            found = self.resume("--steps", 40, run=f"run{cut}")
            for key in ("steps", "early_stopped", "parameter_digest", "ended"):
                self.assertEqual(found[key], whole[key], (cut, key))
            self.assertEqual(found["best"]["step"], whole["best"]["step"], cut)

    def test_early_stop_ends_a_resumed_run_at_once_and_can_be_left(self):
        found = self.start("--steps", 40, "--eval-every", 2, "--early-stop", 2, "rate=1")
        self.assertTrue(found["early_stopped"])
        text = self.cairn("train", "--resume", "run", "--early-stop", 2, "--quiet").stdout
        self.assertIn("nothing to do: --early-stop ended the run", text)
        more = found["steps"] + 1
        done = self.cairn("train", "--resume", "run", "--steps", more, "--json")
        self.assertIn("--early-stop goes on no more", done.stderr)
        self.assertEqual(json.loads(done.stdout)["steps"], more)

    def test_what_was_due_where_a_signal_came_is_done_once(self):
        options = ["--steps", 8, "--eval-every", 1, "--sample-every", 2, "--best", "loss", "--save-every", 3]
        whole = self.start(*options, run="whole")
        rows = [json.loads(line) for line in (self.folder / "whole/evaluations.jsonl").read_text().splitlines()]
        for file, missing in (("evaluations.jsonl", 4), ("samples.jsonl", 4), ("evaluations.jsonl", 8), ("samples.jsonl", 8)):
            # As if the run had been ended behind the step, before that.
            self.cairn("train", *self.model, *options[2:], "--steps", missing, "--quiet", "--out", "run", "--force")
            path = self.folder / "run" / file
            path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
            found = self.resume("--steps", 8)
            self.assertEqual(self.lines("evaluations.jsonl"), [row["step"] for row in rows])
            self.assertEqual(self.lines("samples.jsonl"), [2, 4, 6, 8])
            self.assertEqual((self.folder / "run/samples.jsonl").read_text(), (self.folder / "whole/samples.jsonl").read_text())
            self.assertEqual(found["best"]["step"], whole["best"]["step"])
            self.assertEqual(found["parameter_digest"], whole["parameter_digest"])

    def test_signals_while_it_evaluates(self):
        options = ["--steps", 60, "--eval-every", 1, "--best", "loss", "--save-every", 7]
        whole = self.start(*options, run="whole")
        command = [CAIRN, "train", *map(str, self.model), *map(str, options), "--out", "run", "--quiet"]
        for _ in range(40):
            process = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE)
            try:
                process.communicate(timeout=0.25)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM)
                process.communicate()
            if process.returncode == 0:
                break
            if self.saved() if (self.folder / "run").exists() else []:
                command = [CAIRN, "train", "--resume", "run", "--quiet"]
        found = self.resume()
        self.assertEqual(self.lines("evaluations.jsonl"), list(range(1, 61)))
        self.assertEqual(found["parameter_digest"], whole["parameter_digest"])
        self.assertEqual(found["best"]["step"], whole["best"]["step"])

    @unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "one processor")
    def test_another_number_of_processors_is_said(self):
        self.cairn("train", "gpt2", *TINY, f"data={self.text}", "--steps", 1, "--out", "run", "--quiet")
        everything = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(everything)})
        try:
            done = self.cairn("train", "--resume", "run", "--steps", 2, "--json")
        finally:
            os.sched_setaffinity(0, everything)
        self.assertEqual(json.loads(done.stdout)["resumed"]["differences"],
                         [{"what": "--threads", "was": str(len(everything)), "now": "1"}])
        self.assertIn(f"note: --threads was {len(everything)} and is 1", done.stderr)

    def test_files_of_others_in_the_folder_of_saves(self):
        (self.folder / "run/.saving").mkdir(parents=True)
        (self.folder / "run/.saving/notes.txt").write_text("mine")
        self.start("--steps", 4, "--save-every", 2)
        self.assertEqual((self.folder / "run/.saving/notes.txt").read_text(), "mine")
        self.assertFalse((self.folder / "run/.saving-2").exists())


main()
