#!/usr/bin/env python3
"""Megabytes a second of processor time that libcairn and PyPI's tokenizers encode, on one thread: see README.md."""
import argparse
import os
import pathlib
import random
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/runtime/data/tokenizer"))
import compare  # noqa: E402
import families  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402


def rate(encode, texts):
    """The best of three rounds."""
    best = 0
    for _ in range(3):
        begin = time.process_time()
        for text in texts:
            encode(text)
        best = max(best, sum(map(len, texts)) / (time.process_time() - begin) / 1e6)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--megabytes", type=float, default=4)
    parser.add_argument("--vocabulary", type=int, default=16000)
    parser.add_argument("names", nargs="*", default=["gpt2", "llama3", "qwen2", "o200k", "mistral"])
    options = parser.parse_intermixed_args()
    shakespeare, rng = options.text.read_text(), random.Random(5)
    lines = shakespeare.split("\n")
    lines = ["\n".join(lines[at:at + 100]).encode() for at in range(0, len(lines), 100)]  # a call from Python costs what a line does
    wanted = int(options.megabytes * 1e6)
    corpora = {"text": (lines * (wanted // len(shakespeare) + 1))[:wanted * len(lines) // len(shakespeare)],
               "one": [(shakespeare.encode() * (wanted // len(shakespeare) + 1))[:wanted]], "mixed": []}
    while sum(map(len, corpora["mixed"])) < wanted // 4 and len(corpora["mixed"]) < 20000:
        corpora["mixed"].append(b"".join(families.line(rng).decode("utf-8", "ignore").encode() for _ in range(30)))
    cairn = compare.Cairn(options.library)
    for name in options.names:
        content = families.build(name, families.corpus(shakespeare), options.vocabulary)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokenizer.json"
            path.write_text(content)
            cairn.open(path)
        theirs = Tokenizer.from_str(content)
        for corpus, texts in corpora.items():
            ours = rate(cairn.encode_alone, texts)
            if corpus == "one":  # a pipeline for lines: a megabyte at once is its weak side, so it has no row
                print(f"{name:10} {corpus:6} {ours:8.1f} MB/s", flush=True)
                continue
            decoded = [text.decode() for text in texts]
            peer = rate(lambda text: theirs.encode(text, add_special_tokens=False), [each for each in decoded])
            peer *= sum(map(len, texts)) / sum(map(len, decoded))
            print(f"{name:10} {corpus:6} {ours:8.1f} MB/s, PyPI's tokenizers {peer:8.1f}: {ours / peer:.1f} times", flush=True)


if __name__ == "__main__":
    main()
