"""Loss curves: the same weights and the same tokens in cairn and in PyTorch, on the same device.

And beside the losses that PyTorch once wrote into tests/golden, which needs no PyTorch.
"""
import array
import json
import pathlib
import random
import tempfile

from runner import ROOT, last_object

GOLDEN = ROOT / "tests/golden"
TITLE = "Loss curves"
HEADER = ["curve", "steps", "first loss", "last loss", "largest difference", "goal", "met"]
SHAPE = dict(layers=4, heads=4, width=256, vocab=4096, seq=256, batch=8)
QUICK = dict(layers=2, heads=2, width=32, vocab=96, seq=16, batch=2)
STEPS, RATE = 20, 1e-3
# dtype, how PyTorch and cairn are told, largest relative difference of a loss
KINDS = [("float32", ["--amp", "off"], 1e-4), ("bfloat16", ["--amp", "bf16"], 2e-2)]


def walks(path, shape, steps):
    """Walks on the vocabulary, mostly to a fixed successor, as int32 [steps, batch, seq + 1]: they can be learnt."""
    source = random.Random(20)
    successor = source.sample(range(shape["vocab"]), shape["vocab"])
    tokens = array.array("i")
    for _ in range(steps * shape["batch"]):
        token = source.randrange(shape["vocab"])
        for _ in range(shape["seq"] + 1):
            tokens.append(token)
            token = source.randrange(shape["vocab"]) if source.random() < 0.1 else successor[token]
    path.write_bytes(tokens.tobytes())


def cairn(run, name, shape, batches, weights, steps, words):
    settings = [f"{k}={v}" for k, v in shape.items()]
    command = run.cairn("train", GOLDEN / "gpt2_batches.lua", *settings, f"batches={batches}", "--init", weights,
                        "--steps", steps, "--json", "--quiet", *words)
    return run.command(name, command, 8, last_object)


def compare(run, name, found, wanted, limit):
    """Notes the largest relative difference between two lists of losses."""
    state = dict(limit=limit, largest=None, met=False)
    if len(found) == len(wanted) > 0:
        state["largest"] = max(abs(a - b) / max(abs(b), 1e-9) for a, b in zip(found, wanted))
        state["met"] = state["largest"] <= limit
    run.raw[f"curve: {name}"] = dict(state, cairn=found, other=wanted)
    largest = "-" if state["largest"] is None else f"{state['largest']:.1e}"
    run.row(TITLE, HEADER, [name, len(found), f"{found[0]:.4f}", f"{found[-1]:.4f}", largest, f"<= {limit:.0e}",
                            "yes" if state["met"] else "NO"])


def golden(run):
    known = json.loads((GOLDEN / "data/gpt2_small_losses.json").read_text())
    names = ("layers", "heads", "width", "vocab", "seq", "batch", "rate", "weight_decay", "beta1", "beta2", "clip")
    result = cairn(run, "golden losses, cairn", {k: known[k] for k in names}, GOLDEN / "data/gpt2_small_batches.bin",
                   GOLDEN / "data/gpt2_small.safetensors", known["steps"], [])
    if result:
        compare(run, "committed losses of PyTorch, float32", result["loss"], known["loss_float32"], 1e-4)


def curves(run, folder):
    shape, steps = (QUICK, 6) if run.options.quick else (SHAPE, STEPS)
    batches, weights = folder / "batches.bin", folder / "weights.safetensors"
    walks(batches, shape, steps)
    # The first of them draws the weights, for all.
    source = ["--save-init", weights]
    for kind, amp, limit in KINDS:
        peer = run.train_peer(f"curve {kind}, PyTorch", shape, ["--steps", steps, "--rate", RATE, "--batches", batches,
                                                                *source, *amp], 20)
        if not peer:
            return
        source = ["--init", weights]
        result = cairn(run, f"curve {kind}, cairn", dict(shape, rate=RATE), batches, weights, steps, amp)
        if result:
            compare(run, f"PyTorch {peer['torch']} beside it, {kind}", result["loss"], peer["loss"], limit)


def part(run):
    golden(run)
    if run.options.torch:
        with tempfile.TemporaryDirectory(prefix="cairn-curve-") as folder:
            curves(run, pathlib.Path(folder))
