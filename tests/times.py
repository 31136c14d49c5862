#!/usr/bin/env python3
"""A table of how long each entry of ctest took.

    times.py [BUILD_FOLDER] [--costs FILE]      default: build/release

Reads Testing/Temporary/LastTest.log of the last run and prints Markdown: the machine, the date, entries from the longest
on. --costs writes what cmake/tests.cmake orders entries by, so that the longest begin first where ctest has no times of its
own yet."""
import argparse
import datetime
import os
import pathlib
import platform
import re

SHORT = 0.5  # seconds; entries below are summed up in one row


def seconds_of(log):
    """{entry: seconds} of every entry in a log of ctest."""
    found, name = {}, None
    for line in log.splitlines():
        if begin := re.match(r"\d+/\d+ Testing: (\S+)$", line):
            name = begin[1]
        elif (end := re.match(r"Test time =\s+([0-9.]+) sec$", line)) and name:
            found[name] = float(end[1])
    return found


def processor():
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    found = re.search(r"^model name\s*: (.*)$", text, re.M)
    return found[1] if found else platform.machine()


def by_time(seconds):
    return sorted(seconds.items(), key=lambda item: (-item[1], item[0]))


def table(seconds):
    long = [(name, took) for name, took in by_time(seconds) if took >= SHORT]
    yield f"{datetime.date.today()}. {os.cpu_count()} cores of {processor()}; load {os.getloadavg()[1]:.1f} at the end."
    yield ""
    yield f"{len(seconds)} entries, {sum(seconds.values()):.0f} s one after the other."
    yield ""
    yield "| entry | seconds |"
    yield "|---|---|"
    for name, took in long:
        yield f"| {name} | {took:.1f} |"
    rest = len(seconds) - len(long)
    if rest:
        yield f"| {rest} others, each below {SHORT} | {sum(seconds.values()) - sum(took for _, took in long):.1f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1] / "build/release")
    parser.add_argument("--costs", type=pathlib.Path)
    options = parser.parse_args()
    log = options.build / "Testing/Temporary/LastTest.log"
    if not log.exists():
        raise SystemExit(f"there is no {log}: run ctest in {options.build} first")
    seconds = seconds_of(log.read_text(errors="replace"))
    if not seconds:
        raise SystemExit(f"{log} tells of no entry that ended: run ctest in {options.build} to its end")
    print("\n".join(table(seconds)))
    if options.costs:
        lines = [f"{round(took)} {name}" for name, took in by_time(seconds) if took >= 1]
        options.costs.write_text("\n".join(lines) + "\n", encoding="utf-8")


main()
