#!/usr/bin/env python3
"""GGUF files with small tokenizers, trained here with PyPI's tokenizers and sentencepiece, and the tokens that these libraries
make of some lines. Needs tokenizers, sentencepiece and gguf.

    make_words.py            writes words-NAME.gguf and words.json next to itself
"""
import json
import pathlib
import tempfile

import gguf
import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

OUT = pathlib.Path(__file__).resolve().parent
END = "<|end|>"
CONTRACTIONS, SPACES = "(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"|\s*[\r\n]+|\s+(?!\S)|\s+"
CAPITALS, SMALL = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SPLITTERS = {
    "gpt-2": None, "smollm": None,
    "llama-bpe": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES,
    "qwen2": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES,
    "tekken": f"{CAPITALS}*{SMALL}+|{CAPITALS}+{SMALL}*" + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES,
    "gpt-4o": (f"{CAPITALS}*{SMALL}+{CONTRACTIONS}?|{CAPITALS}+{SMALL}*{CONTRACTIONS}?"
               r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES),
}
TEXT = ("It is a truth universally acknowledged, that a tokenizer in possession of 1813 words must be in want of a text. "
        "Don't we'll they've I'm; na\u00efve caf\u00e9s \u4f60\u597d \U0001f680 /path/to  two   three\n\n") * 30
LINES = ["It is a truth", "  two  leading", "don't WE'LL 12345 x=1", "na\u00efve A\u030a \u4f60\u597d \U0001f680\U0001f642",
         f"a{END}b <think> c", "/path//to/ABCdef", "   ", "tabs\t\tend ", "<s>x</s>"]


def byte_pairs(kind):
    begins = kind in ("llama-bpe", "tekken")
    made = Tokenizer(models.BPE(ignore_merges=begins))
    parts = [pre_tokenizers.Digits(individual_digits=True)] if kind == "smollm" else []
    if SPLITTERS[kind]:
        parts.append(pre_tokenizers.Split(Regex(SPLITTERS[kind]), "isolated"))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [*parts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not SPLITTERS[kind])])
    if kind == "qwen2":
        made.normalizer = normalizers.NFC()
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator([TEXT], trainers.BpeTrainer(
        vocab_size=330, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=[END], show_progress=False))
    made.add_tokens([AddedToken("<think>", normalized=False, special=False)])
    if begins:
        made.post_processor = processors.TemplateProcessing(single=f"{END} $A", special_tokens=[(END, made.token_to_id(END))])
    return made


def start(name, model, pre, tokens, types):
    file = gguf.GGUFWriter(OUT / f"words-{name}.gguf", "llama")
    file.add_tokenizer_model(model)
    file.add_tokenizer_pre(pre)
    file.add_token_list(tokens)
    file.add_token_types(types)
    return file


def finish(file):
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def write_byte_pairs(kind):
    made = byte_pairs(kind)
    read = json.loads(made.to_str())
    added = {row["id"]: row for row in read["added_tokens"]}
    tokens = [made.id_to_token(i) for i in range(made.get_vocab_size())]
    types = [(3 if added[i]["special"] else 4) if i in added else 1 for i in range(len(tokens))]
    file = start(kind, "gpt2", kind, tokens, types)
    file.add_token_merges([" ".join(pair) for pair in read["model"]["merges"]])
    file.add_bos_token_id(made.token_to_id(END))
    file.add_eos_token_id(made.token_to_id(END))
    finish(file)
    return [made.encode(line).ids for line in LINES]


def write_pieces(name, prefix):
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "text.txt"
        text.write_text(TEXT, encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=f"{folder}/model", vocab_size=400, model_type="bpe", byte_fallback=True,
            character_coverage=0.98, add_dummy_prefix=prefix, remove_extra_whitespaces=False,
            normalization_rule_name="identity", hard_vocab_limit=False, minloglevel=2)
        made = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/model.model")
    ids = range(made.vocab_size())
    types = [2 if made.is_unknown(i) else 3 if made.is_control(i) else 6 if made.is_byte(i) else 1 for i in ids]
    file = start(name, "llama", "default", [made.id_to_piece(i) for i in ids], types)
    file.add_token_scores([made.get_score(i) for i in ids])
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)
    file.add_unk_token_id(0)
    file.add_add_space_prefix(prefix)
    finish(file)
    return [None if "<s>" in line else [1, *made.encode(line)] for line in LINES]  # which has no text for control tokens


def main():
    made = {kind: write_byte_pairs(kind) for kind in SPLITTERS}
    made |= {name: write_pieces(name, name == "spaced") for name in ("spaced", "plain")}
    (OUT / "words.json").write_text(json.dumps({"lines": LINES, "tokens": made}) + "\n")


if __name__ == "__main__":
    main()
