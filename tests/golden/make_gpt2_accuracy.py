#!/usr/bin/env python3
"""Makes data/gpt2_small_accuracy.json: how many targets have the largest logit, by torch.argmax, at each of the steps that
make_gpt2_losses.py trains, before its update. In float32 and in float64, which must agree; and the least lead of a
largest logit over the next, which says how near another answer is. Needs torch, numpy and safetensors.
"""
import json
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
sys.path.insert(0, str(HERE.parents[1] / "bench" / "peers"))

from gpt2 import batches, build_model, parse_arguments, train  # noqa: E402
from make_gpt2_losses import SETTINGS, TRAINING  # noqa: E402


def counts(dtype):
    shape = [word for name, value in SETTINGS.items() for word in (f"--{name}", str(value))]
    options = parse_arguments([*shape, *TRAINING, "--dtype", dtype, "--init", str(DATA / "gpt2_small.safetensors"),
                               "--batches", str(DATA / "gpt2_small_batches.bin")])
    model, targets, hits, leads = build_model(options), batches(options), [], []

    def measure(_, __, hidden):
        with torch.no_grad():
            logits = hidden @ model.wte.weight.T
            hits.append(int((logits.argmax(-1) == next(targets)[:, 1:]).sum()))
            first, second = logits.topk(2).values.unbind(-1)
            leads.append(float((first - second).min()))
    model.ln_f.register_forward_hook(measure)
    train(model, options)
    return hits, min(leads)


def main():
    torch.set_num_threads(1)
    hits, lead = counts("float64")
    assert counts("float32")[0] == hits, "a largest logit is largest by rounding alone"
    report = dict(torch=torch.__version__, targets=SETTINGS["batch"] * SETTINGS["seq"], hits=hits, least_lead=lead)
    (DATA / "gpt2_small_accuracy.json").write_text(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
