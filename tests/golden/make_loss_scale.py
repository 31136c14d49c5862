#!/usr/bin/env python3
"""Makes data/loss_scale.txt: what torch.amp.GradScaler does with its scale and growth counter when given steps are not
finite. A line per step: whether gradients were finite, then scale and counter after the step. Blocks begin with a line
"initial growth backoff interval".

    python3 make_loss_scale.py    (needs torch)"""
import pathlib
import random

import torch

SETTINGS = [(65536.0, 2.0, 0.5, 5), (3.0, 1.5, 0.25, 3), (2.0 ** 120, 4.0, 0.5, 2), (1.0, 2.0, 0.9, 1)]
STEPS = 120


def trace(initial, growth, backoff, interval, rng):
    scaler = torch.amp.GradScaler("cpu", init_scale=initial, growth_factor=growth, backoff_factor=backoff,
                                  growth_interval=interval)
    parameter = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([parameter], lr=0.0)
    yield f"{initial!r} {growth!r} {backoff!r} {interval}"
    for _ in range(STEPS):
        finite = rng.random() < 0.8
        scaler.scale(parameter.sum() * 0.0).backward()
        parameter.grad = torch.full((3,), 1.0 if finite else rng.choice([float("inf"), float("-inf"), float("nan")]))
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        yield f"{int(finite)} {scaler.get_scale()!r} {scaler._get_growth_tracker()}"


def main():
    rng = random.Random(7)
    lines = [line for settings in SETTINGS for line in trace(*settings, rng)]
    path = pathlib.Path(__file__).parent / "data/loss_scale.txt"
    path.write_text(f"# torch {torch.__version__.split('+')[0]}\n" + "\n".join(lines) + "\n")


main()
