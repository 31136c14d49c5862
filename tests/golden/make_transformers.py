#!/usr/bin/env python3
"""Makes tiny models as the transformers library saves them, and the losses that it finds for them.

Writes into data/transformers/NAME/ beside this file:
  model.safetensors, config.json   as save_pretrained writes them
                                   (of llama_sharded, which is llama in several files: with their index)
  expected.json                    the recipe and its options, batches of tokens, and the loss of each step under AdamW,
                                   in fp32

Needs torch and transformers.
"""
import json
import shutil
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

DATA = Path(__file__).resolve().parent / "data/transformers"
STEPS, BATCH, SEQ, VOCAB, WIDTH = 4, 2, 8, 32, 16
ADAMW = {"lr": 1e-2, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.0}
SEED, NOISE = 20, 0.02


def llama(**more):
    config = LlamaConfig(vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=24, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
                         attn_implementation="eager", **more)
    return LlamaForCausalLM(config)


def gpt2(**more):
    config = GPT2Config(vocab_size=VOCAB, n_embd=WIDTH, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0,
                        attn_pdrop=0.0, attn_implementation="eager", **more)
    return GPT2LMHeadModel(config)


LLAMA = {"layers": 2, "heads": 4, "kv_heads": 2, "hidden": 24}
MODELS = {
    "llama": ("llama", lambda: llama(rms_norm_eps=1e-6, tie_word_embeddings=False, rope_theta=5e5),
              {**LLAMA, "eps": 1e-6, "rope_base": 500000}),
    "llama_tied": ("llama", lambda: llama(rms_norm_eps=1e-5, tie_word_embeddings=True),
                   {**LLAMA, "tied": "true", "rope_base": 10000}),
    "gpt2_long": ("gpt2", lambda: gpt2(n_positions=24, layer_norm_epsilon=1e-6),
                  {"layers": 2, "heads": 2, "positions": 24, "eps": 1e-6}),
}


def train(model, batches):
    losses = []
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
    for step in range(STEPS):
        tokens = batches[step]
        logits = model(tokens[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB), tokens[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    for name, (recipe, make, options) in MODELS.items():
        torch.manual_seed(SEED)
        model = make().eval()
        with torch.no_grad():  # so that no gain is 1 and no bias 0
            for parameter in model.parameters():
                parameter.add_(torch.randn(parameter.shape), alpha=NOISE)
        folder = DATA / name
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder)
        if name == "llama":  # the same in several files
            model.save_pretrained(DATA / "llama_sharded", max_shard_size="6KB")
        for extra in DATA.glob("*/generation_config*"):
            extra.unlink()
        batches = torch.randint(VOCAB, (STEPS, BATCH, SEQ + 1))
        options = {**options, "vocab": VOCAB, "width": WIDTH, "seq": SEQ, "batch": BATCH, "rate": ADAMW["lr"],
                   "beta1": 0.9, "beta2": 0.95, "weight_decay": 0, "clip": 0}
        (folder / "expected.json").write_text(json.dumps({
            "recipe": recipe, "options": options, "steps": STEPS, "batches": batches.tolist(),
            "loss": train(model, batches)}, indent=1) + "\n")


main()
