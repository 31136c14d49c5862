#!/usr/bin/env python3
"""Measured steps of GPT-2 124M inside activation budgets, beside the plan's own bound and PyTorch's checkpointing.

  bench/budget/budget.py [--torch VENV/bin/python] [--amp off|bf16] [--rounds 3] [--steps 5]

First a profile of the machine; then rounds of: keeping everything; 25 % and 10 % of its activations by recompute
alone; 25 % with a host link throttled to 8 GB/s; with --torch also PyTorch with and without a checkpoint around each
layer, and cairn with as many bytes of activations as that needs (what it saves, and one layer's while it is made
again). Quoted: medians over the rounds of each run's median step, as multiples of keeping everything in the same
round, beside what the plan predicted and what no plan could beat. Results go to bench/results/.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPE = dict(layers=12, heads=12, width=768, vocab=50257, seq=1024, batch=1)
LINK = 8e9


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(map(str, command))}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout[done.stdout.index("{"):])


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.recipe = ["gpt2", *(f"{k}={v}" for k, v in SHAPE.items()), "data=random", "--amp", options.amp,
                       "--threads", options.threads]
        self.costs = ["--profile", pathlib.Path(folder) / "profile.json"]
        subprocess.run([str(w) for w in (options.cairn, "profile", *self.recipe, "--steps", 4, "--profile-out",
                                         self.costs[1], "--quiet", "--trace", pathlib.Path(folder) / "trace.json")],
                       check=True, stdout=subprocess.DEVNULL)
        keep = self.plan([])
        self.persistent = keep["persistent_bytes"]
        self.activations = keep["planned_peak_bytes"]["device"] - self.persistent

    def plan(self, extra):
        return run([self.options.cairn, "plan", *self.recipe, *self.costs, "--json", *extra])

    def train(self, extra):
        return run([self.options.cairn, "train", *self.recipe, *self.costs, "--steps", self.options.steps, "--json",
                    "--quiet", *extra])

    def budget(self, share):
        return ["--budget", int(self.persistent + share * self.activations)]

    def torch(self, extra):
        words = [w for k, v in SHAPE.items() for w in (f"--{k}", v)]
        return run([self.options.torch, ROOT / "bench/peers/gpt2.py", *words, "--amp", self.options.amp, "--threads",
                    self.options.threads, "--steps", self.options.steps + 2, "--json", *extra])


def machine():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return f"{line.split(':', 1)[1].strip()}, {os.cpu_count()} cores"
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cairn", default=str(ROOT / "build/release/bin/cairn"))
    parser.add_argument("--torch", default="", help="a Python that has torch; without it only cairn is measured")
    parser.add_argument("--amp", choices=["off", "bf16"], default="off")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        cases = [("keep everything", []), ("25 %, recompute", bench.budget(.25)), ("10 %, recompute", bench.budget(.1)),
                 ("25 %, host link of 8 GB/s", [*bench.budget(.25), "--tiers", "host", "--link", int(LINK)])]
        peers = []
        if options.torch:
            peers = [("PyTorch, keep everything", ["--saved"]),
                     ("PyTorch, checkpoint every layer", ["--saved", "--checkpoint", "layer"])]
        raw = {}
        saved = {}
        for turn in range(options.rounds):
            for name, extra in peers:
                print(f"round {turn + 1}: {name}", file=sys.stderr, flush=True)
                raw.setdefault(name, []).append(bench.torch(extra))
                saved[name] = raw[name][-1]["saved_bytes"]
            if saved and turn == 0:
                keep, checkpoint = (saved[name] for name, _ in peers)
                same = (checkpoint + (keep - checkpoint) / SHAPE["layers"]) / bench.activations
                cases.append((f"{same * 100:.0f} %, as PyTorch's checkpoints", bench.budget(same)))
            for name, extra in cases:
                print(f"round {turn + 1}: {name}", file=sys.stderr, flush=True)
                raw.setdefault(name, []).append(bench.train(extra))
        plans = {name: bench.plan(extra) for name, extra in cases}
    base = [r["step_seconds_median"] for r in raw["keep everything"]]
    lines = ["| case | step ms | / keep everything | planned | bound | measured / bound | stall | activations MiB |",
             "|---|---|---|---|---|---|---|---|"]
    planned = plans["keep everything"]["plan"]
    for name, _ in cases:
        seconds = [r["step_seconds_median"] for r in raw[name]]
        ratio = statistics.median(s / b for s, b in zip(seconds, base))
        plan = plans[name]["plan"]
        slower, bound = (plan[key] / planned["predicted_step_seconds"]
                         for key in ("predicted_step_seconds", "bound_step_seconds"))
        stall = statistics.median(r["stall_seconds"] / max(r["step_seconds_median"], 1e-9) for r in raw[name])
        equal = "" if all(r["peak_bytes"] == r["planned_peak_bytes"] for r in raw[name]) else " (NOT as planned)"
        held = plans[name]["planned_peak_bytes"]["device"] - bench.persistent
        lines.append(f"| {name} | {statistics.median(seconds) * 1e3:.0f} | {ratio:.3f} | {slower:.3f} | {bound:.3f} | "
                     f"{ratio / bound:.3f} | {stall * 100:.1f} % | {held / 2**20:.0f}{equal} |")
    for name, _ in peers:
        seconds = [r["step_seconds_median"] for r in raw[name]]
        first = [r["step_seconds_median"] for r in raw[peers[0][0]]]
        ratio = statistics.median(s / b for s, b in zip(seconds, first))
        lines.append(f"| {name} | {statistics.median(seconds) * 1e3:.0f} | {ratio:.3f} of its own | | | | | "
                     f"{saved[name] / 2**20:.0f} saved for backward |")
    digests = {r["parameter_digest"] for name, _ in cases for r in raw[name]}
    today = datetime.date.today().isoformat()
    words = "float32" if options.amp == "off" else options.amp
    text = "\n".join([f"# Inside a budget: GPT-2 124M, {words}, {today}", "",
                      f"{machine()}; {options.threads} threads; {', '.join(f'{k} {v}' for k, v in SHAPE.items())}; "
                      f"AdamW, clip 1.0; {options.rounds} rounds of {options.steps} steps, medians. Budgets hold the "
                      f"persistent bytes and that share of the {bench.activations / 2**20:.0f} MiB of activations and "
                      f"workspace that keeping everything takes. Parameters of all of cairn's runs: "
                      f"{'equal bits' if len(digests) == 1 else 'DIFFERENT'}.", "", *lines, ""])
    print(text)
    options.out.mkdir(parents=True, exist_ok=True)
    stem = f"budget-{'f32' if options.amp == 'off' else options.amp}-{today}"
    (options.out / f"{stem}.md").write_text(text)
    (options.out / f"{stem}.json").write_text(json.dumps({"machine": machine(), "plans": plans, "runs": raw}, indent=1))


if __name__ == "__main__":
    main()
