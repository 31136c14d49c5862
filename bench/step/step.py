#!/usr/bin/env python3
"""Measures whole training steps of cairn beside the same work in PyTorch, in one run, and writes a table.

  bench/step/step.py --cairn build/release/bin/cairn [--torch VENV/bin/python] [--shape 124m|small] [--rounds 3]

Every case runs --steps steps per round; rounds take all cases in turn, so that a machine whose speed drifts is
fair to all. Quoted: the median over rounds of each run's median step (warm-up excluded), and ratios of those. Raw
numbers go to bench/results/ as JSON, the table as Markdown.
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = {
    "124m": dict(layers=12, heads=12, width=768, vocab=50304, seq=256, batch=4),
    "small": dict(layers=4, heads=4, width=256, vocab=256, seq=256, batch=8),
}
# name, amp, extra arguments of cairn
CAIRN = [
    ("cairn f32", "off", []),
    ("cairn bf16", "bf16", []),
    ("cairn f32, recompute every layer", "off", ["--policy", "recompute"]),
    ("cairn f32, offload to host", "off", ["--policy", "offload"]),
    ("cairn f32, offload to host at 4 GB/s", "off", ["--policy", "offload", "--link", "4000000000"]),
    ("cairn f32, budget 80% of keep", "off", ["--budget", "80%"]),
]
# name, amp, mode, extra arguments of bench/peers/gpt2.py
TORCH = [
    ("PyTorch eager f32", "off", "eager", []),
    ("PyTorch compile f32", "off", "compile", []),
    ("PyTorch eager bf16", "bf16", "eager", []),
    ("PyTorch compile bf16", "bf16", "compile", []),
    ("PyTorch eager f32, checkpoint every layer", "off", "eager", ["--checkpoint", "layer"]),
]


def cairn_command(options, shape, amp, extra):
    words = [f"{key}={value}" for key, value in shape.items()]
    return [options.cairn, "train", "gpt2", *words, "data=random", "--steps", str(options.steps), "--threads",
            str(options.threads), "--amp", amp, "--json", "--quiet", *extra]


def torch_command(options, shape, amp, mode, extra):
    words = [word for key, value in shape.items() for word in (f"--{key}", str(value))]
    return [options.torch, str(ROOT / "bench/peers/gpt2.py"), *words, "--data", "random", "--steps", str(options.steps),
            "--threads", str(options.threads), "--amp", amp, "--mode", mode, "--json", *extra]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"failed ({done.returncode}): {' '.join(map(str, command))}\n{done.stderr[-2000:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout[done.stdout.index("{"):])


def floor_of(options, amp):
    """Seconds of the matrix products of one micro-step alone, at oneDNN's rate."""
    if not options.floor or not pathlib.Path(options.floor).exists() or options.shape != "124m":
        return None
    done = subprocess.run([options.floor, amp, str(options.threads)], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def machine():
    name = platform.processor() or platform.machine()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            name = line.split(":", 1)[1].strip()
            break
    flags = [f for f in ("avx512f", "avx512_bf16", "amx_bf16") if f in pathlib.Path("/proc/cpuinfo").read_text()]
    return f"{name}, {os.cpu_count()} cores, {', '.join(flags)}"


def summary(name, results):
    results = [r for r in results if r]
    if not results:
        return None
    row = {"case": name, "step_seconds": statistics.median(r["step_seconds_median"] for r in results),
           "tokens_per_second": statistics.median(r["tokens_per_second"] for r in results),
           "rss_bytes": statistics.median(r["process_peak_rss_bytes"] for r in results), "runs": len(results)}
    for key in ("peak_bytes", "planned_peak_bytes", "stall_seconds", "activation_peak_bytes", "torch_import_rss_bytes"):
        if key in results[0]:
            row[key] = results[0][key]
    return row


def table(rows):
    lines = ["| case | tokens/s | step ms | process peak RSS MiB | device peak MiB (planned = measured) |",
             "|---|---|---|---|---|"]
    for r in rows:
        peak = "-"
        if "peak_bytes" in r:
            same = r["peak_bytes"] == r["planned_peak_bytes"]
            peak = f"{r['peak_bytes']['device'] / 2**20:.1f} ({'equal' if same else 'DIFFERENT'})"
        lines.append(f"| {r['case']} | {r['tokens_per_second']:.0f} | {r['step_seconds'] * 1e3:.0f} | "
                     f"{r['rss_bytes'] / 2**20:.0f} | {peak} |")
    return "\n".join(lines)


def goals(rows, floors):
    by = {r["case"]: r for r in rows}
    lines = ["| goal | measured |", "|---|---|"]

    def best(names, key, pick):
        found = [by[n][key] for n in names if n in by]
        return pick(found) if found else None

    for amp, goal in (("f32", "1.2x"), ("bf16", "2x")):
        peer = best([f"PyTorch eager {amp}", f"PyTorch compile {amp}"], "tokens_per_second", max)
        if peer and f"cairn {amp}" in by:
            lines.append(f"| tokens/s, {amp}: >= {goal} PyTorch | {by[f'cairn {amp}']['tokens_per_second'] / peer:.2f}x |")
        rss = best([f"PyTorch eager {amp}", f"PyTorch compile {amp}"], "rss_bytes", min)
        if rss and f"cairn {amp}" in by:
            lines.append(f"| process peak RSS, {amp}: <= 0.75x PyTorch | {by[f'cairn {amp}']['rss_bytes'] / rss:.2f}x |")
        if floors.get(amp) and f"cairn {amp}" in by:
            share = by[f"cairn {amp}"]["step_seconds"] / floors[amp]["seconds"]
            floor = floors[amp]
            how = f"{floor['seconds'] * 1e3:.0f} ms at oneDNN's {floor['gflops_per_second']:.0f} GFLOP/s"
            how += ", which runs without AMX here" if amp == "bf16" and floor["onednn_without_amx"] else ""
            lines.append(f"| step / its matrix products alone, {amp} ({how}) | {share:.2f}x |")
    base = by.get("cairn f32")
    for name in (n for n, *_ in CAIRN[2:]):
        if base and name in by:
            lines.append(f"| {name[len('cairn f32, '):]}: slower than keep by | "
                         f"{(by[name]['step_seconds'] / base['step_seconds'] - 1) * 100:.1f} % |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cairn", default=str(ROOT / "build/release/bin/cairn"))
    parser.add_argument("--floor", default=str(ROOT / "build/release/bin/bench_floor"), help="'' to skip")
    parser.add_argument("--torch", default="", help="a Python that has torch; without it only cairn is measured")
    parser.add_argument("--shape", choices=SHAPES, default="124m")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="run only cases whose name contains this")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results")
    options = parser.parse_args()
    shape = SHAPES[options.shape]
    cases = [(name, cairn_command(options, shape, amp, extra)) for name, amp, extra in CAIRN]
    if options.torch:
        cases += [(name, torch_command(options, shape, amp, mode, extra)) for name, amp, mode, extra in TORCH]
    cases = [(name, command) for name, command in cases if options.only in name]
    raw = {name: [] for name, _ in cases}
    floors = {}
    for turn in range(options.rounds):
        for name, command in cases:
            print(f"round {turn + 1}: {name}", file=sys.stderr, flush=True)
            raw[name].append(run(command))
        for amp, word in (("f32", "off"), ("bf16", "bf16")):
            found = floor_of(options, word)
            if found and (amp not in floors or found["seconds"] < floors[amp]["seconds"]):
                floors[amp] = found
    rows = [row for name, _ in cases if (row := summary(name, raw[name]))]
    today = datetime.date.today().isoformat()
    head = (f"# Whole steps, GPT-2 {options.shape}, {today}\n\n{machine()}; {options.threads} threads; "
            f"{', '.join(f'{k} {v}' for k, v in shape.items())}; AdamW, clip 1.0; {options.rounds} rounds of "
            f"{options.steps} steps, medians.\n")
    text = "\n".join([head, table(rows), "", goals(rows, floors), ""])
    print(text)
    options.out.mkdir(parents=True, exist_ok=True)
    stem = f"step-{options.shape}-{today}"
    (options.out / f"{stem}.md").write_text(text)
    (options.out / f"{stem}.json").write_text(json.dumps({"machine": machine(), "floors": floors, "runs": raw}, indent=1))


if __name__ == "__main__":
    main()
