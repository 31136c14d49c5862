"""What must be reached on an H200, and whether it was: from the raw results alone."""
import rate_tables
from training import COMPILE, EAGER, EQUAL, KEEP, LAYERS, SHAPES, pace, rate, stall

TITLE = "Bars"
HEADER = ["bar", "goal", "measured", "met"]
OF_COMPILE = {"124m": (1.2, 615_000), "1.5b": (1.1, 50_000)}
PEAK_SHARE = 0.7       # of PyTorch's, 1.5b
BEYOND_BOUND = 0.02    # of the step
SLOWER_4096 = 0.02     # than keeping everything, at 40 %
LINK_SHARE, STALL = 0.9, 0.01
HOST_SECONDS = 50e-6


class Bars:
    def __init__(self, raw):
        self.raw, self.rows = raw, []

    def result(self, name):
        found = self.raw.get(name, {})
        return found if found and "failed" not in found else None

    def cairn(self, shape, label):
        return self.result(f"cairn {shape}, {label}")

    def peer(self, shape, label):
        return self.result(f"{label}, {shape}")

    def trained(self):
        return {name: r for name, r in self.raw.items()
                if name.startswith("cairn ") and "plan" in r and "failed" not in r}

    def add(self, name, goal, measured, met):
        """met: None where something it needs was not measured."""
        self.rows.append([name, goal, measured, "not measured" if met is None else "yes" if met else "NO"])

    def compare(self, name, goal, value, text, met):
        """A bar about one number, which is None where it was not measured."""
        if value is None:
            self.add(name, goal, "-", None)
        else:
            self.add(name, goal, text(value), met(value))

    def speed(self):
        for shape, (times, tokens) in OF_COMPILE.items():
            keep, compiled = self.cairn(shape, KEEP[0]), self.peer(shape, COMPILE)
            ours = pace(keep, SHAPES[shape]) if keep else None
            beside = ours / pace(compiled, SHAPES[shape]) if keep and compiled else None
            self.compare(f"{shape}: tokens/s beside torch.compile", f">= {times}x", beside, "{:.2f}x".format,
                         lambda v, least=times: v >= least)
            self.compare(f"{shape}: tokens/s", f">= {tokens:,}", ours, "{:,.0f}".format,
                         lambda v, least=tokens: v >= least)
        keep, compiled = self.cairn("1.5b", KEEP[0]), self.peer("1.5b", COMPILE)
        peak = (keep["peak_bytes"]["device"] / compiled["device_peak_bytes"]
                if keep and compiled and compiled.get("device_peak_bytes") else None)
        self.compare("1.5b: device peak beside torch.compile", f"<= {PEAK_SHARE}x", peak, "{:.2f}x".format,
                     lambda v: v <= PEAK_SHARE)

    def budgets(self):
        for shape in OF_COMPILE:
            for label in ("50 %", "25 %", "10 %"):
                r = self.cairn(shape, label)
                beyond = r["step_seconds_median"] / r["plan"]["bound_step_seconds"] - 1 if r else None
                self.compare(f"{shape}, {label} of activations: beyond the plan's bound", f"<= {BEYOND_BOUND:.0%}",
                             beyond, "{:+.1%}".format, lambda v: v <= BEYOND_BOUND)
            self.equal_bytes(shape)
        keep, small = self.cairn("4096", KEEP[0]), self.cairn("4096", "40 %")
        slower = small["step_seconds_median"] / keep["step_seconds_median"] - 1 if keep and small else None
        self.compare("4096, 40 % of activations: slower than keeping all", f"<= {SLOWER_4096:.0%}", slower,
                     "{:+.1%}".format, lambda v: v <= SLOWER_4096)

    def equal_bytes(self, shape):
        """As slow as half of PyTorch's slow-down, where both keep the same bytes from forward to backward."""
        name = f"{shape}: slow-down at the bytes that PyTorch's checkpoints keep"
        eager, layers, keep = self.peer(shape, EAGER), self.peer(shape, LAYERS), self.cairn(shape, KEEP[0])
        ours = self.cairn(shape, EQUAL)
        if not (eager and layers and keep and ours):
            return self.add(name, "<= half of PyTorch's", "-", None)
        theirs = layers["step_seconds_median"] / eager["step_seconds_median"] - 1
        slower = 0.0 if "kept" in ours else ours["step_seconds_median"] / keep["step_seconds_median"] - 1
        notes = {"kept": ", keeping everything", "note": " with more bytes, as these do not fit"}
        note = next((text for key, text in notes.items() if key in ours), "")
        text = f"{slower:+.1%}{note}, PyTorch's {theirs:+.1%}"
        return self.add(name, "<= half of PyTorch's", text, slower <= theirs / 2 and "note" not in ours)

    def copies(self):
        links = self.result(rate_tables.RAW) or {}
        shares, stalls = [], []
        for name, r in self.trained().items():
            for way in ("out", "in"):
                alone, reached = rate_tables.link_rate(links, way), rate(r["copies"]["host"], way)
                if reached is not None:
                    stalls.append((stall(r), name))
                    if alone:
                        shares.append((reached / alone, f"{name}, {way}"))
        for title, goal, rows, worst, met in (
                ("offload copies, of the pinned rate", f">= {LINK_SHARE:.0%}", shares, min, lambda v: v >= LINK_SHARE),
                ("stall of plans that offload", f"<= {STALL:.0%}", stalls, max, lambda v: v <= STALL)):
            self.compare(title, goal, worst(rows) if rows else None, lambda v: f"{v[0]:.1%} ({v[1]}, the worst)",
                         lambda v, good=met: good(v[0]))

    def kernels(self):
        result = self.result(rate_tables.RAW)
        rows = [(rate_tables.share(k, result), f"{k['model']}, {k['name']}")
                for k in rate_tables.bound_by_memory(result["kernels"])] if result else []
        below = sum(1 for value, _ in rows if value < rate_tables.SHARE)
        self.compare("memory-bound kernels, of the copy rate", f">= {rate_tables.SHARE:.0%}",
                     min(rows) if rows else None,
                     lambda v: f"{len(rows) - below} of {len(rows)}; {v[0]:.0%} ({v[1]}, the worst)",
                     lambda v: below == 0)

    def memory(self):
        cases = self.trained()
        wrong = [name for name, r in cases.items() if r["peak_bytes"] != r["planned_peak_bytes"]]
        self.add("planned bytes = measured bytes", "every case",
                 ", ".join(wrong) + " differ" if wrong else f"{len(cases)} cases", not wrong if cases else None)

    def host(self):
        for shape in OF_COMPILE:
            keep = self.cairn(shape, KEEP[0])
            self.compare(f"{shape}: host time of a replayed micro-step", f"< {HOST_SECONDS * 1e6:.0f} us",
                         keep["submit_seconds_median"] if keep else None, lambda v: f"{v * 1e6:.0f} us",
                         lambda v: v < HOST_SECONDS)

    def curves(self):
        rows = {name: r for name, r in self.raw.items() if name.startswith("curve: ")}
        if not rows:
            self.add("losses follow PyTorch's", "", "-", None)
        for name, r in rows.items():
            self.compare(f"losses follow: {name.removeprefix('curve: ')}", f"<= {r['limit']:.0e}", r["largest"],
                         "{:.1e}".format, lambda v, most=r["limit"]: v <= most)


def judge(raw):
    """Rows of name, goal, measured, met."""
    bars = Bars(raw)
    for part in (bars.curves, bars.kernels, bars.speed, bars.budgets, bars.copies, bars.memory, bars.host):
        part()
    return bars.rows
