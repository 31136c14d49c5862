#!/usr/bin/env python3
"""Makes tiny models of every family of scripts/families as the transformers library saves them, and what it computes.

    make_decoders.py [OUT [SEED]]

Without OUT it writes the models of the quick tests into data/decoders/ next to this file; with a SEED their sizes are
drawn from it. Of each family there is a folder NAME with
  config.json, model.safetensors   as save_pretrained writes them (Transformers 5)
  config_v4.json                   the same in the spelling of Transformers 4, without keys that have a default
  expected.json                    tokens, the logits of all of them in float64, how far its float32 is apart from them,
                                   the loss of five steps of AdamW, and of models with experts the tokens that follow
                                   the first nine

Needs torch and transformers.
"""
import json
import random
import shutil
import sys
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM

DATA = Path(__file__).resolve().parents[1] / "data/decoders"
STEPS, RATE, BETAS, EPS = 5, 1e-3, (0.9, 0.95), 1e-8
DIGITS = 9
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "beta_fast": 32.0, "beta_slow": 1.0}


def rows(s):
    """By family, what its config is made of. s: the sizes, with which everything else follows."""
    head = s["hidden_size"] // s["num_attention_heads"]
    window, experts = {"sliding_window": s["window"]}, {"num_local_experts": s["experts"],
                                                        "num_experts_per_tok": s["chosen"]}
    s = {key: value for key, value in s.items() if key not in ("window", "experts", "chosen")}
    plain = {key: value for key, value in s.items() if key != "num_key_value_heads"}
    own = {**s, "head_dim": head + 2}  # that is not hidden_size / num_attention_heads
    theta = {"rope_theta": 700.0}
    default = {"rope_type": "default", **theta}
    even = {**s, "num_hidden_layers": 4}
    pairs = head // 2  # of half the columns of heads twice as wide
    return {
        "cohere2": {**even, **window, "logit_scale": 0.25},
        "exaone4": {**own, **window, "sliding_window_pattern": 2, "rope_parameters": {
            "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 16, **theta}},
        "gemma": {**own, "hidden_act": "gelu_pytorch_tanh"},
        "gemma2": {**own, **window, "query_pre_attn_scalar": 20, "final_logit_softcapping": 3.0,
                   "attn_logit_softcapping": 2.0},
        "gemma3_text": {**own, **window, "query_pre_attn_scalar": 20, "num_hidden_layers": 6, "rope_parameters": {
            "full_attention": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 8.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}},
        "glm4": {**own, "head_dim": 2 * head},
        "gpt2": {"vocab_size": s["vocab_size"], "n_embd": s["hidden_size"], "n_layer": 2, "n_positions": 48,
                 "n_head": s["num_attention_heads"], "n_inner": s["intermediate_size"],
                 "scale_attn_by_inverse_layer_idx": True, "bos_token_id": 1, "eos_token_id": 2},
        "gpt_neox": {**plain, "num_attention_heads": 2, "rope_parameters": {**default, "partial_rotary_factor": 0.5}},
        "gpt_oss": {**own, **window, **experts, "swiglu_limit": 1.5, "rope_parameters": {
            **YARN, "truncate": False, **theta}},
        "granite": {**s, "embedding_multiplier": 3.0, "logits_scaling": 2.5, "residual_multiplier": 0.4,
                    "attention_multiplier": 0.2, "attention_bias": True, "mlp_bias": True,
                    "tie_word_embeddings": True},
        "llama": {**own, "tie_word_embeddings": True, "rope_parameters": {
            "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 16, **theta}},
        "ministral3": {**own, "rope_parameters": {**YARN, **theta, "mscale": 1.0, "mscale_all_dim": 0.5,
                                                  "llama_4_scaling_beta": 0.3}},
        "mistral": {**own, **window, "rope_parameters": default},
        "mixtral": {**own, **window, **experts, "rope_parameters": default},
        "olmo2": {**s, "attention_bias": True, "max_position_embeddings": 12,
                  "rope_parameters": {"rope_type": "dynamic", "factor": 2.0, **theta}},
        "olmo3": {**even, **window, "rope_parameters": {"full_attention": {**YARN, **theta},
                                                        "sliding_attention": default}},
        "phi3": {**s, "hidden_size": 2 * s["hidden_size"], "original_max_position_embeddings": 12,
                 "max_position_embeddings": 48, "rope_parameters": {
                     "rope_type": "longrope", "partial_rotary_factor": 0.5,
                     "short_factor": [1 + 0.1 * i for i in range(pairs)],
                     "long_factor": [1.5 + i for i in range(pairs)], **theta}},
        "qwen2": {**s, **window, "use_sliding_window": True, "max_window_layers": 1, "tie_word_embeddings": True},
        "qwen3": {**own, "attention_bias": True, "rope_parameters": {"rope_type": "linear", "factor": 2.5, **theta}},
        "qwen3_moe": {**own, **experts, "moe_intermediate_size": s["intermediate_size"] // 2 + 1, "mlp_only_layers": [1],
                      "norm_topk_prob": False, "output_router_logits": True, "router_aux_loss_coef": 0.3,
                      "rope_parameters": default, "num_hidden_layers": 3},
        "seed_oss": {**own, "attention_dropout": 0.0, "residual_dropout": 0.0},
        "smollm3": {**even, "no_rope_layer_interval": 2, "use_sliding_window": True, **window},
        "starcoder2": {**s, **window},
    }


def sizes(seed):
    if seed is None:
        return {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 2,
                "num_attention_heads": 4, "num_key_value_heads": 2, "window": 5, "tokens": 14, "experts": 7, "chosen": 3}
    draw = random.Random(seed)
    heads = draw.choice([2, 4, 6])
    return {"vocab_size": draw.randint(33, 90), "hidden_size": heads * 2 * draw.randint(2, 5),
            "intermediate_size": draw.randint(13, 50), "num_hidden_layers": draw.randint(2, 4),
            "num_attention_heads": heads, "num_key_value_heads": draw.choice([1, heads // 2, heads]),
            "window": draw.randint(2, 9), "tokens": draw.randint(14, 23), "experts": draw.randint(3, 9),
            "chosen": draw.randint(2, 3)}  # of one, weights are 1 and what moves Transformers' router is rounding


def model_of(name, settings):
    settings = {**settings, "pad_token_id": None}
    config = AutoConfig.for_model(name, **settings)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager", experts_implementation="eager")
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(parameter + 0.2 * noise if parameter.dim() == 1 else noise * parameter.shape[-1] ** -0.5)
    return model.eval()


def older(name, config, defaults):
    """A config in the spelling of Transformers 4: rotary positions of their own keys, no key that has its default,
    which for tie_word_embeddings was true."""
    made = {key: value for key, value in config.items() if key not in defaults or defaults[key] != value}
    made.update(model_type=name, torch_dtype=made.pop("dtype", "float32"), transformers_version="4.50.0")
    rope = made.pop("rope_parameters", None) or {}
    if "full_attention" in rope:
        if name == "gemma3_text":
            made["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = rope["full_attention"]
    rope = dict(rope)
    made.update({key: rope.pop(key) for key in ("rope_theta", "partial_rotary_factor") if key in rope})
    if name == "phi3":
        rope["type"] = rope.pop("rope_type")
    if rope.get("rope_type") != "default":
        made["rope_scaling"] = rope
    if name == "gpt_neox":
        made["rotary_emb_base"], made["rotary_pct"] = made.pop("rope_theta"), made.pop("partial_rotary_factor")
    if name in ("cohere2", "gemma3_text"):
        made["sliding_window_pattern"] = {"cohere2": 4, "gemma3_text": 6}[name]
        del made["layer_types"]
    if name in ("gemma2", "olmo3", "qwen2", "smollm3", "exaone4", "gpt_oss"):
        made.pop("layer_types", None)
    if name == "qwen3_moe":
        made["num_experts"] = made.pop("num_local_experts")
    if name == "gpt_oss":
        made.update(experts_per_token=made["num_experts_per_tok"], initial_context_length=8)
    if config.get("tie_word_embeddings", defaults.get("tie_word_embeddings")):
        made.pop("tie_word_embeddings", None)
    else:
        made["tie_word_embeddings"] = False
    return made


def losses(model, tokens):
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=BETAS, eps=EPS, weight_decay=0)
    found = []
    for _ in range(STEPS):
        made = model(tokens[:, :-1], use_cache=False)
        loss = torch.nn.functional.cross_entropy(made.logits[0], tokens[0, 1:])
        if getattr(model.config, "output_router_logits", False):
            loss = loss + model.config.router_aux_loss_coef * made.aux_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def make(out, seed):
    chosen = sizes(seed)
    count = chosen.pop("tokens")
    for name, settings in rows(chosen).items():
        settings.setdefault("max_position_embeddings", 48)
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        model = model_of(name, settings)
        model.save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        config = json.loads((folder / "config.json").read_text())
        defaults = json.loads(type(model.config)().to_json_string(use_diff=False))
        (folder / "config_v4.json").write_text(json.dumps(older(name, config, defaults), indent=2) + "\n")
        vocabulary = chosen["vocab_size"]
        tokens = torch.tensor([[(7 * i * i + 3 * i + 5) % vocabulary for i in range(count + 1)]])
        single = model(tokens[:, :-1], use_cache=False).logits[0]
        model = model.double()
        logits = model(tokens[:, :-1], use_cache=False).logits[0]
        apart = (single - logits).abs().max().item()
        expected = {"tokens": tokens[0].tolist(),
                    "logits": [[round(value, DIGITS) for value in row] for row in logits.tolist()], "apart": apart,
                    "losses": []}
        if "num_local_experts" in config:
            made = model.generate(tokens[:, :9], max_new_tokens=12, do_sample=False)
            expected["greedy"] = made[0, 9:].tolist()
        expected["losses"] = losses(model, tokens)
        (folder / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")
        print(name)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA, int(sys.argv[2]) if len(sys.argv) > 2 else None)
