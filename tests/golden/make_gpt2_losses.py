#!/usr/bin/env python3
"""Makes the fixtures that cairn's loss curve of a small GPT-2 is compared with.

Writes into data/ beside this file:
  gpt2_small.safetensors    initial weights, fp32, Hugging Face names and orientation
  gpt2_small_batches.bin    raw little-endian int32 [steps, batch, seq + 1]
  gpt2_small_losses.json    loss and gradient norm per step, in fp32 and again in fp64, and the settings

The model and the training loop are those of bench/peers/gpt2.py. Needs torch, numpy and safetensors.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench" / "peers"))

from gpt2 import build_model, parse_arguments, train  # noqa: E402
from gpt2_model import save_weights  # noqa: E402

SETTINGS = dict(layers=2, heads=2, width=32, vocab=64, seq=16, batch=4, steps=20)
TRAINING = ["--rate", "3e-3", "--weight-decay", "0.1", "--betas", "0.9,0.95", "--clip", "1.0"]
SEED = 20
NOISE = 0.05


def make_weights(path, shape):
    """Hugging Face's initial weights plus noise on every tensor, so that no bias is 0 and no gain is 1:
    an import that drops or swaps one of them would not show otherwise."""
    model = build_model(parse_arguments([*shape, "--seed", str(SEED)]))
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=NOISE)
    save_weights(model, path)


def make_batches(path):
    """Walks on the vocabulary: mostly a fixed successor, sometimes a jump. Uniform tokens teach nothing."""
    steps, batch, length, vocab = SETTINGS["steps"], SETTINGS["batch"], SETTINGS["seq"] + 1, SETTINGS["vocab"]
    generator = np.random.default_rng(SEED)
    successor = generator.permutation(vocab)
    tokens = np.empty((steps, batch, length), dtype="<i4")
    tokens[..., 0] = generator.integers(vocab, size=(steps, batch))
    for place in range(1, length):
        jump = generator.random((steps, batch)) < 0.1
        anywhere = generator.integers(vocab, size=jump.shape)
        tokens[..., place] = np.where(jump, anywhere, successor[tokens[..., place - 1]])
    tokens.tofile(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "data")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    weights, batches = out / "gpt2_small.safetensors", out / "gpt2_small_batches.bin"
    torch.set_num_threads(1)  # the order of the sums, and so the last bits, depend on the number of threads
    shape = [word for name, value in SETTINGS.items() for word in (f"--{name}", str(value))]
    make_weights(weights, shape)
    make_batches(batches)
    report = dict(
        torch=torch.__version__,
        **SETTINGS,
        rate=3e-3,
        weight_decay=0.1,
        weight_decay_on="tensors of rank >= 2",
        beta1=0.9,
        beta2=0.95,
        epsilon=1e-8,
        clip=1.0,
        layernorm_epsilon=1e-5,
    )
    for dtype in ("float32", "float64"):
        options = parse_arguments(
            [*shape, *TRAINING, "--dtype", dtype, "--init", str(weights), "--batches", str(batches)]
        )
        losses, norms, _ = train(build_model(options), options)
        report[f"loss_{dtype}"] = losses
        report[f"gradient_norm_{dtype}"] = norms
    (out / "gpt2_small_losses.json").write_text(json.dumps(report, indent=1) + "\n")
    apart = max(abs(a - b) for a, b in zip(report["loss_float32"], report["loss_float64"]))
    first, last = report["loss_float64"][0], report["loss_float64"][-1]
    print(f"loss {first:.6f} -> {last:.6f}, fp32 and fp64 at most {apart:.1e} apart")


if __name__ == "__main__":
    main()
