#!/usr/bin/env python3
"""LoRA on a Llama beside PEFT: tokens a second and resident memory, the programs in turns.

    PYTHON_WITH_TORCH_TRANSFORMERS_AND_PEFT bench/peers/adapters.py CAIRN FOLDER [--rounds 3] [--case nf4:950000000 ...]

FOLDER: for the model (2.1 GB), which is made where it is not there. A case is FORMAT[:BUDGET in bytes]; PEFT runs in bf16. Every
program is a process of its own, on two threads; of its steps the first does not count."""
import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import time

TOKENS, RANK, THREADS, STEPS = 512, 8, 2, 4
CASES = ["bf16", "nf4", "q4_k", "nf4:950000000", "q4_k:950000000"]


def make(folder):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    config = LlamaConfig(vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32,
                         num_key_value_heads=4, max_position_embeddings=2048, tie_word_embeddings=False, dtype="bfloat16")
    LlamaForCausalLM(config).save_pretrained(folder)


def peft(folder):
    """Prints what a run of PEFT took, as JSON."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaForCausalLM
    torch.set_num_threads(THREADS)
    base = LlamaForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, attn_implementation="sdpa")
    model = get_peft_model(base, LoraConfig(r=RANK, lora_alpha=RANK, target_modules="all-linear", task_type="CAUSAL_LM"))
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], 1e-4)
    generator, seconds = torch.Generator().manual_seed(1), []
    for _ in range(STEPS):
        ids = torch.randint(0, 32000, (1, TOKENS), generator=generator)
        begin = time.perf_counter()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - begin)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds[1:], "rss": rss, "peak": None, "parameters": None}))


def of_peft(folder):
    done = subprocess.run([sys.executable, __file__, "--peft", str(folder)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def of_cairn(cairn, folder, case):
    name, _, budget = case.partition(":")
    words = [cairn, "train", folder, "data=random", f"seq={TOKENS}", "batch=1", f"lora={RANK}", "parameters=bf16", "--amp", "bf16",
             "--threads", str(THREADS), "--steps", str(STEPS), "--json", *(["--budget", budget] if budget else []),
             *([] if name == "bf16" else ["--format", name])]
    done = subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True)
    said = json.loads(done.stdout)
    if said["peak_bytes"] != said["planned_peak_bytes"]:
        sys.exit(f"{case}: planned {said['planned_peak_bytes']}, measured {said['peak_bytes']}")
    return {"seconds": said["step_seconds"][1:], "rss": said["process_peak_rss_bytes"], "peak": said["peak_bytes"]["device"],
            "parameters": said["memory_bytes"]["parameters"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cairn", nargs="?")
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", action="append")
    parser.add_argument("--peft", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peft:
        peft(options.peft)
        return
    if not (options.folder / "config.json").exists():
        make(options.folder)
    runs = {}
    for _ in range(options.rounds):
        runs.setdefault("PEFT bf16", []).append(of_peft(options.folder))
        for case in options.case or CASES:
            runs.setdefault(f"cairn {case}", []).append(of_cairn(options.cairn, options.folder, case))
    print("| | tokens/s | of PEFT | peak, MB | parameters, MB | RSS, MB |\n|---|---|---|---|---|---|")
    rates = {name: TOKENS / statistics.median(each for run in list_ for each in run["seconds"]) for name, list_ in runs.items()}
    for name, list_ in runs.items():
        sizes = [f"{list_[0][key] / 1e6:,.0f}" if list_[0][key] else "" for key in ("peak", "parameters", "rss")]
        print(f"| {name} | {rates[name]:.1f} | {rates[name] / rates['PEFT bf16']:.2f} | {' | '.join(sizes)} |")


if __name__ == "__main__":
    main()
