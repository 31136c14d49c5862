"""Training GPT-2 under budgets, beside PyTorch: the cases of one shape, and what is kept of each.

Seconds, as an H200 with 16 processors needs them (start, plan, weights, steps, digest): they decide what is still begun.
              124m   1.5b   4096
  profile        9     12     21    links (3 s), weights, 3 rounds of 3 steps
  plan           1      1      1
  cairn          4     15     28    weights, 12 steps of 0.11 / 0.32 / 0.47 s; pinned host memory
  compile       17     18      -    its graph was compiled beside the checks (35 and 80)
  eager, layer   9     13      -    the import alone takes 5
"""
import re

from runner import last_object

SHAPES = {
    "124m": dict(layers=12, heads=12, width=768, vocab=50304, seq=1024, batch=64),
    "1.5b": dict(layers=48, heads=25, width=1600, vocab=50304, seq=1024, batch=16),
    "4096": dict(layers=24, heads=32, width=4096, vocab=50304, seq=2048, batch=4),
    "tiny": dict(layers=2, heads=2, width=32, vocab=96, seq=16, batch=2),  # to try this program
}
SECONDS = {
    "124m": dict(profile=10, plan=2, cairn=6, compile=20, eager=10),
    "1.5b": dict(profile=13, plan=2, cairn=16, compile=20, eager=14),
    "4096": dict(profile=22, plan=2, cairn=28, compile=60, eager=30),
    "tiny": dict(profile=5, plan=2, cairn=5, compile=60, eager=20),
}
KEEP = ("keep everything", None)
# Of each shape: name, share of keep-all activations (None: no budget). What is judged comes first; LATER is for the
# time that is left.
BUDGETS = {
    "124m": [("50 %", .5), ("25 %", .25), ("10 %", .1)],
    "1.5b": [("25 %", .25)],
    "4096": [("40 %", .4)],
    "tiny": [("50 %", .5)],
}
LATER = {"1.5b": [("50 %", .5), ("10 %", .1)]}
EQUAL = "the bytes PyTorch saves, layers checkpointed"
# Arguments of bench/peers/gpt2.py, and which estimate is theirs.
COMPILE, EAGER, LAYERS = "PyTorch compile", "PyTorch eager", "PyTorch eager, checkpoint every layer"
PEERS = {
    COMPILE: (["--mode", "compile"], "compile"),
    EAGER: ([], "eager"),
    LAYERS: (["--checkpoint", "layer", "--saved"], "eager"),
    "PyTorch compile, activation_memory_budget 0.25": (["--mode", "compile", "--memory-budget", "0.25"], "compile"),
    "PyTorch eager, save_on_cpu": (["--save-on-cpu"], "compile"),
}
JUDGED, MORE = list(PEERS)[:3], list(PEERS)[3:]
COMPILED = ["124m", "1.5b"]  # shapes whose compiled peer is judged

TITLE = "Training: GPT-2, bfloat16, AdamW, clip 1.0; medians"
HEADER = ["case", "tokens/s", "step ms", "predicted / bound ms", "device peak GiB", "driver's count GiB",
          "copied out / in GB/s", "stall", "host us"]
SMALLEST = re.compile(r"smallest budget that (?:does|fits) is (\d+)")


def recipe(shape):
    return ["gpt2", *(f"{k}={v}" for k, v in shape.items()), "data=random", "--amp", "bf16"]


def pace(result, shape):
    """Tokens per second of the median step."""
    return shape["batch"] * shape["seq"] / max(result["step_seconds_median"], 1e-9)


def rate(copies, way):
    """Bytes per second while such copies ran; None: there were none."""
    seconds, moved = copies[f"{way}_seconds"], copies[f"{way}_bytes"]
    return moved / seconds if seconds > 0 and moved > 0 else None


def stall(result):
    return result["stall_seconds"] / max(result["step_seconds_median"], 1e-9)


