#!/usr/bin/env python3
"""Table and picture of bench_recompute_vs_offload.

table.py RUN.json [RUN.json ...] --svg FILE [--model scripts/devices/h200.json] > table.md

Bytes freed per added second: an op's output bytes over the seconds that making them again takes, against those bytes
over the seconds of their way out and back. Of repetitions and runs of the same thing the median counts.
"""
import argparse
import json
import math
import statistics

import chart

SHAPES = ("gelu", "residual add", "layer norm", "linear 768->3072", "linear 3072->768", "attention")


def load(paths):
    """Benchmarks by the parts of their names: {(kind, ...): {counter: median}}, and the context of the first file."""
    rows, context = {}, None
    for path in paths:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        context = context or data["context"]
        for row in data["benchmarks"]:
            if row.get("run_type") == "aggregate":
                continue
            name = row["run_name"].removesuffix("/manual_time").split("/iterations:")[0]
            rows.setdefault(tuple(name.split("/")), []).append(row)
    numbers = {}
    for key, runs in rows.items():
        names = [name for name, value in runs[0].items() if isinstance(value, (int, float))]
        numbers[key] = {name: statistics.median(run[name] for run in runs) for name in names}
        if key[0] in ("recompute", "link"):
            every = sorted(run["median_seconds"] for run in runs)
            numbers[key]["spread"] = (every[-1] - every[0]) / numbers[key]["median_seconds"]
    return numbers, context


class Link:
    """Seconds of a copy out and of one back, between measured sizes by straight lines, as latency + bytes / rate beyond."""

    def __init__(self, out, back, both=None):
        self.ways, self.both = [sorted(out.items()), sorted(back.items())], both

    @staticmethod
    def seconds(points, size):
        for (a, ta), (b, tb) in zip(points, points[1:]):
            if size <= b or b == points[-1][0]:
                return max(ta + (tb - ta) * (size - a) / (b - a), 0.5 * points[0][1])
        return points[0][1] * size / points[0][0]

    def freed_per_second(self, size):
        return size / sum(self.seconds(points, size) for points in self.ways)

    def covered(self):
        """Bytes that leave and come back under a second of computation: both lanes run, each hides one direction."""
        return self.both


def measured_links(numbers):
    ways = {}
    for key, row in numbers.items():
        if key[0] == "link":
            ways.setdefault(key[1], {}).setdefault(key[2], {})[int(key[3])] = row["median_seconds"]
    links = {}
    for tier, way in ways.items():
        size = max(way["both"])
        links[tier] = Link(way["out"], way["in"], size / way["both"][size])
    return links


def model_links(model):
    links = {}
    for link in model["links"]:
        wait = link["latency_seconds"]
        out, back = (link[name + "_bytes_per_second"] for name in ("out", "in"))
        sizes = (2**16, 2**30)
        links[link["tier"]] = Link({s: wait + s / out for s in sizes}, {s: wait + s / back for s in sizes},
                                   link["both_ways_factor"] * min(out, back))
    return links


def model_seconds(model, dtype, row):
    rate = model[f"{dtype}_flops_per_second"]
    return model["launch_seconds"] + max(row["flops"] / rate, row["moved_bytes"] / model["memory_bytes_per_second"])


def series(numbers, seconds_of):
    """{dtype: {op: [(freed bytes, bytes per second, rows)]}}, by size."""
    found = {}
    for key, row in numbers.items():
        if key[0] == "recompute":
            _, dtype, op, rows = key
            freed = row["freed_bytes"]
            found.setdefault(dtype, {}).setdefault(op, []).append((freed, freed / seconds_of(dtype, row), int(rows)))
    return {dtype: {op: sorted(points) for op, points in ops.items()} for dtype, ops in found.items()}


def crossing(points, link):
    """Bytes at which recompute and an exposed copy free equally fast, or who always wins."""
    ratios = [(size, rate / link.freed_per_second(size)) for size, rate, _ in points]
    places = []
    for (a, ra), (b, rb) in zip(ratios, ratios[1:]):
        if (ra - 1) * (rb - 1) < 0:
            share = math.log(ra) / (math.log(ra) - math.log(rb))
            places.append((a * (b / a) ** share, "recompute below" if ra > 1 else "recompute above"))
    if places:
        return "; ".join(f"{side} {amount(size)}" for size, side in places)
    return "recompute" if ratios[-1][1] > 1 else "offload"


def amount(size):
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} B"


def rate_text(rate):
    return f"{rate / 1e9:.3g}"


