#!/usr/bin/env python3
"""Compiling is a function of its arguments: the sources of runtime/compile open no file, ask no clock and measure nothing. What they
need to know of the machine is handed to them (runtime/costs/machine_facts.h). Functions of its headers take a stage as a value or
const, and return another one: no stage changes once it is made."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PURE = ("runtime/compile",)
# Headers by which a program reaches files, clocks, threads and the environment, and the project's own of the kind.
HEADER = re.compile(r'^\s*#\s*include\s+[<"](fcntl\.h|unistd\.h|sys/[^>"]*|chrono|ctime|time\.h|fstream|filesystem|thread|random|'
                    r'runtime/base/os/[^>"]*|runtime/costs/(?:disk_rates|rate_source|kept|recorder)\.h|runtime/costs/probe/[^>"]*)[>"]', re.M)
# And calls that need none of them.
CALL = re.compile(r"\b(getenv|fopen|find_disk_link|find_host_memory_rate|find_rates|find_machine_facts|probe_disk|measure_rates|"
                  r"create_queue|synchronize|thread_local)\b")

# A function that may change a stage of its caller's.
CHANGES = re.compile(r"(?<!const )\b(?:Lowered|Planned|Placed|CompiledPlan) ?& ?\w+(?=[,)])|shared_ptr<(?:Lowered|Planned|Placed|CompiledPlan)>")


def complaints(name, text):
    code = re.sub(r"//[^\n]*", "", text)
    if name.endswith(".h"):
        yield from (f"{name}: a stage is const for others, not '{change}'" for change in CHANGES.findall(code))
    yield from (f"{name} includes {header}" for header in HEADER.findall(code))
    yield from (f"{name} uses {call}" for call in CALL.findall(code))


def main():
    files = [file for folder in PURE for file in sorted((ROOT / folder).rglob("*")) if file.suffix in (".h", ".cc")]
    found = [line for file in files for line in complaints(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8"))]
    if len(files) < 30:
        found.append(f"only {len(files)} files were found: the check looks in the wrong place")
    for name, bad in (("a.cc", "#include <fcntl.h>\n"), ("a.cc", "costs::find_disk_link({})"), ("a.h", "void lower(Lowered& plan);")):
        if not list(complaints(name, bad)):
            found.append(f"the check finds nothing in {bad!r}")
    print("\n".join(found) or f"{len(files)} sources are pure")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
