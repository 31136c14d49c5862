#!/usr/bin/env python3
"""Makes a tiny decoder with a tokenizer, data for objectives that compare or tell texts apart, and what TRL computes.

    make_objectives.py [OUT]

Without OUT it writes into data/objectives/ next to this file:
  model/               config.json, model.safetensors, tokenizer.json, tokenizer_config.json of a Llama whose tokens are bytes
  scored/              the same body with a head of one score, as a reward model begins
  labelled/            and with one of three
  pairs.jsonl          prompts with a preferred answer and another one
  labels.jsonl         texts with labels
  expected.json        by objective the losses of five steps of AdamW with all rows at once

Needs torch, transformers, trl, tokenizers and datasets.
"""
import json
import random
import sys
import tempfile
from pathlib import Path

import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer, RewardConfig, RewardTrainer
from trl.trainer.distillation_trainer import _chunked_divergence_loss

DATA = Path(__file__).resolve().parents[1] / "data/objectives"
ROWS, STEPS, RATE, BETAS, EPS = 6, 5, 1e-3, (0.9, 0.95), 1e-8
STRENGTHS = {"sigmoid": 0.3, "hinge": 0.1, "ipo": 0.3}
TEMPERATURES, TEACHER_EPS = (1.0, 2.0), 0.5
LAST, PAD = 256, 257
WORDS = "a cairn marks the way back from where it began and on to here".split()


def byte_letters():
    """What the byte-level pieces of GPT-2 call each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, more = {b: chr(b) for b in plain}, 0
    for b in range(256):
        if b not in letters:
            letters[b], more = chr(256 + more), more + 1
    return letters


def tokenizer():
    made = Tokenizer(models.BPE(vocab={letter: b for b, letter in byte_letters().items()}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|end|>", "<|pad|>"])
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end|>", pad_token="<|pad|>")


def filled(model):
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.2 * noise if parameter.dim() == 1 else noise * parameter.shape[-1] ** -0.5)
    return model.eval()


def config(**more):
    return LlamaConfig(vocab_size=258, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
                       num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=False, eos_token_id=LAST,
                       bos_token_id=None, pad_token_id=PAD, **more)


def texts(draw, count):
    return " ".join(draw.choices(WORDS, k=count))


def data():
    draw = random.Random(2)
    pairs = [{"prompt": texts(draw, 2 + i % 3) + " ", "chosen": texts(draw, draw.randint(1, 4)),
              "rejected": texts(draw, draw.randint(1, 5))} for i in range(ROWS)]
    labels = [{"text": texts(draw, draw.randint(2, 7)), "label": "abc"[i % 3]} for i in range(ROWS)]
    return pairs, labels


def arguments(kind, **more):
    return kind(output_dir=tempfile.mkdtemp(), per_device_train_batch_size=ROWS, max_steps=STEPS, learning_rate=RATE,
                lr_scheduler_type="constant", weight_decay=0.0, max_grad_norm=1e9, adam_beta1=BETAS[0], adam_beta2=BETAS[1],
                adam_epsilon=EPS, logging_steps=1, logging_nan_inf_filter=False, report_to=[], use_cpu=True, bf16=False, fp16=False,
                save_strategy="no", disable_tqdm=True, gradient_checkpointing=False, dataloader_pin_memory=False, **more)


def losses(trainer):
    seen, own = [], trainer.compute_loss

    def compute_loss(*args, **kwargs):
        made = own(*args, **kwargs)
        seen.append(float(made[0] if isinstance(made, tuple) else made))
        return made

    trainer.compute_loss = compute_loss
    trainer.train()
    return seen


def dpo(folder, pairs, loss):
    model = LlamaForCausalLM.from_pretrained(folder / "model")
    reference = LlamaForCausalLM.from_pretrained(folder / "model")
    return losses(DPOTrainer(model, reference, args=arguments(DPOConfig, beta=STRENGTHS[loss], loss_type=loss, max_length=64),
                             train_dataset=Dataset.from_list(pairs), processing_class=tokenizer()))


def reward(folder, pairs):
    model = LlamaForSequenceClassification.from_pretrained(folder / "scored")
    return losses(RewardTrainer(model, args=arguments(RewardConfig, max_length=64), train_dataset=Dataset.from_list(pairs),
                                processing_class=tokenizer()))


def classify(folder, labels):
    """As Transformers' own head computes it, with all texts in one batch."""
    model, cut = LlamaForSequenceClassification.from_pretrained(folder / "labelled"), tokenizer()
    inputs = cut([row["text"] for row in labels], padding=True, return_tensors="pt", padding_side="right")
    targets, seen = torch.tensor(["abc".index(row["label"]) for row in labels]), []
    optimizer = torch.optim.AdamW(model.parameters(), RATE, BETAS, EPS, weight_decay=0.0)
    for _ in range(STEPS):
        loss = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], labels=targets).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    return seen


def distill(folder, pairs, temperature):
    """Forward divergence from the same model with another epsilon in its norms, over the tokens of the answers."""
    student, cut, seen = LlamaForCausalLM.from_pretrained(folder / "model"), tokenizer(), []
    teacher = LlamaForCausalLM.from_pretrained(folder / "model", rms_norm_eps=TEACHER_EPS)
    optimizer = torch.optim.AdamW(student.parameters(), RATE, BETAS, EPS, weight_decay=0.0)
    for _ in range(STEPS):
        loss, count = 0, 0
        for row in pairs:
            prompt = cut(row["prompt"])["input_ids"]
            ids = torch.tensor([prompt + cut(row["chosen"])["input_ids"] + [LAST]])
            states = [model.model(ids).last_hidden_state[:, len(prompt) - 1:-1] for model in (student, teacher)]
            mask = torch.ones(states[0].shape[:2])
            loss = loss + _chunked_divergence_loss(states[0], states[1].detach(), student.lm_head.weight, teacher.lm_head.weight,
                                                   mask, 0.0, num_items_in_batch=1, temperature=temperature)[0]
            count += mask.numel()
        loss = loss / count
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    return seen


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    pairs, labels = data()
    for name, made in {"model": LlamaForCausalLM(config()), "scored": LlamaForSequenceClassification(config(num_labels=1)),
                       "labelled": LlamaForSequenceClassification(config(id2label={0: "a", 1: "b", 2: "c"},
                                                                         label2id={"a": 0, "b": 1, "c": 2}))}.items():
        filled(made).save_pretrained(folder / name)
        tokenizer().save_pretrained(folder / name)
    for name, rows in {"pairs": pairs, "labels": labels}.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = {f"dpo {loss}": dpo(folder, pairs, loss) for loss in STRENGTHS}
    expected |= {f"distill {t}": distill(folder, pairs, t) for t in TEMPERATURES}
    expected["reward"], expected["classify"] = reward(folder, pairs), classify(folder, labels)
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


main()