def table(header, rows):
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def print_ops(found, links, title):
    print(f"### {title}\n\nGB freed per added second. Each size: tokens, then made again / copied, exposed, per tier.\n")
    for dtype, ops in found.items():
        rows = []
        for op, points in sorted(ops.items()):
            for size, rate, count in points:
                rows.append([op, dtype, str(count), amount(size), rate_text(rate)] +
                            [rate_text(link.freed_per_second(size)) for link in links.values()] +
                            [max([("recompute", rate)] + [(t, k.freed_per_second(size)) for t, k in links.items()],
                                 key=lambda pair: pair[1])[0]])
        table(["op", "dtype", "tokens", "freed", "recompute", *links, "frees fastest"], rows)


def print_crossings(found, links, title):
    print(f"### {title}\n")
    table(["op", "dtype", *links],
          [[op, dtype, *(crossing(points, link) for link in links.values())]
           for dtype, ops in found.items() for op, points in sorted(ops.items()) if len(points) > 1])


def widths(found, links):
    """Linears over 1024 tokens by the width of their input, on which bytes freed per second of making again depend."""
    rows = []
    for dtype, ops in found.items():
        points = []
        for op, values in ops.items():
            if op.startswith("linear ") and "->50304" not in op:
                points += [(int(op.split()[1].split("->")[0]), size, rate) for size, rate, count in values if count == 1024]
        points.sort()
        for tier, link in links.items():
            logs = [(math.log(k), math.log(rate / link.freed_per_second(size))) for k, size, rate in points]
            (mx, my) = (statistics.mean(column) for column in zip(*logs))
            slope = sum((x - mx) * (y - my) for x, y in logs) / sum((x - mx) ** 2 for x, y in logs)
            rows.append([dtype, tier, f"{math.exp(mx - my / slope):.0f}", f"{slope:.2f}"])
    return rows


def print_hidden(numbers):
    rows = []
    for key, row in numbers.items():
        if key[0] == "hidden":
            alone, added, freed = row["alone_seconds"], row["added_seconds"], row["freed_bytes"]
            per_added = f"{freed / added / 1e9:.3g}" if added > 0.01 * alone else "inside the noise"
            rows.append([key[1], key[2], rate_text(freed / alone), f"{100 * added / alone:+.1f} %", per_added])
    table(["tier", "dtype", "GB hidden per second of computation", "computation slower", "GB freed per added second"], rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--svg", required=True)
    parser.add_argument("--model", help="a device model, for theoretical lines")
    arguments = parser.parse_args()
    numbers, context = load(arguments.runs)
    measured = series(numbers, lambda _, row: row["median_seconds"])
    links = measured_links(numbers)
    print(f"{context['processor']}, {context['threads']} thread(s) for computation, each copy lane a thread of its own\n")
    spreads = sorted(row["spread"] for key, row in numbers.items() if "spread" in row)
    print(f"{len(spreads)} ops and copies; between the repetitions' medians of one of them lie {100 * spreads[len(spreads) // 2]:.0f} % "
          f"in the middle, {100 * spreads[int(0.9 * len(spreads))]:.0f} % at the ninth decile.\n")
    print_crossings(measured, links, "Who frees more per added second, made again or copied out and back with nothing to hide behind")
    print("### Linears: the input width at which making again frees as fast as an exposed copy\n")
    print("A line through the measured widths 192, 768 and 3072 at 1024 tokens, both axes logarithmic; narrower than this, make it "
          "again.\n")
    table(["dtype", "tier", "width", "slope"], widths(measured, links))
    print("### Hidden: both directions beside a product of 768->3072\n")
    print_hidden(numbers)
    print_ops(measured, links, "All sizes")
    panels = [(f"this machine, {dtype}", ops, links) for dtype, ops in measured.items()]
    if arguments.model:
        with open(arguments.model, encoding="utf-8") as file:
            model = json.load(file)
        theory = series(numbers, lambda dtype, row: model_seconds(model, dtype, row))
        far = model_links(model)
        print_crossings(theory, far, f"{model['name']}, from its device model alone")
        print("Large values, where no latency and no launch counts: a linear's output takes 2K FLOPs per element, attention's 2T "
              "(causal, T tokens), so that both are equal at K or T = element bytes x FLOP/s / (2 x bytes out and back per second).\n")
        table(["dtype", *far], [[dtype, *(f"{width * model[f'{dtype}_flops_per_second'] / (2 * link.freed_per_second(2**30)):.0f}"
                                          for link in far.values())] for dtype, width in (("f32", 4), ("bf16", 2))])
        table(["tier", "GB out and back per second, exposed (16 MiB)", "GB hidden per second of computation"],
              [[tier, rate_text(link.freed_per_second(2**24)), rate_text(link.covered())] for tier, link in far.items()])
        panels += [(f"{model['name']}, modelled, {dtype}", ops, far) for dtype, ops in theory.items()]
    with open(arguments.svg, "w", encoding="utf-8") as file:
        file.write(chart.draw([(title, {op: ops[op] for op in SHAPES}, tiers) for title, ops, tiers in panels]))


main()
