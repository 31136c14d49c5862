#!/usr/bin/env python3
"""What the transformers library says of a window with several samples: positions that begin again and a mask of blocks.

Writes data/packed.json: rows of words (wN is token N, and 2 ends a row), and by family the mean loss of the answers' tokens with
the models in data/decoders. Needs torch and transformers.
"""
import json
import random
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

DATA = Path(__file__).resolve().parents[1] / "data"
FAMILIES = ["gpt2", "llama", "mistral", "gemma2"]
LAST, WINDOW = 2, 24


def packed_loss(model, rows):
    """Of all rows in one window; the first label of each counts for nothing."""
    ids, places, samples, labels = [], [], [], []
    for number, (prompt, answer) in enumerate(rows):
        own = prompt + answer + [LAST]
        ids += own
        places += range(len(own))
        samples += [number] * len(own)
        labels += [-100] * len(prompt) + answer + [LAST]
    samples = torch.tensor(samples)
    places = torch.tensor(places)
    window = getattr(model.config, "sliding_window", None)
    seen = (samples[:, None] == samples[None]) & (places[:, None] >= places[None])
    masks = {"full_attention": seen}
    if window:
        masks["sliding_attention"] = seen & (places[:, None] - places[None] < window)
    masks = {name: torch.where(mask, 0.0, -torch.inf).double()[None, None] for name, mask in masks.items()}
    mask = masks if getattr(model.config, "layer_types", None) else masks.get("sliding_attention", masks["full_attention"])
    logits = model(torch.tensor([ids]), attention_mask=mask, position_ids=places[None], use_cache=False).logits[0]
    return torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(labels[1:]), ignore_index=-100).item()


def main():
    draw = random.Random(3)
    rows = [[[draw.randrange(3, 40) for _ in range(draw.randint(1, 8))] for _ in range(2)] for _ in range(12)]
    losses = {}
    for family in FAMILIES:
        model = AutoModelForCausalLM.from_pretrained(DATA / "decoders" / family, dtype=torch.float64, attn_implementation="eager")
        with torch.no_grad():
            losses[family] = packed_loss(model.eval(), rows)
    text = {"rows": rows, "losses": losses}
    (DATA / "packed.json").write_text(json.dumps(text) + "\n")


if __name__ == "__main__":
    main()
