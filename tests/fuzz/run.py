#!/usr/bin/env python3
"""Runs the libFuzzer programs of build/fuzz (`cmake --preset fuzz && ninja -C build/fuzz fuzz_programs`), each for some time.

    tests/fuzz/run.py [--seconds 60] [--jobs 1] [--build build/fuzz] [--artifacts DIR] [--merge] [TARGET ...]

Begins with the committed corpus and with what earlier runs left in BUILD/corpus. Prints one line a target: inputs run, edges
covered, findings. An input that breaks a target, or takes more than its memory or time, is left in the folder of artifacts,
and the exit code is 1. --merge then adds to the committed corpus what covers more, smallest inputs first, up to its limit of
bytes. An artifact that shows a bug mended since belongs into the corpus, too.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CORPUS = HERE / "corpus"
CORPUS_BYTES = 64 << 10  # of a target

# Most megabytes of memory (the sanitizers' included), most seconds for an input, most bytes of an input.
LIMITS = {"": (1024, 10, 16384), "checkpoint": (1536, 20, 32768), "plan_solve": (1024, 20, 4096), "lua_json": (1024, 10, 4096),
          "recipe_options": (1024, 10, 4096), "run_config": (1024, 10, 4096), "tokenizer_train": (1024, 10, 4096)}
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS="allocator_may_return_null=0:detect_leaks=1",
                   UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1")


def targets():
    return re.findall(r'^    \{"([a-z_]+)", ', (HERE / "targets.cc").read_text(), re.M)


def command(target, build, artifacts, *more):
    memory, seconds, size = LIMITS.get(target, LIMITS[""])
    return [build / "bin" / f"fuzz_{target}", f"-rss_limit_mb={memory}", f"-timeout={seconds}", f"-max_len={size}",
            f"-artifact_prefix={artifacts}/{target}-", *more]


def fuzz(target, options):
    work, committed = options.build / "corpus" / target, CORPUS / target
    work.mkdir(parents=True, exist_ok=True)
    known = [committed] if committed.is_dir() else []
    before = set(options.artifacts.glob(f"{target}-*"))
    log = options.artifacts / f"{target}.log"
    with open(log, "wb") as out:
        status = subprocess.run(command(target, options.build, options.artifacts, f"-max_total_time={options.seconds}",
                                        "-print_final_stats=1", work, *known),
                                stdout=out, stderr=subprocess.STDOUT, env=ENVIRONMENT).returncode
    text = log.read_text(errors="replace")
    runs = re.findall(r"stat::number_of_executed_units: (\d+)", text)
    covered = re.findall(r" cov: (\d+)", text)
    found = sorted(set(options.artifacts.glob(f"{target}-*")) - before)
    if status != 0 and not found:
        found = [log]
    return target, int(runs[-1]) if runs else 0, int(covered[-1]) if covered else 0, found


def merge(target, options):
    """Adds to the committed corpus, from the smallest, what the target's working corpus covers beyond it."""
    committed, fresh = CORPUS / target, options.build / "merged" / target
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    committed.mkdir(parents=True, exist_ok=True)
    subprocess.run(command(target, options.build, options.artifacts, "-merge=1", fresh, committed,
                           options.build / "corpus" / target),
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    used = sum(file.stat().st_size for file in committed.iterdir())
    for file in sorted(fresh.iterdir(), key=lambda file: (file.stat().st_size, file.name)):
        size = file.stat().st_size
        if (committed / file.name).exists() or used + size > CORPUS_BYTES:
            continue
        shutil.copyfile(file, committed / file.name)
        used += size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--artifacts", type=pathlib.Path)
    parser.add_argument("--merge", action="store_true")
    parser.add_argument("targets", nargs="*")
    options = parser.parse_args()
    options.artifacts = options.artifacts or options.build / "artifacts"
    options.artifacts.mkdir(parents=True, exist_ok=True)
    known = targets()
    for target in options.targets:
        if target not in known:
            parser.error(f"there is no target '{target}'; known: {' '.join(known)}")
    chosen = options.targets or known
    failed = False
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for target, runs, covered, found in pool.map(lambda target: fuzz(target, options), chosen):
            print(f"{target:16} {runs:10} inputs {covered:7} edges  {' '.join(map(str, found)) or 'nothing found'}", flush=True)
            failed = failed or bool(found)
    if options.merge:
        for target in chosen:
            merge(target, options)
    sys.exit(1 if failed else 0)


main()
