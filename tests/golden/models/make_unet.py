#!/usr/bin/env python3
"""Makes tiny U-Nets and what PyTorch computes with them, as scripts/recipes/unet.lua describes them.

    make_unet.py [OUT]

For each task there is a folder with model.safetensors, by cairn's names and channels last, and expected.json: the
losses of twenty steps of AdamW on arrays that are functions of their numbers (tests/scripts/recipe/unet_test.py has the
same), and the loss and the accuracy by pixel of one evaluation after them. Needs torch and safetensors."""
import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

DATA = Path(__file__).resolve().parents[1] / "data/unet"
STEPS, RATE, BATCH, IMAGE, CLASSES, TIME = 20, 1e-3, 2, 8, 4, 64
WIDTHS, GROUPS, HEADS, ATTENTION = [4, 8, 12], 2, 2, 4  # as the test's options


def wave(count, factor, index):
    numbers = torch.arange(count).double() + 1000 * index
    return torch.sin(factor * numbers).float()


def arrays(index):
    shape = (BATCH, IMAGE, IMAGE, 3)
    pixels = BATCH * IMAGE * IMAGE
    picture, noise = (wave(3 * pixels, factor, index).reshape(shape).permute(0, 3, 1, 2) for factor in (0.37, 0.71))
    target = torch.arange(pixels).add(index).remainder(7).remainder(CLASSES).reshape(shape[:3])
    return picture, noise, target, wave(BATCH * TIME, 0.53, index).reshape(BATCH, TIME)


class Net:
    """Parameters are made where they are first used, so that the net's form is said once."""

    def __init__(self, denoises):
        self.denoises, self.parameters = denoises, {}
        self.draw = torch.Generator().manual_seed(1)

    def parameter(self, name, shape, start=0.0):
        if name not in self.parameters:
            deviation = 0.2 if len(shape) == 1 else 1.2 / torch.Size(shape[1:]).numel() ** 0.5
            p = torch.randn(shape, generator=self.draw) * deviation + start
            self.parameters[name] = p.requires_grad_()
        return self.parameters[name]

    def conv(self, name, x, outputs, kernel=3, stride=1):
        w = self.parameter(name + ".weight", (outputs, kernel, kernel, x.shape[1]))
        b = self.parameter(name + ".bias", (outputs,))
        return F.conv2d(x, w.permute(0, 3, 1, 2), b, stride, kernel // 2)

    def norm(self, name, x):
        c = (x.shape[1],)
        return F.group_norm(x, GROUPS, self.parameter(name + ".weight", c, 1.0), self.parameter(name + ".bias", c))

    def linear(self, name, x, outputs):
        return F.linear(x, self.parameter(name + ".weight", (outputs, x.shape[-1])),
                        self.parameter(name + ".bias", (outputs,)))

    def block(self, name, x, outputs):
        y = self.conv(name + ".conv1", F.silu(self.norm(name + ".norm1", x)), outputs)
        if self.denoises:
            y = y + self.linear(name + ".time", self.time, outputs)[:, :, None, None]
        y = self.conv(name + ".conv2", F.silu(self.norm(name + ".norm2", y)), outputs)
        return y + (x if x.shape[1] == outputs else self.conv(name + ".skip", x, outputs, 1))

    def attention(self, name, x):
        b, c, h, w = x.shape
        rows = self.norm(name + ".norm", x).flatten(2).transpose(1, 2)
        q, k, v = (self.linear(f"{name}.attn.{part}", rows, c).view(b, h * w, HEADS, -1).transpose(1, 2)
                   for part in ("query", "key", "value"))
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, h * w, c)
        return x + self.linear(name + ".attn.out", y, c).transpose(1, 2).reshape(x.shape)

    def stage(self, name, x, outputs):
        x = self.block(name + ".block", x, outputs)
        return self.attention(name + ".attention", x) if self.denoises and x.shape[2] <= ATTENTION else x

    def level(self, x, level):
        width = WIDTHS[level - 1]
        x = self.stage(f"down{level}", x, width)
        if level == len(WIDTHS):
            return x
        y = self.level(self.conv(f"shrink{level}", x, width, stride=2), level + 1)
        y = self.conv(f"grow{level}", F.interpolate(y, scale_factor=2), width)
        return self.stage(f"up{level}", torch.cat((x, y), 1), width)

    def loss(self, index):
        picture, noise, target, time = arrays(index)
        if self.denoises:
            self.time = F.silu(self.linear("time.linear1", time, 4 * WIDTHS[0]))
            self.time = F.silu(self.linear("time.linear2", self.time, 4 * WIDTHS[0]))
        y = self.level(self.conv("stem", picture, WIDTHS[0]), 1)
        y = self.conv("head.conv", F.silu(self.norm("head.norm", y)), 3 if self.denoises else CLASSES)
        if self.denoises:
            return F.mse_loss(y, noise), None
        return F.cross_entropy(y, target), (y.argmax(1) == target).double().mean().item()


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    for task in ("segmentation", "denoise"):
        net = Net(task == "denoise")
        net.loss(0)
        (folder / task).mkdir(parents=True, exist_ok=True)
        save_file({name: p.detach().clone() for name, p in net.parameters.items()}, folder / task / "model.safetensors")
        optimizer = torch.optim.AdamW(net.parameters.values(), lr=RATE, betas=(0.9, 0.999), weight_decay=0)
        losses = []
        for index in range(STEPS):
            loss, _ = net.loss(index)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            loss, accuracy = net.loss(100)
        (folder / task / "expected.json").write_text(json.dumps(
            {"losses": losses, "evaluation": loss.item(), "accuracy": accuracy}) + "\n")


if __name__ == "__main__":
    main()
