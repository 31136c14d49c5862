#!/usr/bin/env python3
"""Makes tiny encoders as the transformers library saves them, with a tokenizer, and what it computes.

    make_encoders.py [OUT [SEED]]

Without OUT it writes the models of the quick tests into data/encoders/ next to this file; with a SEED their sizes are
drawn from it. For each family and head there is a folder FAMILY_TASK with
  config.json, model.safetensors, tokenizer.json   as save_pretrained writes them (Transformers 5)
  config_v4.json                   the config in the spelling of Transformers 4, without keys that have a default
  data.jsonl or data.txt           what is trained and evaluated with
  expected.json                    tokens and their logits in float64, the loss of five steps of AdamW over all data,
                                   options that the command is given, and what an evaluation finds before training

Needs torch and transformers.
"""
import json
import random
import shutil
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (AutoConfig, AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification,
                          AutoModelForTokenClassification)

DATA = Path(__file__).resolve().parents[1] / "data/encoders"
STEPS, RATE, BETAS, EPS = 5, 1e-3, (0.9, 0.999), 1e-8
SEED, EVALUATION_SEED = 1337, 20260  # the command's
DIGITS = 9
IGNORED = -100
LETTERS = "abcdefgh"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HEADS = {"mlm": AutoModelForMaskedLM, "classify": AutoModelForSequenceClassification,
         "tag": AutoModelForTokenClassification, "body": AutoModel}


def make_tokenizer(folder):
    """WordPiece of single letters and a few longer pieces, around which [CLS] and [SEP] go."""
    pieces = SPECIAL + list(LETTERS) + ["##" + letter for letter in LETTERS] + ["bad", "dad", "cab", "##ed", "##ad", "."]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def words(draw, count):
    return [draw.choice(["bad", "dad", "cab", "".join(draw.choices(LETTERS, k=draw.randint(1, 5)))]) for _ in range(count)]


