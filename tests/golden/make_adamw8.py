"""Writes data/adamw8.txt: the dynamic maps, block-wise quantization and 50 steps of AdamW with 8-bit states by bitsandbytes
0.50 on CPU (`pip install bitsandbytes packaging`; https://github.com/bitsandbytes-foundation/bitsandbytes, MIT licence).

Its maps and its block-wise quantization in PyTorch are called as they are (its compiled quantize_blockwise for CPUs is
of less precision: small numbers get a code near the nearest). The step is what its GPU kernel
kOptimizerStatic8bit2StateBlockwise computes, which runs on no CPU: written down here, and held against its own PyTorch
fallback (optimizer_update_8bit_blockwise_pytorch) where the two do the same, without decay and without keeping signs.

Form as of make_ops.py: `map` and `quantized` cases, and `adamw8` cases: hyper (the rate, then optimizers.def's in
order), start, and per step shown: `after` STEP, then `result` p, codes of m, scales of m, codes of v, scales of v.
Gradients are not written down: see gradients().   Run: python3 make_adamw8.py"""
import os
import pathlib
import struct

os.environ["TORCHDYNAMO_DISABLE"] = "1"
import torch  # noqa: E402
from bitsandbytes import functional  # noqa: E402
from bitsandbytes.backends.triton import kernels_optim as theirs  # noqa: E402

BLOCK, COUNT, STEPS, SHOWN = 256, 264, 50, (1, 2, 3, 10, 50)
SIGNED, UNSIGNED = functional.create_dynamic_map(True), functional.create_dynamic_map(False)
ZERO = int((SIGNED == 0).nonzero())


def words(t):
    t = t.to(torch.int32) if t.dtype in (torch.uint8, torch.int64) else t
    kind, pack = {torch.float32: ("f32", ">f"), torch.int32: ("i32", ">i"), torch.float64: ("f64", ">d")}[t.dtype]
    return f"{kind} {t.numel()} " + " ".join(struct.pack(pack, v).hex() for v in t.reshape(-1).tolist())


def gradients(step):
    """Of 24 bits and of six magnitudes, exact in float32; element 0's are 0."""
    values = []
    for i in range(COUNT):
        h = (i * 2654435761 + step * 2246822519) % 2**32
        h = (h ^ h >> 15) * 2654435761 % 2**32
        h ^= h >> 13
        values.append(0.0 if i == 0 else ((h >> 8) / 2**24 - 0.5) / 8**(i % 6))
    return torch.tensor(values, dtype=torch.float32)


class State:
    def __init__(self, code):
        self.code, self.codes, self.scales = code, torch.full((COUNT,), int((code == 0).nonzero()), dtype=torch.uint8), \
            torch.zeros(-(-COUNT // BLOCK))

    def read(self):
        return theirs._dequantize_blockwise_pytorch(self.codes, self.scales, self.code, BLOCK, torch.float32)

    def write(self, values):
        self.codes, self.scales = theirs._quantize_blockwise_pytorch(values, self.code, BLOCK)
        if self.code is SIGNED:  # a negative number that is nearest to 0 becomes the one below
            self.codes = torch.where((values < 0) & (self.codes == ZERO), ZERO - 1, self.codes.int()).to(torch.uint8)


def check_against_fallback(p, g, m, v, step, numbers, mine):
    rate, beta1, beta2, eps, _ = numbers
    own = p.clone()
    theirs.optimizer_update_8bit_blockwise_pytorch(
        own, g, m.codes.clone(), v.codes.clone(), beta1, beta2, 0.0, 0.0, eps, step, rate, SIGNED, UNSIGNED,
        m.scales.clone(), v.scales.clone(), 0.0, 1.0, False, optimizer_name="adam")
    assert torch.allclose(mine, own, rtol=1e-6, atol=1e-8), (mine - own).abs().max()


def steps(lines, numbers):
    rate, beta1, beta2, eps, decay = numbers
    p = gradients(99) * 4
    m, v = State(SIGNED), State(UNSIGNED)
    lines += ["case adamw8", "hyper " + words(torch.tensor(numbers, dtype=torch.float64)), f"start {words(p)}"]
    for step in range(1, STEPS + 1):
        g = gradients(step)
        new_m = m.read() * beta1 + (1 - beta1) * g
        new_v = v.read() * beta2 + (1 - beta2) * g * g
        root = (1 - beta2**step)**0.5
        moved = p - rate * root / (1 - beta1**step) * (new_m / (new_v.sqrt() + root * eps))
        check_against_fallback(p, g, m, v, step, numbers, moved)
        p = moved * (1 - rate * decay)
        m.write(new_m)
        v.write(new_v)
        if step in SHOWN:
            lines.append(f"after {words(torch.tensor([step]))}")
            lines += [f"result {words(t)}" for t in (p, m.codes, m.scales, v.codes, v.scales)]


def main():
    lines = []
    for code in (SIGNED, UNSIGNED):
        lines += ["case map", f"values {words(code)}"]
    torch.manual_seed(24)
    drawn = torch.randn(2 * BLOCK) * 10**(-6 * torch.rand(2 * BLOCK))
    for code, numbers in ((SIGNED, drawn), (UNSIGNED, drawn.abs())):
        codes, scales = theirs._quantize_blockwise_pytorch(numbers, code, BLOCK)
        lines += ["case quantized", f"numbers {words(numbers)}", f"codes {words(codes)}", f"scales {words(scales)}"]
    for numbers in ((1e-2, 0.9, 0.999, 1e-8, 0.0), (3e-3, 0.8, 0.95, 1e-6, 0.1)):
        steps(lines, numbers)
    path = pathlib.Path(__file__).parent / "data/adamw8.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


main()
