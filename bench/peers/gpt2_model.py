"""GPT-2 in PyTorch, with Hugging Face's names, orientation and initialisation.

state_dict() keys are those of Hugging Face's GPT2Model: wte.weight, wpe.weight, h.0.ln_1.weight,
h.0.attn.c_attn.weight, ..., ln_f.bias. The head is tied to wte and has no entry of its own.
Source of the model: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners".
"""

import math
import re

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn
from torch.utils.checkpoint import checkpoint

INIT_STD = 0.02
# Published files carry the causal mask as a buffer, and some carry the tied head a second time.
IGNORED_TENSORS = re.compile(r"^(lm_head\.weight|h\.\d+\.attn\.(bias|masked_bias))$")


class Conv1D(nn.Module):
    """y = x @ weight + bias, weight [inputs, outputs]: the transpose of nn.Linear's."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        y = torch.addmm(self.bias, x.reshape(-1, x.size(-1)), self.weight)
        return y.view(*x.shape[:-1], -1)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = Conv1D(width, 3 * width)
        self.c_proj = Conv1D(width, width)

    def forward(self, x):
        batch, seq, width = x.shape
        q, k, v = (
            part.view(batch, seq, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(batch, seq, width))


class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = Conv1D(width, 4 * width)
        self.c_proj = Conv1D(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, eps=1e-5)
        self.attn = Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width, eps=1e-5)
        self.mlp = MLP(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self, layers, heads, width, vocab, seq, checkpoint_layers=False):
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not a multiple of heads {heads}")
        self.checkpoint_layers = checkpoint_layers
        self.wte = nn.Embedding(vocab, width)
        self.wpe = nn.Embedding(seq, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width, eps=1e-5)
        self.initialise(layers)

    @torch.no_grad()
    def initialise(self, layers):
        """Hugging Face's: normal(0, 0.02), times 1/sqrt(2 layers) into the residual stream; biases 0."""
        for name, parameter in self.named_parameters():
            if parameter.dim() >= 2:
                residual = name.endswith("c_proj.weight")
                parameter.normal_(0.0, INIT_STD / math.sqrt(2 * layers) if residual else INIT_STD)

    def forward(self, tokens, targets):
        """tokens, targets int64 [batch, seq] -> mean cross-entropy over all positions, a scalar."""
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.size(1), device=tokens.device))
        for block in self.h:
            if self.checkpoint_layers:
                # No dropout here, so there is no generator state to put back.
                x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
            else:
                x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        if logits.dtype == torch.bfloat16:
            logits = logits.float()  # as Hugging Face does: a bf16 log-softmax would lose the loss's digits
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


def save_weights(model, path):
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, path)


def load_weights(model, path):
    """Reads names with or without "transformer.". A missing, unknown or misshaped tensor is an error."""
    found = {name.removeprefix("transformer."): tensor for name, tensor in load_file(path).items()}
    found = {name: tensor for name, tensor in found.items() if not IGNORED_TENSORS.match(name)}
    model.load_state_dict(found, strict=True)
