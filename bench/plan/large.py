#!/usr/bin/env python3
"""Plans of models that no single card holds, for devices that need not be there: a table in Markdown.

    large.py [--cairn build/release/bin/cairn] [--seconds 600] [--rows TEXT] [--set KEY=VALUE] [--measured] [--results FILE]

Each row is one `cairn plan` with all of the device's memory as the budget. Nothing is trained. Rows that end over --seconds say so.
--set gives the recipe an option, as parameters=split; --results keeps what the command printed, as JSON. --measured plans
what LoHan's authors measured, on a model of their machine, beside their numbers."""
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
GPT = {  # LoHan's models
    "13B": dict(layers=40, heads=40, width=5120, vocab=50304),
    "175B": dict(layers=96, heads=96, width=12288, vocab=50304),
}
# Measured by LoHan on one RTX 4090 (github.com/RC4ML/LoHan, evaluation_data.md, figures 5a, 7a, 7b and 10b): model, drives,
# windows of 1024 tokens a step, TFLOP/s.
MEASURED = [("13B", 12, 8, 42.8), ("13B", 12, 16, 84.3), ("13B", 12, 32, 143.1), ("13B", 12, 64, 155.8), ("13B", 1, 32, 37.5),
            ("13B", 3, 32, 81.1), ("175B", 12, 8, 52.6), ("175B", 12, 16, 86.9)]
DRIVE_IN, DRIVE_OUT = 7.0e9, 4.194e9  # bytes a second of one D7-P5510 of 3.84 TB, by its specification
HOST_RATE = 0.75 * 16 * 25.6e9  # two processors with 8 channels of DDR4-3200 each; the share is assumed
ROWS = [  # model, device, tokens of a window, windows of a micro-batch, tiers
    ("7B", "rtx3090", 1024, 8, "host"),
    ("7B", "rtx4090", 1024, 8, "host"),
    ("13B", "rtx4090", 1024, 8, "host,disk"),
    ("70B", "h200", 1024, 8, "host,disk"),
    ("123B", "rtx4090", 1024, 8, "host,disk"),
    ("175B", "rtx4090", 1024, 8, "host,disk"),
]


def device(name, folder, drives=0):
    """A model's file; around a consumer's card stands a machine with HOST and DISK bytes, or LoHan's with some of its drives, which
    are no faster than the card's link but for the host."""
    model = json.loads((ROOT / f"scripts/devices/{name}.json").read_text())
    if name.startswith("rtx"):
        for link in model["links"]:
            link["capacity_bytes"] = HOST if link["tier"] == "host" else DISK
    if drives:
        model["host_memory_bytes_per_second"] = HOST_RATE
        host, disk = model["links"]
        disk.update(in_bytes_per_second=min(drives * DRIVE_IN, host["in_bytes_per_second"]),
                    out_bytes_per_second=min(drives * DRIVE_OUT, host["out_bytes_per_second"]))
        if drives * DRIVE_IN > disk["in_bytes_per_second"] or drives * DRIVE_OUT > disk["out_bytes_per_second"]:
            disk.update(host_in_bytes_per_second=drives * DRIVE_IN, host_out_bytes_per_second=drives * DRIVE_OUT)
        disk["capacity_bytes"] = drives * 384 * 10**10
    path = pathlib.Path(folder) / f"{name}-{drives}.json"
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


def plan_of(options, folder, recipe, sizes, card, tiers, drives=0, more=()):
    """(printed object or None, why not, seconds of the processor, command) of a model with these sizes on a card."""
    words = [f"{key}={value}" for key, value in sizes.items()]
    command = [options.cairn, "plan", recipe, "data=random", *words, *options.set, "--amp", "bf16", "--tiers", tiers,
               "--device-model", str(device(card, folder, drives)), *more, "--json"]
    return *run(command, options.seconds), command


def whole_models(options, folder, kept):
    print("| model | device | windows | budget, GB | step, s | tokens/s | bound, s | gap | in tiers, GB | planned in, s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, card, seq, batch, tiers in ROWS:
        if options.rows not in f"{name} {card}":
            continue
        sizes = {**LLAMA[name], "seq": seq, "batch": batch}
        plan, why, seconds, command = plan_of(options, folder, "llama", sizes, card, tiers)
        kept.append({"model": name, "device": card, "command": " ".join(command[1:]), "plan": plan, "why": why})
        head = f"| {name} | {card} | {batch} x {seq} |"
        if plan is None:
            print(head, f"{why} | | | | | | {seconds:.0f} |", flush=True)
            continue
        step, bound = plan["plan"]["predicted_step_seconds"], plan["plan"]["bound_step_seconds"]
        away = sum(plan["planned_peak_bytes"][tier] for tier in ("host", "disk"))
        print(head, f"{plan['budget_bytes'] / 1e9:.1f} | {step:.2f} | {batch * seq / step:.0f} | {bound:.2f} | "
              f"{100 * (step / bound - 1):.1f} % | {away / 1e9:.0f} | {seconds:.0f} |", flush=True)


def beside_measured(options, folder, kept):
    """Two plans a row: gradients clipped by their norm, so that no update begins before backward ends; and, as was measured,
    without, each update as soon as its gradient is there."""
    print("| model | drives | windows | measured, TFLOP/s | tokens/s at 6 FLOP a parameter | planned, clipped | "
          "planned, updates within backward | bound | host, disk, GB | s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, drives, batch, measured in MEASURED:
        if options.rows not in f"{name} {drives}":
            continue
        sizes = {**GPT[name], "seq": 1024, "batch": batch}
        parameters = 12 * sizes["layers"] * sizes["width"] ** 2
        cells, spent = [], 0
        for more in ((), ("clip=0", "--fuse-update")):
            plan, why, seconds, command = plan_of(options, folder, "gpt2", sizes, "rtx4090", "host,disk", drives, more)
            kept.append({"model": name, "drives": drives, "command": " ".join(command[1:]), "plan": plan, "why": why})
            cells.append(f"{batch * 1024 / plan['plan']['predicted_step_seconds']:.0f}" if plan else why)
            spent += seconds
        if plan is not None:
            host, disk = (plan["planned_peak_bytes"][tier] / 1e9 for tier in ("host", "disk"))
            cells += [f"{batch * 1024 / plan['plan']['bound_step_seconds']:.0f}", f"{host:.0f}, {disk:.0f}", f"{spent:.0f}"]
        print(f"| {name} | {drives} | {batch} | {measured} | {measured * 1e12 / (6 * parameters):.0f} |", " | ".join(cells), "|",
              flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cairn", default=str(ROOT / "build/release/bin/cairn"))
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--rows", default="", help="only rows with this text in `model device`, or `model drives`")
    parser.add_argument("--set", action="append", default=[], help="an option of the recipe")
    parser.add_argument("--measured", action="store_true", help="beside what LoHan measured")
    parser.add_argument("--results", help="where to keep what was printed")
    options = parser.parse_args()
    kept = []
    with tempfile.TemporaryDirectory() as folder:
        (beside_measured if options.measured else whole_models)(options, folder, kept)
    if options.results:
        pathlib.Path(options.results).write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
