"""Writes data/ops/families.txt, of make_ops.py's form: what models of some families have and others do not, in float64 by
PyTorch. The formulas are held against the functions of Transformers while they are written.
Run: python3 make_families.py  (needs torch and transformers; the tests do not)
"""
import torch
import torch.nn.functional as F
from transformers.models.cohere import modeling_cohere
from transformers.models.gemma2 import modeling_gemma2
from transformers.models.glm4 import modeling_glm4
from transformers.models.gpt_oss import modeling_gpt_oss
from transformers.models.llama import modeling_llama

from make_ops import HERE, I, P, T, case, cross


def near(mine, theirs):
    assert torch.allclose(mine.double(), theirs.double(), rtol=1e-4, atol=1e-4), (mine, theirs)


def turned(x, heads, angles, interleaved=False, factor=1.0):
    """x[B, T, heads * D] by angles[B, T, R / 2], as HF's rotate_half does it: tables of cos and sin, and x with halves or
    neighbours swapped."""
    rows = x.view(*x.shape[:2], heads, -1).transpose(1, 2)
    columns = 2 * angles.shape[-1]
    turning, rest = rows[..., :columns], rows[..., columns:]
    if interleaved:
        table = angles.repeat_interleave(2, -1)
        swapped = torch.stack((-turning[..., 1::2], turning[..., ::2]), -1).flatten(-2)
    else:
        table = torch.cat((angles, angles), -1)
        swapped = torch.cat((-turning[..., columns // 2:], turning[..., :columns // 2]), -1)
    cos, sin = (factor * table.cos())[:, None], (factor * table.sin())[:, None]
    y = turning * cos + swapped * sin
    both = [part[:, 0] for part in (cos, sin)]
    if interleaved and columns == rows.shape[-1]:
        near(y, modeling_cohere.apply_rotary_pos_emb(turning, turning, *both)[0])
    elif interleaved:
        doubled = [torch.cat((part[..., ::2], part[..., ::2]), -1) for part in both]
        near(torch.cat((y, rest), -1), modeling_glm4.apply_rotary_pos_emb(rows, rows, *doubled)[0])
    else:
        near(y, modeling_llama.apply_rotary_pos_emb(turning, turning, *both)[0])
    return torch.cat((y, rest), -1).transpose(1, 2).flatten(2)


def angles_of(positions, frequencies):
    return positions.double()[..., None] * torch.tensor(frequencies, dtype=torch.float64)


def rope(lines):
    steps = torch.arange(5)[None].expand(2, 5)
    usual = [10000.0 ** (-2 * i / 8) for i in range(4)]
    case(lines, "rope", [T(2, 5, 16)], {"heads": 2, "interleaved": 1},
         lambda x: turned(x, 2, angles_of(steps, usual), True))
    partial = [500.0 ** (-2 * i / 4) for i in range(2)]
    for interleaved in (0, 1):
        case(lines, "rope", [T(2, 5, 24)], {"heads": 3, "base": 500.0, "columns": 4, "interleaved": interleaved},
             lambda x: turned(x, 3, angles_of(steps, partial), bool(interleaved)))
    given = [1.0, 0.31, 0.0123, 0.0]
    case(lines, "rope", [T(2, 5, 16), I(4000, 2, 5)], {"heads": 2, "frequencies": given, "factor": 1.19},
         lambda x, at: turned(x, 2, angles_of(at, given), factor=1.19))
    case(lines, "rope", [T(1, 5, 8), I(4000, 1, 5)], {"heads": 1, "inverse": 1},
         lambda x, at: turned(x, 1, -angles_of(at, usual)))


def norms(lines):
    def norm(x, w):
        rstd = (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        theirs = modeling_gemma2.Gemma2RMSNorm(8)
        theirs.weight.data = w.detach().float()
        y = x * rstd * (1 + w)
        near(y, theirs(x))
        return y, rstd[..., 0]
    case(lines, "rmsnorm", [T(2, 3, 8), P(8)], {"eps": 1e-6, "offset": 1.0}, norm)


def units(lines):
    def wide(*shape):
        return "T", 6 * torch.randn(*shape, dtype=torch.float64)

    def clamped(gate, up, limit):
        g, u = gate.clamp(max=limit), up.clamp(-limit, limit)
        y = (u + 1) * g * torch.sigmoid(1.702 * g)
        theirs = modeling_gpt_oss.GptOssExperts.__new__(modeling_gpt_oss.GptOssExperts)
        theirs.__dict__.update(limit=limit, alpha=1.702)
        near(y, theirs._apply_gate(torch.stack((gate, up), -1).flatten(-2)))
        return y
    case(lines, "glu", [wide(5, 9), wide(5, 9)], {"activation": "swish_clamped"}, lambda g, u: clamped(g, u, 7.0))
    case(lines, "glu", [wide(5, 9), wide(5, 9)], {"activation": "swish_clamped", "limit": 4.5},
         lambda g, u: clamped(g, u, 4.5))
    for word, act in (("silu", F.silu), ("gelu", F.gelu), ("gelu_tanh", lambda v: F.gelu(v, approximate="tanh")),
                      ("relu", F.relu)):
        case(lines, "glu", [wide(4, 5), T(4, 5)], {"activation": word}, lambda g, u: act(g) * u)
    case(lines, "softcap", [wide(4, 5)], {"cap": 5.0}, lambda x: 5 * torch.tanh(x / 5))


def heads(lines):
    """Gemma-2's last logits, and Cohere's and Granite's."""
    def logits(x, w, scale, cap):
        z = scale * (x @ w.T)
        return z if cap is None else cap * torch.tanh(z / cap)
    for scale, cap in ((1.0, 2.0), (0.25, None), (3.0, 1.5)):
        attrs = {"scale": scale} if scale != 1 else {}
        attrs.update({"softcap": cap} if cap else {})
        targets = I(7, 2, 5)
        targets[1][0, 1] = 3
        case(lines, "linear_cross_entropy", [T(2, 5, 4), P(7, 4), targets, ("W", torch.rand(2, 5, dtype=torch.float64))],
             {**attrs, "ignore_index": 3, "chunk": 3},
             lambda x, m, t, w: cross(logits(x, m, scale, cap), t, w, 3), loss=True)

        def smooth(x, m, t):
            kept = t.flatten().long()
            loss = F.cross_entropy(logits(x, m, scale, cap).flatten(0, -2), kept, label_smoothing=0.2, reduction="sum")
            return loss, torch.tensor(float(kept.numel()), dtype=torch.float64)
        case(lines, "linear_cross_entropy", [T(2, 5, 4), P(7, 4), I(7, 2, 5)], {**attrs, "smoothing": 0.2}, smooth,
             loss=True)


if __name__ == "__main__":
    torch.manual_seed(44)
    made = []
    for add in (rope, norms, units, heads):
        add(made)
    (HERE / "ops/families.txt").write_text("\n".join(made) + "\n")
