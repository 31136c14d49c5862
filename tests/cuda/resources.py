#!/usr/bin/env python3
"""Compiles every CUDA kernel for one architecture and checks what the compiler says of it: no spills, no stack frame,
no more registers and shared memory than the limits below. Without nvcc nothing is checked, and it says so (exit code 77).

  tests/cuda/resources.py [--arch 90a] [--jobs 2] [--all]      --all prints every kernel
"""
import argparse
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
KERNELS = ROOT / "kernels/cuda"
# Most registers of a thread, by file below kernels/cuda: the first row that matches counts. 255 is the hardware's end;
# kernels that fill it say so in their launch bounds. Spills and stack frames: none, anywhere but in attention under a mask, whose
# kernels (the template's last flag) hold what each of their rows sees.
REGISTERS = [("attention/mma*", 255), ("attention/*", 168), ("experts/grouped_mma", 128), ("norms_grad", 128),
             ("pictures/conv_*", 128), ("softmax*", 96), ("*", 80)]
STATIC_SHARED = 48 * 1024
MASKED, MASKED_BYTES = re.compile(r"attention_cu|mma(_grad)?_cu"), 256
ENTRY = re.compile(r"Compiling entry function '(\w+)' for")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")


def compile_one(file, arch, folder):
    # ccache keeps what the compiler says as well; with relative paths it knows another checkout's files again.
    cache = ["ccache"] if shutil.which("ccache") else []
    command = [*cache, "nvcc", "-std=c++20", "-O3", "-I", ".", "--expt-relaxed-constexpr", "-Xptxas", "-v",
               f"-gencode=arch=compute_{arch},code=sm_{arch}", "-c", file.relative_to(ROOT),
               "-o", f"{folder}/{name_of(file).replace('/', '_')}.o"]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, cwd=ROOT)


def kernels(report):
    """(name, registers, stack bytes, spill bytes, shared bytes) of each kernel in the compiler's report."""
    name, frame = None, (0, 0, 0)
    for line in report.splitlines():
        if found := ENTRY.search(line):
            name, frame = found[1], (0, 0, 0)
        elif found := FRAME.search(line):
            frame = tuple(map(int, found.groups()))
        elif (found := USED.search(line)) and name:
            yield name, int(found[1]), frame[0], frame[1] + frame[2], int(found[2] or 0)
            name = None


def name_of(file):
    return file.relative_to(KERNELS).with_suffix("").as_posix()


def limit_of(name):
    return next(limit for pattern, limit in REGISTERS if pathlib.PurePath(name).match(pattern))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--arch", default="90a")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    version = ""
    if shutil.which("nvcc"):
        version = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"release (\d+)", version)
    if found is None or int(found[1]) < 13:
        print("there is no nvcc of CUDA 13 or later here: CUDA kernels were not compiled")
        return SKIPPED
    files = sorted(KERNELS.rglob("*.cu"))
    wrong, count, most = [], 0, 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for file, done in zip(files, pool.map(lambda f: compile_one(f, options.arch, folder), files)):
            report = done.stdout + done.stderr
            if done.returncode != 0:
                wrong.append(f"{file.name} does not compile:\n{report[-2000:]}")
                continue
            if "warning" in report:
                wrong.append(f"{file.name}: " + next(line for line in report.splitlines() if "warning" in line))
            for name, registers, stack, spills, shared in kernels(report):
                count += 1
                most = max(most, registers)
                if options.all:
                    print(f"{name_of(file):28} {registers:4} registers {stack:5} stack {spills:5} spills "
                          f"{shared:6} shared {name}")
                allowed = MASKED_BYTES if MASKED.search(name) and "Lb1E" in name else 0
                if max(stack, spills) > allowed or registers > limit_of(name_of(file)) or shared > STATIC_SHARED:
                    wrong.append(f"{file.name}: {name} takes {registers} registers (limit {limit_of(name_of(file))}), "
                                 f"{stack} bytes of stack, {spills} of spills, {shared} of shared memory")
    for line in wrong:
        print(line)
    print(f"{count} kernels in {len(files)} files for sm_{options.arch}, at most {most} registers; {len(wrong)} wrong")
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
