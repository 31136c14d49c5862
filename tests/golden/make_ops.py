"""Writes data/ops/<family>.txt: values and gradients of every op family, computed by PyTorch in float64.

Form, one item per line (floats as the hex digits of their bits, rounded to float32 or kept in float64):
    case OP                         begins a case
    attr NAME i|f|s|l|r VALUE       l, r: comma separated
    in KIND DTYPE DIMS VALUES       in row order; KIND T activation, P parameter, W row weights, I integers, - left out
    out INDEX DTYPE DIMS VALUES     an output of the op
    target DTYPE DIMS VALUES        loss = sum of (output 0 - target)^2; without this line output 0 is the loss
    grad INDEX DTYPE DIMS VALUES    gradient of the loss with respect to operand INDEX
Run: python3 make_ops.py [FAMILY...]  (needs torch and numpy; the tests do not)
"""
import math
import pathlib
import struct
import sys

import numpy
import torch
import torch.nn.functional as F

torch.manual_seed(20)
HERE = pathlib.Path(__file__).parent / "data"


def words(t):
    kind = {torch.float32: "f32", torch.float64: "f64", torch.int32: "i32"}[t.dtype]
    dims = ",".join(map(str, t.shape)) or "-"
    pack = {"f32": ">f", "f64": ">d", "i32": ">i"}[kind]
    return f"{kind} {dims} " + " ".join(struct.pack(pack, v).hex() for v in t.detach().reshape(-1).tolist())


def f32(t):
    return t.detach().to(torch.float32)


def attribute(name, value):
    if isinstance(value, str):
        return f"attr {name} s {value}"
    if isinstance(value, (list, tuple)):
        return f"attr {name} {'r' if isinstance(value[0], float) else 'l'} {','.join(map(str, value))}"
    return f"attr {name} {'f' if isinstance(value, float) else 'i'} {value}"


def case(lines, op, operands, attrs, function, loss=False, gradients=True):
    """operands: (kind, tensor) or None; function(tensors) -> outputs of the op (None: not compared), each as it is where
    loss or without gradients."""
    tensors, leaves = [], []
    for item in operands:
        if item is None:
            tensors.append(None)
            continue
        kind, value = item
        if value.is_floating_point():
            value = f32(value).double().requires_grad_(kind in "TP")
        tensors.append(value)
    outputs = function(*tensors)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    lines.append(f"case {op}")
    lines += [attribute(*a) for a in attrs.items()]
    for item, value in zip(operands, tensors):
        lines.append("in -" if item is None else f"in {item[0]} {words(value if item[0] == 'I' else f32(value))}")
    for i, y in enumerate(outputs):
        if y is not None:
            lines.append(f"out {i} {words(y.detach().double() if loss or not gradients else f32(y))}")
    if not gradients:
        return
    total = outputs[0]
    if not loss:
        target = f32(torch.randn_like(outputs[0]))
        lines.append(f"target {words(target)}")
        total = ((outputs[0] - target.double()) ** 2).sum()
    total.backward()
    for i, (item, value) in enumerate(zip(operands, tensors)):
        if item is not None and item[0] in "TP":
            lines.append(f"grad {i} {words(f32(value.grad))}")


def T(*shape):
    return "T", torch.randn(*shape, dtype=torch.float64)


def P(*shape):
    return "P", torch.randn(*shape, dtype=torch.float64) * 0.5


def I(high, *shape):
    return "I", torch.randint(0, high, shape, dtype=torch.int32)


def products():
    lines = []
    activations = {"": lambda v: v, "gelu_tanh": lambda v: F.gelu(v, approximate="tanh"), "gelu_erf": F.gelu,
                   "relu": F.relu, "silu": F.silu}
    for name, act in activations.items():
        for bias in (True, False):
            operands = [T(2, 3, 6), P(5, 6)] + ([P(5)] if bias else [])

            def linear(x, w, b=None):
                pre = F.linear(x, w, b)
                return (act(pre), pre) if name in ("gelu_tanh", "gelu_erf", "silu") else act(pre)
            case(lines, "linear", operands, {"activation": name} if name else {}, linear)
    case(lines, "embedding", [P(7, 4), I(7, 2, 5)], {}, lambda t, ids: F.embedding(ids.long(), t))
    return lines


