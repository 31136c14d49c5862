#!/usr/bin/env python3
"""Everything that needs a GPU, in one run: checks, loss curves, rates, training beside PyTorch, and the bars.

  bench/gpu/gpu.py --bundle build/gpu [--torch python3] [--minutes 8] [--only rates,124m] [--out bench/results]

`./dev gpu` calls it. The bundle holds cairn's programs (`./dev gpu --bundle`); --torch names a Python with a CUDA build
of torch, without it only cairn is measured. Parts come in order of importance, and nothing begins that the time left
does not cover; what was left out is said. Raw results go to --out as JSON, the tables as Markdown, after each part.

Seconds, as an H200 needs them: conformance, verify and the curves beside each other, with the compilation of PyTorch's
graphs, 90; rates 11; 124m 75; 1.5b 120; 4096 60. compute-sanitizer, and what no bar needs
(`more`), take what is left, or a run of their own: --only compute-sanitizer,more.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import bars
import curve
import needs
import rate_tables
import training
from runner import ROOT, Run

CHECKS = ["conformance", "verify", "curve"]  # nothing of these is timed
PARTS = [*CHECKS, "rates", "124m", "1.5b", "4096", "compute-sanitizer", "more"]
QUICK_PARTS = [*CHECKS, "rates", "tiny"]


def conformance(run):
    program = run.bundle / "bin/cairn_gpu_conformance"
    if program.exists():
        run.passed("conformance: every kernel against the reference", [program], 40)


def verify(run):
    quick = run.options.quick
    run.passed("verify mlp", run.cairn("verify", "mlp", "--budgets", 1 if quick else 3), 25)
    if not quick:
        model = ["gpt2", "layers=2", "width=64", "heads=2", "seq=64", "batch=4", "data=random", "--amp", "bf16"]
        run.passed("verify gpt2, bf16", run.cairn("verify", *model, "--budgets", 3), 30)
        # The smallest budgets with a tier have this vocabulary in parts.
        run.passed("verify gpt2, large vocabulary", run.cairn("verify", *model, "vocab=50304", "--budgets", 1), 30)


def sanitize(run):
    """A small model's steps, recompute and offload among them, under NVIDIA's checkers."""
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.access(tool, os.X_OK):
        run.left_out.append("compute-sanitizer (not installed)")
        return
    for check in ("memcheck", "racecheck", "initcheck"):
        for policy in ("recompute", "offload"):
            words = [tool, "--tool", check, "--error-exitcode", "9", *run.cairn(
                "train", *training.recipe(training.SHAPES["tiny"]), "--policy", policy, "--steps", 3, "--quiet")]
            run.passed(f"{check}, tiny gpt2, {policy}", words, 15)


def together(run, parts):
    """Those of the checks that are wanted, beside each other; beside them compilers fill their cache."""
    work = {"conformance": conformance, "verify": verify, "curve": curve.part}
    jobs = [lambda name=name: work[name](run) for name in CHECKS if name in parts]
    jobs += [lambda name=name: training.warm_compiler(run, name) for name in training.COMPILED if name in parts]
    with concurrent.futures.ThreadPoolExecutor(1 if run.options.quick else 5) as pool:
        for job in [pool.submit(job) for job in jobs]:
            job.result()


def section(title, header, rows):
    lines = [f"\n## {title}\n", f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def text_of(run, machine):
    today = datetime.date.today().isoformat()
    steps = f"{run.options.steps} steps a training case."
    lines = [f"# On a GPU, {today}", "", machine or "(no nvidia-smi)", "", device_text(run), "", steps]
    lines += section(bars.TITLE, bars.HEADER, bars.judge(run.raw))
    for title, (header, rows) in run.tables.items():
        lines += section(title, header, rows)
    for name, result in run.failures().items():
        error = re.sub(r"\s+", " ", str(result.get("error", "")))[-300:]
        lines.append(f"\nFAILED: {name}: {result['failed']} {error}")
    if run.left_out:
        lines.append(f"\nLeft out, as no time was left if nothing else is said: {', '.join(run.left_out)}.")
    return "\n".join(lines) + "\n"


def write(run, machine):
    text = text_of(run, machine)
    out = run.options.out
    out.mkdir(parents=True, exist_ok=True)
    stem = f"gpu-{datetime.date.today().isoformat()}"
    (out / f"{stem}.md").write_text(text)
    rows = [dict(zip(bars.HEADER, row)) for row in bars.judge(run.raw)]
    (out / f"{stem}.json").write_text(json.dumps({"machine": machine, "bars": rows, "runs": run.raw}, indent=1))
    return text


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bundle", default=ROOT / "build/gpu")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--torch", default="", help="a Python that has torch with CUDA")
    parser.add_argument("--only", default="", help="parts, of " + ", ".join(dict.fromkeys(PARTS + QUICK_PARTS)))
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--quick", action="store_true", help="only what an emulated GPU can do: to try this program")
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results")
    options = parser.parse_args()
    options.parts = options.only.split(",") if options.only else QUICK_PARTS if options.quick else PARTS
    for part in options.parts:
        if part not in PARTS + QUICK_PARTS:
            parser.error(f"--only: there is no part '{part}'")
    return options


def devices_of(text):
    return {"devices": {d["name"]: d["description"] for d in json.loads(text)}}


def device_text(run):
    """The device as cairn sees it, with who computes attention and why."""
    known = run.raw.get("devices", {}).get("devices", {})
    name = run.options.device if ":" in run.options.device else f"{run.options.device}:0"
    return known.get(name) or known.get(run.options.device) or f"cairn finds no {run.options.device}"


def machine_name():
    nvidia = shutil.which("nvidia-smi")
    return subprocess.run([nvidia, "-L"], capture_output=True, text=True, check=False).stdout.strip() if nvidia else ""


def main():
    options = arguments()
    run, machine = Run(options), machine_name()
    if problem := needs.problem(run.bundle, run.environment):
        print(problem, file=sys.stderr)
        return 1
    run.command("devices", [run.bundle / "bin/cairn", "devices", "--json"], 1, devices_of)
    together(run, options.parts)
    write(run, machine)
    rest = {"rates": rate_tables.part, "compute-sanitizer": sanitize, "more": training.more}
    for part in PARTS + ["tiny"]:
        if part not in options.parts or part in CHECKS:
            continue
        if part in rest:
            rest[part](run)
        else:
            training.part(run, part)
        write(run, machine)
    print(write(run, machine))
    return 1 if run.failures() else 0


if __name__ == "__main__":
    sys.exit(main())
