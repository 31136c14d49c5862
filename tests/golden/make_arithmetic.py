"""Writes data/ops/arithmetic.txt and data/ops/smoothing.txt in the form of make_ops.py.
Run: python3 make_arithmetic.py  (needs torch and numpy; the tests do not)
"""
import torch
import torch.nn.functional as F

from make_ops import HERE, I, P, T, case, f32


def drawn(shape):
    return "T", torch.randn(shape, dtype=torch.float64)


def arithmetic():
    """Functions of a number and of several, whose shapes broadcast; products of matrices."""
    torch.manual_seed(31)
    lines = []
    wide = ("T", torch.linspace(-9, 9, 45, dtype=torch.float64).view(5, 9) + 0.01)
    above = ("T", torch.linspace(0.1, 9, 45, dtype=torch.float64).view(5, 9))
    for op, f, x in (("sigmoid", torch.sigmoid, wide), ("tanh", torch.tanh, wide), ("softplus", F.softplus, wide),
                     ("exp", torch.exp, wide), ("abs", torch.abs, wide), ("log", torch.log, above),
                     ("sqrt", torch.sqrt, above)):
        case(lines, op, [x], {}, f)
    for exponent in (2.0, 3.0, -1.0, 0.5, -1.5, 2.7):
        case(lines, "pow", [above], {"exponent": exponent}, lambda x: x ** exponent)
    case(lines, "clamp", [wide], {"min": -2.5, "max": 4.0}, lambda x: x.clamp(-2.5, 4.0))
    case(lines, "clamp", [wide], {"max": 0.5}, lambda x: x.clamp(max=0.5))
    for op, f in (("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("div", torch.div),
                  ("minimum", torch.minimum), ("maximum", torch.maximum)):
        for a, b in (((2, 3, 4), (3, 1)), ((3, 1), (2, 1, 4)), ((4,), (2, 3, 4)), ((2, 3), ())):
            case(lines, op, [drawn(a), drawn(b)], {}, f)
    case(lines, "maximum", [("T", torch.zeros(3, dtype=torch.float64)), ("T", torch.tensor([0.0, 1, -1]).double())], {},
         torch.maximum)
    chooses = ("W", torch.randint(0, 2, (3, 1)).double())
    case(lines, "where", [chooses, T(2, 1, 4), T(4)], {}, lambda c, a, b: torch.where(c != 0, a, b))
    for a, b in (((3, 4), (4, 5)), ((2, 1, 3, 4), (3, 4, 5)), ((2, 3, 4), (4, 5))):
        for ta in (0, 1):
            for tb in (0, 1):
                x, y = T(*a), T(*b)
                x = (x[0], x[1].transpose(-1, -2).contiguous()) if ta else x
                y = (y[0], y[1].transpose(-1, -2).contiguous()) if tb else y
                case(lines, "matmul", [x, y], {"transpose_a": ta, "transpose_b": tb}, lambda m, n: (
                    m.transpose(-1, -2) if ta else m) @ (n.transpose(-1, -2) if tb else n))
    return lines


def smoothing():
    """Cross entropies with label smoothing, or with weights of classes: PyTorch's sums, and what its mean divides by."""
    torch.manual_seed(37)
    lines = []

    def sums(logits, targets, classes=None, smooth=0.0):
        flat, kept = targets.long().flatten(), targets.flatten() != -100
        loss = F.cross_entropy(logits.flatten(0, -2), flat, classes, label_smoothing=smooth, reduction="sum")
        return loss, (kept if classes is None else classes[flat.clamp(min=0)] * kept).double().sum()
    for smooth in (0.1, 0.5):
        targets = I(7, 2, 5)
        targets[1][0, 2] = -100
        case(lines, "cross_entropy", [T(2, 5, 7), targets], {"smoothing": smooth},
             lambda x, t: sums(x, t, smooth=smooth), loss=True)
        case(lines, "linear_cross_entropy", [T(2, 5, 4), P(7, 4), targets], {"smoothing": smooth},
             lambda x, m, t: sums(x @ m.T, t, smooth=smooth), loss=True)
    classes = ("W", f32(torch.rand(7, dtype=torch.float64)).double())
    targets = I(7, 2, 5)
    targets[1][1, 0] = -100
    case(lines, "cross_entropy", [T(2, 5, 7), targets, None, classes], {}, lambda x, t, _, c: sums(x, t, c), loss=True)
    case(lines, "linear_cross_entropy", [T(2, 5, 4), P(7, 4), targets, None, classes], {},
         lambda x, m, t, _, c: sums(x @ m.T, t, c), loss=True)
    return lines


for family in (arithmetic, smoothing):
    (HERE / f"ops/{family.__name__}.txt").write_text("\n".join(family()) + "\n")