def norms():
    lines = []
    for eps in (1e-5, 1e-2):
        case(lines, "layernorm", [T(2, 3, 8), P(8), P(8)], {"eps": eps}, lambda x, g, b: (
            F.layer_norm(x, (8,), g, b, eps), x.mean(-1), (x.var(-1, unbiased=False) + eps).rsqrt()))
        case(lines, "rmsnorm", [T(2, 3, 8), P(8)], {"eps": eps}, lambda x, g: (
            F.rms_norm(x, (8,), g, eps), (x.square().mean(-1) + eps).rsqrt()))
    case(lines, "layernorm", [T(5, 6)], {}, lambda x: F.layer_norm(x, (6,)))
    case(lines, "rmsnorm", [T(5, 6)], {}, lambda x: F.rms_norm(x, (6,), eps=1e-5))
    return lines


def heads(x, n):
    return x.view(x.shape[0], x.shape[1], n, -1).transpose(1, 2)


def attend(q, k, v, n, groups, causal, scale=None):
    q, k, v = heads(q, n), heads(k, groups), heads(v, groups)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=groups != n)
    k = k.repeat_interleave(n // groups, 1)
    scores = q @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)
    return y.transpose(1, 2).flatten(2), scores.logsumexp(-1)


def attention():
    lines = []
    for causal in (1, 0):
        for n, groups, dim in ((2, 2, 4), (4, 2, 3), (3, 1, 4)):
            attrs = {"heads": n, "kv_heads": groups, "causal": causal}
            case(lines, "attention", [T(2, 5, n * dim), T(2, 5, groups * dim), T(2, 5, groups * dim)], attrs,
                 lambda q, k, v: attend(q, k, v, n, groups, bool(causal)))
            parts = [n * dim, groups * dim, groups * dim]
            case(lines, "attention", [T(2, 5, sum(parts))], attrs,
                 lambda x: attend(*x.split(parts, -1), n, groups, bool(causal)))
    case(lines, "attention", [T(1, 4, 24)], {"heads": 2, "scale": 0.25},
         lambda x: attend(*x.chunk(3, -1), 2, 2, True, 0.25))

    def rope(x, n, base):
        x = x.view(x.shape[0], x.shape[1], n, -1)
        half = x.shape[-1] // 2
        angle = torch.arange(x.shape[1], dtype=torch.float64)[:, None, None] * base ** (
            -torch.arange(half, dtype=torch.float64) / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).flatten(2)
    for n, base in ((2, 10000.0), (1, 500.0)):
        case(lines, "rope", [T(2, 6, n * 8)], {"heads": n, "base": base}, lambda x: rope(x, n, base))
    return lines


def elementwise():
    lines = []
    wide = ("T", torch.linspace(-9, 9, 45, dtype=torch.float64).view(5, 9) + 0.01)
    case(lines, "gelu", [wide], {"approximate": "tanh"}, lambda x: F.gelu(x, approximate="tanh"))
    case(lines, "gelu", [wide], {"approximate": "erf"}, F.gelu)
    case(lines, "silu", [wide], {}, F.silu)
    case(lines, "relu", [wide], {}, F.relu)
    case(lines, "swiglu", [wide, T(5, 9)], {}, lambda g, u: F.silu(g) * u)
    case(lines, "softmax", [wide], {}, lambda x: x.softmax(-1))
    case(lines, "scale", [T(4, 3)], {"factor": -2.5}, lambda x: x * -2.5)
    for op, f in (("add", torch.add), ("mul", torch.mul)):
        case(lines, op, [T(2, 3, 4), P(3, 4)], {}, f)
        case(lines, op, [T(2, 3, 4), P(4)], {}, f)
        case(lines, op, [T(2, 3, 4), T(2, 3, 4)], {}, f)
    return lines


def cross(logits, targets, weights, ignore):
    errors = F.cross_entropy(logits.flatten(0, -2), targets.long().flatten(), ignore_index=ignore, reduction="none")
    kept = (targets.flatten() != ignore).double() * (1 if weights is None else weights.flatten())
    return (errors * kept).sum(), kept.sum()


