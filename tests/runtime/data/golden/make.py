"""Records what sentencepiece itself does: models that it trained, and how it cuts strings with them.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install sentencepiece==VERSION protobuf==3.20.3
    /tmp/venv/bin/python tests/runtime/data/golden/make.py

With VERSION 0.1.97, whose trainer is the one that the first cairn used (later ones count runs of one character otherwise),
it writes trained.model, from text.txt with the options of cairn's trainer. Then with 0.2.3: bpe.model and unigram.model,
with options of others (a dummy prefix, user-defined and unused pieces), control.model, whose pieces have control characters,
as Mistral's have, and cases.txt, whose lines are: model, text in hexadecimal, tokens. The models are asked without their normaliser, since cairn normalises nothing, and only about text
that they take as it is.
"""
import io
import pathlib
import random

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as pb

HERE = pathlib.Path(__file__).parent
CAIRN = dict(model_type="bpe", normalization_rule_name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False,
             character_coverage=1.0, bos_id=-1, eos_id=-1, pad_id=-1, num_threads=1, max_sentence_length=32768)
OTHER = dict(normalization_rule_name="identity", allow_whitespace_only_pieces=True, num_threads=1,
             user_defined_symbols=["<sep>", "the", "ing", "way b", "ん"], control_symbols=["<end>"])
# Pieces of control.model: user-defined ones (two of them longer than a character) and plain ones; the rest has none.
CONTROL_DEFINED = ["\n", "\n\n", "\t", "\t\t", "\r", "\x7f", "\ufffd"]
CONTROL_PLAIN = [chr(code) for code in range(1, 32) if code not in (7, 9, 10, 13, 27)]
UNUSED = 12  # one in so many pieces of the others


def train(text, vocabulary, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(text.split("\n")), model_writer=model, minloglevel=3,
                                             vocab_size=vocabulary, byte_fallback=True, **options)
    return pb.ModelProto.FromString(model.getvalue())


def with_unused(model):
    for index, piece in enumerate(model.pieces):
        if piece.type == piece.NORMAL and index % UNUSED == 0 and piece.piece != "\u2581":
            piece.type = piece.UNUSED
    return model


def with_control(model):
    for character in CONTROL_PLAIN:
        model.pieces.add(piece=character, score=-1000 - ord(character))
    return model


def control_strings(draw):
    for code in range(1, 256):
        yield "x" + chr(code) + "x"
    parts = ["the", " ", "\n", "\n\n\n", "\r\n", "\t", "\t\t\t", "\x1b[0m", "\x07", "\x01", "\x7f", "way", "é", "\ufffd", "\x1f\x1e"]
    for _ in range(60):
        yield "".join(draw.choice(parts) for _ in range(draw.randint(1, 12)))


def plain(model):
    bare = pb.ModelProto.FromString(model.SerializeToString())
    bare.normalizer_spec.add_dummy_prefix = False
    bare.normalizer_spec.remove_extra_whitespaces = False
    return sentencepiece.SentencePieceProcessor(model_proto=bare.SerializeToString())


def strings(text, draw):
    lines = [line for line in text.split("\n") if line]
    parts = ["the", "ing", " ", "  ", "<sep>", "<end>", "<unk>", "<0x41>", "way b", "ん", "かな", "é", "e\u0301", "0123", "😀", "x"]
    for _ in range(60):
        line = draw.choice(lines)
        begin = draw.randrange(len(line))
        yield line[begin:begin + draw.randint(1, 60)]
    for _ in range(60):
        yield "".join(draw.choice(parts) for _ in range(draw.randint(1, 12)))
    for _ in range(20):
        yield "".join(chr(draw.choice([draw.randrange(32, 127), draw.randrange(0xA0, 0x500)])) for _ in range(draw.randint(1, 16)))
    for part in ("a", " ", "the", "stone "):
        yield part * 50


def main():
    text = (HERE / "text.txt").read_text(encoding="utf-8")
    if sentencepiece.__version__ == "0.1.97":
        (HERE / "trained.model").write_bytes(train(text, 520, **CAIRN).SerializeToString())
        return
    models = {
        "trained": pb.ModelProto.FromString((HERE / "trained.model").read_bytes()),
        "bpe": with_unused(train(text, 500, model_type="bpe", **OTHER)),
        "unigram": with_unused(train(text, 500, model_type="unigram", **OTHER)),
    }
    control = with_control(train(text, 500, model_type="bpe", normalization_rule_name="identity", num_threads=1,
                                 user_defined_symbols=CONTROL_DEFINED))
    draw = random.Random(1)
    rows = []
    for name, model in models.items():
        (HERE / f"{name}.model").write_bytes(model.SerializeToString())
        processor = plain(model)
        for string in strings(text, draw):
            tokens = " ".join(map(str, processor.encode(string)))
            rows.append(f"{name} {string.encode().hex()} {tokens}\n")
    (HERE / "control.model").write_bytes(control.SerializeToString())
    processor = plain(control)
    for string in control_strings(draw):
        rows.append(f"control {string.encode().hex()} {' '.join(map(str, processor.encode(string)))}\n")
    (HERE / "cases.txt").write_text("".join(rows))


main()
