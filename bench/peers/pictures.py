#!/usr/bin/env python3
"""ResNet-50 and ViT-S/16 beside PyTorch: pictures a second and resident memory, the programs in turns.

    PYTHON_WITH_TORCH_AND_TRANSFORMERS bench/peers/pictures.py CAIRN [--rounds 3] [--model resnet] [--amp off] [--form eager ...]

PyTorch runs eagerly, with channels last, and compiled, on Transformers' models with AdamW. Every
program is a process of its own, on two threads, with 16 pictures of 224 x 224 a step; of its steps the first two do not count."""
import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

BATCH, IMAGE, CLASSES, THREADS, STEPS, WARM = 16, 224, 10, 2, 6, 2
MODELS = {"resnet": ["depth=50"], "vit": ["size=small", "patch=16"]}
FORMS = ["eager", "channels_last", "compile"]


def build(name):
    from transformers import ResNetConfig, ResNetForImageClassification, ViTConfig, ViTForImageClassification
    if name == "resnet":
        return ResNetForImageClassification(ResNetConfig(num_labels=CLASSES))
    return ViTForImageClassification(ViTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536,
                                               num_labels=CLASSES))


def peer(name, amp, form):
    """Prints what a run of PyTorch took, as JSON."""
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    model = build(name).train()
    if form == "channels_last":
        model = model.to(memory_format=torch.channels_last)
    run = torch.compile(model) if form == "compile" else model
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    generator, seconds = torch.Generator().manual_seed(1), []
    for _ in range(STEPS):
        pictures = torch.randn(BATCH, 3, IMAGE, IMAGE, generator=generator)
        labels = torch.randint(0, CLASSES, (BATCH,), generator=generator)
        if form == "channels_last":
            pictures = pictures.to(memory_format=torch.channels_last)
        begin = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=amp == "bf16"):
            loss = torch.nn.functional.cross_entropy(run(pixel_values=pictures).logits.float(), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - begin)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds[WARM:], "rss": rss}))


def of_peer(name, amp, form):
    done = subprocess.run([sys.executable, __file__, "--peer", name, amp, form], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def of_cairn(cairn, name, amp, budget=None):
    words = [cairn, "train", name, *MODELS[name], f"image={IMAGE}", f"batch={BATCH}", f"classes={CLASSES}", "data=drawings", "evaluate=none",
             "--amp", amp, "--threads", str(THREADS), "--steps", str(STEPS), "--json", *(["--budget", budget] if budget else [])]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    said = json.loads(done.stdout)
    if said["peak_bytes"] != said["planned_peak_bytes"]:
        sys.exit(f"{name}: planned {said['planned_peak_bytes']}, measured {said['peak_bytes']}")
    return {"seconds": said["step_seconds"][WARM:], "rss": said["process_peak_rss_bytes"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cairn", nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", action="append", choices=list(MODELS))
    parser.add_argument("--amp", action="append", choices=["off", "bf16"])
    parser.add_argument("--form", action="append", choices=FORMS)
    parser.add_argument("--budget", action="append", default=[])
    parser.add_argument("--peer", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        peer(*options.peer)
        return
    print("| model | precision | program | pictures/s | of PyTorch's best | RSS, MB |\n|---|---|---|---|---|---|")
    for name in options.model or MODELS:
        for amp in options.amp or ["off", "bf16"]:
            runs = {}
            for _ in range(options.rounds):
                for form in options.form or FORMS:
                    runs.setdefault(f"PyTorch {form}", []).append(of_peer(name, amp, form))
                for budget in [None, *options.budget]:
                    runs.setdefault("cairn" + (f" {budget}" if budget else ""), []).append(
                        of_cairn(options.cairn, name, amp, budget))
            rates = {each: BATCH / statistics.median(s for run in list_ for s in run["seconds"]) for each, list_ in runs.items()}
            best = max(rate for each, rate in rates.items() if each.startswith("PyTorch"))
            for each, list_ in runs.items():
                rss = statistics.median(run["rss"] for run in list_) / 1e6
                print(f"| {name} | {amp} | {each} | {rates[each]:.2f} | {rates[each] / best:.2f} | {rss:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
