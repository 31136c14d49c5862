"""Writes data/int8.txt: blocks of 64 numbers as the format int8 stores them, by numpy: scale = the largest magnitude / 127,
codes = numbers / scale rounded to nearest with ties to even, numbers read = codes * scale; all in float32. Form as of
make_ops.py.   Run: python3 make_int8.py"""
import pathlib
import struct

import numpy as np

BLOCK = 64
rng = np.random.default_rng(43)


def words(values, kind):
    pack = {"f32": ">f", "i32": ">i"}[kind]
    return f"{kind} {len(values)} " + " ".join(struct.pack(pack, v).hex() for v in values.tolist())


def stored(x):
    scale = np.float32(np.max(np.abs(x)) / np.float32(127))
    if scale == 0:
        return np.zeros(BLOCK, np.int32), scale, np.zeros(BLOCK, np.float32)
    codes = np.clip(np.rint(x / scale), -127, 127).astype(np.int32)
    return codes, scale, codes.astype(np.float32) * scale


BLOCKS = [rng.normal(0, 0.02, BLOCK), rng.uniform(-1, 1, BLOCK), np.zeros(BLOCK),
          rng.normal(0, 1, BLOCK) * 10.0 ** rng.integers(-6, 6, BLOCK),
          np.concatenate([[127.0], np.arange(BLOCK - 1) - 31.5]),  # ties
          np.concatenate([[-3.4e38, 3e38], rng.normal(0, 1e37, BLOCK - 2)]),
          rng.normal(0, 1e-43, BLOCK), rng.normal(0, 1e-38, BLOCK)]  # a scale of 0, a scale that is denormal
lines = []
for block in BLOCKS:
    x = block.astype(np.float32)
    codes, scale, read = stored(x)
    lines += ["case int8", "numbers " + words(x, "f32"), "codes " + words(codes, "i32"),
              "scale " + words(np.array([scale]), "f32"), "read " + words(read, "f32")]
pathlib.Path(__file__).with_name("data").joinpath("int8.txt").write_text("\n".join(lines) + "\n")
