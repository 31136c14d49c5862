"""Saving and resuming; signals that end a run."""
import json
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CAIRN, TINY, Case, main  # noqa: E402


class Resume(Case):
    def test_resumed_is_uninterrupted(self):
        whole = self.train("--steps", 6, "dropout=0.1")
        self.train("--steps", 3, "dropout=0.1", "--out", "run")
        done = self.cairn("train", "--resume", "run", "--steps", 6, "--json", "--quiet")
        rest = json.loads(done.stdout)
        self.assertEqual(rest["steps"], 6)
        self.assertEqual(rest["loss"], whole["loss"][3:])
        self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])
        again = json.loads(self.cairn("train", "--resume", "run", "--steps", 6, "--json", "--quiet").stdout)
        self.assertEqual(again["loss"], [])
        self.assertEqual(again["parameter_digest"], whole["parameter_digest"])

    def test_resumed_under_another_plan(self):
        whole = self.train("--steps", 4)
        self.train("--steps", 2, "--out", "run", "--policy", "keep")
        done = self.cairn("train", "gpt2", "--resume", "run", "--steps", 4, "--json", "--quiet", "--policy", "recompute",
                          "--out", "other")
        self.assertEqual(json.loads(done.stdout)["parameter_digest"], whole["parameter_digest"])
        self.assertTrue((self.folder / "other/step-00000004").is_dir())

    def test_the_newest_two_are_kept(self):
        self.train("--steps", 7, "--save-every", 2, "--out", "run")
        names = sorted(path.name for path in (self.folder / "run").iterdir() if path.is_dir())
        self.assertEqual(names, ["step-00000006", "step-00000007"])

    def precious(self, name):
        """A directory of somebody's, with the names that cairn's files have."""
        path = self.folder / name
        path.mkdir()
        for file in ("manifest.cairn", "tensors.bin", "tokenizer.model", "letter"):
            (path / file).write_text("mine")
        return path

    def intact(self, path):
        self.assertEqual({file.name: file.read_text() for file in path.iterdir()},
                         {name: "mine" for name in ("manifest.cairn", "tensors.bin", "tokenizer.model", "letter")})

    def test_pruning_deletes_what_is_ours_and_follows_no_link(self):
        run = self.folder / "run"
        run.mkdir()
        there, linked = self.precious("run/step-00000001"), self.precious("elsewhere")
        (run / "step-00000002").symlink_to(linked)
        self.train("--steps", 1, "--out", "other")
        (run / "step-00000003").symlink_to(self.folder / "other/step-00000001")
        # Three old steps of somebody's in the way of a run: it is told to start anew.
        problem = self.fails(3, "train", "gpt2", *TINY, f"data={self.text}", "--steps", 9, "--out", "run", "--force",
                             says=("--force", "step-00000003", "is a link"))
        self.assertIn("step-00000001", problem.stderr)
        (run / "step-00000003").unlink()
        done = self.cairn("train", "gpt2", *TINY, f"data={self.text}", "--steps", 9, "--save-every", 3, "--out", "run",
                          "--force")
        self.assertIn("note: 'run/step-00000002' is a link", done.stderr)
        self.intact(there)
        self.intact(linked)
        self.assertTrue((self.folder / "other/step-00000001/tensors.bin").exists())
        self.assertEqual(sorted(path.name for path in run.iterdir() if path.is_dir()),
                         ["step-00000001", "step-00000002", "step-00000006", "step-00000009"])

    def test_pruning_keeps_files_of_others(self):
        self.train("--steps", 2, "--out", "run")
        notes = self.folder / "run/step-00000002/notes"
        notes.write_text("mine")
        self.cairn("train", "--resume", "run", "--steps", 8, "--save-every", 2, "--quiet")
        self.assertEqual([path.name for path in notes.parent.iterdir()], ["notes"])
        self.assertEqual(notes.read_text(), "mine")
        self.assertEqual(json.loads(self.cairn("train", "--resume", "run", "--steps", 8, "--json", "--quiet").stdout)
                         ["steps"], 8)

    def test_nothing_is_silently_begun_anew(self):
        self.train("--steps", 2, "--out", "run")
        self.fails(2, "train", "gpt2", *TINY, f"data={self.text}", "--steps", 2, "--out", "run", says="--resume")
        self.train("--steps", 1, "--out", "run", "--force")
        self.fails(3, "train", "--resume", "nowhere", "--steps", 2, says="nowhere")
        self.fails(2, "train", "--resume", "run", "colour=red", "--steps", 2, says="colour")
        self.fails(3, "train", "--resume", "run", "width=32", "--steps", 2, says=("another model", "'wte.weight' is f32[256, 32]", "f32[256, 16]"))

    def interrupt(self, *arguments):
        command = [CAIRN, "train", "gpt2", *TINY, f"data={self.text}", "--steps", "1000000", "--threads", "1", *arguments]
        process = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        self.assertIsNone(process.poll(), "it must still be training")
        process.send_signal(signal.SIGINT)
        output, problems = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, problems)
        return output, problems

    def test_interrupt_saves(self):
        output, problems = self.interrupt("--out", "run", "--json")
        result = json.loads(output)
        self.assertIn("saved run/step-", problems)
        more = result["steps"] + 2
        rest = json.loads(self.cairn("train", "--resume", "run", "--steps", more, "--json", "--quiet").stdout)
        self.assertEqual(rest["steps"], more)
        whole = json.loads(self.cairn(
            "train", "gpt2", *TINY, f"data={self.text}", "--steps", more, "--threads", 1, "--json", "--quiet").stdout)
        self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])

    def test_interrupt_inside_an_accumulation(self):
        self.interrupt("--out", "run", "--accumulate", "100000")
        rest = json.loads(self.cairn("inspect", "run", "--json").stdout)
        self.assertTrue(rest)

    def test_a_second_interrupt_stops_inside_the_step(self):
        big = ["layers=4", "width=64", "seq=128", "batch=16"]
        command = [CAIRN, "train", "gpt2", *TINY, *big, f"data={self.text}", "--device", "reference", "--steps", "1000",
                   "--threads", "1", "--out", "run", "--json"]
        process = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        output, problems = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, problems)
        state = json.loads(self.cairn("inspect", "run", "--json").stdout)["state"]
        self.assertEqual((state["step"], state["micro"]), (json.loads(output)["steps"], 0))

    def test_kill_during_saves_leaves_a_checkpoint(self):
        command = [CAIRN, "train", "gpt2", *TINY, f"data={self.text}", "--steps", "1000000", "--out", "run",
                   "--save-every", "1", "--quiet"]
        process = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=subprocess.DEVNULL)
        while len(list((self.folder / "run").glob("step-*"))) < 2:
            self.assertIsNone(process.poll(), "ended by itself")
            time.sleep(0.05)
        process.kill()
        process.wait()
        steps = max(int(path.name[5:]) for path in (self.folder / "run").glob("step-*"))
        self.cairn("train", "--resume", "run", "--steps", steps + 2, "--quiet")


main()
