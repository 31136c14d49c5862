#!/usr/bin/env python3
"""Times updates of GPT-2's parameters (124M) by cairn and by torch.optim, in turns in one run; the median of each.

    bench/step/optimizers.py --cairn build/release/bin/cairn [--rounds 5] [--turns 3] [--threads 2]

Needs torch. cairn's number is that of the gradients' norm and the update, torch's that of optimizer.step().
"""
import argparse
import pathlib
import statistics
import subprocess
import time

import torch

HERE = pathlib.Path(__file__).resolve().parent
LAYERS, WIDTH, VOCAB = 12, 768, 50257


def shapes():
    """(shape, of a hidden matrix)"""
    yield from (((VOCAB, WIDTH), False), ((1024, WIDTH), False), ((WIDTH,), False), ((WIDTH,), False))
    for _ in range(LAYERS):
        yield from (((WIDTH,), False),) * 4
        for outputs, inputs in ((3 * WIDTH, WIDTH), (WIDTH, WIDTH), (4 * WIDTH, WIDTH), (WIDTH, 4 * WIDTH)):
            yield (outputs, inputs), True
            yield (outputs,), False


def torch_optimizers(name, hidden, others):
    if name == "adamw":
        return [torch.optim.AdamW(hidden + others, lr=1e-3, fused=True)]
    if name == "adafactor":
        return [torch.optim.Adafactor(hidden + others, lr=1e-3)]
    return [torch.optim.Muon(hidden, lr=1e-3), torch.optim.AdamW(others, lr=1e-3, fused=True)]


class Torch:
    def __init__(self, name):
        generator = torch.Generator().manual_seed(1)
        hidden, others = [], []
        for shape, inner in shapes():
            p = torch.nn.Parameter(0.02 * torch.randn(shape, generator=generator))
            p.grad = 1e-3 * torch.randn(shape, generator=generator)
            (hidden if inner else others).append(p)
        self.optimizers = torch_optimizers(name, hidden, others)
        self.step()

    def step(self):
        start = time.perf_counter()
        for optimizer in self.optimizers:
            optimizer.step()
        return time.perf_counter() - start

    def bytes(self):
        return sum(t.numel() * t.element_size() for o in self.optimizers for s in o.state.values()
                   for t in s.values() if torch.is_tensor(t) and t.numel() > 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cairn", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--optimizers", default="adamw,adafactor,muon")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print("| optimizer | cairn, ms | torch, ms | cairn / torch | states of cairn, MB | of torch, MB |")
    print("|---|---|---|---|---|---|")
    for name in options.optimizers.split(","):
        ours, theirs, peer = [], [], Torch(name)
        for _ in range(options.turns):
            command = [options.cairn, "lua", HERE / "optimizers.lua", name, options.rounds, options.threads]
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
            lines = done.stdout.split()
            ours += map(float, lines[:-1])
            theirs += [peer.step() for _ in range(options.rounds)]
        mine, other = statistics.median(ours) * 1e3, statistics.median(theirs) * 1e3
        print(f"| {name} | {mine:.0f} | {other:.0f} | {mine / other:.2f} | {float(lines[-1]) / 1e6:.1f} | "
              f"{peer.bytes() / 1e6:.1f} |", flush=True)


if __name__ == "__main__":
    main()
