"""Rates of copies, kernels and links, as cairn_gpu_rates measures them, as tables."""
from runner import last_object

RAW = "rates"
SHARE = 0.85  # of the copy bandwidth, for what is bound by memory
MEMORY, PRODUCTS, LINKS = "Memory-bound kernels", "Products, attention, loss", "Links"


def bound_by_memory(kernels):
    return [k for k in kernels if k.get("flops") == 0 and "seconds" in k]


def share(kernel, result):
    return kernel["bytes"] / kernel["seconds"] / result["copy_bytes_per_second"]


def link_rate(result, way, both=False):
    """Bytes per second between the device and pinned memory, of the largest copies; None: not measured."""
    rows = [r for r in result.get("links", [])
            if r["tier"] == "host" and r.get("way") == way and r.get("both") == both]
    return max(rows, key=lambda r: r["bytes"])["bytes_per_second"] if rows else None


def tables(run, result):
    for k in result["kernels"]:
        name = [k["model"], k["name"], k.get("row", "-")]
        if "error" in k:
            run.row("Kernels that did not run", ["model", "kernel", "row", "why"], [*name, k["error"][:200]])
            continue
        micro = f"{k['seconds'] * 1e6:.1f}"
        if k["flops"] > 0:
            run.row(PRODUCTS, ["model", "kernel", "row", "us", "TFLOP/s"],
                    [*name, micro, f"{k['flops'] / k['seconds'] / 1e12:.1f}"])
            continue
        part = share(k, result)
        run.row(MEMORY, ["model", "kernel", "row", "us", "GB/s", "of the copy rate", ""],
                [*name, micro, f"{k['bytes'] / k['seconds'] / 1e9:.0f}", f"{100 * part:.0f} %",
                 "" if part >= SHARE else "below"])
    for r in result["links"]:
        if "error" in r:
            run.row("Links that were not measured", ["tier", "why"], [r["tier"], r["error"][:200]])
            continue
        run.row(LINKS, ["tier", "way", "MiB", "GB/s"],
                [r["tier"], r["way"] + (", both at once" if r["both"] else ", alone"), f"{r['bytes'] / 2**20:g}",
                 f"{r['bytes_per_second'] / 1e9:.1f}"])


def part(run):
    program = run.bundle / "bin/cairn_gpu_rates"
    words = [program, "--device", run.options.device, *(["--quick"] if run.options.quick else [])]
    result = run.command(RAW, words, 20, last_object)
    if result:
        run.row("Device", ["device", "copies inside it, GB/s, read and written"],
                [result["device"], f"{result['copy_bytes_per_second'] / 1e9:.0f}"])
        tables(run, result)