def losses():
    lines = []
    for weighted in (False, True):
        for ignore in (-100, 3):
            targets = I(7, 2, 5)
            if ignore == 3:
                targets[1][0, 1] = targets[1][1, 3] = 3
            weights = [("W", torch.rand(2, 5, dtype=torch.float64))] if weighted else []
            attrs = {"ignore_index": ignore} if ignore != -100 else {}
            case(lines, "cross_entropy", [T(2, 5, 7), targets] + weights, attrs,
                 lambda x, t, w=None: cross(x, t, w, ignore), loss=True)
            case(lines, "linear_cross_entropy", [T(2, 5, 4), P(7, 4), targets] + weights, attrs,
                 lambda x, m, t, w=None: cross(x @ m.T, t, w, ignore), loss=True)
        case(lines, "mse", [T(3, 4), T(3, 4)] + ([("W", torch.rand(3, dtype=torch.float64))] if weighted else []), {},
             lambda x, y, w=None: (((x - y) ** 2 * (1 if w is None else w[:, None])).sum(),
                                   torch.tensor(12.0, dtype=torch.float64) if w is None else 4 * w.sum()), loss=True)
    return lines


def hits(logits, targets, weights, ignore):
    kept = (targets != ignore) & (True if weights is None else weights != 0)
    return ((logits.argmax(-1) == targets) & kept).sum(), kept.sum()


def accuracy():
    """Logits that are small whole numbers, so that rows have equal ones; and the same rows' loss with hits."""
    torch.manual_seed(29)
    lines = []

    def whole(kind, *shape):
        return kind, torch.randint(-1, 2, shape).double()
    for weighted in (False, True):
        for ignore in (-100, 2):
            targets = I(5, 3, 20)
            weights = [("W", torch.randint(0, 3, (3, 20)).double())] if weighted else []
            attrs = {"ignore_index": ignore} if ignore != -100 else {}
            case(lines, "accuracy", [whole("W", 3, 20, 5), targets] + weights, attrs,
                 lambda x, t, w=None: hits(x, t, w, ignore), gradients=False)
            case(lines, "linear_cross_entropy", [whole("T", 3, 20, 4), whole("P", 5, 4), targets] + weights,
                 {**attrs, "accuracy": 1, "chunk": 7},
                 lambda x, m, t, w=None: (*cross(x @ m.T, t, w, ignore), *hits(x @ m.T, t, w, ignore)), loss=True)
    return lines


def layout():
    lines = []
    case(lines, "reshape", [T(2, 6)], {"shape": [3, -1]}, lambda x: x.reshape(3, -1))
    case(lines, "transpose", [T(2, 3, 4)], {"perm": [2, 0, 1]}, lambda x: x.permute(2, 0, 1))
    case(lines, "slice", [T(3, 5)], {"axis": 1, "begin": 1, "end": 4}, lambda x: x[:, 1:4])
    case(lines, "concat", [T(2, 3), T(2, 1), T(2, 4)], {"axis": -1}, lambda *x: torch.cat(x, -1))
    for axes in ([0], [1, -1]):
        for keep in (0, 1):
            attrs = {"axes": axes, "keep": keep}
            case(lines, "reduce_sum", [T(3, 2, 4)], attrs, lambda x: x.sum(axes, keepdim=bool(keep)))
            case(lines, "reduce_mean", [T(3, 2, 4)], attrs, lambda x: x.mean(axes, keepdim=bool(keep)))
    return lines


def adamw():
    """Five steps of AdamW in float64: start, hyper (the rate, then optimizers.def's in order), and for every step its
    gradient and the results: the parameter and its states."""
    lines = []
    for rate, beta1, beta2, eps, decay in ((1e-2, 0.9, 0.999, 1e-8, 0.1), (3e-4, 0.8, 0.95, 1e-6, 0.0)):
        p = torch.nn.Parameter(torch.randn(6, dtype=torch.float64))
        lines.append("case adamw")
        lines.append(f"start {words(p)}")
        lines.append("hyper " + words(torch.tensor([rate, beta1, beta2, eps, decay], dtype=torch.float64)))
        torch_optimizer = torch.optim.AdamW([p], lr=rate, betas=(beta1, beta2), eps=eps, weight_decay=decay)
        for _ in range(5):
            p.grad = torch.randn(6, dtype=torch.float64)
            lines.append(f"step {words(p.grad)}")
            torch_optimizer.step()
            state = torch_optimizer.state[p]
            for t in (p, state["exp_avg"], state["exp_avg_sq"]):
                lines.append(f"result {words(t)}")
    return lines


