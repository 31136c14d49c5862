#!/usr/bin/env python3
"""Writes golden/: small tokenizers of every family, and what PyPI's tokenizers and sentencepiece make of texts with them.

    PYTHON_WITH_TOKENIZERS_AND_SENTENCEPIECE tests/runtime/data/tokenizer/make_golden.py TEXT_FILE

NAME.txt has a line for each text: its bytes in hexadecimal, the tokens, their offsets, the decoded text in hexadecimal."""
import base64
import json
import pathlib
import random
import sys

import families
import judge

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
VOCABULARY, LINES, MOST_BYTES = 420, 20, 150
SENTENCEPIECE = {
    "sp_bpe": dict(model_type="bpe", byte_fallback=True, vocab_size=700, normalization_rule_name="identity",
                   remove_extra_whitespaces=False, user_defined_symbols=["<think>", "ing"]),
    "sp_unigram": dict(model_type="unigram", vocab_size=500, rules=families.RULES),
    "sp_suffix": dict(model_type="unigram", vocab_size=700, byte_fallback=True, normalization_rule_name="identity",
                      treat_whitespace_as_suffix=True),
}


def tekken(content):
    """tekken.json with the byte pairs of a tokenizer.json."""
    made = json.loads(content)
    byte_of = byte_alphabet()
    special = {token["content"] for token in made["added_tokens"]}
    tokens = [text for text, _ in sorted(made["model"]["vocab"].items(), key=lambda row: row[1]) if text not in special]
    rows = [{"rank": rank, "token_bytes": base64.b64encode(b"".join(byte_of[c] for c in text)).decode(), "token_str": None}
            for rank, text in enumerate(tokens)]
    return json.dumps({"config": {"pattern": families.TEKKEN, "num_vocab_tokens": len(rows), "default_num_special_tokens": 24,
                                  "default_vocab_size": len(rows) + 24, "version": "v3"}, "vocab": rows})


def byte_alphabet():
    itself = [*range(33, 127), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in itself]
    return {**{chr(byte): bytes([byte]) for byte in itself}, **{chr(256 + i): bytes([byte]) for i, byte in enumerate(others)}}


def tekken_as_huggingface(content):
    """The same tokenizer as Mistral's own files are converted: every way to part a token is a merge of its rank."""
    made = json.loads(content)
    spell = {byte: character for character, byte in byte_alphabet().items()}
    tokens = [base64.b64decode(row["token_bytes"]) for row in made["vocab"]]
    ranks, count = {token: rank for rank, token in enumerate(tokens)}, made["config"]["default_num_special_tokens"]
    text = lambda token: "".join(spell[bytes([byte])] for byte in token)  # noqa: E731
    merges = [(text(token[:at]), text(token[at:])) for token in tokens for at in range(1, len(token))
              if token[:at] in ranks and token[at:] in ranks]
    specials = ["<unk>", "<s>", "</s>"] + [f"<unused_{i}>" for i in range(3, count)]
    vocab = {**{name: i for i, name in enumerate(specials)}, **{text(token): rank + count for token, rank in ranks.items()}}
    return json.dumps({"version": "1.0", "added_tokens": [
        {"id": i, "content": name, "special": True, "normalized": False, "single_word": False, "lstrip": False, "rstrip": False}
        for i, name in enumerate(specials)], "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": families.TEKKEN}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]},
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                                                                    {"Sequence": {"id": "A", "type_id": 0}}],
                           "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                           "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "ignore_merges": True, "vocab": vocab, "merges": merges}})


def write(name, content, judging, texts):
    rows = []
    for text in texts:
        ids, offsets = judging.encode(text)
        decoded = judging.decode(ids, True).encode()
        rows.append("|".join([text.hex(), " ".join(map(str, ids)), " ".join(f"{a},{b}" for a, b in offsets), decoded.hex()]))
    (GOLDEN / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (GOLDEN / f"{name.rpartition('.')[0]}.txt").write_text("\n".join(rows) + "\n")


def main():
    GOLDEN.mkdir(exist_ok=True)
    shakespeare = pathlib.Path(sys.argv[1]).read_text()
    texts = families.corpus(shakespeare, lines=600)[::4]
    for number, name in enumerate(families.FAMILIES):
        rng = random.Random(number)
        lines = [families.line(rng)[:MOST_BYTES] for _ in range(LINES)] + [b"", b" ", b"\n", b"the way back"]
        content = families.build(name, texts, VOCABULARY)
        write(f"{name}.json", content, judge.HuggingFace(content), lines)
        if name == "mistral":
            content = tekken(content)
            write("tekken.json", content, judge.HuggingFace(tekken_as_huggingface(content)), lines)
    for name, options in SENTENCEPIECE.items():
        content = families.train_sentencepiece(texts, **options)
        write(f"{name}.model", content, judge.SentencePiece(content), lines)


if __name__ == "__main__":
    main()
