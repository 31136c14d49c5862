#!/usr/bin/env python3
"""Makes the traces of 1000 steps that cairn's schedules are compared with: data/schedules.txt beside this file.

A case is one line `case OPTIONS`, the schedule in the form of the recipe option `schedule=`, with `rate=`, `warmup=`,
`minimum_rate=` and `steps=` before it; then `rate` and, where it is cycled, `momentum`: the sum over all steps, the sum of
step times value, and every seventh value, as hexadecimal floats. What PyTorch has comes from torch.optim.lr_scheduler;
inverse square root and warm-up-stable-decay are those of Transformers by their documented formulas, with warm-up that begins
at rate / warm-up steps. Needs torch.
"""
import argparse
import math
from pathlib import Path

import torch
from torch.optim import lr_scheduler as lrs

HERE = Path(__file__).resolve().parent
STEPS = 1000
EVERY = 7


def optimizer(rate, **more):
    return torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=rate, betas=(0.9, 0.95), **more)


def traced(made, scheduler):
    """Rates and first betas of STEPS updates."""
    rates, betas = [], []
    for _ in range(STEPS):
        rates.append(float(made.param_groups[0]["lr"]))
        betas.append(float(made.param_groups[0]["betas"][0]))
        made.step()
        scheduler.step()
    return rates, betas


def of_torch(rate, make):
    made = optimizer(rate)
    return traced(made, make(made))


def warmed(warmup, make):
    """A linear warm-up, then what `make` makes."""
    def both(made):
        first = lrs.LinearLR(made, start_factor=1 / warmup, end_factor=1.0, total_iters=warmup - 1)
        return lrs.SequentialLR(made, [first, make(made)], milestones=[warmup])
    return both


def of_formula(rate, formula):
    return [rate * formula(step) for step in range(STEPS)], None


def inverse_sqrt(warmup, timescale=None):
    scale = timescale or warmup or 10000

    def at(step):
        return (step + 1) / warmup if step < warmup else 1 / math.sqrt((step - warmup + scale) / scale)
    return at


def wsd(warmup, stable, decay, shape, lowest):
    shapes = {"linear": lambda share: 1 - share, "cosine": lambda share: (1 + math.cos(math.pi * share)) / 2,
              "sqrt": lambda share: 1 - math.sqrt(share)}

    def at(step):
        if step < warmup:
            return (step + 1) / warmup
        if step < warmup + stable:
            return 1.0
        if step < warmup + stable + decay:
            return lowest + (1 - lowest) * shapes[shape]((step - warmup - stable) / decay)
        return lowest
    return at


