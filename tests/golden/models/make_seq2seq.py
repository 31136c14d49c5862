#!/usr/bin/env python3
"""Makes tiny models with an encoder and a decoder as the transformers library saves them, and what it computes.

    make_seq2seq.py [OUT [SEED]]

Without OUT it writes the models of the quick tests into data/seq2seq/ next to this file; with a SEED their sizes are
drawn from it. Of each model there is a folder NAME with
  config.json, model.safetensors   as save_pretrained writes them (Transformers 5)
  config_v4.json                   the same in the spelling of Transformers 4, without keys that have a default
  expected.json                    pairs (tokens that are read and written, without the last one, which ends them), the
                                   logits of the first pair in float64, the loss of five steps of AdamW with all pairs, and
                                   what is made of the first by greedy decoding

Needs torch and transformers.
"""
import json
import random
import shutil
import sys
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM

DATA = Path(__file__).resolve().parents[1] / "data/seq2seq"
STEPS, RATE, BETAS, EPS = 5, 1e-3, (0.9, 0.95), 1e-8
DIGITS, MADE = 9, 6
PAD, LAST, IGNORED = 0, 1, -100


def rows(s):
    """By name, what its config is made of, and whether its head is the token table."""
    return {"t5": ("t5", s, True),
            "t5_v1_1": ("t5", {**s, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_layers": 3,
                               "num_decoder_layers": 1, "relative_attention_num_buckets": 7}, False),
            "t5_silu": ("t5", {**s, "feed_forward_proj": "gated-silu", "tie_word_embeddings": False}, True)}


def sizes(seed):
    if seed is None:
        return {"vocab_size": 40, "d_model": 15, "d_kv": 6, "d_ff": 21, "num_layers": 2, "num_heads": 3,
                "relative_attention_num_buckets": 8, "relative_attention_max_distance": 10, "lengths": [(13, 9), (7, 4), (2, 11)]}
    draw = random.Random(seed)
    return {"vocab_size": draw.randint(33, 90), "d_model": draw.randint(9, 40), "d_kv": draw.randint(3, 12),
            "d_ff": draw.randint(13, 50), "num_layers": draw.randint(1, 3), "num_heads": draw.randint(1, 5),
            "relative_attention_num_buckets": draw.randint(4, 20), "relative_attention_max_distance": draw.randint(11, 30),
            "lengths": [(draw.randint(1, 50), draw.randint(1, 30)) for _ in range(4)]}


def model_of(family, settings, tied):
    config = AutoConfig.for_model(family, **settings, dropout_rate=0.0, decoder_start_token_id=PAD)
    model = AutoModelForSeq2SeqLM.from_config(config, attn_implementation="eager")
    if not tied:
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.2 * noise if parameter.dim() == 1 else noise * parameter.shape[-1] ** -0.5)
    return model.eval()


def older(config, settings, defaults):
    """A config in the spelling of Transformers 4: no key that has its default, and whether the head is the table."""
    made = {key: value for key, value in config.items() if key not in defaults or defaults[key] != value}
    made.update(model_type=config["model_type"], torch_dtype=made.pop("dtype", "float32"), transformers_version="4.50.0")
    for key in ("scale_decoder_outputs", "tie_word_embeddings"):
        made.pop(key, None)
    if settings.get("tie_word_embeddings") is False:
        made["tie_word_embeddings"] = False
    words = settings.get("feed_forward_proj", "relu").split("-")
    made["is_gated_act"] = words[0] == "gated"
    made["dense_act_fn"] = "gelu_new" if words[-1] == "gelu" else words[-1]
    return made


def padded(lists, value):
    longest = max(map(len, lists))
    return torch.tensor([row + [value] * (longest - len(row)) for row in lists])


def losses(model, pairs):
    read, labels = padded([a + [LAST] for a, _ in pairs], PAD), padded([b + [LAST] for _, b in pairs], IGNORED)
    seen = padded([[1] * (len(a) + 1) for a, _ in pairs], 0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=BETAS, eps=EPS, weight_decay=0)
    found = []
    for _ in range(STEPS):
        loss = model(input_ids=read, attention_mask=seen, labels=labels, use_cache=False).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def make(out, seed):
    chosen = sizes(seed)
    lengths = chosen.pop("lengths")
    for name, (family, settings, tied) in rows(chosen).items():
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        model = model_of(family, settings, tied)
        model.save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        config = json.loads((folder / "config.json").read_text())
        defaults = json.loads(type(model.config)().to_json_string(use_diff=False))
        if tied == settings.get("tie_word_embeddings", True):  # older ones scale what is tied, and nothing else
            (folder / "config_v4.json").write_text(json.dumps(older(config, settings, defaults), indent=2) + "\n")
        # Neither the token that ends nor the one that fills up.
        tokens = [(7 * i * i + 3 * i + 5) % (chosen["vocab_size"] - 2) + 2 for i in range(sum(map(sum, lengths)))]
        pairs = [([tokens.pop() for _ in range(a)], [tokens.pop() for _ in range(b)]) for a, b in lengths]
        read, written = torch.tensor([pairs[0][0]]), torch.tensor([[PAD] + pairs[0][1]])
        made = model.generate(torch.tensor([pairs[0][0] + [LAST]]), max_new_tokens=MADE, do_sample=False, num_beams=1)[0]
        model = model.double()
        logits = model(input_ids=read, decoder_input_ids=written, use_cache=False).logits[0]
        expected = {"pairs": pairs, "logits": [[round(value, DIGITS) for value in row] for row in logits.tolist()],
                    "made": made.tolist()[1:], "losses": losses(model, pairs)}
        (folder / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")
        print(name)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA, int(sys.argv[2]) if len(sys.argv) > 2 else None)
