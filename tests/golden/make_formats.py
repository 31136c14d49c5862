"""Writes data/formats/*.safetensors: what the judges of the formats of frozen parameters make of random numbers and of
random blocks. Of a format `NAME.safetensors` holds `blocks`, as cairn stores them, and `values`, what they decode to; where
the judge encodes, `numbers` encode to `blocks`. Judges: bitsandbytes' CPU build (nf4, llm_int8; of nf4_nested the codes by
its rule for GPUs), `gguf`, Transformers (mxfp4), torch (fp8), numpy (int8, u4).   Run: python3 make_formats.py"""
import pathlib

import bitsandbytes.functional as bnb
import gguf.quants
import numpy as np
import torch
from gguf import GGMLQuantizationType
from safetensors.numpy import save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

FOLDER = pathlib.Path(__file__).with_name("data") / "formats"
rng = np.random.default_rng(45)
f32 = np.float32


def save(name, blocks, values, numbers=None):
    tensors = {"blocks": np.frombuffer(blocks.tobytes(), np.uint8), "values": values.astype(f32).reshape(-1)}
    if numbers is not None:
        tensors["numbers"] = numbers.astype(f32).reshape(-1)
    save_file({k: v.copy() for k, v in tensors.items()}, FOLDER / f"{name}.safetensors")


