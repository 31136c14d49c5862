#!/usr/bin/env python3
"""The tables of bench/results/plan-*.md from the JSON that `bench_plan --benchmark_format=json` prints.

    bench_plan --benchmark_format=json | bench/plan/table.py
"""
import json
import sys

PERCENTS = (60, 40, 25, 15, 10, 5)


def cell(row):
    """Gap in percent and processor seconds, or the smallest budget that would do."""
    if row is None:
        return ""
    if row.get("error_occurred"):
        return "error: " + row["error_message"]
    seconds = f"{row['cpu_time'] / 1e3:.2g} s"
    if not row["fits"]:
        return f"(from {row['smallest_percent']:.1f} %; {seconds})"
    return f"{row['gap_percent']:.2f} %, {seconds}"


def main():
    rows = {}
    for row in json.load(sys.stdin)["benchmarks"]:
        kind, size, percent, *link = row["name"].removesuffix("/iterations:1").split("/")
        rows.setdefault((link == ["link"], kind, int(size)), {})[int(percent)] = row
    for link in (False, True):
        print("\nWith a host link\n" if link else "\nRecompute only\n")
        print("| problem | forward ops | " + " | ".join(f"{p} %" for p in PERCENTS) + " | most arena / peak |")
        print("|---|---|" + "---|" * (len(PERCENTS) + 1))
        for (with_link, kind, size), cells in rows.items():
            if with_link != link:
                continue
            ops = int(next(iter(cells.values()))["ops"])
            highest = max((row["arena_over_peak"] for row in cells.values() if row.get("arena_over_peak")), default=0)
            print(f"| {kind}/{size} | {ops} | " + " | ".join(cell(cells.get(p)) for p in PERCENTS) +
                  f" | {f'{highest:.4f}' if highest else ''} |")


if __name__ == "__main__":
    main()
