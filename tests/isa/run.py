#!/usr/bin/env python3
"""Runs a test program with the instruction set that CAIRN_ISA names.

    run.py CAIRN SET PROGRAM [ARGUMENTS...]

Exits with 77, which ctest counts as skipped, and says so where this processor lacks the set."""
import json
import os
import subprocess
import sys

def main():
    cairn, name, *command = sys.argv[1:]
    environment = {**os.environ, "CAIRN_ISA": name}
    found = subprocess.run([cairn, "devices", "--json"], env=environment, capture_output=True, text=True, check=False)
    if found.returncode == 3 and "this processor lacks it" in found.stderr:
        print(f"not run: {os.path.basename(command[0])} with CAIRN_ISA={name}: needs {name}")
        return 77
    used = next(device["isa"] for device in json.loads(found.stdout) if device["name"] == "cpu")
    assert used == name, f"CAIRN_ISA={name} gives {used}"
    return subprocess.run(command, env=environment, check=False).returncode


sys.exit(main())
