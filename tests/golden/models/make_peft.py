#!/usr/bin/env python3
"""Makes adapters as PEFT saves them, of the tiny models in data/decoders and data/encoders, and what they compute.

    make_peft.py [OUT]

For each there is a folder data/peft/NAME with
  adapter_config.json, adapter_model.safetensors   as save_pretrained writes them
  expected.json                                    model (its folder below data), tokens, logits of all of them

Needs torch, transformers and peft.
"""
import json
import shutil
import sys
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

DATA = Path(__file__).resolve().parents[1] / "data"
DIGITS = 9
ATTENTION = ["q_proj", "v_proj", "o_proj"]

CASES = {
    "plain": ("decoders/llama", {"r": 2, "lora_alpha": 6, "target_modules": ATTENTION + ["down_proj"]}),
    "patterns": ("decoders/llama", {"r": 3, "lora_alpha": 4, "target_modules": "all-linear",
                                    "rank_pattern": {"down_proj": 5, r"model\.layers\.1\.self_attn\.q_proj": 1},
                                    "alpha_pattern": {r"layers.\d+.self_attn.k_proj": 9}}),
    "regex": ("decoders/llama", {"r": 2, "lora_alpha": 2, "target_modules": r".*\.layers\.0\..*(up|gate)_proj"}),
    "dora": ("decoders/llama", {"r": 2, "lora_alpha": 5, "target_modules": ATTENTION, "use_dora": True}),
    "rank_stabilised": ("decoders/gpt2", {"r": 3, "lora_alpha": 6, "use_rslora": True, "fan_in_fan_out": True,
                                          "target_modules": ["c_attn", "c_proj", "c_fc"], "task_type": "CAUSAL_LM"}),
    "table": ("decoders/qwen3", {"r": 2, "lora_alpha": 4, "target_modules": ["embed_tokens", "v_proj"]}),
    "head": ("decoders/qwen3", {"r": 2, "lora_alpha": 4, "target_modules": ["v_proj"], "modules_to_save": ["lm_head"]}),
    "classifier": ("encoders/bert_classify", {"r": 2, "lora_alpha": 4, "target_modules": ["query", "value"],
                                              "task_type": "SEQ_CLS"}),
}


def write(out, name, where, settings):
    torch.manual_seed(3)
    path = DATA / where
    kind = AutoModelForCausalLM if where.startswith("decoders") else AutoModelForSequenceClassification
    model = kind.from_pretrained(path, torch_dtype=torch.float32, attn_implementation="eager")
    model = get_peft_model(model, LoraConfig(**settings)).eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if parameter.requires_grad:
                noise = 0.3 * torch.randn(parameter.shape, generator=generator)
                parameter.copy_(parameter * (1 + noise) if "magnitude" in key else parameter + noise)
        tokens = json.loads((path / "expected.json").read_text())["tokens"]
        logits = model(torch.tensor([tokens])).logits[0]
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    (folder / "adapter_model.safetensors").chmod(0o644)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = where
    if isinstance(config["target_modules"], list):
        config["target_modules"].sort()
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")
    rows = logits.tolist() if logits.dim() > 1 else [logits.tolist()]
    (folder / "expected.json").write_text(json.dumps({
        "model": where, "tokens": tokens, "logits": [[round(x, DIGITS) for x in row] for row in rows]}) + "\n")


def main():
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA / "peft"
    out.mkdir(parents=True, exist_ok=True)
    for name, (where, settings) in CASES.items():
        write(out, name, where, settings)


if __name__ == "__main__":
    main()
