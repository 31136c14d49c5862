#!/usr/bin/env python3
"""Plans of bert-large at the shapes of a published table, with its megabytes: a table in Markdown.

    bert_large.py [--cairn build/release/bin/cairn] [--rows TEXT] [--results FILE]

The table is "Efficient Training on a Single GPU" of Transformers (docs/source/en/perf_train_gpu_one.mdx, commit 0016acf7, January
2022): bert-large-uncased for classification, 512 random texts of 512 tokens on a V100-SXM2-16GB, memory by nvidia-smi, of which
1,343 MiB were taken before the model came. Each row is one `cairn plan` for a model of that card without any other tier. Nothing is
trained. --results keeps what the command printed, as JSON."""
import argparse
import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTEXT = 1343  # MiB that the table counts and no plan has
SEQ = 512
CONFIG = {"model_type": "bert", "architectures": ["BertForSequenceClassification"], "vocab_size": 30522, "hidden_size": 1024,
          "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096, "max_position_embeddings": 512}
V100 = {
    "format": "cairn.device-model/1", "name": "NVIDIA V100-SXM2-16GB",
    "sources": ["memory_bytes: NVIDIA's V100 data sheet, 16 GB", "f32: 0.8 of its 15.7 TFLOP/s; the share is assumed",
                "f16: 0.6 of its 125 TFLOP/s; the share is assumed", "bf16: the card has none, so it is taken as f32",
                "memory rate: 0.85 of its 900 GB/s; the share is assumed", "launch: assumed"],
    "memory_bytes": 16 * 10**9, "f32_flops_per_second": 12.6e12, "bf16_flops_per_second": 12.6e12, "f16_flops_per_second": 75e12,
    "memory_bytes_per_second": 0.765e12, "launch_seconds": 2e-6, "separate_memory": True, "links": [],
}
BY_HAND, FP16 = ["segments=block"], ["--amp", "fp16"]
ROWS = [  # words, windows of a micro-batch, micro-batches, published MiB and texts a second (None: not in the table), options
    ("float32", 4, 1, 14949, 8.86, []),
    ("accumulation", 1, 4, 8681, 7.75, []),
    ("accumulation, a checkpoint a block", 1, 4, 6775, 5.99, BY_HAND),
    ("fp16", 4, 1, 13939, 18.64, FP16),
    ("accumulation, a checkpoint a block, fp16", 1, 4, 7275, 10.09, BY_HAND + FP16),
    ("Adafactor", 4, 1, 12295, 7.96, ["optimizer=adafactor"]),
    ("accumulation, a checkpoint a block, fp16, Adafactor", 1, 4, 4847, 9.06, BY_HAND + FP16 + ["optimizer=adafactor"]),
    ("8-bit Adam", 4, 1, 13085, 9.15, ["optimizer=adamw8"]),
    ("accumulation, a checkpoint a block, fp16, 8-bit Adam", 1, 4, 5363, 10.35, BY_HAND + FP16 + ["optimizer=adamw8"]),
    ("4 x 4", 4, 4, None, None, []),
    ("4 x 4, a checkpoint a block", 4, 4, None, None, BY_HAND),
    ("batch 4 in the memory of accumulation with checkpoints", 4, 1, 6775, 5.99, ["--budget", f"{6775 - CONTEXT}MiB"]),
    ("batch 4 in the memory of the table's smallest row", 4, 1, 4847, 9.06, ["optimizer=adafactor", "--budget", f"{4847 - CONTEXT}MiB"]),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cairn", default=str(ROOT / "build/release/bin/cairn"))
    parser.add_argument("--rows", default="", help="only rows with this text in their words")
    parser.add_argument("--results", help="where to keep what was printed")
    options, kept = parser.parse_args(), []
    print("| | texts x micro-batches | published, MiB | without what was taken before | planned, MiB | share | published, texts/s | "
          "predicted | of keeping all |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        config, card = pathlib.Path(folder) / "config.json", pathlib.Path(folder) / "v100.json"
        config.write_text(json.dumps(CONFIG))
        card.write_text(json.dumps(V100))
        for words, batch, count, published, rate, more in ROWS:
            if options.rows not in words:
                continue
            command = [options.cairn, "plan", "encoder", f"model={config}", "data=random", f"seq={SEQ}", "dropout=0.1",
                       f"batch={batch}", "--accumulate", str(count), "--device-model", str(card), "--tiers", "none", *more, "--json"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            head = f"| {words} | {batch} x {count} | {published or ''} | {published - CONTEXT if published else ''} |"
            if done.returncode:
                print(head, done.stderr.strip().splitlines()[-1], "| | | | |", flush=True)
                continue
            plan = json.loads(done.stdout)
            kept.append({"row": words, "command": " ".join(command[1:]), "plan": plan})
            peak, step = plan["planned_peak_bytes"]["device"] / 2**20, plan["plan"]["predicted_step_seconds"]
            print(head, f"{peak:.0f} | {f'{peak / (published - CONTEXT):.2f}' if published else ''} | {rate or ''} | "
                  f"{batch * count / step:.2f} | {step / plan['plan']['keep_all_step_seconds']:.3f}x |", flush=True)
    if options.results:
        pathlib.Path(options.results).write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
