#!/usr/bin/env python3
"""Lists what the last run of ctest left out, by reason.

    not_run.py [BUILD_FOLDER...]      default: build/release

Reads Testing/Temporary/LastTest.log below each folder: tests that GoogleTest or unittest skipped, and lines that begin
with `not run`. ctest counts all of these as passed. Prints nothing where nothing was left out."""
import collections
import pathlib
import re
import sys


def entries(log):
    """(name, output) of every ctest entry."""
    for part in re.split(r"^-{20,}\n(?=\d+/\d+ Testing: )", log, flags=re.M):
        head = re.match(r"\s*\d+/\d+ Testing: (.*)\n", part[part.find("Testing:") - 12:] if "Testing:" in part else "")
        name = re.search(r"^\d+/\d+ Testing: (.*)$", part, flags=re.M) or head
        output = re.search(r"^Output:\n-+\n(.*?)^<end of output>", part, flags=re.M | re.S)
        if name and output:
            yield name.group(1).strip(), output.group(1)


def left_out(output):
    """(what, reason) of everything that an output says was not run."""
    running, reason = "", ""
    lines = output.splitlines()
    for i, line in enumerate(lines):
        if found := re.match(r"\[ RUN      \] (.*)", line):
            running, reason = found.group(1), ""
        elif re.search(r"^\S.*: Skipped$", line):
            reason = lines[i + 1].strip() if i + 1 < len(lines) else ""
        elif running and (found := re.match(r"\[  SKIPPED \] (\S+) \(", line)):
            yield found.group(1), reason or "no reason given"
            running = ""
        elif found := re.match(r"not run(?: on this processor)?: (.*): (.*)", line):
            yield found.group(1), found.group(2)


def main():
    folders = sys.argv[1:] or [pathlib.Path(__file__).resolve().parents[1] / "build/release"]
    for folder in map(pathlib.Path, folders):
        log = folder / "Testing/Temporary/LastTest.log"
        if not log.exists():
            continue
        by_reason = collections.defaultdict(lambda: collections.defaultdict(list))
        for entry, output in entries(log.read_text(errors="replace")):
            for what, reason in left_out(output):
                by_reason[reason][entry].append(what)
        for reason, found in sorted(by_reason.items()):
            count = sum(map(len, found.values()))
            print(f"not run in {folder.name}: {count} because: {reason}")
            for entry, names in found.items():
                shown = ", ".join(names[:4]) + (f", and {len(names) - 4} more" if len(names) > 4 else "")
                print(f"  {entry}: {shown}")


main()
