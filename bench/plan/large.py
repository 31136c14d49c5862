#!/usr/bin/env python3
"""Plans of models that no single card holds, for devices that need not be there: a table in Markdown.

    large.py [--cairn build/release/bin/cairn] [--seconds 600] [--rows TEXT] [--set KEY=VALUE] [--results FILE]

Each row is one `cairn plan` with all of the device's memory as the budget. Nothing is trained. Rows that end over --seconds say so.
--set gives the recipe an option, as parameters=split; --results keeps what the command printed, as JSON."""
import argparse
import json
import pathlib
import resource
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

LLAMA = {  # sizes of the published models; a 4 x width feed-forward layer of two matrices counts as one of 8/3 with three
    "7B": dict(layers=32, heads=32, kv_heads=32, width=4096, hidden=11008, vocab=32000),
    "13B": dict(layers=40, heads=40, kv_heads=40, width=5120, hidden=13824, vocab=32000),
    "70B": dict(layers=80, heads=64, kv_heads=8, width=8192, hidden=28672, vocab=32000),
    "123B": dict(layers=88, heads=96, kv_heads=8, width=12288, hidden=28672, vocab=32768),
    "175B": dict(layers=96, heads=96, kv_heads=96, width=12288, hidden=32768, vocab=50304),
}
HOST, DISK = 256 * 10**9, 12 * 10**12  # of the machine around a consumer's card, as both papers have it
ROWS = [  # model, device, tokens of a window, windows of a micro-batch, tiers
    ("7B", "rtx3090", 1024, 8, "host"),
    ("7B", "rtx4090", 1024, 8, "host"),
    ("13B", "rtx4090", 1024, 8, "host,disk"),
    ("70B", "h200", 1024, 8, "host,disk"),
    ("123B", "rtx4090", 1024, 8, "host,disk"),
    ("175B", "rtx4090", 1024, 8, "host,disk"),
]


def device(name, folder):
    """A model's file; around a consumer's card stands a machine with HOST and DISK bytes."""
    model = json.loads((ROOT / f"scripts/devices/{name}.json").read_text())
    if name.startswith("rtx"):
        for link in model["links"]:
            link["capacity_bytes"] = HOST if link["tier"] == "host" else DISK
    path = pathlib.Path(folder) / f"{name}.json"
    path.write_text(json.dumps(model))
    return path


def run(command, seconds):
    """(printed object or None, why not, seconds of the processor)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        found = (json.loads(done.stdout), None) if done.returncode == 0 else (None, done.stderr.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        found = None, f"no plan in {seconds} s"
    return *found, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cairn", default=str(ROOT / "build/release/bin/cairn"))
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--rows", default="", help="only rows with this text in `model device`")
    parser.add_argument("--set", action="append", default=[], help="an option of the recipe")
    parser.add_argument("--results", help="where to keep what was printed")
    options = parser.parse_args()
    kept = []
    print("| model | device | windows | budget, GB | step, s | tokens/s | bound, s | gap | in tiers, GB | planned in, s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, card, seq, batch, tiers in ROWS:
            if options.rows not in f"{name} {card}":
                continue
            sizes = [f"{key}={value}" for key, value in {**LLAMA[name], "seq": seq, "batch": batch}.items()]
            command = [options.cairn, "plan", "llama", "data=random", *sizes, *options.set, "--amp", "bf16", "--tiers", tiers,
                       "--device-model", str(device(card, folder)), "--json"]
            plan, why, seconds = run(command, options.seconds)
            kept.append({"model": name, "device": card, "command": " ".join(command[1:]), "plan": plan, "why": why})
            head = f"| {name} | {card} | {batch} x {seq} |"
            if plan is None:
                print(head, f"{why} | | | | | | {seconds:.0f} |", flush=True)
                continue
            step, bound = plan["plan"]["predicted_step_seconds"], plan["plan"]["bound_step_seconds"]
            away = sum(plan["planned_peak_bytes"][tier] for tier in ("host", "disk"))
            print(head, f"{plan['budget_bytes'] / 1e9:.1f} | {step:.2f} | {batch * seq / step:.0f} | {bound:.2f} | "
                  f"{100 * (step / bound - 1):.1f} % | {away / 1e9:.0f} | {seconds:.0f} |", flush=True)
    if options.results:
        pathlib.Path(options.results).write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