STEPS, SHOWN = 50, {1, 2, 3, 10, 20, 30, 40, 50}  # of all others; results of some


def sgd():
    """As adamw(); plain, with momentum, Nesterov's momentum, dampening, weight decay."""
    torch.manual_seed(21)
    lines = []
    for rate, momentum, dampening, nesterov, decay in (
            (1e-2, 0.0, 0.0, 0.0, 0.0), (1e-2, 0.0, 0.0, 0.0, 0.1), (1e-2, 0.9, 0.0, 0.0, 0.0), (3e-3, 0.9, 0.0, 1.0, 0.05),
            (1e-2, 0.8, 0.3, 0.0, 0.1)):
        p = torch.nn.Parameter(torch.randn(5, dtype=torch.float64))
        numbers = torch.tensor([rate, momentum, dampening, nesterov, decay], dtype=torch.float64)
        lines += ["case sgd", f"start {words(p)}", "hyper " + words(numbers)]
        torch_optimizer = torch.optim.SGD([p], lr=rate, momentum=momentum, dampening=dampening, weight_decay=decay,
                                          nesterov=nesterov != 0)
        for step in range(1, STEPS + 1):
            p.grad = torch.randn(5, dtype=torch.float64)
            lines.append(f"step {words(p.grad)}")
            torch_optimizer.step()
            if step in SHOWN:
                lines.append(f"result {words(p)}")
                if momentum:
                    lines.append(f"result {words(torch_optimizer.state[p]['momentum_buffer'])}")
    return lines


def lion():
    """As adamw(); the update of Chen et al. (2023), algorithm 2, by NumPy: PyTorch has none. A gradient or two are 0."""
    draw = numpy.random.default_rng(22)
    lines = []
    for rate, beta1, beta2, decay in ((1e-3, 0.9, 0.99, 0.0), (3e-4, 0.95, 0.98, 1.0)):
        p, m = draw.standard_normal(5), numpy.zeros(5)
        p[4] = 0.0
        lines += ["case lion", f"start {words(torch.from_numpy(p))}",
                  "hyper " + words(torch.tensor([rate, beta1, beta2, decay], dtype=torch.float64))]
        for step in range(1, STEPS + 1):
            g = draw.standard_normal(5)
            g[4] = 0.0  # its momentum stays 0, and so does the sign
            lines.append(f"step {words(torch.from_numpy(g))}")
            update = numpy.sign(beta1 * m + (1 - beta1) * g)
            p = p - rate * (update + decay * p)
            m = beta2 * m + (1 - beta2) * g
            if step in SHOWN:
                lines += [f"result {words(torch.from_numpy(p))}", f"result {words(torch.from_numpy(m))}"]
    return lines


def adam():
    """As adamw(), with decay added to the gradient."""
    torch.manual_seed(23)
    lines = []
    for rate, beta1, beta2, eps, decay in ((1e-2, 0.9, 0.999, 1e-8, 0.0), (3e-3, 0.8, 0.95, 1e-6, 0.1)):
        p = torch.nn.Parameter(torch.randn(5, dtype=torch.float64))
        numbers = torch.tensor([rate, beta1, beta2, eps, decay], dtype=torch.float64)
        lines += ["case adam", f"start {words(p)}", "hyper " + words(numbers)]
        torch_optimizer = torch.optim.Adam([p], lr=rate, betas=(beta1, beta2), eps=eps, weight_decay=decay)
        for step in range(1, STEPS + 1):
            p.grad = torch.randn(5, dtype=torch.float64)
            lines.append(f"step {words(p.grad)}")
            torch_optimizer.step()
            if step in SHOWN:
                state = torch_optimizer.state[p]
                lines += [f"result {words(t)}" for t in (p, state["exp_avg"], state["exp_avg_sq"])]
    return lines