def numbers_of(block):
    """Blocks: normal ones, constant, zero, tiny, huge, of mixed signs and sizes, one number alone."""
    alone = np.zeros(block)
    alone[block // 3] = -0.37
    rows = [rng.normal(0, 0.02, block), rng.uniform(-1, 1, block), np.full(block, 0.125), np.full(block, -3.3), np.zeros(block),
            rng.normal(0, 1e-30, block), rng.normal(0, 1, block) * 10.0 ** rng.integers(-6, 6, block), alone,
            rng.standard_t(3, block)]
    return np.stack(rows).astype(f32)


def int8():
    """Codes are numbers / scale rounded to nearest with ties to even, scale = the largest magnitude / 127."""
    ties = np.concatenate([[127.0], np.arange(63) - 31.5])
    x = np.concatenate([numbers_of(64), [ties], rng.normal(0, 1e-43, (1, 64)), rng.normal(0, 1e-38, (1, 64)),
                        [np.concatenate([[-3.4e38, 3e38], rng.normal(0, 1e37, 62)])]]).astype(f32)
    scales = (np.abs(x).max(1, keepdims=True) / f32(127)).astype(f32)
    codes = np.clip(np.rint(x / np.where(scales > 0, scales, f32(1))), -127, 127) * (scales > 0)
    save("int8", np.concatenate([codes.astype(np.int8).view(np.uint8), scales.view(np.uint8)], 1),
         codes.astype(np.int8).astype(f32) * scales, x)


def nf4():
    x = np.concatenate([numbers_of(64), rng.normal(0, 1e-40, (1, 64)), rng.normal(0, 5e37, (1, 64))]).astype(f32)
    codes, state = bnb.quantize_4bit(torch.from_numpy(x), blocksize=64, quant_type="nf4")
    values = bnb.dequantize_4bit(codes, state)
    save("nf4", np.concatenate([codes.numpy().reshape(-1, 32), state.absmax.numpy().reshape(-1, 1).view(np.uint8)], 1),
         values.numpy(), x)


def nf4_nested():
    """Two storage blocks of 16384 values, of which the second one is not full. The sum of the scales in double
    precision, rounded once, is the mean's."""
    count = 64 * 260
    x = (rng.normal(0, 1, (count // 64, 64)) * rng.uniform(0.01, 0.1, (count // 64, 1))).astype(f32)
    codes, state = bnb.quantize_4bit(torch.from_numpy(x), blocksize=64, quant_type="nf4")
    absmax = state.absmax.numpy()
    offset = f32(absmax.astype(np.float64).mean())
    table = bnb.create_dynamic_map().numpy()
    middles = (table[:-1] + table[1:]) / f32(2)
    blocks, values = [], []
    for begin in range(0, len(absmax), 256):
        apart = absmax[begin:begin + 256] - offset
        scale = f32(np.abs(apart).max())
        places = np.searchsorted(middles, apart * (f32(1) / scale)).astype(np.uint8)
        here = codes.numpy().reshape(-1)[begin * 32:(begin + len(apart)) * 32]
        short = 256 - len(apart)
        blocks += [here.tobytes(), b"\x77" * (short * 32), places.tobytes(), b"\x7f" * short, scale.tobytes(), offset.tobytes()]
        nested = bnb.QuantState(absmax=torch.from_numpy(table[places] * scale + offset), shape=torch.Size((len(apart), 64)),
                                code=state.code, blocksize=64, quant_type="nf4", dtype=torch.float32)
        values.append(bnb.dequantize_4bit(torch.from_numpy(here.copy()).reshape(-1, 1), nested).numpy())
    save("nf4_nested", np.frombuffer(b"".join(blocks), np.uint8), np.concatenate(values), x)


def llm_int8():
    x = numbers_of(192)
    stats = torch.from_numpy(np.abs(x).max(1))
    codes = np.where(stats.numpy()[:, None] > 0, bnb.int8_vectorwise_quant(torch.from_numpy(x))[0].numpy(), np.int8(0))
    values = bnb.int8_vectorwise_dequant(torch.from_numpy(codes), stats)
    scales = np.repeat(stats.numpy(), 3).reshape(-1, 1)
    save("llm_int8", np.concatenate([codes.reshape(-1, 64).view(np.uint8), scales.view(np.uint8)], 1), values.numpy(), x)


def fp8():
    x = numbers_of(128)
    scales = (np.abs(x).max(1, keepdims=True) / f32(448)).astype(f32)
    safe = np.where(scales > 0, scales, f32(1))
    codes = torch.from_numpy(x / safe).clamp(-448, 448).to(torch.float8_e4m3fn)
    values = codes.float().numpy() * scales
    every = np.arange(256, dtype=np.uint8).reshape(2, 128)
    every = np.where((every & 127) == 127, np.uint8(0), every)
    blocks = np.concatenate([codes.view(torch.uint8).numpy(), scales.view(np.uint8)], 1)
    save("fp8", blocks, values, x)
    more = np.array([[0.37], [3.1e-5]], f32)
    save("fp8_codes", np.concatenate([every, more.view(np.uint8)], 1),
         torch.from_numpy(every).view(torch.float8_e4m3fn).float().numpy() * more)


def mxfp4():
    codes = rng.integers(0, 256, (40, 16), np.uint8)
    exponents = np.concatenate([[0, 1, 2, 254], rng.integers(100, 140, 36)]).astype(np.uint8)
    values = convert_moe_packed_tensors(torch.from_numpy(codes.reshape(1, 1, 40, 16)),
                                        torch.from_numpy(exponents.reshape(1, 1, 40)), dtype=torch.float32)
    values = values.numpy().reshape(40, 32)  # [experts, in, out] of one output
    nibbles = np.stack([codes & 15, codes >> 4], -1).reshape(40, 32)
    pairs = nibbles[:, :16] | nibbles[:, 16:] << 4
    save("mxfp4", np.concatenate([exponents.reshape(-1, 1), pairs], 1), values)


def u4():
    codes, zeros = rng.integers(0, 16, (20, 32), np.uint8), rng.integers(0, 17, (20, 1))
    scales = rng.normal(0, 0.1, (20, 1)).astype(np.float16)
    values = (codes.astype(f32) - zeros.astype(f32)) * scales.astype(f32)
    save("u4", np.concatenate([scales.view(np.uint8), zeros.astype(np.float16).view(np.uint8), codes[:, :16] | codes[:, 16:] << 4],
                              1), values)


def of_gguf():
    for name, (block, scale) in {"q4_0": (32, [0]), "q8_0": (32, [0]), "q4_k": (256, [0, 2]), "q5_k": (256, [0, 2]),
                                 "q6_k": (256, [208]), "iq4_nl": (32, [0]), "iq4_xs": (256, [0])}.items():
        kind = GGMLQuantizationType[name.upper()]
        bytes_ = gguf.constants.GGML_QUANT_SIZES[kind][1]
        blocks = rng.integers(0, 256, (12, bytes_), np.uint8)
        for at in scale:  # no infinities
            blocks[:, at:at + 2] = rng.normal(0, 0.1, (12, 1)).astype(np.float16).view(np.uint8)
        save(f"{name}_blocks", blocks, gguf.quants.dequantize(blocks, kind))
        if name in ("q4_0", "q8_0"):
            x = numbers_of(block)
            blocks = gguf.quants.quantize(x, kind)
            save(name, blocks, gguf.quants.dequantize(blocks, kind), x)


FOLDER.mkdir(exist_ok=True)
for make in (int8, nf4, nf4_nested, llm_int8, fp8, mxfp4, u4, of_gguf):
    make()
