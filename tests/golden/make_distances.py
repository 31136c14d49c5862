"""Writes data/ops/distances.txt, of make_ops.py's form: what attention adds to scores by distance, in float64 by PyTorch, and
the buckets of distances by T5's own function in Transformers.
Run: python3 make_distances.py  (needs torch, numpy and transformers; the tests do not)
"""
import math

import torch
from transformers.models.t5.modeling_t5 import T5Attention

from make_ops import HERE, P, T, case, heads


def biases(lines):
    for buckets, farthest, queries, keys in [(32, 128, 150, 140), (32, 128, 1, 300), (7, 20, 40, 50), (5, 11, 3, 2),
                                             (32, 40, 60, 60)]:
        for both in (0, 1):
            distances = torch.arange(1 - queries, keys)
            numbers = T5Attention._relative_position_bucket(distances, bool(both), buckets, farthest)
            case(lines, "relative_bias", [P(buckets, 2)],
                 {"queries": queries, "keys": keys, "farthest": farthest, "bidirectional": both},
                 lambda table: table[numbers].T)


def attention(lines):
    def add(attrs, n, dim, rows, keys, lengths=None):
        def function(q, k, v, *given):
            q, k, v = (heads(x, n) for x in (q, k, v))
            distances = given[-1]
            apart = torch.arange(keys)[None] - torch.arange(rows)[:, None] + rows - 1
            scores = attrs["scale"] * q @ k.transpose(-1, -2) + distances[:, apart]
            if "softcap" in attrs:
                scores = attrs["softcap"] * torch.tanh(scores / attrs["softcap"])
            seen = torch.arange(keys) < (keys if lengths is None else lengths.view(-1, 1, 1, 1))
            seen = seen & (torch.ones(rows, keys).tril() > 0 if attrs["causal"] else True)
            scores = scores.masked_fill(~seen, -math.inf)
            return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2), scores.logsumexp(-1)
        operands = [T(2, rows, n * dim), T(2, keys, n * dim), T(2, keys, n * dim), None, None,
                    None if lengths is None else ("I", lengths), None, P(n, rows + keys - 1)]
        case(lines, "attention", operands, {"heads": n, **attrs}, function)

    lengths = torch.tensor([3, 5], dtype=torch.int32)
    add({"causal": 1, "scale": 1.0}, 2, 3, 6, 6)
    add({"causal": 0, "scale": 1.0}, 2, 3, 6, 6, lengths)
    add({"causal": 0, "scale": 0.7}, 3, 2, 4, 7)
    add({"causal": 0, "scale": 0.7}, 1, 4, 6, 5, lengths)
    add({"causal": 1, "scale": 1.0, "softcap": 1.5}, 2, 3, 5, 5)


if __name__ == "__main__":
    torch.manual_seed(33)
    made = []
    biases(made)
    attention(made)
    (HERE / "ops/distances.txt").write_text("\n".join(made) + "\n")
