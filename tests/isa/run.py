#!/usr/bin/env python3
"""Runs a test program with the instruction set that CAIRN_ISA names.

    run.py CAIRN SET PROGRAM [ARGUMENTS...]

Exits with 77, which ctest counts as skipped, and says so where this processor lacks the set."""
import json
import os
import subprocess
import sys

SETS = ["portable", "avx2", "avx512", "avx512_bf16", "amx"]  # each contains those before it


def main():
    cairn, name, *command = sys.argv[1:]
    environment = {key: value for key, value in os.environ.items() if key != "CAIRN_ISA"}
    found = subprocess.run([cairn, "devices", "--json"], env=environment, capture_output=True, text=True, check=True)
    best = next(device["isa"] for device in json.loads(found.stdout) if device["name"] == "cpu")
    if SETS.index(name) > SETS.index(best):
        print(f"not run: {os.path.basename(command[0])} with CAIRN_ISA={name}: needs {name}, this processor has {best}")
        return 77
    return subprocess.run(command, env={**environment, "CAIRN_ISA": name}, check=False).returncode


sys.exit(main())
