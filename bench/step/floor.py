#!/usr/bin/env python3
"""How close a training step comes to its matrix products alone, by model, mixed precision and instruction set.

  bench/step/floor.py [--build build/release] [--before OTHER_BUILD] [--isa amx,avx512] [--amp bf16,off] [--shape small]
                      [--rounds 3] [--parts]

Both run on one processor and one thread, and are measured in processor time of the program, which others on the machine
disturb less than time on the wall: a step is the difference of a long and a short run, the products are
bench_step_products. Rounds take all builds in turn; quoted are medians. --parts adds what a step consists of, by kind of op,
from `cairn profile` (time on the wall, medians). Prints Markdown.
"""
import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = {
    "124m": dict(layers=12, heads=12, width=768, vocab=50304, seq=256, batch=4),
    "long": dict(layers=4, heads=4, width=256, vocab=50304, seq=1024, batch=4),
    "deep": dict(layers=24, heads=16, width=1024, vocab=50304, seq=256, batch=1),
    "small": dict(layers=4, heads=4, width=256, vocab=256, seq=128, batch=4),
}
# Steps of the long run beside the short one's 1: seconds that the clock's ticks do not blur.
STEPS = {"124m": 3, "long": 4, "deep": 3, "small": 60}


def words(shape):
    return [f"{key}={value}" for key, value in SHAPES[shape].items()]


def environment(isa):
    return {**os.environ, "CAIRN_ISA": isa, "CAIRN_LUA_ROOT": str(ROOT)}


def checked(command, isa):
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(isa))
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(map(str, command))}\n{done.stderr[-2000:]}")
    return done.stdout


def processor_seconds(command, isa):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment(isa))
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed ({os.waitstatus_to_exitcode(status)}): {' '.join(map(str, command))}")
    return usage.ru_utime


def cairn(build, verb, shape, amp, steps, *extra):
    return [str(build / "bin/cairn"), verb, "gpt2", *words(shape), "data=random", "--amp", amp, "--threads", "1",
            "--steps", str(steps), "--quiet", *extra]


def step_seconds(build, shape, amp, isa):
    long, short = (processor_seconds(cairn(build, "train", shape, amp, n), isa) for n in (1 + STEPS[shape], 1))
    return (long - short) / STEPS[shape]


def product_seconds(build, shape, amp, isa):
    command = [str(build / "bin/bench_step_products"), *words(shape), f"amp={amp}", "repeats=3"]
    return json.loads(checked(command, isa))["seconds"]


def parts(build, shape, amp, isa):
    """Milliseconds of a step by kind of op."""
    steps = STEPS[shape] + 1
    with tempfile.TemporaryDirectory() as folder:
        profile = pathlib.Path(folder) / "profile.json"
        checked(cairn(build, "profile", shape, amp, steps, "--profile-out", str(profile), "--trace",
                      str(pathlib.Path(folder) / "trace.json")), isa)
        ops = json.loads(profile.read_text())["ops"]
    kinds = collections.Counter()
    for op in ops:
        kinds[op["op"]] += op["median_seconds"] * op["count"] / steps * 1e3
    return ", ".join(f"{kind} {ms:.1f}" for kind, ms in kinds.most_common() if ms >= 0.002 * kinds.total())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--before", type=pathlib.Path, help="another build, measured in turns")
    parser.add_argument("--isa", default="amx,avx512,avx2", help="values of CAIRN_ISA")
    parser.add_argument("--amp", default="bf16,off")
    parser.add_argument("--shape", default=",".join(SHAPES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processor", type=int, default=0)
    parser.add_argument("--parts", action="store_true")
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.processor})  # inherited by what is run
    builds = [b for b in (options.before, options.build) if b]
    print("| `CAIRN_ISA` | amp | model |" + "".join(
        f" {name}step, s | products, s | ratio |" for name in (["before: ", "after: "] if options.before else [""])))
    print("|---" * (3 + 3 * len(builds)) + "|", flush=True)
    notes = []
    for isa in options.isa.split(","):
        for amp in options.amp.split(","):
            for shape in options.shape.split(","):
                steps, products = ({b: [] for b in builds} for _ in range(2))
                for _ in range(options.rounds):
                    for build in builds:
                        steps[build].append(step_seconds(build, shape, amp, isa))
                        products[build].append(product_seconds(build, shape, amp, isa))
                line = f"| {isa} | {amp} | {shape} |"
                for build in builds:
                    step, product = (statistics.median(of[build]) for of in (steps, products))
                    line += f" {step:.4g} | {product:.4g} | {step / product:.2f} |"
                print(line, flush=True)
                if options.parts:
                    notes.append(f"{isa}, {amp}, {shape}, ms: {parts(options.build, shape, amp, isa)}")
    if notes:
        print("\n" + "\n\n".join(notes))


if __name__ == "__main__":
    main()
