#!/usr/bin/env python3
"""Makes tiny models of pictures as the transformers library saves them, and what it computes.

    make_pictures.py [OUT]

For each there is a folder with config.json, model.safetensors and expected.json: the losses of twenty steps of AdamW
(of nets with BatchNorm: SGD) on pictures and labels that are functions of their numbers, which
tests/scripts/families/picture_models_test.py has, too, and the logits, or representations, that the model then has in
evaluation. Needs torch and transformers."""
import json
import sys
from pathlib import Path

import torch
from transformers import (CLIPConfig, CLIPModel, ConvNextConfig, ConvNextForImageClassification, Dinov2Config,
                          Dinov2ForImageClassification, ResNetConfig, ResNetForImageClassification, SiglipConfig,
                          SiglipModel, SwinConfig, SwinForImageClassification, ViTConfig, ViTForImageClassification)

DATA = Path(__file__).resolve().parents[1] / "data/pictures"
STEPS, RATE, BATCH, IMAGE, SEQ, VOCAB = 20, 1e-3, 4, 16, 6, 19
LABELS = {"id2label": {0: "a", 1: "b", 2: "c"}}
TOWER = {"num_hidden_layers": 2, "num_attention_heads": 2}
TEXT = {**TOWER, "hidden_size": 8, "intermediate_size": 32, "vocab_size": VOCAB, "max_position_embeddings": SEQ}
VISION = {**TOWER, "hidden_size": 8, "intermediate_size": 32, "image_size": IMAGE, "patch_size": 4}


def models():
    vit = {**TOWER, "hidden_size": 8, "image_size": IMAGE, "patch_size": 4, **LABELS}
    yield "clip", CLIPModel(CLIPConfig(text_config={**TEXT, "eos_token_id": VOCAB - 1},
                                       vision_config={**VISION, "hidden_size": 12, "intermediate_size": 48},
                                       projection_dim=10))
    yield "convnext", ConvNextForImageClassification(ConvNextConfig(
        hidden_sizes=[4, 8], depths=[1, 2], num_stages=2, image_size=IMAGE, layer_scale_init_value=0.5, **LABELS))
    yield "dinov2", Dinov2ForImageClassification(Dinov2Config(mlp_ratio=2, **vit))
    yield "resnet", ResNetForImageClassification(ResNetConfig(
        embedding_size=4, hidden_sizes=[8, 16], depths=[2, 1], layer_type="bottleneck", **LABELS))
    yield "resnet_basic", ResNetForImageClassification(ResNetConfig(
        embedding_size=4, hidden_sizes=[4, 8], depths=[2, 2], layer_type="basic", **LABELS))
    yield "siglip", SiglipModel(SiglipConfig(text_config=TEXT, vision_config=VISION))
    yield "swin", SwinForImageClassification(SwinConfig(
        image_size=IMAGE, patch_size=2, embed_dim=4, depths=[2, 1], num_heads=[1, 2], window_size=4, drop_path_rate=0.0,
        **LABELS))
    yield "vit", ViTForImageClassification(ViTConfig(intermediate_size=16, **vit))


def start(model):
    """Numbers that tell pictures apart from the first step on."""
    draw = torch.Generator().manual_seed(1)
    for name, p in model.named_parameters():
        fan = p[0].numel() if p.dim() > 1 else 1
        p.data = torch.randn(p.shape, generator=draw) * (0.2 if p.dim() < 2 else 1.2 / fan ** 0.5)
        p.data += 1.0 if "norm" in name and name.endswith("weight") else 0.0
    for name, b in model.named_buffers():
        if "running" in name:
            b.data = torch.rand(b.shape, generator=draw) + 0.5


def batch(index):
    """Micro-batch `index`: pictures with channels last, labels, texts and their lengths."""
    numbers = torch.arange(BATCH * IMAGE * IMAGE * 3).double() + 1000 * index
    pictures = (torch.sin(0.37 * numbers) + torch.sin(0.011 * numbers)).float().reshape(BATCH, IMAGE, IMAGE, 3)
    labels = [(index + i) % 3 for i in range(BATCH)]
    lengths = [2 + (index + i) % (SEQ - 1) for i in range(BATCH)]
    texts = [[(index + 3 * i + 5 * t) % (VOCAB - 2) + 1 if t < n - 1 else VOCAB - 1 if t == n - 1 else 0
              for t in range(SEQ)] for i, n in enumerate(lengths)]
    return pictures.permute(0, 3, 1, 2), torch.tensor(labels), torch.tensor(texts)


def loss_of(model, index):
    pictures, labels, texts = batch(index)
    if hasattr(model, "classifier"):
        out = model(pixel_values=pictures)
        return torch.nn.functional.cross_entropy(out.logits, labels), out.logits
    out = model(pixel_values=pictures, input_ids=texts, return_loss=True)
    return out.loss, torch.cat((out.image_embeds, out.text_embeds))


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    for name, model in models():
        torch.manual_seed(0)
        start(model)
        model.save_pretrained(folder / name)
        # The gradient of a weight before a BatchNorm is 0 along it: AdamW would make steps of its rounding.
        norms = name.startswith("resnet")
        optimizer = (torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9) if norms else
                     torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.999), weight_decay=0))
        losses = []
        model.train()
        for index in range(STEPS):
            loss, _ = loss_of(model, index)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            loss, outputs = loss_of(model, 100)
        (folder / name / "expected.json").write_text(json.dumps(
            {"losses": losses, "evaluation": loss.item(), "outputs": outputs.flatten().tolist()}) + "\n")


if __name__ == "__main__":
    main()
