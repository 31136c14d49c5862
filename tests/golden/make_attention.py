"""Writes data/ops/attention_masks.txt: attention under every mask, alone and together, by PyTorch in float64; the form is
make_ops.py's. Run: python3 make_attention.py (needs torch and numpy; the tests do not)
"""
import math

import torch
import torch.nn.functional as F

from make_ops import HERE, P, T, case, heads


def masked(q, k, v, sinks, n, groups, attrs, sequences=None, lengths=None, position=None):
    """y and the log-sum-exps by a softmax over what rows see, and over sinks; a row that sees no key has y = 0."""
    q, k, v = heads(q, n), *(heads(x, groups).repeat_interleave(n // groups, 1) for x in (k, v))
    rows, keys = q.shape[2], k.shape[2]
    stands = (torch.arange(rows)[None] + (0 if position is None else position[:, None])).view(-1, 1, rows, 1)
    at = torch.arange(keys).view(1, 1, 1, keys)
    seen = (at <= stands) if attrs.get("causal", 1) else torch.ones_like(at == stands)
    if "window" in attrs:
        seen = seen & (stands - at < attrs["window"]) & (at - stands < attrs["window"])
    if lengths is not None:
        seen = seen & (at < lengths.view(-1, 1, 1, 1))
    if sequences is not None:
        own, other = sequences.view(-1, 1, rows, 1), sequences.view(-1, 1, 1, keys)
        seen = seen & (own == other) & (own >= 0)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if "softcap" in attrs:
        scores = attrs["softcap"] * torch.tanh(scores / attrs["softcap"])
    seen = seen.expand_as(scores)
    some = seen.any(-1, keepdim=True)
    scores = scores.masked_fill(~seen & some, -math.inf)
    if sinks is not None:
        scores = torch.cat([scores, sinks.view(1, -1, 1, 1).expand(*scores.shape[:3], 1)], -1)
    y = torch.where(some, scores.softmax(-1)[..., :keys] @ v, 0.0)
    if sinks is None and "softcap" not in attrs and some.all():
        theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        assert torch.allclose(theirs, y, rtol=1e-13, atol=1e-14)
    return y.transpose(1, 2).flatten(2), scores.logsumexp(-1) if some.all() else None


def attention_masks():
    torch.manual_seed(31)
    lines = []

    def numbers(*rows):
        return "I", torch.tensor(rows, dtype=torch.int32)

    def add(attrs, n=2, groups=1, dim=4, rows=6, keys=None, packed=False, sinks=False, **numbered):
        attrs = {"heads": n, "kv_heads": groups, **attrs}
        widths = [n * dim, groups * dim, groups * dim]
        operands = [T(2, rows, sum(widths)), None, None] if packed else [T(2, rows, widths[0])] + [
            T(2, keys or rows, w) for w in widths[1:]]
        operands.append(P(n) if sinks else None)
        operands += [numbered.get(name) for name in ("sequences", "lengths", "position")]

        def function(q, k, v, sink, *given):
            q, k, v = q.split(widths, -1) if packed else (q, k, v)
            return masked(q, k, v, sink, n, groups, attrs, *given)
        case(lines, "attention", operands, attrs, function)

    samples = numbers([0, 0, 0, 1, 1, -1], [3, 5, 5, 5, 5, 5])
    mixed = numbers([0, 1, 0, -1, 1, 0], [2, 2, 7, 2, 7, 7])
    lengths, position = numbers(4, 6), numbers(0, 4)
    for causal in (1, 0):
        add({"causal": causal}, sinks=True)
        add({"causal": causal}, sequences=samples, packed=True)
        add({"causal": causal}, sequences=mixed)
        add({"causal": causal}, lengths=lengths, groups=2)
        add({"causal": causal, "window": 1}, packed=True)
        add({"causal": causal, "window": 3}, n=4, groups=2)
        add({"causal": causal, "softcap": 0.7})
        add({"causal": causal, "softcap": 1.5, "window": 2}, sinks=True, sequences=samples, lengths=lengths,
            packed=True)
        add({"causal": causal}, rows=3, keys=7, position=position)
        add({"causal": causal, "window": 3}, rows=3, keys=7, position=position, sinks=True)
        add({"causal": causal, "softcap": 1.0}, rows=1, keys=7, position=position, lengths=numbers(5, 3))
    add({"causal": 0}, rows=4, keys=7)
    add({"causal": 0}, rows=5, keys=3, lengths=numbers(2, 0), sinks=True)
    return lines


if __name__ == "__main__":
    (HERE / "ops/attention_masks.txt").write_text("\n".join(attention_masks()) + "\n")
