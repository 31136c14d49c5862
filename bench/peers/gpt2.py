#!/usr/bin/env python3
"""Trains a GPT-2 in PyTorch: the work that `cairn train gpt2.lua` does, with the same options.

Prints one JSON object with the fields of `cairn train --json` that PyTorch can know. See README.md.
"""

import argparse
import contextlib
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import time

import torch
from torch._functorch import config as functorch_config


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


RSS_AFTER_TORCH_IMPORT = resident_bytes()  # before numpy-, safetensors- and compiler-side imports

import numpy as np  # noqa: E402

from gpt2_model import GPT2, load_weights, save_weights  # noqa: E402

WARM_UP_STEPS = 2  # the compiler, the first touch of every page, the optimizer's state


def parse_arguments(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    integers = dict(layers=12, heads=12, width=768, vocab=50304, seq=256, batch=4, steps=8, threads=2, seed=1)
    for name, default in integers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--accumulate", type=int, default=1, help="micro-batches per step")
    parser.add_argument("--amp", choices=["off", "bf16"], default="off")
    parser.add_argument(
        "--dtype", choices=["float32", "float64"], default="float32", help="float64: a reference"
    )
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--compile-mode", default="default", help="torch.compile's mode, e.g. max-autotune")
    parser.add_argument("--checkpoint", choices=["none", "layer"], default="none")
    parser.add_argument("--data", default="random", help="'random', or a file whose bytes are the tokens")
    parser.add_argument("--batches", help="raw int32 [steps*accumulate, batch, seq+1]; replaces --data")
    parser.add_argument("--init", help="safetensors with Hugging Face names; replaces the random weights")
    parser.add_argument("--save-init", help="writes the initial weights as safetensors")
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--warmup", type=int, default=0, help="steps of linear warm-up to the constant rate")
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--decay-all", action="store_true", help="biases and norms decay, too")
    parser.add_argument("--betas", type=lambda text: tuple(map(float, text.split(","))), default=(0.9, 0.95))
    parser.add_argument("--clip", type=float, default=1.0, help="global gradient norm; 0: off")
    parser.add_argument("--optimizer", choices=["fused", "foreach", "loop"], default="fused")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--memory-budget", type=float, default=1.0,
                        help="torch.compile's activation_memory_budget, 0 to 1; 1: off")
    parser.add_argument("--save-on-cpu", action="store_true", help="saved tensors go to pinned host memory")
    parser.add_argument("--saved", action="store_true", help="also report the bytes saved for backward")
    parser.add_argument("--json", action="store_true", help="JSON on stdout instead of a line of text")
    options = parser.parse_args(argv)
    for name in ("layers", "heads", "width", "vocab", "seq", "batch", "steps", "threads", "accumulate"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1")
    if len(options.betas) != 2:
        parser.error("--betas takes two numbers: 0.9,0.95")
    if options.memory_budget < 1 and options.mode != "compile":
        parser.error("--memory-budget goes with --mode compile")
    if options.dtype == "float64" and options.amp != "off":
        parser.error("--dtype float64 goes with --amp off")
    return options


def batches(options):
    """Yields steps*accumulate tensors int64 [batch, seq+1]: inputs and, one further, targets."""
    count, shape = options.steps * options.accumulate, (options.batch, options.seq + 1)
    if options.batches:
        raw = np.fromfile(options.batches, dtype="<i4")
        if raw.size < count * shape[0] * shape[1]:
            sys.exit(f"{options.batches}: {raw.size} tokens, but {count} batches of {shape} need more")
        source = raw[: count * shape[0] * shape[1]].reshape(count, *shape)
        if source.min() < 0 or source.max() >= options.vocab:
            sys.exit(f"{options.batches}: a token outside the vocabulary of {options.vocab}")
        yield from (torch.from_numpy(batch.astype(np.int64)) for batch in source)
        return
    if options.data == "random":
        generator = torch.Generator().manual_seed(options.seed)
        for _ in range(count):
            yield torch.randint(options.vocab, shape, generator=generator)
        return
    text = np.fromfile(options.data, dtype=np.uint8)
    windows = (text.size - 1) // options.seq
    if windows < 1 or int(text.max()) >= options.vocab:
        sys.exit(f"{options.data}: shorter than a window of {options.seq}, or a byte outside the vocabulary")
    # A fresh shuffle of the windows for every epoch: the order is a function of (seed, epoch, index) alone.
    shuffled_epoch, order = None, None
    for index in range(count):
        rows = []
        for sample in range(index * options.batch, (index + 1) * options.batch):
            epoch, place = divmod(sample, windows)
            if epoch != shuffled_epoch:
                shuffled_epoch = epoch
                order = np.random.default_rng([options.seed, epoch]).permutation(windows)
            start = int(order[place]) * options.seq
            rows.append(text[start : start + options.seq + 1].astype(np.int64))
        yield torch.from_numpy(np.stack(rows))


def make_optimizer(model, options):
    """AdamW; by default only tensors of rank 2 and more decay, as in cairn."""
    parameters = list(model.parameters())
    decayed = [p for p in parameters if options.decay_all or p.dim() >= 2]
    others = [p for p in parameters if not (options.decay_all or p.dim() >= 2)]
    groups = [dict(params=decayed, weight_decay=options.weight_decay)]
    if others:
        groups.append(dict(params=others, weight_decay=0.0))
    how = dict(fused=dict(fused=True), foreach=dict(foreach=True), loop=dict(foreach=False))
    return torch.optim.AdamW(groups, lr=options.rate, betas=options.betas, eps=1e-8, **how[options.optimizer])


def avoid_broken_amx():
    """Keeps bf16 alive where AMX is advertised but oneDNN cannot use it.

    Some virtual machines set the AMX feature bits and leave out CPUID leaf 0x1D (the tile palettes). oneDNN
    then loads an empty tile configuration and dies of SIGILL. A child process finds out; a lower ISA is
    the way out. oneDNN reads the variable at its first primitive, so after the import is early enough.
    """
    if "ONEDNN_MAX_CPU_ISA" in os.environ:
        return
    product = "import torch; a = torch.ones(256, 256, dtype=torch.bfloat16); a @ a"
    child = subprocess.run([sys.executable, "-c", product], stderr=subprocess.DEVNULL, check=False)
    if child.returncode == -signal.SIGILL:
        os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_FP16"


def build_model(options):
    """The model with its initial weights. Random weights come from the seed alone."""
    torch.manual_seed(options.seed)
    shape = (options.layers, options.heads, options.width, options.vocab, options.seq)
    with torch.device(options.device):  # drawing billions of weights takes a processor long
        model = GPT2(*shape, checkpoint_layers=options.checkpoint == "layer")
    if options.init:
        load_weights(model, options.init)
    if options.save_init:
        save_weights(model, options.save_init)
    return model.to(device=options.device, dtype=getattr(torch, options.dtype))


def synchronize(options):
    if options.device != "cpu":
        torch.cuda.synchronize()


def autocast(options):
    return torch.autocast(options.device, dtype=torch.bfloat16, enabled=options.amp == "bf16")


def saved_where(options):
    if options.save_on_cpu:
        return torch.autograd.graph.save_on_cpu(pin_memory=True)
    return contextlib.nullcontext()


def train(model, options):
    """Runs options.steps steps. Returns losses, gradient norms before clipping, and seconds, by step."""
    parameters = list(model.parameters())
    optimizer = make_optimizer(model, options)
    forward = model
    if options.mode == "compile":
        if options.memory_budget < 1:
            functorch_config.activation_memory_budget = options.memory_budget
        forward = torch.compile(model, mode=options.compile_mode)
    source = batches(options)
    losses, norms, seconds = [], [], []
    for step in range(options.steps):
        tokens = [next(source).to(options.device) for _ in range(options.accumulate)]
        synchronize(options)
        start = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = options.rate * min(1.0, (step + 1) / max(1, options.warmup))
        total = 0.0
        for batch in tokens:
            with autocast(options), saved_where(options):
                # Every micro-batch has the same number of tokens, so the mean of means is the mean.
                loss = forward(batch[:, :-1], batch[:, 1:]) / options.accumulate
            loss.backward()
            total += loss.item()
        limit = options.clip if options.clip > 0 else float("inf")
        norm = torch.nn.utils.clip_grad_norm_(parameters, limit)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        synchronize(options)
        seconds.append(time.perf_counter() - start)
        losses.append(total)
        norms.append(norm.item())
    return losses, norms, seconds


def saved_bytes(model, options):
    """Bytes of all storages that one micro-batch keeps from forward to backward, parameters excepted."""
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    saved = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    batch = next(batches(options)).to(options.device)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        with autocast(options):
            loss = model(batch[:, :-1], batch[:, 1:])
    total = sum(saved.values())
    del loss
    return total


def main():
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    torch.set_float32_matmul_precision("highest")  # no TF32: float32 means float32
    torch.backends.cudnn.allow_tf32 = False
    if options.amp == "bf16" and options.device == "cpu":
        avoid_broken_amx()
    model = build_model(options)
    parameter_count = sum(p.numel() for p in model.parameters())
    losses, norms, seconds = train(model, options)
    measured = seconds[WARM_UP_STEPS:]
    median = statistics.median(measured) if measured else None
    tokens = options.accumulate * options.batch * options.seq
    report = dict(
        steps=options.steps,
        loss=losses,
        gradient_norm=norms,
        step_seconds_median=median,
        step_seconds=seconds,
        warm_up_steps=min(WARM_UP_STEPS, options.steps),
        tokens_per_second=tokens / median if median else None,
        process_peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        torch_import_rss_bytes=RSS_AFTER_TORCH_IMPORT,
        parameters=parameter_count,
        torch=torch.__version__,
        mode=options.mode,
        amp=options.amp,
        dtype=options.dtype,
        checkpoint=options.checkpoint,
        device=options.device,
        memory_budget=options.memory_budget,
        save_on_cpu=options.save_on_cpu,
        threads=torch.get_num_threads(),
        seed=options.seed,
        onednn_max_cpu_isa=os.environ.get("ONEDNN_MAX_CPU_ISA"),  # null: no limit
    )
    if options.device != "cpu":
        report["device_peak_bytes"] = torch.cuda.max_memory_allocated()
        report["device_reserved_bytes"] = torch.cuda.max_memory_reserved()
    if options.saved:
        report["saved_bytes"] = saved_bytes(model, options)
    if options.json:
        print(json.dumps(report))
    else:
        pace = "too few steps to time"
        if median:
            pace = f"{report['tokens_per_second']:.1f} tokens/s, {median:.3f} s a step"
        print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, {pace}, "
              f"peak {report['process_peak_rss_bytes'] / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
