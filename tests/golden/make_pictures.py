"""Writes data/ops/{convolutions,pools,channel_norms,recurrent,pairs,top}.txt: ops on pictures, layers that step through time, losses
of pairs, and hits, by PyTorch in float64; the form is make_ops.py's. Channels are last here, and first in PyTorch.
Run: python3 make_pictures.py [FAMILY...] (needs torch and numpy; the tests do not)
"""
import sys

import torch
import torch.nn.functional as F

from make_ops import HERE, P, T, case


def first(x):
    return x.movedim(-1, 1)


def last(x):
    return x.movedim(1, -1).contiguous()


def padded(x, padding, axes):
    """Padding before and after each axis, x with channels first."""
    if len(padding) != 2 * axes:
        padding = [p for p in (padding * axes if len(padding) == 1 else padding) for _ in range(2)]
    return F.pad(x, [p for axis in reversed(range(axes)) for p in padding[2 * axis:2 * axis + 2]])


def convolutions():
    torch.manual_seed(41)
    lines = []

    def conv(x, outputs, kernel, bias=True, **attrs):
        axes, groups = len(kernel), attrs.get("groups", 1)
        f = F.conv1d if axes == 1 else F.conv2d

        def function(x, w, b):
            return last(f(padded(first(x), attrs.get("padding", [0]), axes), first(w), b, tuple(attrs.get("stride", [1])), 0,
                          tuple(attrs.get("dilation", [1])), groups))
        case(lines, "conv", [T(*x), P(outputs, *kernel, x[-1] // groups), P(outputs) if bias else None], attrs, function)

    conv((2, 5, 3), 4, [3])
    conv((1, 6, 2), 2, [3], padding=[4, 0], dilation=[2])
    conv((2, 7, 4), 4, [3], stride=[2], padding=[1], groups=2, bias=False)
    conv((2, 4, 5, 3), 4, [1, 1])
    conv((1, 5, 5, 2), 3, [3, 3], padding=[1])
    conv((1, 6, 5, 2), 2, [3, 2], stride=[2, 1], padding=[1, 0, 2, 1], dilation=[1, 2], bias=False)
    conv((1, 5, 5, 4), 4, [3, 3], padding=[1], groups=4)
    conv((1, 7, 7, 3), 2, [7, 7], stride=[2], padding=[3])

    def transposed(x, w, size=None, padding=(0,), output_padding=0, **attrs):
        axes, groups = len(w) - 2, attrs.get("groups", 1)
        f = F.conv_transpose1d if axes == 1 else F.conv_transpose2d
        more = {"padding": list(padding), **({"size": size} if size else {})}
        case(lines, "conv_transpose", [T(*x), P(*w)], {**attrs, **more}, lambda x, w: last(
            f(first(x), first(w), None, tuple(attrs.get("stride", [1])), tuple(padding), output_padding, groups,
              tuple(attrs.get("dilation", [1])))))

    transposed((2, 3, 4), (4, 3, 2), stride=[2])
    transposed((1, 2, 3, 2), (2, 2, 2, 3), stride=[2])
    transposed((1, 3, 2, 4), (4, 3, 3, 1), stride=[2], padding=(1,), output_padding=1, size=[6, 4], groups=2)
    transposed((1, 2, 3, 2), (2, 2, 3, 2), dilation=[2, 1])

    def patches(x, window, stride, padding, dilation):
        def function(x):
            columns = F.unfold(first(x), window, dilation, padding, stride)
            n, _, count = columns.shape
            rows = (x.shape[1] + 2 * padding[0] - dilation[0] * (window[0] - 1) - 1) // stride[0] + 1
            y = columns.view(n, x.shape[-1], window[0] * window[1], count).permute(0, 3, 2, 1)
            return y.reshape(n, rows, count // rows, -1)
        case(lines, "patches", [T(*x)], {"kernel": window, "stride": stride, "padding": padding, "dilation": dilation}, function)

    patches((2, 4, 4, 3), [2, 2], [2, 2], [0, 0], [1, 1])
    patches((1, 5, 6, 2), [2, 3], [2, 1], [1, 0], [1, 2])
    return lines


def pools():
    torch.manual_seed(42)
    lines = []
    for x, window, stride, padding in (((2, 6, 3), [2], [2], [0]), ((1, 7, 2), [3], [2], [1]), ((1, 5, 6, 2), [3, 2], [2, 1], [1, 0])):
        axes = len(window)
        maximum = F.max_pool1d if axes == 1 else F.max_pool2d
        mean = F.avg_pool1d if axes == 1 else F.avg_pool2d
        attrs = {"kernel": window, "stride": stride, "padding": padding}

        def largest(x):
            y, places = maximum(first(x), window, stride, padding, return_indices=True)
            return last(y), last(places).double()
        case(lines, "max_pool", [T(*x)], attrs, largest)
        for count in (0, 1):
            case(lines, "average_pool", [T(*x)], {**attrs, "count_padding": count},
                 lambda x: last(mean(first(x), window, stride, padding, False, bool(count))))
    for x, size in (((2, 7, 2), [3]), ((1, 5, 7, 2), [3, 4]), ((2, 3, 4, 2), [1, 1]), ((1, 2, 3, 2), [4, 3])):
        axes = len(size)
        maximum = F.adaptive_max_pool1d if axes == 1 else F.adaptive_max_pool2d
        mean = F.adaptive_avg_pool1d if axes == 1 else F.adaptive_avg_pool2d
        case(lines, "max_pool", [T(*x)], {"size": size}, lambda x: last(maximum(first(x), size)))
        case(lines, "average_pool", [T(*x)], {"size": size}, lambda x: last(mean(first(x), size)))
    for x, size in (((2, 4, 3), [7]), ((1, 3, 4, 2), [6, 8]), ((1, 5, 4, 2), [3, 7]), ((1, 3, 3, 1), [1, 5])):
        case(lines, "resize", [T(*x)], {"size": size}, lambda x: last(F.interpolate(first(x), size, mode="nearest")))
        for align in (0, 1):
            case(lines, "resize", [T(*x)], {"size": size, "mode": "bilinear", "align_corners": align},
                 lambda x: last(F.interpolate(first(x), size, mode="linear" if len(size) == 1 else "bilinear",
                                              align_corners=bool(align))))
    case(lines, "pad", [T(2, 3, 2)], {"before": [0, 2, 1], "after": [1, 0, 3], "value": -1.5},
         lambda x: F.pad(x, (1, 3, 2, 0, 0, 1), value=-1.5))
    return lines


def channel_norms():
    torch.manual_seed(43)
    lines = []
    for x in ((6, 3), (2, 4, 3), (2, 3, 2, 4)):
        channels = x[-1]
        for affine in (True, False):
            more = [P(channels), P(channels)] if affine else []

            def normed(x, gamma=None, beta=None):
                mean, var = torch.zeros(channels, dtype=torch.float64), torch.zeros(channels, dtype=torch.float64)
                y = F.batch_norm(first(x), mean, var, gamma, beta, True, 1.0, 1e-5)  # momentum 1: the batch's own
                rows = x.numel() // channels
                return last(y), mean, var * (rows - 1) / rows  # PyTorch divides what it keeps by rows - 1
            case(lines, "batchnorm", [T(*x), *more], {}, normed)
            mean, var = torch.randn(channels, dtype=torch.float64), torch.rand(channels, dtype=torch.float64) + 0.5
            case(lines, "normalize", [T(*x), ("W", mean), ("W", var), *more], {"eps": 1e-3}, lambda x, mean, var, *more: last(
                F.batch_norm(first(x), mean, var, *(more or (None, None)), False, 0.0, 1e-3)))
    for x, groups in (((2, 8), 2), ((2, 3, 4), 4), ((2, 3, 2, 6), 3), ((1, 2, 2, 4), 1)):
        for affine in (True, False):
            more = [P(x[-1]), P(x[-1])] if affine else []
            case(lines, "groupnorm", [T(*x), *more], {"groups": groups},
                 lambda x, *more: last(F.group_norm(first(x), groups, *more)))
    for x in ((5,), (3, 4), (2, 3, 5)):
        case(lines, "l2_normalize", [T(*x)], {}, lambda x: (F.normalize(x, dim=-1), x.norm(dim=-1)))
    case(lines, "l2_normalize", [T(3, 4)], {"eps": 20.0}, lambda x: F.normalize(x, dim=-1, eps=20.0))
    return lines


def recurrent():
    torch.manual_seed(44)
    lines = []

    def module(kind, gates, hidden):
        """What steps from gates that are made already: inputs as wide as the gates, and the identity for their weight."""
        layer = kind(gates * hidden, hidden, batch_first=True).double()
        layer.weight_ih_l0.data.copy_(torch.eye(gates * hidden))
        layer.bias_ih_l0.data.zero_()
        return layer

    def run(layer, gates, w, b, state, reverse):
        names = {"weight_ih_l0": layer.weight_ih_l0.detach(), "bias_ih_l0": layer.bias_ih_l0.detach(), "weight_hh_l0": w,
                 "bias_hh_l0": torch.zeros(w.shape[0], dtype=torch.float64) if b is None else b}
        x = gates.flip(1) if reverse else gates
        y, _ = torch.func.functional_call(layer, names, (x, state))
        return y.flip(1) if reverse else y

    batch, time, hidden = 2, 4, 3
    for reverse in (0, 1):
        attrs = {"reverse": reverse}
        lstm, gru = module(torch.nn.LSTM, 4, hidden), module(torch.nn.GRU, 3, hidden)
        zeros = torch.zeros(1, batch, hidden, dtype=torch.float64)
        case(lines, "lstm", [T(batch, time, 4 * hidden), P(4 * hidden, hidden), T(batch, hidden), P(batch, hidden)], attrs,
             lambda gates, w, h, c: run(lstm, gates, w, None, (h[None], c[None]), reverse))
        case(lines, "lstm", [T(batch, time, 4 * hidden), P(4 * hidden, hidden)], attrs,
             lambda gates, w: run(lstm, gates, w, None, (zeros, zeros), reverse))
        case(lines, "gru", [T(batch, time, 3 * hidden), P(3 * hidden, hidden), P(3 * hidden), T(batch, hidden)], attrs,
             lambda gates, w, b, h: run(gru, gates, w, b, h[None], reverse))
        case(lines, "gru", [T(batch, time, 3 * hidden), P(3 * hidden, hidden)], attrs,
             lambda gates, w: run(gru, gates, w, None, zeros, reverse))
    return lines


def pairs():
    torch.manual_seed(45)
    lines = []
    for rows, width in ((2, 3), (5, 4)):
        own = torch.eye(rows, dtype=torch.float64)

        def scores(a, b, scale, bias=None):
            return a @ b.T * scale + (0 if bias is None else bias)

        def sigmoid(*operands):  # as SigLIP has it, without the division by rows
            loss = -F.logsigmoid((2 * own - 1) * scores(*operands)).sum()
            return loss, torch.tensor(float(rows), dtype=torch.float64)

        def triplet(*operands):
            s = scores(*operands)
            loss = ((1 - own) * (0.4 + s - s.diagonal()[:, None]).relu()).sum()
            return loss, torch.tensor(float(rows * (rows - 1)), dtype=torch.float64)
        for bias in ([P(1)], []):
            case(lines, "pair_loss", [T(rows, width), T(rows, width), P(1), *bias], {"kind": "sigmoid"}, sigmoid, loss=True)
            if not bias:
                case(lines, "pair_loss", [T(rows, width), T(rows, width), P(1)], {"kind": "triplet", "margin": 0.4}, triplet,
                     loss=True)
    return lines


def top():
    torch.manual_seed(46)
    lines = []
    for most in (1, 2, 5):  # of distinct logits: PyTorch leaves open which of equal ones come first
        case(lines, "accuracy", [("W", torch.randn(3, 20, 7)), ("I", torch.randint(0, 7, (3, 20), dtype=torch.int32))], {"top": most},
             lambda x, t: ((x.topk(most).indices == t[..., None]).any(-1).sum(), torch.tensor(60)), gradients=False)
    return lines


def main():
    families = [convolutions, pools, channel_norms, recurrent, pairs, top]
    for family in families:
        if len(sys.argv) == 1 or family.__name__ in sys.argv[1:]:
            (HERE / "ops" / f"{family.__name__}.txt").write_text("\n".join(family()) + "\n")


if __name__ == "__main__":
    main()
