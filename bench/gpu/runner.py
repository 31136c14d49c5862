"""Runs commands inside a limit of time and keeps what came of them."""
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def library_folders(python):
    """Where the wheels of a torch keep cuBLAS and cuDNN: the plugin opens them by name."""
    if not python:
        return []
    words = ("import pathlib, nvidia\n"
             "for base in nvidia.__path__:\n"
             "  for lib in pathlib.Path(base).glob('*/lib'): print(lib)\n")
    done = subprocess.run([python, "-c", words], capture_output=True, text=True, check=False)
    return done.stdout.split()


def last_object(text):
    return json.loads(text[text.index("{"):])


class Run:
    """What was run, by name: `raw`; and tables that parts filled: `tables`, title -> (header, rows)."""

    def __init__(self, options):
        self.options = options
        self.end = time.monotonic() + options.minutes * 60
        self.bundle = pathlib.Path(options.bundle).resolve()
        self.raw, self.left_out, self.tables = {}, [], {}
        # The bundle's own libraries are found without this.
        self.environment = dict(os.environ, LD_LIBRARY_PATH=":".join(
            [*library_folders(options.torch), os.environ.get("LD_LIBRARY_PATH", "")]))

    def left(self):
        return self.end - time.monotonic()

    def command(self, name, words, seconds, parse=None, environment=None):
        """Runs it if `seconds` are left; notes what came of it. None if it failed or was left out."""
        if self.left() < seconds:
            self.left_out.append(name)
            return None
        began = time.monotonic()
        print(f"[{self.options.minutes * 60 - self.left():4.0f} s] {name}", file=sys.stderr, flush=True)
        try:
            done = subprocess.run([str(w) for w in words], capture_output=True, text=True,
                                  env=environment or self.environment, check=False,
                                  timeout=max(10, min(self.left(), 4 * seconds)))
        except subprocess.TimeoutExpired:
            self.raw[name] = {"failed": "took too long", "wall_seconds": time.monotonic() - began}
            return None
        self.raw[name] = self.result_of(done, parse)
        self.raw[name]["wall_seconds"] = round(time.monotonic() - began, 2)
        return None if "failed" in self.raw[name] else self.raw[name]

    @staticmethod
    def result_of(done, parse):
        if done.returncode != 0:
            return {"failed": done.returncode, "error": (done.stderr + done.stdout)[-3000:]}
        try:
            return parse(done.stdout) if parse else {"output": done.stdout[-3000:]}
        except (ValueError, KeyError) as problem:
            return {"failed": f"its output cannot be read: {problem}", "error": done.stdout[-3000:]}

    def cairn(self, *words):
        return [self.bundle / "bin" / "cairn", *words, "--device", self.options.device]

    def peer(self, shape, words):
        """bench/peers/gpt2.py, in an environment without the bundle's libraries."""
        device = "cuda" if self.options.device.startswith("cuda") else "cpu"
        arguments = [w for k, v in shape.items() for w in (f"--{k}", v)]
        return [self.options.torch, ROOT / "bench/peers/gpt2.py", *arguments, "--device", device, "--json", *words]

    def train_peer(self, name, shape, words, seconds):
        # A compiled graph is found again by the run after the one that made it.
        caches = {"TORCHINDUCTOR_FX_GRAPH_CACHE": "1", "TORCHINDUCTOR_AUTOGRAD_CACHE": "1"}
        return self.command(name, self.peer(shape, words), seconds, last_object, dict(os.environ, **caches))

    def row(self, title, header, cells):
        self.tables.setdefault(title, (header, []))[1].append([str(c) for c in cells])

    def state(self, name):
        if name in self.left_out:
            return "left out"
        return "FAILED" if "failed" in self.raw.get(name, {"failed": 1}) else "passed"

    def passed(self, name, words, seconds):
        self.command(name, words, seconds)
        seconds = self.raw.get(name, {}).get("wall_seconds", "")
        self.row("Checks", ["check", "result", "s"], [name, self.state(name), seconds])

    def failures(self):
        return {name: r for name, r in self.raw.items() if "failed" in r}
