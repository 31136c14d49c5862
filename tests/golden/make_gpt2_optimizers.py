#!/usr/bin/env python3
"""Makes the losses that cairn's small GPT-2 is compared with under other optimizers than AdamW:
data/gpt2_small_optimizers.json.

Weights and batches are those that make_gpt2_losses.py wrote, the model is that of bench/peers/gpt2.py. SGD, Adam and
Adafactor are torch.optim's; Lion is the paper's algorithm 2. Muon's Newton-Schulz steps are float32 here, as in cairn,
and not torch.optim.Muon's bfloat16; what is no matrix of a hidden layer is torch.optim.AdamW's. Needs torch, numpy and
safetensors.
"""
import json
import math
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
sys.path.insert(0, str(HERE.parents[1] / "bench" / "peers"))

from gpt2 import batches, build_model, parse_arguments  # noqa: E402

CLIP, DECAY = 1.0, 0.1
SGD = {"rate": 0.1, "momentum": 0.9, "nesterov": "true"}
ADAM = {"rate": 1e-3, "beta1": 0.9, "beta2": 0.999}
LION = {"rate": 3e-4, "beta1": 0.9, "beta2": 0.99}
ADAFACTOR = {"rate": 1e-2, "clip_threshold": 1.0, "beta2_decay": -0.8, "eps1": 1e-7, "eps2": 1e-3}
MUON = {"rate": 1e-2, "otherwise_rate": 3e-3, "momentum": 0.95, "ns_steps": 5, "beta1": 0.9, "beta2": 0.95}


class Lion:
    """Chen et al., 2023, algorithm 2. groups: as torch's."""

    def __init__(self, groups):
        self.groups = groups
        self.momentum = {p: torch.zeros_like(p) for group in groups for p in group["params"]}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                m = self.momentum[p]
                update = (LION["beta1"] * m + (1 - LION["beta1"]) * p.grad).sign()
                p.sub_(LION["rate"] * (update + group["weight_decay"] * p))
                m.mul_(LION["beta2"]).add_(p.grad, alpha=1 - LION["beta2"])


class Muon:
    """Of matrices as the model has them, [inputs, outputs]: the transpose of what is updated."""

    def __init__(self, parameters):
        self.parameters, self.momentum = parameters, [torch.zeros_like(p) for p in parameters]

    @torch.no_grad()
    def step(self):
        for p, m in zip(self.parameters, self.momentum):
            m.mul_(MUON["momentum"]).add_(p.grad, alpha=1 - MUON["momentum"])
            x = m * MUON["momentum"] + p.grad * (1 - MUON["momentum"])
            tall = x.size(0) > x.size(1)
            x = x.T if tall else x
            x = x / x.norm().clamp(min=1e-7)
            for _ in range(MUON["ns_steps"]):
                gram = x @ x.T
                x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
            inputs, outputs = p.shape
            p.mul_(1 - MUON["rate"] * DECAY)
            p.add_(x.T if tall else x, alpha=-MUON["rate"] * math.sqrt(max(1.0, outputs / inputs)))


def decayed(parameters):
    return [{"params": [p for p in parameters if (p.ndim >= 2) == decays], "weight_decay": DECAY if decays else 0.0}
            for decays in (True, False)]


def sgd(model):
    return [torch.optim.SGD(decayed(list(model.parameters())), lr=SGD["rate"], momentum=SGD["momentum"], nesterov=True)]


def adam(model):
    return [torch.optim.Adam(decayed(list(model.parameters())), lr=ADAM["rate"], betas=(ADAM["beta1"], ADAM["beta2"]),
                             eps=1e-8)]


def lion(model):
    return [Lion(decayed(list(model.parameters())))]


def adafactor(model):
    return [torch.optim.Adafactor(decayed(list(model.parameters())), lr=ADAFACTOR["rate"], beta2_decay=ADAFACTOR["beta2_decay"],
                                  eps=(ADAFACTOR["eps1"], ADAFACTOR["eps2"]), d=ADAFACTOR["clip_threshold"])]


def muon(model):
    hidden = [p for name, p in model.named_parameters() if p.ndim == 2 and not name.startswith(("wte", "wpe"))]
    rest = [p for p in model.parameters() if not any(p is h for h in hidden)]
    adamw = torch.optim.AdamW(decayed(rest), lr=MUON["otherwise_rate"], betas=(MUON["beta1"], MUON["beta2"]), eps=1e-8)
    return [Muon(hidden), adamw]


def train(make, options):
    model = build_model(options)
    optimizers, source, losses = make(model), batches(options), []
    for _ in range(options.steps):
        tokens = next(source)
        model.zero_grad(set_to_none=True)
        loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        losses.append(loss.item())
        torch.nn.utils.clip_grad_norm_(list(model.parameters()), CLIP)
        for optimizer in optimizers:
            optimizer.step()
    return losses


def main():
    torch.set_num_threads(1)  # the order of the sums, and so the last bits, depend on the number of threads
    model = json.loads((DATA / "gpt2_small_losses.json").read_text())
    shape = {name: model[name] for name in ("layers", "heads", "width", "vocab", "seq", "batch", "steps")}
    words = [word for name, value in shape.items() for word in (f"--{name}", str(value))]
    report = {"torch": torch.__version__}
    for name, make, settings in (("sgd", sgd, SGD), ("adam", adam, ADAM), ("lion", lion, LION),
                                 ("adafactor", adafactor, ADAFACTOR), ("muon", muon, MUON)):
        report[name] = {"options": {**settings, "weight_decay": DECAY, "clip": CLIP}}
        for dtype in ("float32", "float64"):
            options = parse_arguments([*words, "--dtype", dtype, "--init", str(DATA / "gpt2_small.safetensors"),
                                       "--batches", str(DATA / "gpt2_small_batches.bin")])
            report[name][f"loss_{dtype}"] = train(make, options)
        losses = [report[name][f"loss_{dtype}"] for dtype in ("float32", "float64")]
        apart = max(abs(a - b) for a, b in zip(*losses))
        print(f"{name}: loss {losses[1][0]:.6f} -> {losses[1][-1]:.6f}, fp32 and fp64 at most {apart:.1e} apart")
    (DATA / "gpt2_small_optimizers.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
