#!/usr/bin/env python3
"""Everything that needs a GPU, in one run: conformance, verify, and training beside PyTorch; prints one table.

  bench/gpu/gpu.py --bundle build/gpu [--torch python3] [--minutes 8] [--out bench/results]

`./dev gpu` calls it. The bundle holds cairn's programs (`./dev gpu --bundle`); --torch names a Python with a CUDA build
of torch, without it only cairn is measured. Cases come in order of importance, and none begins that the time left does
not cover; what was left out is said. Raw results go to --out as JSON, the table as Markdown.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = {
    "124m": dict(layers=12, heads=12, width=768, vocab=50304, seq=1024, batch=64),
    "1.5b": dict(layers=48, heads=25, width=1600, vocab=50304, seq=1024, batch=16),
    "4096": dict(layers=24, heads=32, width=4096, vocab=50304, seq=2048, batch=4),
    "tiny": dict(layers=2, heads=2, width=32, vocab=96, seq=16, batch=2),  # to try this program
}
# Of each shape: name, share of keep-all activations (None: no budget).
BUDGETS = [("keep everything", None), ("50 %", .5), ("25 %", .25), ("10 %", .1)]
# name, arguments of bench/peers/gpt2.py
PEERS = [
    ("PyTorch compile", ["--mode", "compile"]),
    ("PyTorch eager", []),
    ("PyTorch eager, checkpoint every layer", ["--checkpoint", "layer"]),
    ("PyTorch compile, activation_memory_budget 0.25", ["--mode", "compile", "--memory-budget", "0.25"]),
    ("PyTorch eager, save_on_cpu", ["--save-on-cpu"]),
]


class Run:
    def __init__(self, options):
        self.options = options
        self.end = time.monotonic() + options.minutes * 60
        self.bundle = pathlib.Path(options.bundle).resolve()
        self.rows, self.raw, self.left_out = [], {}, []
        self.environment = dict(os.environ, LD_LIBRARY_PATH=":".join(
            [str(self.bundle / "lib"), *library_folders(options.torch), os.environ.get("LD_LIBRARY_PATH", "")]))

    def left(self):
        return self.end - time.monotonic()

    def command(self, name, words, seconds, parse=None):
        """Runs it if `seconds` are left; notes what came of it. None if it failed or was left out."""
        if self.left() < seconds:
            self.left_out.append(name)
            return None
        print(f"[{self.options.minutes * 60 - self.left():4.0f} s] {name}", file=sys.stderr, flush=True)
        try:
            done = subprocess.run([str(w) for w in words], capture_output=True, text=True, env=self.environment,
                                  timeout=max(30, min(self.left(), 4 * seconds)), check=False)
        except subprocess.TimeoutExpired:
            self.raw[name] = {"failed": "took too long"}
            return None
        text = done.stdout
        if done.returncode != 0:
            self.raw[name] = {"failed": done.returncode, "error": (done.stderr + text)[-3000:]}
            return None
        self.raw[name] = parse(text) if parse else {"output": text[-3000:]}
        return self.raw[name]

    def cairn(self, *words):
        return [self.bundle / "bin" / "cairn", *words, "--device", self.options.device]


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


def passed(run, name, words, seconds):
    result = run.command(name, words, seconds)
    state = "passed" if result else "left out" if name in run.left_out else "FAILED"
    run.rows.append((name, state, "", "", "", ""))
    return state != "FAILED"


def recipe(shape):
    return ["gpt2", *(f"{k}={v}" for k, v in shape.items()), "data=random", "--amp", "bf16"]


def train_cairn(run, label, shape, share, steps, costs, base):
    extra = []
    if share is not None:
        if base is None:
            return None
        extra = ["--budget", int(base["persistent"] + share * base["activations"]), "--tiers", "host"]
    name = f"cairn {label}"
    words = run.cairn("train", *recipe(shape), *costs, *extra, "--steps", steps, "--json", "--quiet")
    result = run.command(name, words, 45, last_object)
    if result is None:
        return None
    plan = result["plan"]
    equal = result["peak_bytes"] == result["planned_peak_bytes"]
    run.rows.append((name, f"{result['tokens_per_second']:,.0f}", f"{result['step_seconds_median'] * 1e3:.1f}",
                     f"{plan['predicted_step_seconds'] * 1e3:.1f} / {plan['bound_step_seconds'] * 1e3:.1f}",
                     f"{result['peak_bytes']['device'] / 2**30:.2f}{'' if equal else ' (NOT as planned)'}",
                     f"{100 * result['stall_seconds'] / max(result['step_seconds_median'], 1e-9):.1f} %"))
    return result


def train_torch(run, label, shape, words, steps):
    name = f"{label}"
    arguments = [w for k, v in shape.items() for w in (f"--{k}", v)]
    command = [run.options.torch, ROOT / "bench/peers/gpt2.py", *arguments, "--amp", "bf16", "--device", "cuda",
               "--steps", steps, "--json", *words]
    result = run.command(name, command, 60, last_object)
    if result is not None:
        run.rows.append((name, f"{result['tokens_per_second']:,.0f}", f"{result['step_seconds_median'] * 1e3:.1f}", "",
                         f"{result['device_peak_bytes'] / 2**30:.2f}", ""))
    return result


def compare(run, name, peers):
    shape, steps = SHAPES[name], run.options.steps
    costs = []
    profile = run.bundle / f"profile-{name}.json"
    if run.command(f"profile {name}", run.cairn("profile", *recipe(shape), "--steps", 3, "--profile-out", profile,
                                                "--quiet", "--trace", run.bundle / f"trace-{name}.json"), 60):
        costs = ["--profile", profile]
    keep = run.command(f"plan {name}", run.cairn("plan", *recipe(shape), *costs, "--json"), 20, last_object)
    base = None
    if keep:
        base = {"persistent": keep["persistent_bytes"],
                "activations": keep["planned_peak_bytes"]["device"] - keep["persistent_bytes"]}
    for label, share in BUDGETS:
        train_cairn(run, f"{name}, {label}", shape, share, steps, costs, base)
    for label, words in peers:
        train_torch(run, f"{label}, {name}", shape, words, steps)


def sanitize(run):
    """A small model's steps, recompute and offload among them, under NVIDIA's checkers."""
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.access(tool, os.X_OK):
        run.left_out.append("compute-sanitizer (not installed)")
        return
    for check in ("memcheck", "racecheck", "initcheck"):
        for policy in ("recompute", "offload"):
            words = [tool, "--tool", check, "--error-exitcode", "9", *run.cairn(
                "train", *recipe(SHAPES["tiny"]), "--policy", policy, "--steps", 3, "--quiet")]
            passed(run, f"{check}, tiny gpt2, {policy}", words, 25)


def table(run):
    lines = ["| case | tokens/s | step ms | planned / bound ms | device peak GiB | stall |", "|---|---|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in run.rows]
    failed = {name: r for name, r in run.raw.items() if "failed" in r}
    for name, result in failed.items():
        error = re.sub(r"\s+", " ", str(result.get("error", "")))[-300:]
        lines.append(f"\nFAILED: {name}: {result['failed']} {error}")
    if run.left_out:
        lines.append(f"\nNo time was left for: {', '.join(run.left_out)}.")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bundle", default=ROOT / "build/gpu")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--torch", default="", help="a Python that has torch with CUDA")
    parser.add_argument("--shapes", default="124m,1.5b,4096", help="of " + ", ".join(SHAPES))
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--quick", action="store_true", help="only what an emulated GPU can do: to try this program")
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results")
    options = parser.parse_args()
    run = Run(options)
    gpu = run.command("devices", [run.bundle / "bin/cairn", "devices"], 1)
    conformance = run.bundle / "bin/cairn_gpu_conformance"
    if conformance.exists():
        passed(run, "conformance: every kernel against the reference", [conformance], 30)
    passed(run, "verify mlp", run.cairn("verify", "mlp", "--budgets", 1 if options.quick else 3), 30)
    if not options.quick:
        passed(run, "verify gpt2, bf16", run.cairn("verify", "gpt2", "layers=2", "width=64", "heads=2", "seq=64",
                                                   "batch=4", "data=random", "--amp", "bf16", "--budgets", 3), 30)
    shapes = options.shapes.split(",")
    for place, name in enumerate(shapes):
        compare(run, name, PEERS[:5 if place == 0 else 2] if options.torch else [])
    if not options.quick:
        sanitize(run)
    text = table(run)
    nvidia = shutil.which("nvidia-smi")
    machine = subprocess.run([nvidia, "-L"], capture_output=True, text=True, check=False).stdout.strip() if nvidia else ""
    today = datetime.date.today().isoformat()
    head = f"# On a GPU, {today}\n\n{machine}\n\nGPT-2, bfloat16, AdamW, clip 1.0; {options.steps} steps a case, medians.\n\n"
    print(head + text)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"gpu-{today}.md").write_text(head + text)
    (options.out / f"gpu-{today}.json").write_text(json.dumps({"machine": machine, "devices": gpu, "runs": run.raw}, indent=1))
    return 1 if any("failed" in r for r in run.raw.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