class Shape:
    """One model: its costs, what keeping everything takes, its cases."""

    def __init__(self, run, name):
        self.run, self.name, self.shape, self.seconds = run, name, SHAPES[name], SECONDS[name]
        self.costs = run.bundle / f"profile-{name}.json"

    def case(self, label):
        return f"{label}, {self.name}" if label in PEERS else f"cairn {self.name}, {label}"

    def prepare(self):
        """The profile that plans are made with, and how many bytes keeping everything takes."""
        self.costs.unlink(missing_ok=True)  # of another run, or another machine
        words = self.run.cairn("profile", *recipe(self.shape), "--steps", 3, "--profile-out", self.costs, "--quiet",
                               "--trace", self.run.bundle / f"trace-{self.name}.json", "--json")
        self.run.command(f"profile {self.name}", words, self.seconds["profile"], last_object)
        words = self.run.cairn("plan", *recipe(self.shape), *self.profile(), "--json")
        self.run.command(f"plan {self.name}", words, self.seconds["plan"], last_object)

    def profile(self):
        return ["--profile", self.costs] if self.costs.exists() else []

    def bytes(self, share):
        """A budget: what persists, and this share of what keeping everything takes beside it. None: not known."""
        plan = self.run.raw.get(f"plan {self.name}", {})
        if "persistent_bytes" not in plan:
            return None
        persistent = plan["persistent_bytes"]
        return int(persistent + share * (plan["planned_peak_bytes"]["device"] - persistent))

    def train(self, label, budget=None):
        words = self.run.cairn("train", *recipe(self.shape), *self.profile(), "--steps", self.run.options.steps,
                               "--json", "--quiet")
        name = self.case(label)

        def once(limit):
            extra = [] if limit is None else ["--budget", limit, "--tiers", "host"]
            return self.run.command(name, [*words, *extra], self.seconds["cairn"], last_object)

        result = once(budget)
        smallest = SMALLEST.search(self.run.raw.get(name, {}).get("error", "")) if result is None else None
        if smallest:
            result = once(int(smallest.group(1)))
            if result:
                result["note"] = f"{budget} bytes do not fit; the smallest that do: {smallest.group(1)}"
        if result:
            result["budget_bytes"] = budget
            self.note(name, result)

    def note(self, name, r):
        plan, copies, driver = r["plan"], r["copies"]["host"], r["driver_bytes"]
        equal = r["peak_bytes"] == r["planned_peak_bytes"]
        rates = " / ".join("-" if v is None else f"{v / 1e9:.1f}" for v in (rate(copies, "out"), rate(copies, "in")))
        self.run.row(TITLE, HEADER, [
            name + (" (the smallest that fits)" if "note" in r else ""), f"{pace(r, self.shape):,.0f}",
            f"{r['step_seconds_median'] * 1e3:.1f}",
            f"{plan['predicted_step_seconds'] * 1e3:.1f} / {plan['bound_step_seconds'] * 1e3:.1f}",
            f"{r['peak_bytes']['device'] / 2**30:.2f}" + ("" if equal else " (NOT as planned)"),
            f"{driver['before'] / 2**30:.2f} -> {driver['now'] / 2**30:.2f}" if driver["now"] else "-", rates,
            f"{100 * stall(r):.1f} %", f"{r['submit_seconds_median'] * 1e6:.0f}"])

    def budgets(self, rows):
        for label, share in rows:
            budget = self.bytes(share)
            if budget:
                self.train(label, budget)

    def equal_bytes(self):
        """What PyTorch keeps from forward to backward with every layer checkpointed, as a budget for all activations."""
        saved = self.run.raw.get(self.case(LAYERS), {}).get("saved_bytes")
        nothing, everything = self.bytes(0), self.bytes(1)
        if saved is None or everything is None:
            return
        if nothing + saved < everything:
            self.train(EQUAL, nothing + saved)
        else:
            self.run.raw[self.case(EQUAL)] = {"kept": everything - nothing, "saved": saved}

    def peers(self, labels):
        if not self.run.options.torch:
            return
        for label in labels:
            words, kind = PEERS[label]
            name = self.case(label)
            words = ["--amp", "bf16", "--steps", self.run.options.steps, *words]
            r = self.run.train_peer(name, self.shape, words, self.seconds[kind])
            if r:
                peak = r.get("device_peak_bytes")
                self.run.row(TITLE, HEADER, [
                    name, f"{pace(r, self.shape):,.0f}", f"{r['step_seconds_median'] * 1e3:.1f}", "",
                    f"{peak / 2**30:.2f}" if peak else "-",
                    f"{r['device_reserved_bytes'] / 2**30:.2f} reserved" if peak else "-", "", "", ""])


def part(run, name):
    shape = Shape(run, name)
    shape.prepare()
    shape.train(*KEEP)
    shape.peers(JUDGED if name in COMPILED or name == "tiny" else [])
    shape.budgets(BUDGETS[name])
    shape.equal_bytes()


def more(run):
    """What is not judged, or judged already for another shape."""
    for name, rows in LATER.items():
        shape = Shape(run, name)
        if f"plan {name}" not in run.raw:
            shape.prepare()
        shape.budgets(rows)
    Shape(run, "124m").peers(MORE)


def warm_compiler(run, name):
    """Compiles the graph that is timed later, while nothing is timed."""
    if run.options.torch:
        words = ["--amp", "bf16", "--steps", 1, "--mode", "compile"]
        run.train_peer(f"PyTorch compiles, {name}", SHAPES[name], words, 45)
