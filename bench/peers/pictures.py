#!/usr/bin/env python3
"""ResNet-50 and ViT-S/16 beside PyTorch: pictures a second and resident memory, the programs in turns.

    PYTHON_WITH_TORCH_AND_TRANSFORMERS bench/peers/pictures.py CAIRN [--rounds 3] [--model resnet] [--amp off] [--form eager ...]
        [--activations 40]

PyTorch runs eagerly, with channels last, and compiled, on Transformers' models with AdamW; `checkpoint` is channels last with every
residual or transformer block checkpointed. --activations also runs cairn with that share of the bytes of its activations. Every
program is a process of its own, on two threads, with 16 pictures of 224 x 224 a step; of its steps the first two do not count."""
import argparse
import contextlib
import json
import resource
import statistics
import subprocess
import sys
import time

BATCH, IMAGE, CLASSES, THREADS, STEPS, WARM = 16, 224, 10, 2, 6, 2
MODELS = {"resnet": ["depth=50"], "vit": ["size=small", "patch=16", "pooling=cls"]}
FORMS = ["eager", "channels_last", "compile", "checkpoint"]


def build(name):
    from transformers import ResNetConfig, ResNetForImageClassification, ViTConfig, ViTForImageClassification
    if name == "resnet":
        return ResNetForImageClassification(ResNetConfig(num_labels=CLASSES))
    return ViTForImageClassification(ViTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536,
                                               num_labels=CLASSES))


def checkpoint_blocks(name, model):
    """Has every block keep its input alone."""
    if name == "vit":
        model.gradient_checkpointing_enable({"use_reentrant": False})
        return
    from torch.utils.checkpoint import checkpoint
    for block in [layer for stage in model.resnet.encoder.stages for layer in stage.layers]:
        block.forward = lambda x, forward=block.forward: checkpoint(forward, x, use_reentrant=False)


class Saved:
    """The bytes of what backward reads, each storage once."""

    def __init__(self, model):
        self.known = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
        self.bytes = 0

    def pack(self, tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.known:
            self.known.add(storage.data_ptr())
            self.bytes += storage.nbytes()
        return tensor


def peer(name, amp, form):
    """Prints what a run of PyTorch took, as JSON."""
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    model = build(name).train()
    last = form in ("channels_last", "checkpoint")
    if last:
        model = model.to(memory_format=torch.channels_last)
    if form == "checkpoint":
        checkpoint_blocks(name, model)
    run = torch.compile(model) if form == "compile" else model
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    generator, seconds = torch.Generator().manual_seed(1), []
    saved = Saved(model)
    for step in range(STEPS):
        pictures = torch.randn(BATCH, 3, IMAGE, IMAGE, generator=generator)
        labels = torch.randint(0, CLASSES, (BATCH,), generator=generator)
        if last:
            pictures = pictures.to(memory_format=torch.channels_last)
        begin = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=amp == "bf16"):
            # What is saved is counted in the first step, which is not timed.
            with torch.autograd.graph.saved_tensors_hooks(saved.pack, lambda x: x) if step == 0 else contextlib.nullcontext():
                loss = torch.nn.functional.cross_entropy(run(pixel_values=pictures).logits.float(), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - begin)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds[WARM:], "rss": rss, "saved": saved.bytes}))


def of_peer(name, amp, form):
    done = subprocess.run([sys.executable, __file__, "--peer", name, amp, form], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def said_by(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def of_cairn(cairn, name, amp, share=None):
    model = [name, *MODELS[name], f"image={IMAGE}", f"batch={BATCH}", f"classes={CLASSES}", "data=drawings", "evaluate=none",
             "--amp", amp, "--threads", THREADS, "--json"]
    budget = []
    if share:
        plan = said_by(cairn, "plan", *model)
        activations = plan["activation_peak_bytes"]
        budget = ["--budget", plan["planned_peak_bytes"]["device"] - activations + int(activations * share / 100)]
    said = said_by(cairn, "train", *model, "--steps", STEPS, *budget)
    if said["peak_bytes"] != said["planned_peak_bytes"]:
        sys.exit(f"{name}: planned {said['planned_peak_bytes']}, measured {said['peak_bytes']}")
    return {"seconds": said["step_seconds"][WARM:], "rss": said["process_peak_rss_bytes"], "saved": said["activation_peak_bytes"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cairn", nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", action="append", choices=list(MODELS))
    parser.add_argument("--amp", action="append", choices=["off", "bf16"])
    parser.add_argument("--form", action="append", choices=FORMS)
    parser.add_argument("--activations", type=int, action="append", default=[], metavar="PERCENT")
    parser.add_argument("--peer", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        peer(*options.peer)
        return
    print("| model | precision | program | pictures/s | of PyTorch's best | RSS, MB | activations, MB |\n|---|---|---|---|---|---|---|")
    for name in options.model or MODELS:
        for amp in options.amp or ["off", "bf16"]:
            runs = {}
            for _ in range(options.rounds):
                for form in options.form or FORMS:
                    runs.setdefault(f"PyTorch {form}", []).append(of_peer(name, amp, form))
                for share in [None, *options.activations]:
                    runs.setdefault("cairn" + (f", {share} % of activations" if share else ""), []).append(
                        of_cairn(options.cairn, name, amp, share))
            rates = {each: BATCH / statistics.median(s for run in list_ for s in run["seconds"]) for each, list_ in runs.items()}
            best = max(rate for each, rate in rates.items() if each.startswith("PyTorch"))
            for each, list_ in runs.items():
                rss, saved = (statistics.median(run[what] for run in list_) / 1e6 for what in ("rss", "saved"))
                print(f"| {name} | {amp} | {each} | {rates[each]:.2f} | {rates[each] / best:.2f} | {rss:,.0f} | {saved:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
