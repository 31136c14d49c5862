"""How the command behaves to who runs it: terminals of any width, pipes, signals inside recipes, its name, a full
stdout, a disk tier that is not there."""
import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CAIRN, TINY, Case, main  # noqa: E402

RECIPE = """local nn = require("cairn").nn
return {
  training = { steps = 100000 },
  model = function(o, graph) return nn.attach(graph, nn.Linear(2, 1), nn.MSECriterion(), { 4, 2 }) end,
  dataset = function()
    return { batch = function(index)
      if index == 5 then
        io.open("reached", "w"):close()
        %s
      end
      return { input = { 0, 0, 0, 1, 1, 0, 1, 1 }, target = { 0, 1, 1, 0 } }, 4
    end }
  end,
}
"""
LINES = """local posix = require "cli.base.posix"
local now = 100
posix.now = function() return now end
posix.is_terminal = function() return false end
local seconds = tonumber(arg[1])
local bar = require("cli.train.progress").new { total = 1000, done = 0, memory = 2 ^ 20, quiet = arg[1] == "quiet",
                                          seconds = seconds, batches = seconds and 20,
                                          unit = "tokens" }
for second = 1, 65 do
  now = 100 + second
  bar:tick()
  bar:update(second, 2.5, 10, second)
end
bar:finish()
"""


class Terminal(Case):
    def on_terminal(self, columns, *arguments, **environment):
        """What a command writes to a terminal on stderr, as the lines that were shown one after the other."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([CAIRN, *map(str, arguments)], env={**self.environment, **environment}, cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=slave)
        os.close(slave)
        text = b""
        while True:
            try:
                text += os.read(master, 65536)
            except OSError:  # the other end is closed
                break
        os.close(master)
        self.assertEqual(process.wait(timeout=60), 0)
        return [re.sub(r"\x1b\[[0-9;]*[mK]", "", line) for line in re.split("[\r\n]", text.decode())]

    def test_a_line_fits_the_terminal(self):
        train = ("train", "gpt2", *TINY, "data=random", "--steps", 60)
        for columns, environment, words in ((120, {}, ("step", "loss", "tokens/s", "KiB", "left", "━━━━━━")),
                                            (80, {}, ("step", "loss", "left")), (40, {}, ("step", "loss")),
                                            (20, {}, ("step",)), (0, {}, ("loss",)), (0, {"COLUMNS": "40"}, ("loss",))):
            with self.subTest(columns=columns, **environment):
                lines = [line for line in self.on_terminal(columns, *train, **environment) if line]
                self.assertGreater(len(lines), 1)
                self.assertLess(max(map(len, lines)), columns or int(environment.get("COLUMNS", 80)))
                for word in words:
                    self.assertTrue(any(word in line for line in lines), (word, lines))
                self.assertIn("step 60/60", lines[-1])
                self.assertNotIn("\\x", "".join(lines))  # the command's own codes act, and are not shown

    def test_a_dumb_terminal_gets_no_bar(self):
        self.assertEqual(self.on_terminal(80, "train", "gpt2", *TINY, "data=random", "--steps", 3, TERM="dumb"), [""])

    def test_a_pipe_gets_a_line_every_ten_seconds(self):
        (self.folder / "lines.lua").write_text(LINES)
        lines = self.cairn("lua", "lines.lua").stderr.splitlines()
        self.assertEqual([line.split("  ")[0] for line in lines], [f"step {n}/1000" for n in (9, 19, 29, 39, 49, 59)])
        self.assertEqual(lines[1], "step 19/1000  loss 2.5000  10 tokens/s  1.00 MiB  17:12 min left")
        self.assertEqual(self.cairn("lua", "lines.lua", "quiet").stderr, "")
        lines = self.cairn("lua", "lines.lua", 25).stderr.splitlines()
        self.assertEqual([line.split("  ")[0] for line in lines], ["step 24/1000", "step 49/1000"])
        self.assertIn("  epoch 2.45  ", lines[1])

    def start(self, code, *arguments):
        (self.folder / "mine.lua").write_text(RECIPE % code)
        process = subprocess.Popen([CAIRN, "train", "mine.lua", "--out", "run", *arguments], env=self.environment,
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        while not (self.folder / "reached").exists():
            self.assertIsNone(process.poll(), "it ended before the signal")
            time.sleep(0.05)
        return process

    def test_the_first_signal_ends_a_loop_in_a_recipe(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                (self.folder / "reached").unlink(missing_ok=True)
                process = self.start("local list while true do list = { list and #list } end")
                process.send_signal(number)
                _, stderr = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 130, stderr)
                self.assertIn("interrupted; saved run/step-00000005", stderr)
                self.assertEqual(len((self.folder / "run/metrics.jsonl").read_text().splitlines()), 5)
                for path in self.folder.glob("run/step-*/*"):
                    path.unlink()
                for path in self.folder.glob("run/step-*"):
                    path.rmdir()

    def test_the_first_signal_ends_a_compiled_loop(self):
        process = self.start("while true do end")
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, stderr)
        self.assertIn("interrupted", stderr)

    def test_says_that_it_was_interrupted_before_a_step_was_whole(self):
        process = self.start("local list while true do list = { list and #list } end", "--accumulate", "10")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, stderr)
        self.assertIn("no complete step: interrupted in step 1\n", stdout)
        self.assertNotIn("DIFFERENT", stdout)

    def test_its_name(self):
        process = self.start("while true do end")
        self.assertEqual(pathlib.Path(f"/proc/{process.pid}/comm").read_text(), "cairn\n")

    def test_a_full_stdout(self):
        for arguments in (["train", "gpt2", *TINY, "data=random", "--steps", 2, "--json"], ["--help"], ["devices"],
                          ["train", "gpt2", "--help"], ["plan", "gpt2", *TINY, "--sweep", "--json"]):
            with self.subTest(arguments), open("/dev/full", "w") as full:
                done = subprocess.run([CAIRN, *map(str, arguments)], env=self.environment, cwd=self.folder, stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual(done.returncode, 5)
                self.assertIn("stdout: ", done.stderr)

    def test_a_closed_stdout_is_no_file_of_the_run(self):
        words = " ".join(f"'{word}'" for word in [CAIRN, "train", "mlp", "--steps", "2", "--out", "run"])
        for closed in (">&-", ">&- 2>&-", "<&- >&- 2>&-"):
            with self.subTest(closed):
                done = subprocess.run(["sh", "-c", f"exec {words} --force {closed}"], env=self.environment,
                                      cwd=self.folder, timeout=60)
                self.assertEqual(done.returncode, 5)
                self.assertRegex((self.folder / "run/.lock").read_text(), r"\Aprocess [^\n]*\n\Z")

    def test_a_disk_tier_where_no_file_can_be_made(self):
        for directory in ("/proc", "/nowhere"):
            for options in ([], ["--policy", "offload"], ["--budget", "70%"]):
                with self.subTest(directory=directory, options=options):
                    self.environment["TMPDIR"] = directory
                    self.fails(5, "train", "gpt2", *TINY, "data=random", "--tiers", "disk", "--steps", 1, *options,
                               says=("disk tier", directory, "TMPDIR"))

    def test_many_steps(self):
        """More than the interpreter passes as arguments."""
        (self.folder / "mine.lua").write_text(RECIPE % "")
        done = self.cairn("train", "mine.lua", "--steps", 9000, "--json", "--quiet")
        self.assertEqual(len(json.loads(done.stdout)["loss"]), 9000)


main()