def adafactor():
    """As adamw(): a matrix, matrices side by side, a vector; small gradients that meet eps1, clipped updates."""
    torch.manual_seed(23)
    lines = []
    for shape, size, rate, decay_rate, eps1, eps2, clip, decay in (
            ((3, 5), 1.0, 1e-2, -0.8, 1e-7, 1e-3, 1.0, 0.0), ((2, 3, 4), 1.0, 0.3, -0.5, 1e-7, 1e-3, 2.0, 0.1),
            ((6,), 1.0, 1e-2, -0.8, 1e-7, 1e-3, 1.0, 0.01), ((4, 3), 1e-6, 1e-2, -0.8, 1e-5, 1e-1, 1.0, 0.0)):
        p = torch.nn.Parameter(torch.randn(shape, dtype=torch.float64))
        numbers = torch.tensor([rate, decay_rate, eps1, eps2, clip, decay], dtype=torch.float64)
        lines += ["case adafactor", f"start {words(p)}", "hyper " + words(numbers)]
        torch_optimizer = torch.optim.Adafactor([p], lr=rate, beta2_decay=decay_rate, eps=(eps1, eps2), d=clip,
                                                weight_decay=decay)
        for step in range(1, STEPS + 1):
            p.grad = size * torch.randn(shape, dtype=torch.float64)
            lines.append(f"step {words(p.grad)}")
            torch_optimizer.step()
            if step in SHOWN:
                state = torch_optimizer.state[p]
                lines.append(f"result {words(p)}")
                for name, axis in (("row_var", -1), ("col_var", -2), ("variance", None)):
                    if name in state:
                        value = state[name] if axis is None else state[name].squeeze(axis)
                        lines.append(f"result {words(value)}")
    return lines


def orthogonalised(x, steps, eps):
    """Newton-Schulz steps of Jordan et al. (2024) on a matrix without more rows than columns."""
    x = x / max(numpy.linalg.norm(x), eps)
    for _ in range(steps):
        gram = x @ x.T
        x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
    return x


def muon():
    """As adamw(), by NumPy in float64; torch.optim.Muon, whose products are bfloat16's, has to stay near it."""
    torch.manual_seed(24)
    lines = []
    for shape, rate, momentum, nesterov, steps, eps, match, decay in (
            ((4, 4), 1e-2, 0.95, 1.0, 5.0, 1e-7, 0.0, 0.1), ((3, 7), 1e-2, 0.9, 0.0, 5.0, 1e-7, 0.0, 0.0),
            ((8, 3), 3e-2, 0.95, 1.0, 5.0, 1e-7, 0.0, 0.0), ((6, 5), 1e-2, 0.8, 1.0, 3.0, 1e-7, 1.0, 0.05)):
        start = torch.randn(shape, dtype=torch.float64)
        numbers = torch.tensor([rate, momentum, nesterov, steps, eps, match, decay], dtype=torch.float64)
        lines += ["case muon", f"start {words(start)}", "hyper " + words(numbers)]
        theirs = torch.nn.Parameter(start.clone())
        torch_optimizer = torch.optim.Muon([theirs], lr=rate, weight_decay=decay, momentum=momentum, eps=eps,
                                           nesterov=nesterov != 0, ns_steps=int(steps),
                                           adjust_lr_fn="match_rms_adamw" if match else "original")
        p, m = start.numpy().copy(), numpy.zeros(shape)
        rows, columns = shape
        scale = 0.2 * max(shape) ** 0.5 if match else max(1.0, rows / columns) ** 0.5
        for step in range(1, STEPS + 1):
            theirs.grad = torch.randn(shape, dtype=torch.float64)
            lines.append(f"step {words(theirs.grad)}")
            g = theirs.grad.numpy()
            m = momentum * m + (1 - momentum) * g
            u = momentum * m + (1 - momentum) * g if nesterov else m
            x = orthogonalised(u.T, int(steps), eps).T if rows > columns else orthogonalised(u, int(steps), eps)
            p = (1 - rate * decay) * p - rate * scale * x
            torch_optimizer.step()
            if step in SHOWN:
                lines += [f"result {words(torch.from_numpy(p))}", f"result {words(torch.from_numpy(m))}"]
        moved = numpy.linalg.norm(p - start.numpy())
        apart = numpy.linalg.norm(theirs.detach().numpy() - p)
        assert apart < 0.03 * moved, f"torch.optim.Muon is {apart / moved} of the way off"
    return lines


# All are made, since most draw from one stream; those that the command line names are written, or all.
if __name__ == "__main__":
    for family in (products, norms, attention, elementwise, losses, layout, adamw, sgd, lion, adam, adafactor, muon,
                   accuracy):
        text = "\n".join(family()) + "\n"
        if len(sys.argv) == 1 or family.__name__ in sys.argv[1:]:
            (HERE / f"ops/{family.__name__}.txt").write_text(text)