def rows(s):
    """By family and task, what its config is made of. s: the sizes."""
    window, s = s["window"], {key: value for key, value in s.items() if key != "window"}
    old = {**s, "max_position_embeddings": 40, "layer_norm_eps": 1e-6}
    new = {**s, "num_hidden_layers": 4, "local_attention": window}
    names = {"id2label": {0: "no", 1: "yes", 2: "may be"}}
    tags = {"id2label": {0: "O", 1: "B", 2: "I"}}
    return {
        "bert_body": {**old, **names},
        "bert_classify": {**old, **names},
        "bert_mlm": old,
        "bert_tag": {**old, **tags, "hidden_act": "gelu_new", "type_vocab_size": 1},
        "modernbert_classify": {**new, "classifier_pooling": "mean", "classifier_bias": True},  # of two labels
        "modernbert_mlm": {**new, "norm_bias": True, "mlp_bias": True, "attention_bias": True, "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 700.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 50.0}}},
        "modernbert_tag": {**new, **tags, "decoder_bias": False, "classifier_activation": "silu"},
    }


def sizes(seed):
    if seed is None:
        return {"vocab_size": 31, "hidden_size": 12, "intermediate_size": 18, "num_hidden_layers": 2,
                "num_attention_heads": 2, "window": 6, "tokens": 15}
    draw = random.Random(seed)
    heads = draw.choice([1, 2, 3])
    return {"vocab_size": draw.randint(29, 50), "hidden_size": heads * 2 * draw.randint(6 // heads, 7),
            "intermediate_size": draw.randint(13, 50), "num_hidden_layers": draw.randint(1, 4),
            "num_attention_heads": heads, "window": draw.randint(1, 9), "tokens": draw.randint(12, 23)}


def model_of(family, task, settings):
    settings = {**settings, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None}
    if family == "modernbert":
        settings.update(cls_token_id=2, sep_token_id=3)
    config = AutoConfig.for_model(family, **settings)
    model = HEADS[task].from_config(config, attn_implementation="eager")
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(parameter + 0.2 * noise if parameter.dim() == 1 else noise * parameter.shape[-1] ** -0.5)
    return model.eval()


def older(family, config, defaults):
    """A config in the spelling of Transformers 4, without keys that have a default."""
    made = {key: value for key, value in config.items() if key not in defaults or defaults[key] != value}
    made.update(model_type=family, torch_dtype=made.pop("dtype", "float32"), transformers_version="4.50.0",
                position_embedding_type="absolute", architectures=config["architectures"])
    if family == "modernbert":
        rope = made.pop("rope_parameters", {})
        for key, kind in (("global", "full_attention"), ("local", "sliding_attention")):
            if kind in rope:
                made[key + "_rope_theta"] = rope[kind]["rope_theta"]
        made.pop("layer_types", None)
        made.update(global_attn_every_n_layers=3, layer_norm_eps=1e-5, reference_compile=False)
    return made


def lehmer(seed):
    """Numbers in [0, 1) as bindings/lua/cairn/random.lua draws them."""
    state = seed % 2147483645 + 1
    for _ in range(8):
        state = state * 48271 % 2147483647
    while True:
        state = state * 48271 % 2147483647
        yield (state - 1) / 2147483646


def masked(sample, special, mask, vocabulary, seed, epoch, place):
    """A sample with 15 % of its tokens chosen, of which 8 of 10 become the mask and 1 of 10 a random token."""
    draw = lehmer(seed + 7919 * (epoch + 1) + 48611 * (place + 1))
    places = [i for i, token in enumerate(sample) if token not in special]
    wanted = max(1, int(0.15 * len(places) + 0.5))
    for i in range(wanted):
        other = i + int(next(draw) * (len(places) - i))
        places[i], places[other] = places[other], places[i]
    tokens, labels = list(sample), [IGNORED] * len(sample)
    for at in sorted(places[:wanted]):
        labels[at] = sample[at]
        kind = next(draw)
        if kind < 0.8:
            tokens[at] = mask
        elif kind < 0.9:
            drawn = int(next(draw) * vocabulary)
            while drawn in special:
                drawn = int(next(draw) * vocabulary)
            tokens[at] = drawn
    return tokens, labels


def f1_scores(said, there, classes, none=None):
    """scikit-learn's f1_score: of each class that is there or was said; micro leaves out the class `none`."""
    right = [sum(s == t == c for s, t in zip(said, there)) for c in range(classes)]
    both = [said.count(c) + there.count(c) for c in range(classes)]
    each = [2 * right[c] / both[c] if both[c] else None for c in range(classes)]
    known = [value for value in each if value is not None]
    counted = [c for c in range(classes) if c != none]
    total = sum(both[c] for c in counted)
    found = {"f1_macro": sum(known) / len(known),
             "f1_micro": 2 * sum(right[c] for c in counted) / total if total else 0}
    if classes == 2 and none is None:
        found["f1"] = each[1] or 0
    return found


class Task:
    """What is trained with: files in `folder`, options of the command, and batch(step) as tensors with labels."""

    def __init__(self, name, folder, tokenizer, config, count):
        self.family, self.task = name.split("_")
        self.tokenizer, self.config, self.count = tokenizer, config, count
        self.draw = random.Random(name)
        self.options, self.samples, self.none = [], [], None
        getattr(self, "make_" + self.task)(folder)

    def make_body(self, folder):
        self.make_classify(folder)
        self.options.append("task=classify")

    def make_classify(self, folder):
        labels = list(self.config.id2label.values())
        records = [{"text": " ".join(words(self.draw, self.draw.randint(1, 6))), "other": " ".join(words(self.draw, 3)),
                    "label": self.draw.choice(labels)} for _ in range(7)]
        (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records))
        self.seq, self.batch_size = 12, len(records)
        self.options += [f"seq={self.seq}", f"batch={self.batch_size}", "pair=other"]
        tokens, types = [], []
        for row in records:
            self.tokenizer.enable_truncation(self.seq, strategy="longest_first")
            made = self.tokenizer.encode(row["text"], row["other"])
            tokens.append(made.ids)
            types.append(made.type_ids)
        self.samples = [(tokens[i], types[i], [labels.index(row["label"])]) for i, row in enumerate(records)]

    def make_tag(self, folder):
        labels = list(self.config.id2label.values())
        records = []
        for _ in range(5):
            sentence = words(self.draw, self.draw.randint(1, 5))
            records.append({"words": sentence, "tags": [self.draw.choice(labels) for _ in sentence]})
        (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records))
        self.seq, self.batch_size, self.none = 14, len(records), labels.index("O")
        self.options += [f"seq={self.seq}", f"batch={self.batch_size}"]
        self.samples = []
        for row in records:
            made, wanted = [], []
            for word, tag in zip(row["words"], row["tags"]):
                pieces = self.tokenizer.encode(word, add_special_tokens=False).ids
                made += pieces
                wanted += [labels.index(tag)] + [IGNORED] * (len(pieces) - 1)
            made, wanted = made[:self.seq - 2], wanted[:self.seq - 2]
            self.samples.append(([2, *made, 3], None, [IGNORED, *wanted, IGNORED]))

    def make_mlm(self, folder):
        text = " ".join(words(self.draw, self.count))
        (folder / "data.txt").write_text(text)
        inner = self.tokenizer.encode(text, add_special_tokens=False).ids[:-1]
        self.sample, self.batch_size = [2, *inner, 3], 1
        self.options += [f"seq={len(self.sample)}", "batch=1"]

    def loss(self, model, seed, epoch):
        """Of all samples, each read without padding; their logits and labels in rows."""
        samples = self.samples
        if self.task == "mlm":
            tokens, labels = masked(self.sample, range(len(SPECIAL)), 4, self.config.vocab_size, seed, epoch, 0)
            samples = [(tokens, None, labels)]
        rows, labels = [], []
        for tokens, types, wanted in samples:
            paired = {"token_type_ids": torch.tensor([types])} if types and self.family == "bert" else {}
            logits = model(input_ids=torch.tensor([tokens]), **paired).logits
            rows.append(logits.reshape(-1, logits.shape[-1]))
            labels += wanted
        flat, labels = torch.cat(rows), torch.tensor(labels)
        return torch.nn.functional.cross_entropy(flat, labels, ignore_index=IGNORED), flat, labels

    def found(self, model):
        with torch.no_grad():
            loss, flat, labels = self.loss(model, EVALUATION_SEED, 0)
        said, there = flat.argmax(-1)[labels != IGNORED].tolist(), labels[labels != IGNORED].tolist()
        made = {"loss": loss.item(), "accuracy": sum(s == t for s, t in zip(said, there)) / len(there)}
        return made if self.task == "mlm" else {**made, **f1_scores(said, there, flat.shape[-1], self.none)}

    def losses(self, model):
        optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=BETAS, eps=EPS, weight_decay=0)
        made = []
        for step in range(STEPS):
            loss = self.loss(model, SEED, step)[0]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            made.append(loss.item())
        return made


def make(out, seed):
    chosen = sizes(seed)
    count = chosen.pop("tokens")
    for name, settings in rows(chosen).items():
        family, task = name.split("_")
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        model = model_of(family, task, settings)
        model.save_pretrained(folder)
        tokenizer = make_tokenizer(folder)
        config = json.loads((folder / "config.json").read_text())
        defaults = json.loads(type(model.config)().to_json_string(use_diff=False))
        (folder / "config_v4.json").write_text(json.dumps(older(family, config, defaults), indent=2) + "\n")
        data = Task(name, folder, tokenizer, model.config, count)
        expected = {"options": data.options}
        if task != "body":
            tokens = torch.tensor([[(7 * i * i + 3 * i + 5) % chosen["vocab_size"] for i in range(count)]])
            single = model(tokens).logits[0]
            model = model.double()
            logits = model(tokens).logits[0]
            expected.update(tokens=tokens[0].tolist(), apart=(single - logits).abs().max().item(),
                            logits=[[round(value, DIGITS) for value in row] for row in logits.reshape(-1, logits.shape[-1]).tolist()],
                            found=data.found(model), losses=data.losses(model))
        (folder / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")
        print(name)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA, int(sys.argv[2]) if len(sys.argv) > 2 else None)
