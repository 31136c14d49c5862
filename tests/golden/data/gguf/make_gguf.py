#!/usr/bin/env python3
"""Small GGUF files, written with PyPI's gguf by the rules of llama.cpp's converter, and what Transformers' models with the
values that the files have say of some tokens. Needs torch, transformers and gguf.

    make_gguf.py            writes NAME.gguf and NAME.json next to itself
"""
import json
import math
import pathlib

import gguf
import numpy
import torch
import transformers
from gguf import GGMLQuantizationType as Types

OUT = pathlib.Path(__file__).resolve().parent
VOCABULARY, WIDTH, LAYERS, HEADS, KV_HEADS, HEAD_DIM, HIDDEN, WINDOW, EXPERTS = 32, 32, 2, 4, 2, 8, 32, 4, 3
TOKENS = [1, 5, 9, 31, 2, 30, 7, 7, 12, 20, 3]
COMMON = {"vocab_size": VOCABULARY, "hidden_size": WIDTH, "intermediate_size": HIDDEN, "num_hidden_layers": LAYERS,
          "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "max_position_embeddings": 64,
          "tie_word_embeddings": False, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}
YARN = {"rope_type": "yarn", "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
        "original_max_position_embeddings": 16}


def configuration(name, **more):
    return getattr(transformers, name)(**{**COMMON, **more})


# By file: the architecture there, the class, its config, what matrices are stored as.
MODELS = {
    "llama": ("llama", "LlamaForCausalLM", configuration(
        "LlamaConfig", tie_word_embeddings=True, rope_theta=500000.0, rope_scaling=LLAMA3), Types.Q8_0),
    "mixtral": ("llama", "MixtralForCausalLM", configuration(
        "MixtralConfig", num_local_experts=EXPERTS, num_experts_per_tok=2, sliding_window=None), Types.Q4_0),
    "qwen3moe": ("qwen3moe", "Qwen3MoeForCausalLM", configuration(
        "Qwen3MoeConfig", head_dim=HEAD_DIM * 2, num_experts=EXPERTS, num_experts_per_tok=2, moe_intermediate_size=HIDDEN,
        norm_topk_prob=True), Types.F16),
    "gemma2": ("gemma2", "Gemma2ForCausalLM", configuration(
        "Gemma2Config", head_dim=HEAD_DIM, query_pre_attn_scalar=HEAD_DIM, sliding_window=WINDOW, tie_word_embeddings=True),
        Types.F16),
    "gpt2": ("gpt2", "GPT2LMHeadModel", transformers.GPT2Config(
        vocab_size=VOCABULARY, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_positions=64, n_inner=HIDDEN), Types.BF16),
    "gptneox": ("gptneox", "GPTNeoXForCausalLM", transformers.GPTNeoXConfig(**{
        key: value for key, value in COMMON.items() if key != "num_key_value_heads"}, rotary_pct=0.5), Types.F16),
    "gpt-oss": ("gpt-oss", "GptOssForCausalLM", configuration(
        "GptOssConfig", head_dim=HEAD_DIM, num_local_experts=EXPERTS, num_experts_per_tok=2, sliding_window=WINDOW,
        rope_scaling=YARN), Types.F16),
}