def cases():
    def torch_case(options, rate, make):
        return options, of_torch(rate, make), "onecycle" in options and "cycle_momentum=false" not in options

    def formula_case(options, rate, formula):
        return options, of_formula(rate, formula), False

    def restarts(first, multiplier, lowest=0.0):
        return lambda o: lrs.CosineAnnealingWarmRestarts(o, T_0=first, T_mult=multiplier, eta_min=lowest)

    def onecycle(rate, **more):
        return lambda o: lrs.OneCycleLR(o, max_lr=rate, total_steps=STEPS + 1, **more)

    yield torch_case("rate=0.003 constant", 0.003, lambda o: lrs.ConstantLR(o, factor=1.0, total_iters=0))
    yield torch_case("rate=0.003 constant:50:factor=0.25,constant", 0.003,
                     lambda o: lrs.ConstantLR(o, factor=0.25, total_iters=50))
    yield torch_case("rate=0.003 linear:300:start_factor=0.125:end_factor=0.75", 0.003,
                     lambda o: lrs.LinearLR(o, start_factor=0.125, end_factor=0.75, total_iters=300))
    yield torch_case("rate=0.003 steps=1000 linear", 0.003, lambda o: lrs.PolynomialLR(o, total_iters=1000, power=1.0))
    yield torch_case("rate=0.003 steps=1000 cosine", 0.003, lambda o: lrs.CosineAnnealingLR(o, T_max=1000))
    yield torch_case("rate=0.003 minimum_rate=0.0003 steps=1000 cosine", 0.003,
                     lambda o: lrs.CosineAnnealingLR(o, T_max=1000, eta_min=0.0003))
    yield torch_case("rate=0.003 warmup=100 minimum_rate=0.0003 steps=1000 cosine", 0.003,
                     warmed(100, lambda o: lrs.CosineAnnealingLR(o, T_max=900, eta_min=0.0003)))
    yield torch_case("rate=0.1 cosine:first_cycle=70", 0.1, restarts(70, 1))
    yield torch_case("rate=0.1 minimum_rate=0.001 cosine:first_cycle=10:cycle_multiplier=2", 0.1, restarts(10, 2, 0.001))
    yield torch_case("rate=0.1 cosine:first_cycle=9:cycle_multiplier=3", 0.1, restarts(9, 3))
    yield torch_case("rate=0.1 step:step_size=30", 0.1, lambda o: lrs.StepLR(o, step_size=30, gamma=0.1))
    yield torch_case("rate=0.1 warmup=40 step:step_size=7:gamma=0.97", 0.1,
                     warmed(40, lambda o: lrs.StepLR(o, step_size=7, gamma=0.97)))
    yield torch_case("rate=0.1 multistep:milestones=30/80/81/500/999", 0.1,
                     lambda o: lrs.MultiStepLR(o, milestones=[30, 80, 81, 500, 999], gamma=0.1))
    yield torch_case("rate=0.1 multistep:milestones=250/750:gamma=0.3", 0.1,
                     lambda o: lrs.MultiStepLR(o, milestones=[250, 750], gamma=0.3))
    yield torch_case("rate=0.1 steps=1001 onecycle", 0.1, onecycle(0.1))
    yield torch_case("rate=0.1 steps=1001 onecycle:pct_start=0.173:div_factor=10:final_div_factor=100:anneal=linear", 0.1,
                     onecycle(0.1, pct_start=0.173, div_factor=10, final_div_factor=100, anneal_strategy="linear"))
    yield torch_case("rate=0.1 steps=1001 onecycle:pct_start=0.4:three_phase=true:base_momentum=0.8:max_momentum=0.99", 0.1,
                     onecycle(0.1, pct_start=0.4, three_phase=True, base_momentum=0.8, max_momentum=0.99))
    yield torch_case("rate=0.1 steps=1001 onecycle:pct_start=0.25:anneal=linear:three_phase=true", 0.1,
                     onecycle(0.1, pct_start=0.25, three_phase=True, anneal_strategy="linear"))
    yield torch_case("rate=0.1 steps=1001 onecycle:pct_start=0.5:cycle_momentum=false", 0.1,
                     onecycle(0.1, pct_start=0.5, cycle_momentum=False))
    for power in (0.5, 1.0, 2.0):
        yield torch_case(f"rate=0.02 steps=800 polynomial:power={power}", 0.02,
                         lambda o, p=power: lrs.PolynomialLR(o, total_iters=800, power=p))
    yield torch_case("rate=0.02 linear:100:start_factor=0.01,cosine:900", 0.02, lambda o: lrs.SequentialLR(o, [
        lrs.LinearLR(o, start_factor=0.01, end_factor=0.0, total_iters=100), lrs.CosineAnnealingLR(o, T_max=900)], [100]))
    yield torch_case(
        "rate=0.02 linear:120:start_factor=0.1:end_factor=1,step:300:step_size=50:gamma=0.5,cosine:400,constant:factor=0.01",
        0.02, lambda o: lrs.SequentialLR(o, [
            lrs.LinearLR(o, start_factor=0.1, end_factor=1.0, total_iters=120),
            lrs.StepLR(o, step_size=50, gamma=0.5), lrs.CosineAnnealingLR(o, T_max=400),
            lrs.ConstantLR(o, factor=0.01, total_iters=10000)], [120, 420, 820]))
    yield formula_case("rate=0.001 warmup=100 inverse_sqrt", 0.001, inverse_sqrt(100))
    yield formula_case("rate=0.001 inverse_sqrt", 0.001, inverse_sqrt(0))
    yield formula_case("rate=0.001 warmup=50 inverse_sqrt:timescale=400", 0.001, inverse_sqrt(50, 400))
    for shape in ("linear", "cosine", "sqrt"):
        yield formula_case(f"rate=0.001 warmup=100 minimum_rate=0.0001 steps=900 wsd:decay_steps=200:decay_shape={shape}",
                           0.001, wsd(100, 600, 200, shape, 0.1))
    yield formula_case("rate=0.001 steps=1000 wsd", 0.001, wsd(0, 900, 100, "linear", 0.0))


def line(word, values):
    weighted = math.fsum(step * value for step, value in enumerate(values))
    return " ".join([word, *(value.hex() for value in (math.fsum(values), weighted, *values[::EVERY]))])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "data")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    lines = []
    for options, (rates, betas), cycled in cases():
        lines += [f"case {options}", line("rate", rates)]
        if cycled:
            lines.append(line("momentum", betas))
    (out / "schedules.txt").write_text("\n".join(lines) + "\n")
    print(f"{sum(word.startswith('case') for word in lines)} schedules, torch {torch.__version__}")


if __name__ == "__main__":
    main()
