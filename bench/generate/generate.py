#!/usr/bin/env python3
"""Measures text generation by cairn and by Transformers on the CPU, in one run, and writes a table.

  bench/generate/generate.py --cairn build/release/bin/cairn [--torch VENV/bin/python] [--threads 2] [--rounds 3] DIR...
  VENV/bin/python bench/generate/generate.py --make gpt2-124m|llama-1.1b DIR

DIR: a model as Transformers saves it; --make writes one with random weights in bf16. Every round takes all cases in turn, so that
a machine whose speed drifts is fair to all; quoted are medians over rounds. "Of the copy" is the rate at which a token's weights
are read (each once), as a share of the rate at which the machine copies memory in as many threads.
"""
import argparse
import ctypes
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

SHORT, BATCH = 8, 8  # tokens of a short prompt; prompts at once


def make(shape, folder):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
    torch.manual_seed(0)
    kind, config = {
        "gpt2-124m": (GPT2LMHeadModel, lambda: GPT2Config()),
        "llama-1.1b": (LlamaForCausalLM, lambda: LlamaConfig(
            vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32,
            num_key_value_heads=4, max_position_embeddings=2048)),
    }[shape]
    kind._from_config(config(), dtype=torch.bfloat16).save_pretrained(folder)


def peer(folder, threads, tokens):
    """What a child process does: one prompt by Transformers."""
    import torch
    from transformers import AutoModelForCausalLM
    torch.set_num_threads(threads)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    prompt = torch.full((1, SHORT), 97)

    def seconds(count):
        began = time.perf_counter()
        with torch.inference_mode():
            model.generate(prompt, do_sample=False, min_new_tokens=count, max_new_tokens=count,
                           attention_mask=torch.ones_like(prompt), pad_token_id=0)
        return time.perf_counter() - began

    seconds(2)
    first = seconds(1)
    print(json.dumps({"decode": tokens / (seconds(tokens + 1) - first)}))


def weight_bytes(folder):
    """Bytes of the tensors that one token reads, all of them but tables of which it reads a row."""
    total, tables, heads = 0, 0, 0
    for path in pathlib.Path(folder).glob("*.safetensors"):
        with open(path, "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        for name, row in header.items():
            if name == "__metadata__":
                continue
            size = row["data_offsets"][1] - row["data_offsets"][0]
            total += size
            heads += name == "lm_head.weight"
            tables += size if name.endswith(("embed_tokens.weight", "wte.weight")) else 0
            total -= size if name.endswith("wpe.weight") else 0
    return total - (tables if heads else 0)


def copy_rate(threads, size=1 << 28):
    """Bytes per second that threads copy together."""
    parts = [(ctypes.create_string_buffer(size // threads), ctypes.create_string_buffer(size // threads)) for _ in range(threads)]

    def work(to, source):
        ctypes.memmove(to, source, size // threads)

    best = None
    for _ in range(4):  # the first touches the pages
        list_ = [threading.Thread(target=work, args=part) for part in parts]
        began = time.perf_counter()
        for thread in list_:
            thread.start()
        for thread in list_:
            thread.join()
        seconds = time.perf_counter() - began
        best = seconds if best is None else min(best, seconds)
    return size / best


def run(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(map(str, command))[:400]}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout[done.stdout.index("{"):])


def cairn(options, folder, samples, length):
    prompt = [word for _ in range(samples) for word in ("--prompt", "a" * length)]
    found = run([options.cairn, "generate", folder, *prompt, "--max-tokens", options.tokens + 1, "--temperature", 0, "--threads",
                 options.threads, "--amp", options.amp, "--json", "--quiet"])
    return {"decode": found["decode_tokens_per_second"], "prefill": samples * length / found["prefill_seconds"],
            "peak": found["peak_bytes"]["device"], "planned": found["planned_peak_bytes"]["device"]}


def forward(options, folder, text):
    found = run([options.cairn, "eval", folder, f"data={text}", f"seq={options.long}", "batch=1", "--threads", options.threads,
                 "--amp", options.amp, "--json", "--quiet"])
    return {"forward": found["tokens"] / found["seconds"]}


def measure(options, folder, text):
    cases = {
        "copy": lambda: {"copy": copy_rate(options.threads)},
        "one": lambda: cairn(options, folder, 1, SHORT),
        "far": lambda: cairn(options, folder, 1, options.long),
        "batch": lambda: cairn(options, folder, BATCH, SHORT),
        "eval": lambda: forward(options, folder, text),
    }
    if options.torch:
        cases["peer"] = lambda: run([options.torch, __file__, "--peer", options.threads, "--tokens", options.tokens, folder])
    rounds = {name: [] for name in cases}
    for _ in range(options.rounds):
        for name, case in cases.items():
            rounds[name].append(case())
            print(f"{folder}: {name}: {rounds[name][-1]}", file=sys.stderr)
    return {name: {key: statistics.median(row[key] for row in rows) for key in rows[0]} for name, rows in rounds.items()}


def table(folder, found):
    one, size = found["one"]["decode"], weight_bytes(folder)
    rows = [("decode, one prompt", f"{one:.1f} tokens/s", ""),
            ("weights of a token", f"{size / 1e6:.0f} MB", ""),
            ("copy", f"{found['copy']['copy'] / 1e9:.1f} GB/s", ""),
            ("of the copy", f"{one * size / found['copy']['copy']:.0%}", "80 %"),
            ("decode after a long prompt", f"{found['far']['decode'] / one:.2f}x", "flat"),
            (f"decode, {BATCH} prompts", f"{found['batch']['decode'] / one:.2f}x", "4x"),
            ("prefill, of evaluation's rate", f"{found['far']['prefill'] / found['eval']['forward']:.2f}x", "0.9x"),
            ("peak", f"planned {found['one']['planned']:,.0f}, measured {found['one']['peak']:,.0f}", "equal")]
    if "peer" in found:
        rows.insert(1, ("of Transformers", f"{one / found['peer']['decode']:.2f}x", "1.3x"))
    lines = [f"### {pathlib.Path(folder).name}", "", "| | measured | goal |", "|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cairn", default=str(pathlib.Path(__file__).resolve().parents[2] / "build/release/bin/cairn"))
    parser.add_argument("--torch", help="a Python with torch and transformers")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--long", type=int, default=512, help="tokens of a long prompt")
    parser.add_argument("--amp", default="bf16")
    parser.add_argument("--make", metavar="SHAPE")
    parser.add_argument("--peer", type=int, metavar="THREADS", help=argparse.SUPPRESS)
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    if options.make:
        return make(options.make, options.models[0])
    if options.peer:
        return peer(options.models[0], options.peer, options.tokens)
    with tempfile.NamedTemporaryFile(suffix=".txt") as text:
        text.write(b"a line of text.\n" * (4 * options.long // 16 + 1))
        text.flush()
        for folder in options.models:
            print(table(folder, measure(options, folder, text.name)), flush=True)
    return 0


sys.exit(main())
