#!/usr/bin/env python3
"""Lists what the last run of ctest left out, by reason.

    not_run.py [BUILD_FOLDER...]      default: build/release

Reads Testing/Temporary/LastTest.log below each folder: tests that GoogleTest or unittest skipped, and lines that begin
with `not run`. ctest counts all of these as passed. What unittest only counts (`OK (skipped=2)`) is listed by number.
Prints nothing where nothing was left out."""
import collections
import pathlib
import re
import sys


def entries(log):
    """(name, output) of every ctest entry."""
    _, *parts = re.split(r"^\d+/\d+ Testing: (.*)\n", log, flags=re.M)
    for name, part in zip(parts[::2], parts[1::2]):
        if output := re.search(r"^Output:\n-+\n(.*?)^<end of output>", part, flags=re.M | re.S):
            yield name.strip(), output.group(1)


# Lines that tell of one test that was left out: what, and why. unittest writes its lines in two parts, between which
# may stand what the test itself printed, or the first line of its docstring in place of its name.
GOOGLE_RUNS = re.compile(r"\[ RUN      \] (.*)")
GOOGLE_SKIPS = re.compile(r"\[  SKIPPED \] (\S+) \(")
UNITTEST_NAMES = re.compile(r"(?P<what>\w+) \(\w+(?:\.\w+)*\)(?: \.\.\.|$)")
UNITTEST_SKIPS = re.compile(r"(?:.* \.\.\. |^)skipped (?P<quote>['\"])(?P<why>.*)(?P=quote)$")
UNITTEST_COUNTS = re.compile(r"(?:OK|FAILED) \(.*\bskipped=(\d+)")
TEST_ID = re.compile(r"[\w.]+(?: \([\w.]+\))?$")
SAYS_SO = re.compile(r"(?:[.sEFxu]*|.* \.\.\. )not run(?: on this processor)?: (?P<what>.*?): (?P<why>.*)$")


def left_out(output):
    """(what, reason) of everything that an output says was not run."""
    running, reason, named, counted = "", "", 0, 0
    lines = output.splitlines()
    for i, line in enumerate(lines):
        if found := GOOGLE_RUNS.match(line):
            running, reason = found.group(1), ""
        elif re.search(r"^\S.*: Skipped$", line):
            reason = lines[i + 1].strip() if i + 1 < len(lines) else ""
        elif running and (found := GOOGLE_SKIPS.match(line)):
            yield found.group(1), reason or "no reason given"
            running = ""
        elif found := UNITTEST_COUNTS.match(line):
            counted += int(found.group(1))
        elif found := SAYS_SO.match(line):
            named += bool(TEST_ID.match(found.group("what")))
            yield found.group("what"), found.group("why")
        else:
            if found := UNITTEST_NAMES.match(line):
                running = found.group("what")
            if found := UNITTEST_SKIPS.match(line):
                named += 1
                yield running, found.group("why")
    if counted > named:
        yield f"{counted - named} tests", "unittest counts them and does not say why (verbosity=2 does)"


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


if __name__ == "__main__":
    main()
