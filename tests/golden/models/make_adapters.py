#!/usr/bin/env python3
"""Makes what PEFT computes for tiny models with adapters: data/adapters.json next to this file.

The models are those of data/decoders and data/encoders. The matrices of adapters are those of adapter_numbers.py in
tests/scripts/recipe, which both sides know; of PiSSA they are what PEFT starts with. By case: the options of cairn, the
shapes of the matrices by the names that PEFT gives them, and the losses of five steps of AdamW in float64.

Needs torch, transformers and peft.
"""
import json
import math
import sys
import tempfile
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

import make_encoders

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE.parent / "scripts/recipe"))
from adapter_numbers import numbers  # noqa: E402

STEPS, RATE, BETAS, EPS = 5, 1e-3, (0.9, 0.95), 1e-8
LLAMA = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
GPT2 = ["c_attn", "c_proj", "c_fc"]
CASES = {
    "llama_lora": ("llama", {"r": 3, "lora_alpha": 5, "target_modules": LLAMA}, "lora=3 lora_alpha=5"),
    "llama_some": ("llama", {"r": 2, "lora_alpha": 4, "target_modules": ["q_proj", "down_proj"],
                             "rank_pattern": {"down_proj": 5}, "alpha_pattern": {"q_proj": 7}},
                   "lora=2 lora_alpha=4 lora_targets=q_proj,*.down_proj lora_ranks=down_proj=5 lora_alphas=q_proj=7"),
    "llama_rslora": ("llama", {"r": 4, "lora_alpha": 3, "use_rslora": True, "target_modules": LLAMA},
                     "lora=4 lora_alpha=3 lora_kind=rslora"),
    "llama_dora": ("llama", {"r": 3, "lora_alpha": 5, "use_dora": True, "target_modules": LLAMA},
                   "lora=3 lora_alpha=5 lora_kind=dora"),
    "llama_pissa": ("llama", {"r": 3, "lora_alpha": 5, "init_lora_weights": "pissa", "target_modules": LLAMA},
                    "lora=3 lora_alpha=5 lora_kind=pissa"),
    "gpt2_lora": ("gpt2", {"r": 3, "lora_alpha": 5, "target_modules": GPT2, "fan_in_fan_out": True},
                  "lora=3 lora_alpha=5"),
    "gpt2_dora": ("gpt2", {"r": 2, "use_dora": True, "lora_alpha": 2, "target_modules": GPT2, "fan_in_fan_out": True},
                  "lora=2 lora_kind=dora"),
    "gpt2_pissa": ("gpt2", {"r": 2, "init_lora_weights": "pissa", "lora_alpha": 2, "target_modules": GPT2,
                            "fan_in_fan_out": True}, "lora=2 lora_kind=pissa"),
    "qwen3_saved": ("qwen3", {"r": 2, "lora_alpha": 2, "target_modules": ["q_proj"],
                              "modules_to_save": ["lm_head", "model.norm"]},
                    "lora=2 lora_targets=q_proj modules_to_save=lm_head,model.norm"),
    "mistral_table": ("mistral", {"r": 2, "lora_alpha": 3, "target_modules": ["embed_tokens", "v_proj"]},
                      "lora=2 lora_alpha=3 lora_targets=embed_tokens,v_proj"),
    "mixtral_experts": ("mixtral", {"r": 2, "lora_alpha": 3, "target_modules": ["q_proj"],
                                    "target_parameters": ["mlp.experts.down_proj"]},
                        "lora=2 lora_alpha=3 lora_targets=q_proj,experts.w2"),
}


# Of an encoder, whose activation is one with its layer: with a head that trains as it is.
ENCODERS = {
    "bert_lora": ("bert_classify", {"r": 3, "lora_alpha": 5, "target_modules": ["query", "key", "value", "dense"],
                                    "modules_to_save": ["classifier"]},
                  "lora=3 lora_alpha=5 beta2=0.999 modules_to_save=classifier"),
    "bert_dora": ("bert_classify", {"r": 3, "lora_alpha": 5, "use_dora": True, "modules_to_save": ["classifier"],
                                    "target_modules": ["query", "key", "value", "dense"]},
                  "lora=3 lora_alpha=5 beta2=0.999 lora_kind=dora modules_to_save=classifier"),
}


def losses(model, tokens):
    learnt = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learnt, lr=RATE, betas=BETAS, eps=EPS, weight_decay=0)
    found = []
    for _ in range(STEPS):
        logits = model(tokens[:, :-1], use_cache=False).logits[0]
        loss = torch.nn.functional.cross_entropy(logits, tokens[0, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def fill(model, name):
    """Gives the matrices of adapters their numbers; their shapes by name."""
    shapes = {}
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "lora_" not in key or "magnitude" in key or "pissa" in name:
                continue
            module = key.removeprefix("base_model.model.").replace(".default", "")
            experts = "experts" in module
            a, b = "lora_A" in module or "lora_embedding_A" in module, "lora_embedding" in module
            shape = list(parameter.shape)
            if experts:  # [rank * E, in], expert by expert, and [out, rank * E], rank by rank
                count = model.config.num_local_experts
                rank = shape[0 if a else 1] // count
                shape = [count, rank, shape[1]] if a else [count, shape[0], rank]
                module = module.replace("mlp.experts.lora", "block_sparse_moe.experts.w2.lora")
            if a and b:
                shape.reverse()
            shapes[module] = shape
            value = torch.tensor(numbers(module, math.prod(shape)), dtype=torch.float32).double().reshape(shape)
            if experts:
                value = value.reshape(-1, shape[2]) if a else value.permute(1, 2, 0).reshape(shape[1], -1)
            parameter.copy_(value.T if a and b else value)
    return shapes


def make_encoder(name):
    family, settings, options = ENCODERS[name]
    folder = HERE / "data/encoders" / family
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    config = model.config
    model = get_peft_model(model, LoraConfig(task_type="SEQ_CLS", **settings)).eval().double()
    with tempfile.TemporaryDirectory() as temporary:
        data = make_encoders.Task(family, Path(temporary), make_encoders.make_tokenizer(Path(temporary)), config,
                                  make_encoders.sizes(None)["tokens"])
    shapes = fill(model, name)
    return {"model": family, "options": " ".join([*data.options, options]), "shapes": shapes, "losses": data.losses(model),
            "learnt": sum(p.numel() for p in model.parameters() if p.requires_grad)}


def make(name):
    family, settings, options = CASES[name]
    folder = HERE / "data/decoders" / family
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                 experts_implementation="eager")
    model = get_peft_model(model, LoraConfig(**settings)).eval().double()
    shapes = fill(model, name)
    tokens = torch.tensor([json.loads((folder / "expected.json").read_text())["tokens"]])
    return {"model": family, "options": options, "shapes": shapes, "losses": losses(model, tokens),
            "learnt": sum(p.numel() for p in model.parameters() if p.requires_grad)}


if __name__ == "__main__":
    made = {name: make(name) for name in CASES} | {name: make_encoder(name) for name in ENCODERS}
    lines = [f"{json.dumps(name)}: {json.dumps(case, separators=(',', ':'))}" for name, case in made.items()]
    (HERE / "data/adapters.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
