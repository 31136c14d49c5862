#!/usr/bin/env python3
"""Directories whose weights are quantised already, in the forms of bitsandbytes, FP8, GPTQ, AWQ and MXFP4: the logits are
those of a directory of the numbers that the rules give, a run trains what is not frozen, and what is broken is named."""
import array
import json
import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

WIDTH, WORDS = 128, 64
CONFIG = {"model_type": "llama", "vocab_size": WORDS, "hidden_size": WIDTH, "intermediate_size": WIDTH,
          "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 64, "hidden_act": "silu",
          "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}
MATRICES = [f"model.layers.0.{part}.weight" for part in (
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj",
    "mlp.down_proj")]
NF4 = array.array("f", [
    -1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1])
E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


def f32(values):
    return array.array("f", values)


def halves(values):
    return struct.pack(f"<{len(values)}e", *values)


def words(values):
    return struct.pack(f"<{len(values)}I", *values)


def random_words(rng, count):
    return [rng.getrandbits(32) for _ in range(count)]


def dynamic_map():
    """bitsandbytes' 256 numbers: its create_dynamic_map(), whose bounds are torch.linspace's."""
    numbers, tenth = [0.0, 1.0], f32([0.1])[0]
    for decade in range(7):
        count = 2 ** decade
        part = f32([f32([1 - tenth])[0] / count])[0]
        bounds = f32([tenth + part * j if j < (count + 1) // 2 else 1 - part * (count - j) for j in range(count + 1)])
        for j in range(count):
            middle = f32([(bounds[j] + bounds[j + 1]) / 2])[0]
            value = f32([f32([10.0 ** (decade - 6)])[0] * middle])[0]
            numbers += [value, -value]
    return f32(sorted(numbers))


def e4m3(code):
    exponent, mantissa = code >> 3 & 15, code & 7
    size = mantissa * 2.0 ** -9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
    return -size if code >> 7 else size


# Each makes one matrix: the tensors of the file by what follows its stem, as (dtype, shape, bytes), and its values.
def nf4(rng, nested=False):
    count = WIDTH * WIDTH
    codes, blocks = rng.randbytes(count // 2), count // 64
    state = {"quant_type": "nf4", "blocksize": 64, "dtype": "float32", "shape": [WIDTH, WIDTH]}
    tensors = {"weight": ("U8", [count // 2, 1], codes), "weight.quant_map": ("F32", [16], NF4.tobytes())}
    if nested:
        table, places = dynamic_map(), rng.randbytes(blocks)
        outer, offset = f32([0.03]), f32([0.11])[0]
        scales = f32([f32([table[place] * outer[0]])[0] + offset for place in places])
        state |= {"nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": offset}
        tensors |= {"weight.absmax": ("U8", [blocks], places), "weight.nested_absmax": ("F32", [1], outer.tobytes()),
                    "weight.nested_quant_map": ("F32", [256], table.tobytes())}
    else:
        scales = f32([rng.uniform(0.05, 0.2) for _ in range(blocks)])
        tensors["weight.absmax"] = ("F32", [blocks], scales.tobytes())
    text = json.dumps(state).encode()
    tensors["weight.quant_state.bitsandbytes__nf4"] = ("U8", [len(text)], text)
    return tensors, f32([NF4[codes[i // 2] >> (4 if i % 2 == 0 else 0) & 15] * scales[i // 64] for i in range(count)])


def llm_int8(rng):
    codes = [rng.randrange(-127, 128) for _ in range(WIDTH * WIDTH)]
    scales, by_127 = f32([rng.uniform(0.05, 0.2) for _ in range(WIDTH)]), f32([7.874015718698502e-3])[0]
    scaled = f32([code * scales[i // WIDTH] for i, code in enumerate(codes)])
    return {"weight": ("I8", [WIDTH, WIDTH], bytes(code & 255 for code in codes)), "SCB": ("F32", [WIDTH], scales.tobytes()),
            "weight_format": ("U8", [], b"\0")}, f32([value * by_127 for value in scaled])


def fp8(rng, shape=(1, 1)):
    codes = bytes(code if code & 127 != 127 else 0 for code in rng.randbytes(WIDTH * WIDTH))
    scales = f32([rng.uniform(2e-4, 6e-4) for _ in range(shape[0] * shape[1])])
    return {"weight": ("F8_E4M3", [WIDTH, WIDTH], codes),
            "weight_scale_inv": ("F32", list(shape), scales.tobytes())}, \
        f32([e4m3(code) * scales[i // WIDTH % len(scales)] for i, code in enumerate(codes)])


def packed(rng, kind, group=32, shuffled=False):
    """GPTQ's two versions and AWQ."""
    awq, groups = kind == "awq", WIDTH // group
    order = [0, 4, 1, 5, 2, 6, 3, 7] if awq else list(range(8))
    codes, zeros = random_words(rng, WIDTH * WIDTH // 8), random_words(rng, groups * WIDTH // 8)
    scales = struct.unpack(f"<{groups * WIDTH}e", halves([rng.uniform(0.005, 0.02) for _ in range(groups * WIDTH)]))
    places = [i // group for i in range(WIDTH)]
    if shuffled:
        rng.shuffle(places)
    values = []
    for row in range(WIDTH):
        for column in range(WIDTH):
            if awq:
                code = codes[column * (WIDTH // 8) + row // 8] >> order[row % 8] * 4 & 15
            else:
                code = codes[column // 8 * WIDTH + row] >> column % 8 * 4 & 15
            at = places[column]
            zero = (zeros[at * (WIDTH // 8) + row // 8] >> order[row % 8] * 4 & 15) + (kind == "gptq")
            values.append((code - zero) * scales[at * WIDTH + row])
    tensors = {"qweight": ("I32", [WIDTH, WIDTH // 8] if awq else [WIDTH // 8, WIDTH], words(codes)),
               "qzeros": ("I32", [groups, WIDTH // 8], words(zeros)), "scales": ("F16", [groups, WIDTH], halves(scales))}
    if not awq:
        tensors["g_idx"] = ("I32", [WIDTH], words(places))
    return tensors, f32(values)


def write(folder, config, tensors):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(
        struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def floats(rng, *shape):
    count = 1
    for dim in shape:
        count *= dim
    return ("F32", list(shape), f32([rng.gauss(0, 0.05) for _ in range(count)]).tobytes())


class Quantised(harness.Case):
    def directories(self, method, make, config=None, base=CONFIG):
        """`q`, whose matrices make() makes, and `p`, which has their values."""
        rng = random.Random(7)
        plain = {"model.embed_tokens.weight": floats(rng, WORDS, WIDTH), "lm_head.weight": floats(rng, WORDS, WIDTH)}
        for norm in ("model.norm", "model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm"):
            plain[norm + ".weight"] = floats(rng, WIDTH)
        files, quantised = dict(plain), dict(plain)
        for name in MATRICES:
            tensors, values = make(rng)
            files[name] = ("F32", [WIDTH, WIDTH], values.tobytes())
            quantised |= {name[:-len("weight")] + part: tensor for part, tensor in tensors.items()}
        self.files = quantised
        self.quantised = base | {"quantization_config": {"quant_method": method} | (config or {})}
        write(self.folder / "q", self.quantised, quantised)
        write(self.folder / "p", base, files)

    def agree(self, method, make, config=None, dtype=None, says=""):
        self.directories(method, make, config)
        words_ = ["--tokens", "1,5,9,33,7", "--positions", "all", "--json"]
        told = self.cairn("logits", "q", *words_)
        self.assertIn(says, told.stderr)
        self.assertEqual(json.loads(told.stdout), json.loads(self.cairn("logits", "p", *words_).stdout))
        tensors = json.loads(self.cairn("inspect", "q", "--json").stdout)["tensors"]
        self.assertEqual({name for name, row in tensors.items() if row.get("quantised")}, set(MATRICES))
        self.assertEqual({tensors[name]["dtype"] for name in MATRICES}, {dtype})

    def test_nf4(self):
        self.agree("bitsandbytes", nf4, {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "nf4")

    def test_nf4_with_codes_for_scales(self):
        self.agree("bitsandbytes", lambda rng: nf4(rng, True), {"load_in_4bit": True}, "nf4_nested")

    def test_llm_int8(self):
        self.agree("bitsandbytes", llm_int8, {"load_in_8bit": True, "bnb_4bit_quant_type": "fp4"}, "llm_int8")

    def test_fp8_in_squares(self):
        self.agree("fp8", fp8, {"weight_block_size": [128, 128]}, "fp8")

    def test_fp8_by_rows(self):
        self.agree("fp8", lambda rng: fp8(rng, (WIDTH, 1)), None, "fp8")

    def test_gptq_and_its_second_version(self):
        self.agree("gptq", lambda rng: packed(rng, "gptq"), {"bits": 4, "group_size": 32}, "u4")
        (self.folder / "q").rename(self.folder / "q1")
        (self.folder / "p").rename(self.folder / "p1")
        self.agree("gptq", lambda rng: packed(rng, "gptq_v2"), {"bits": 4, "checkpoint_format": "gptq_v2"}, "u4")

    def test_gptq_out_of_order_is_decoded(self):
        self.agree("gptq", lambda rng: packed(rng, "gptq", shuffled=True), {"bits": 4, "desc_act": True}, "f32", "desc_act")

    def test_awq(self):
        self.agree("awq", lambda rng: packed(rng, "awq", 64), {"bits": 4, "version": "gemm"}, "u4")

    def test_mxfp4_experts_of_gpt_oss(self):
        rng, width, hidden, experts = random.Random(3), 64, 32, 4
        base = {"model_type": "gpt_oss", "vocab_size": WORDS, "hidden_size": width, "intermediate_size": hidden,
                "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32,
                "num_local_experts": experts, "num_experts_per_tok": 2, "tie_word_embeddings": False,
                "layer_types": ["full_attention"], "max_position_embeddings": 32, "rope_scaling": None, "rope_theta": 1e4}
        inside = "model.layers.0."
        both = {"model.embed_tokens.weight": floats(rng, WORDS, width), "lm_head.weight": floats(rng, WORDS, width),
                inside + "self_attn.sinks": floats(rng, 2), inside + "mlp.router.weight": floats(rng, experts, width),
                inside + "mlp.router.bias": floats(rng, experts)}
        for norm in ("model.norm", inside + "input_layernorm", inside + "post_attention_layernorm"):
            both[norm + ".weight"] = floats(rng, width)
        for part, out, into in (("q", 64, width), ("k", 32, width), ("v", 32, width), ("o", width, 64)):
            both[f"{inside}self_attn.{part}_proj.weight"] = floats(rng, out, into)
            both[f"{inside}self_attn.{part}_proj.bias"] = floats(rng, out)
        plain, quantised = dict(both), dict(both)
        for part, out, into in (("gate_up_proj", 2 * hidden, width), ("down_proj", width, hidden)):
            name = f"{inside}mlp.experts.{part}"
            plain[name + "_bias"] = quantised[name + "_bias"] = floats(rng, experts, out)
            codes = rng.randbytes(experts * out * into // 2)
            scales = bytes(rng.randrange(120, 124) for _ in range(experts * out * into // 32))
            quantised[name + "_blocks"] = ("U8", [experts, out, into // 32, 16], codes)
            quantised[name + "_scales"] = ("U8", [experts, out, into // 32], scales)
            turned = [0.0] * (experts * out * into)  # [experts, in, out]
            for i in range(experts * out * into):
                expert, row, column = i // (out * into), i // into % out, i % into
                turned[(expert * into + column) * out + row] = \
                    E2M1[codes[i // 2] >> 4 * (i % 2) & 15] * 2.0 ** (scales[i // 32] - 127)
            plain[name] = ("F32", [experts, into, out], f32(turned).tobytes())
        write(self.folder / "q", base | {"quantization_config": {"quant_method": "mxfp4"}}, quantised)
        write(self.folder / "p", base, plain)
        found = [json.loads(self.cairn("logits", folder, "--tokens", "1,5,9,33,7", "--positions", "all", "--json").stdout)
                 for folder in ("q", "p")]
        for a, b in zip(*(sum(each["logits"], []) for each in found)):
            self.assertAlmostEqual(a, b, delta=1e-5)
        tensors = json.loads(self.cairn("inspect", "q", "--json").stdout)["tensors"]
        self.assertEqual(tensors[inside + "mlp.experts.down_proj"]["dtype"], "mxfp4")

    def test_runs_train_what_is_not_frozen(self):
        self.directories("bitsandbytes", nf4)
        data = ["data=random", "seq=16", "batch=2", "--steps", 2, "--json", "--quiet", "--threads", 1]
        self.fails(3, "train", "q", *data, says=["q_proj.weight", "lora=16", "frozen="])
        results = [json.loads(self.cairn("train", folder, "frozen=model.layers.*", *more, *data).stdout)
                   for folder, more in (("q", []), ("q", ["--budget", "90%"]), ("p", []))]
        for result in results:
            self.assertEqual(result["loss"], results[2]["loss"])
            self.assertEqual(result["peak_bytes"], result["planned_peak_bytes"])
        self.assertEqual(results[0]["parameter_digest"], results[1]["parameter_digest"])
        stored = json.loads(self.cairn("train", "p", "frozen=model.layers.*", "--format", "nf4", *data).stdout)
        self.assertEqual(stored["parameter_digest"], results[0]["parameter_digest"])

    def broken(self, change, says):
        (self.folder / "broken").mkdir(exist_ok=True)
        for path in (self.folder / "broken").iterdir():
            path.unlink()
        (self.folder / "broken").rmdir()
        tensors = dict(self.files)
        change(tensors)
        write(self.folder / "broken", self.quantised, tensors)
        self.fails(3, "logits", "broken", "--tokens", "1", says=says)

    def test_what_is_broken_is_named(self):
        self.directories("bitsandbytes", lambda rng: nf4(rng, True))
        q = MATRICES[0]
        state = q + ".quant_state.bitsandbytes__nf4"
        changed = json.loads(self.files[state][2])

        def state_of(**more):
            text = json.dumps(changed | more).encode()
            return "U8", [len(text)], text

        for change, says in (
                (lambda t: t.pop(state), [state]),
                (lambda t: t.pop(q + ".nested_absmax"), ["nested_absmax"]),
                (lambda t: t.update({state: state_of(quant_type="fp4")}), [q, "fp4"]),
                (lambda t: t.update({state: state_of(blocksize=128)}), [q, "128"]),
                (lambda t: t.update({state: state_of(shape=[WIDTH, 2 * WIDTH])}), [q, "bytes"]),
                (lambda t: t.update({state: ("U8", [3], b"{ {")}), [state]),
                (lambda t: t.update({q + ".absmax": ("U8", [3], b"abc")}), [q + ".absmax"])):
            self.broken(change, says)

    def test_kinds_that_are_not_known_are_refused_by_name(self):
        self.directories("bitsandbytes", nf4)
        for config, says in (({"quant_method": "aqlm"}, ["aqlm", "bitsandbytes"]),
                             ({"quant_method": "gptq", "bits": 8}, ["gptq", "8"]),
                             ({"quant_method": "awq", "bits": 4, "version": "gemv"}, ["awq", "gemv"]),
                             ({"quant_method": "bitsandbytes", "bnb_4bit_quant_type": "fp4"}, ["fp4"])):
            (self.folder / "q/config.json").write_text(json.dumps(CONFIG | {"quantization_config": config}))
            self.fails(3, "logits", "q", "--tokens", "1", says=says)


if __name__ == "__main__":
    harness.main()
