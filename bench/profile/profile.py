#!/usr/bin/env python3
"""Predicted against measured step seconds: profiles each model, then trains it under several plans made with the profile.

  bench/profile/profile.py --cairn build/release/bin/cairn [--cases gpt2,mlp,...] [--plans N] [--rounds 5]
                           [--patience SECONDS]

A round is, for each model, a profile and one training run per plan. Each waits, up to --patience, until other processes
leave the machine alone, and notes how many cores they took while it ran. Quoted: medians over the rounds in which neither
profile nor run was disturbed (else the one round that was disturbed least), of the run's median step, the first left out,
and of what its plan predicted. Raw numbers go to bench/results/ as JSON, the table as Markdown.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIG = ["layers=12", "heads=12", "width=768", "vocab=50304", "seq=256", "batch=4"]
PLANS = [[], ["--accumulate", "3"], ["--policy", "recompute"], ["--budget", "75%"], ["--policy", "offload"],
         ["--policy", "offload", "--tiers", "disk"]]
# name: recipe and options, plans, measured steps of the profile, training steps
CASES = {
    "mlp": (["mlp"], PLANS[:2], 20, 200),
    "gpt2-2": (["gpt2", "data=random", "layers=2", "width=256"], PLANS[:2], 10, 20),
    "gpt2": (["gpt2", "data=random"], PLANS, 8, 14),
    "gpt2-bf16": (["gpt2", "data=random", "--amp", "bf16"], PLANS[:2], 10, 20),
    "llama": (["llama", "data=random"], PLANS[:2], 8, 14),
    "124m": (["gpt2", "data=random", *BIG], [PLANS[0], ["--budget", "90%"]], 4, 6),
    "124m-bf16": (["gpt2", "data=random", *BIG, "--amp", "bf16"], [PLANS[0], ["--budget", "90%"]], 6, 8),
}
QUIET = 0.1  # cores that others may take


def busy_seconds():
    """Processor seconds of everything so far."""
    fields = [int(word) for word in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def wait_for_quiet(patience):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        before = busy_seconds()
        time.sleep(1)
        if busy_seconds() - before < QUIET:
            return


def run(options, *arguments):
    """The command's JSON, and the cores that others took meanwhile."""
    wait_for_quiet(options.patience)
    began, busy, own = time.monotonic(), busy_seconds(), own_seconds()
    done = subprocess.run([options.cairn, *arguments, "--json", "--quiet"], capture_output=True, text=True, check=True)
    others = (busy_seconds() - busy - (own_seconds() - own)) / (time.monotonic() - began)
    return json.loads(done.stdout), max(others, 0.0)


def measure(options, folder, name, number):
    words, plans, profile_steps, steps = CASES[name]
    file = str(folder / f"{name}-{number}.json")
    profile, others = run(options, "profile", *words, "--steps", str(profile_steps), "--profile-out", file, "--trace",
                          str(folder / "trace.json"))
    for plan in plans[:options.plans]:
        result, beside = run(options, "train", *words, *plan, "--steps", str(steps), "--profile", file)
        yield {"case": name, "plan": " ".join(plan) or "keep", "measured": result["step_seconds_median"],
               "predicted": result["plan"]["predicted_step_seconds"], "others": max(beside, others),
               "stall": result["stall_seconds"], "profile": profile["step_seconds_median"]}


def table(rows):
    lines = ["| model | plan | rounds | measured ms | predicted ms | off by | from | to |", "|---|---|---|---|---|---|---|---|"]
    for key in dict.fromkeys((row["case"], row["plan"]) for row in rows):
        mine = [row for row in rows if (row["case"], row["plan"]) == key]
        quiet = [row for row in mine if row["others"] < QUIET]
        used = quiet or [min(mine, key=lambda row: row["others"])]
        off = sorted(100 * (row["predicted"] / row["measured"] - 1) for row in used)
        middle = [statistics.median(row[name] for row in used) * 1e3 for name in ("measured", "predicted")]
        lines.append(f"| {key[0]} | {key[1]} | {len(quiet) or 'disturbed'} | {middle[0]:.4g} | {middle[1]:.4g} | "
                     f"{statistics.median(off):+.1f} % | {off[0]:+.1f} | {off[-1]:+.1f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cairn", default=str(ROOT / "build/release/bin/cairn"))
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--plans", type=int, default=len(PLANS), help="only the first N plans of each model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--patience", type=float, default=30)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            for name in options.cases.split(","):
                for row in measure(options, pathlib.Path(folder), name, number):
                    print(json.dumps(row), flush=True)
                    rows.append(row)
    date = datetime.date.today().isoformat()
    options.out.mkdir(parents=True, exist_ok=True)
    base = options.out / f"profile-{date}"
    base.with_suffix(".json").write_text(json.dumps({"machine": platform.processor() or platform.machine(),
                                                     "rows": rows}, indent=1) + "\n")
    text = f"# Predicted and measured steps, {date}\n\n{table(rows)}\n"
    base.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