def turned(rows, heads):
    """Llama's rows of queries or keys as the converter writes them."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def turned_back(rows, heads):
    return rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


class Writer:
    def __init__(self, name):
        architecture, kind, self.config, self.type = MODELS[name]
        self.config._attn_implementation = "eager"
        self.architecture = architecture
        self.file = gguf.GGUFWriter(OUT / f"{name}.gguf", architecture)
        number = next(key for key, value in gguf.MODEL_ARCH_NAMES.items() if value == architecture)
        self.names = gguf.get_tensor_name_map(number, LAYERS)
        torch.manual_seed(7)
        self.model = getattr(transformers, kind)(self.config).eval()
        with torch.no_grad():
            for key, value in self.model.named_parameters():
                if value.dim() == 1:
                    value.copy_(torch.randn_like(value) * 0.3 + (1 if "norm" in key or "ln_" in key else 0))
                else:
                    value.copy_(torch.randn_like(value) * 1.6 / math.sqrt(value.shape[-1]))

    def put(self, name, values):
        """Writes a tensor; returns the values that a reader of the file has."""
        array = values.float().numpy().copy()
        plain = array.ndim <= 1 or name.endswith("_norm.weight") or not name.endswith(".weight") \
            or "ffn_gate_inp" in name or name.startswith("position_embd")
        kind = Types.F32 if plain else self.type
        stored = gguf.quants.quantize(array, kind)
        self.file.add_tensor(name, stored, raw_dtype=kind)
        return torch.from_numpy(numpy.ascontiguousarray(gguf.quants.dequantize(stored, kind)))

    def named(self, key):
        base, dot, suffix = key.rpartition(".")
        return self.names.get_name(base) + dot + suffix

    def tensor(self, key, values):
        block = f"blk.{key.split('.')[2]}." if key.startswith("model.layers.") else ""
        if self.architecture == "llama" and ("q_proj" in key or "k_proj" in key):
            heads = HEADS if "q_proj" in key else KV_HEADS
            return turned_back(self.put(self.named(key), turned(values, heads)), heads)
        if self.architecture == "gemma2" and key.endswith("norm.weight"):
            return self.put(self.named(key), values + 1) - 1
        if self.architecture == "gpt2" and key.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            return self.put(self.named(key), values.T).T
        if "query_key_value" in key:
            by_part = values.reshape(HEADS, 3, WIDTH // HEADS, *values.shape[1:]).transpose(0, 1).reshape(values.shape)
            read = self.put(self.named(key), by_part)
            return read.reshape(3, HEADS, WIDTH // HEADS, *values.shape[1:]).transpose(0, 1).reshape(values.shape)
        if key.endswith("sinks"):
            return self.put(block + "attn_sinks.weight", values)
        if self.architecture == "gpt-oss" and "experts" in key:
            suffix = "bias" if key.endswith("_bias") else "weight"
            rows = values if suffix == "bias" else values.transpose(1, 2)
            if "gate_up" in key:
                rows = rows.clone()
                for i, part in enumerate(("gate", "up")):
                    rows[:, i::2] = self.put(f"{block}ffn_{part}_exps.{suffix}", rows[:, i::2])
            else:
                rows = self.put(f"{block}ffn_down_exps.{suffix}", rows)
            return rows if suffix == "bias" else rows.transpose(1, 2)
        if key.endswith("experts.gate_up_proj"):
            parts = [self.put(f"{block}ffn_{part}_exps.weight", half)
                     for part, half in zip(("gate", "up"), values.chunk(2, 1), strict=True)]
            return torch.cat(parts, 1)
        if key.endswith("experts.down_proj"):
            return self.put(block + "ffn_down_exps.weight", values)
        if key.endswith((".mlp.gate.weight", "mlp.router.weight")):
            return self.put(block + "ffn_gate_inp.weight", values)
        return self.put(self.named(key), values)

    def metadata(self):
        file, config = self.file, self.config
        file.add_block_count(LAYERS)
        file.add_context_length(64)
        file.add_embedding_length(WIDTH)
        file.add_feed_forward_length(HIDDEN)
        file.add_head_count(HEADS)
        if self.architecture not in ("gpt2", "gptneox"):
            file.add_head_count_kv(KV_HEADS)
            file.add_layer_norm_rms_eps(config.rms_norm_eps)
            file.add_rope_freq_base(config.rope_parameters["rope_theta"])
        else:
            file.add_layer_norm_eps(getattr(config, "layer_norm_eps", None) or config.layer_norm_epsilon)
        if getattr(config, "head_dim", None) and self.architecture != "llama":
            file.add_key_length(config.head_dim)
            file.add_value_length(config.head_dim)
        if self.architecture == "llama":
            file.add_vocab_size(VOCABULARY)
            file.add_rope_dimension_count(WIDTH // HEADS)
        if self.architecture == "gptneox":
            file.add_rope_dimension_count(WIDTH // HEADS // 2)
            file.add_parallel_residual(config.use_parallel_residual)
        if self.architecture in ("gemma2", "gpt-oss"):
            file.add_sliding_window(WINDOW)
        if self.architecture == "gemma2":
            file.add_attn_logit_softcapping(config.attn_logit_softcapping)
            file.add_final_logit_softcapping(config.final_logit_softcapping)
        if "Moe" in type(config).__name__ or "Mixtral" in type(config).__name__ or self.architecture == "gpt-oss":
            file.add_expert_count(EXPERTS)
            file.add_expert_used_count(2)
            file.add_expert_feed_forward_length(HIDDEN)
        scaling = getattr(config, "rope_parameters", None) or {}
        if scaling.get("rope_type") == "yarn":
            file.add_rope_scaling_type(gguf.RopeScalingType.YARN)
            file.add_rope_scaling_factor(YARN["factor"])
            file.add_rope_scaling_orig_ctx_len(YARN["original_max_position_embeddings"])
            file.add_rope_scaling_yarn_beta_fast(YARN["beta_fast"])
            file.add_rope_scaling_yarn_beta_slow(YARN["beta_slow"])
        if scaling.get("rope_type") == "llama3":
            low, high = 8192 / LLAMA3["low_freq_factor"], 8192 / LLAMA3["high_freq_factor"]
            factors = []
            for i in range(0, HEAD_DIM, 2):
                length = 2 * math.pi * scaling["rope_theta"] ** (i / HEAD_DIM)
                smooth = (8192 / length - 1) / 3
                between = 1 / ((1 - smooth) / LLAMA3["factor"] + smooth)
                factors.append(1 if length < high else LLAMA3["factor"] if length > low else between)
            file.add_tensor("rope_freqs.weight", numpy.array(factors, dtype=numpy.float32))

    def write(self, name):
        self.metadata()
        read = {}
        for key, values in self.model.state_dict().items():
            if key.endswith((".attn.bias", "masked_bias", "inv_freq")):
                continue
            if key == "lm_head.weight" and self.config.tie_word_embeddings:
                continue
            read[key] = self.tensor(key, values.clone())
        self.file.write_header_to_file()
        self.file.write_kv_data_to_file()
        self.file.write_tensors_to_file()
        self.file.close()
        for key in ("model.embed_tokens.weight", "transformer.wte.weight"):
            if self.config.tie_word_embeddings and key in read:
                read["lm_head.weight"] = read[key]
        self.model.load_state_dict(read, strict=False)
        with torch.no_grad():
            logits = self.model(torch.tensor([TOKENS])).logits[0]
        expected = {"tokens": TOKENS, "logits": [[round(float(value), 7) for value in row] for row in logits]}
        (OUT / f"{name}.json").write_text(json.dumps(expected) + "\n")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        Writer(name).write(name)


if __name__ == "__main__":
    main()
