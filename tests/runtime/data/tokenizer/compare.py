#!/usr/bin/env python3
"""Compares tokens, offsets and decoded text with PyPI's tokenizers and sentencepiece, for every family and many texts of mixed scripts.

    PYTHON_WITH_THEM tests/runtime/data/tokenizer/compare.py LIBCAIRN TEXT_FILE [--lines 100000] [--vocabulary 2000] [NAME ...]

LIBCAIRN: libcairn.so. Vocabularies are trained on TEXT_FILE and on texts like those that are compared. Exit code 1: some differ."""
import argparse
import ctypes
import os
import pathlib
import random
import sys
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import families  # noqa: E402
import judge  # noqa: E402

SENTENCEPIECE = {
    "sp_bpe": dict(model_type="bpe", byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                   user_defined_symbols=["<think>", "ing"]),
    "sp_llama": dict(model_type="bpe", byte_fallback=True, normalization_rule_name="nmt_nfkc"),
    "sp_t5": dict(model_type="unigram", normalization_rule_name="nmt_nfkc"),
    "sp_folded": dict(model_type="unigram", normalization_rule_name="nmt_nfkc_cf", byte_fallback=True),
    "sp_suffix": dict(model_type="unigram", normalization_rule_name="nfkc", treat_whitespace_as_suffix=True),
}
PRECOMPILED = {"xlmr_nmt": dict(normalization_rule_name="nmt_nfkc"), "xlmr_folded": dict(normalization_rule_name="nmt_nfkc_cf")}


class Cairn:
    """The calls of the library that are compared."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        for name in ("cairn_text_data", "cairn_error_message", "cairn_error_create"):
            getattr(self.library, name).restype = ctypes.c_void_p
        self.library.cairn_text_size.restype = ctypes.c_size_t
        self.error = ctypes.c_void_p(self.library.cairn_error_create())
        self.instance, self.tokenizer = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.library.cairn_instance_create(None, ctypes.byref(self.instance), self.error))

    def check(self, status):
        if status != 0:
            raise RuntimeError(ctypes.string_at(self.library.cairn_error_message(self.error)).decode())

    def open(self, path):
        self.tokenizer = ctypes.c_void_p()
        self.check(self.library.cairn_tokenizer_open(self.instance, b"pretrained", str(path).encode(), ctypes.byref(self.tokenizer),
                                                     self.error))

    def take(self, text):
        data = ctypes.string_at(self.library.cairn_text_data(text), self.library.cairn_text_size(text))
        self.library.cairn_text_release(text)
        return data

    def encode(self, data):
        tokens, offsets = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.library.cairn_tokenizer_encode_with(self.tokenizer, data, ctypes.c_size_t(len(data)), 1, ctypes.byref(tokens),
                                                            ctypes.byref(offsets), self.error))
        ids = list(memoryview(self.take(tokens)).cast("i"))
        ends = memoryview(self.take(offsets)).cast("I")
        return ids, list(zip(ends[::2], ends[1::2]))

    def encode_alone(self, data):
        """Tokens without offsets, which nobody looks at."""
        tokens = ctypes.c_void_p()
        self.check(self.library.cairn_tokenizer_encode(self.tokenizer, data, ctypes.c_size_t(len(data)), ctypes.byref(tokens),
                                                       self.error))
        self.library.cairn_text_release(tokens)

    def decode(self, ids):
        text = ctypes.c_void_p()
        self.check(self.library.cairn_tokenizer_decode_with(self.tokenizer, (ctypes.c_int32 * len(ids))(*ids),
                                                            ctypes.c_size_t(len(ids)), 1, ctypes.byref(text), self.error))
        return self.take(text).decode("utf-8", "backslashreplace")


def judges(options, texts):
    """(name, file name, judge, content) of each tokenizer that is compared."""
    for name, rules in PRECOMPILED.items():
        families.FAMILIES[name] = families.unigram(families.xlmr(**rules), "always")
    for name in families.FAMILIES:
        if not options.names or name in options.names:
            content = families.build(name, texts, options.vocabulary)
            yield name, f"{name}.json", judge.HuggingFace(content), content.encode()
    for name, more in SENTENCEPIECE.items():
        if not options.names or name in options.names:
            content = families.train_sentencepiece(texts, vocab_size=options.vocabulary, **more)
            yield name, f"{name}.model", judge.SentencePiece(content), content


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=100000)
    parser.add_argument("--vocabulary", type=int, default=2000)
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    texts = families.corpus(options.text.read_text())
    cairn, failed = Cairn(options.library), False
    for name, file, judging, content in judges(options, texts):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / file
            path.write_bytes(content)
            cairn.open(path)
        rng, differ, shown = random.Random(f"{name} 1"), {"tokens": 0, "offsets": 0, "text": 0}, 0
        for _ in range(options.lines):
            data = families.line(rng)
            ids, offsets = judging.encode(data)
            our_ids, our_offsets = cairn.encode(data)
            wrong = ("tokens" if our_ids != ids else "offsets" if our_offsets != offsets else
                     "text" if cairn.decode(ids) != judging.decode(ids, True) else None)
            if wrong:
                differ[wrong] += 1
                shown += 1
                if shown <= 3:
                    print(f"{name}: {wrong} of {data!r}\n  ours   {our_ids}\n  theirs {ids}", file=sys.stderr)
        print(f"{name:16} {options.lines} lines: " + ", ".join(f"{count} differ in {what}" for what, count in differ.items()), flush=True)
        failed = failed or any(differ.values())
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
