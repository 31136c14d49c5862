"""Tokenizers as the families of published models have them, with vocabularies trained here: no file of a model is needed.

Imported by compare.py and make_golden.py, which run with a Python that has PyPI's tokenizers and sentencepiece."""
import collections
import io
import json
import random
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
CAPITALS, SMALL = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES
QWEN2 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES
QWEN35 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + SPACES
O200K = (f"{CAPITALS}*{SMALL}+{CONTRACTIONS}?|{CAPITALS}+{SMALL}*{CONTRACTIONS}?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES)
TEKKEN = f"{CAPITALS}*{SMALL}+|{CAPITALS}+{SMALL}*" + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES


def byte_pairs(vocabulary, split, special=("<|endoftext|>",), **more):
    """A byte-level BPE that cuts text with a regular expression (None: GPT-2's)."""
    made = Tokenizer(models.BPE(**more))
    if split is None:
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        made.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(split), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=list(special), show_progress=False)
    return made, trainer


def gpt2(vocabulary):
    made, trainer = byte_pairs(vocabulary, None)
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    return made, trainer


def roberta(vocabulary):
    made, trainer = byte_pairs(vocabulary, None, ("<s>", "<pad>", "</s>", "<unk>", "<mask>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=True)
    made.after = lambda: made.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    return made, trainer


def llama3(vocabulary):
    made, trainer = byte_pairs(vocabulary, LLAMA3, ("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"), ignore_merges=True)
    made.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
                                      special_tokens=[("<|begin_of_text|>", 0)])])
    return made, trainer


def qwen(split):
    def make(vocabulary):
        made, trainer = byte_pairs(vocabulary, split, ("<|endoftext|>", "<|im_start|>", "<|im_end|>"))
        made.normalizer = normalizers.NFC()
        made.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False)
        made.after = lambda: made.add_tokens([AddedToken("<tool_call>", normalized=False), AddedToken("<think>", normalized=True)])
        return made, trainer
    return make


def plain_split(split):
    return lambda vocabulary: byte_pairs(vocabulary, split, ("<s>", "</s>", "<|start|>"), ignore_merges=True)


def smollm(vocabulary):
    made, trainer = byte_pairs(vocabulary, None)
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                  pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    return made, trainer


def neox(vocabulary):
    made, trainer = byte_pairs(vocabulary, None, ("<|endoftext|>", "<|padding|>"))
    made.normalizer = normalizers.NFC()
    made.post_processor = processors.ByteLevel(trim_offsets=True)
    made.after = lambda: made.add_tokens([AddedToken(" " * n, normalized=True) for n in range(2, 9)])
    return made, trainer


def byte_normalizer(vocabulary):
    made, trainer = byte_pairs(vocabulary, None)
    made.normalizer = normalizers.ByteLevel()
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"Ġ?[^Ġ]+"), "isolated")
    made.after = lambda: made.add_tokens([AddedToken("na\u00efve", normalized=True)])
    return made, trainer


def bert(**flags):
    def make(vocabulary):
        made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer(**flags)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        made.decoder = decoders.WordPiece(prefix="##")
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                            special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
        return made, trainers.WordPieceTrainer(vocab_size=vocabulary, special_tokens=special, show_progress=False)
    return make


def llama2(vocabulary):
    made = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                      decoders.Strip(" ", 1, 0)])
    made.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    made.while_training = pre_tokenizers.Metaspace(prepend_scheme="never")
    return made, trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=special, limit_alphabet=400, show_progress=False)


def gemma(vocabulary):
    made, trainer = llama2(vocabulary)
    made.normalizer = normalizers.Replace(" ", "▁")
    made.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    made.after = lambda: made.add_tokens([AddedToken("\n" * n, normalized=False) for n in range(1, 5)] +
                                         [AddedToken("▁" * n, normalized=False) for n in range(2, 6)])
    return made, trainer


def unigram(normalizer, scheme, byte_fallback=False):
    def make(vocabulary):
        made = Tokenizer(models.Unigram())
        made.normalizer = normalizer()
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
        made.decoder = decoders.Metaspace(prepend_scheme=scheme)
        made.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
        special = ["<pad>", "</s>", "<unk>"] + ([f"<0x{byte:02X}>" for byte in range(256)] if byte_fallback else [])
        made.byte_fallback = byte_fallback
        return made, trainers.UnigramTrainer(vocab_size=vocabulary, special_tokens=special, unk_token="<unk>", show_progress=False)
    return make


RULES = [("ﬁ", "fi"), ("e\u0301", "é"), ("a\u0308", "ä"), ("\u00a0", " "), ("\u3000", " "), ("\u200b", ""), ("½", "1⁄2"), ("A", "a"), ("B", "b"),
         ("ABC", "x"), ("…", "..."), ("\t", " "), ("“", '"'), ("①", "1"), ("가", "\u1100\u1161"), ("\u0301", ""), ("☃", "snow")]


def train_sentencepiece(texts, **options):
    """A sentencepiece model. rules: pairs of texts that its normaliser has."""
    import sentencepiece
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        if "rules" in options:
            code = lambda text: " ".join(f"{ord(c):X}" for c in text)  # noqa: E731
            rules.write("".join(f"{code(before)}\t{code(after)}\n" for before, after in options.pop("rules")))
            rules.flush()
            options["normalization_rule_tsv"] = rules.name
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text for text in texts if "\0" not in text), model_writer=model, character_coverage=0.98,
            minloglevel=2, hard_vocab_limit=False, num_threads=1, **options)
    return model.getvalue()


def fields(message):
    """The fields of a protobuf message that hold bytes: (number, bytes)."""
    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    at, found = 0, []
    while at < len(message):
        key = number()
        if key & 7 == 2:
            size = number()
            found.append((key >> 3, message[at:at + size]))
            at += size
        elif key & 7 == 0:
            number()
        else:
            at += 4 if key & 7 == 5 else 8
    return found


def charsmap(**rules):
    """The precompiled_charsmap of a sentencepiece model with these rules."""
    model = train_sentencepiece(["the way back"] * 20, vocab_size=20, **rules)
    normalizer = next(data for number, data in fields(model) if number == 3)
    return next(data for number, data in fields(normalizer) if number == 2)


def xlmr(**rules):
    return lambda: normalizers.Sequence([normalizers.Precompiled(charsmap(**rules)), normalizers.Replace(Regex(" {2,}"), " ")])


def albert():
    return normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(),
                                 normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Replace(Regex(" {2,}"), " ")])


def clip(vocabulary):
    made = Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>", continuing_subword_prefix=""))
    made.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.BPEDecoder("</w>")
    made.post_processor = processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0), trim_offsets=False,
                                                       add_prefix_space=False)
    return made, trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=["<|startoftext|>", "<|endoftext|>"],
                                     end_of_word_suffix="</w>", initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                     show_progress=False)


def wordlevel(vocabulary):
    made = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    made.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip()])
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(),
                                                  pre_tokenizers.Punctuation(behavior="contiguous")])
    made.after = lambda: made.add_tokens([AddedToken("cairn", single_word=True), AddedToken("stone", single_word=True, rstrip=True)])
    return made, trainers.WordLevelTrainer(vocab_size=vocabulary, special_tokens=["[UNK]"], show_progress=False)


def odd_splits(vocabulary):
    made, trainer = byte_pairs(vocabulary, None)
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\d+"), "merged_with_previous"), pre_tokenizers.Split("-", "merged_with_next"),
        pre_tokenizers.Split(Regex(r"[.,]"), "contiguous"), pre_tokenizers.WhitespaceSplit(),
        pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)])
    made.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Strip(left=True, right=False)])
    return made, trainer


FAMILIES = {
    "gpt2": gpt2, "roberta": roberta, "llama3": llama3, "qwen2": qwen(QWEN2), "qwen35": qwen(QWEN35),
    "o200k": plain_split(O200K), "mistral": plain_split(TEKKEN), "smollm": smollm, "neox": neox, "byte_normalizer": byte_normalizer,
    "bert_uncased": bert(), "bert_cased": bert(lowercase=False), "llama2": llama2, "gemma": gemma,
    "t5": unigram(lambda: normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), "▁")]), "always"),
    "albert": unigram(albert, "always"), "first": unigram(lambda: normalizers.NFKC(), "first", True),
    "xlmr": unigram(xlmr(rules=RULES), "always"), "clip": clip, "wordlevel": wordlevel, "odd_splits": odd_splits,
}

ALPHABETS = ["abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "àâäéèêëîïôöùûüçñßøåæœ", "абвгдежзийклмнопрстуфхцчшщъыьэюя",
             "αβγδεζηθικλμνξοπρστυφχψω", "אבגדהוזחטיכלמנסעפצקרשת", "ابتثجحخدذرزسشصضطظعغفقكلمنهوي", "अआइईउऊएऐओऔकखगघचछजझटठडढणतथदधन",
             "กขคงจฉชซญฎฏฐฑฒณดตถทธน", "あいうえおかきくけこアイウエオカキクケコ", "日本語文字漢中国人大学時間", "가나다라마바사아자차카타파하한국어",
             "0123456789", "٠١٢٣٤٥٦٧٨٩०१२३", "①②½¾ⅣⅫ²³", "𝐀𝐁𝒞𝔻ﬁﬂﬃſKÅ", "ҐґЄєІі", "ⴰⴱⵛ", "ᏣᎳᎩ"]
MARKS = "\u0301\u0300\u0308\u0327\u0323\u0331\u05b0\u064b\u0651\u093c\u094d\u0e31\u3099\u20e3\ufe0f\u200d\u0334\u0345\u1161\u11a8"
SPACES_OF_ALL_KINDS = " \t\n\r\x0b\x0c\x85\xa0\u1680\u2000\u2003\u2009\u200a\u2028\u2029\u202f\u205f\u3000\u200b\ufeff\u2581"
SYMBOLS = ".,;:!?'\"()[]{}<>/\\|@#$%^&*-_=+~`«»„“”‘’…—–·•°©®™€£¥§¶†‡、。「」"
EMOJI = ["😀", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "❤️", "1️⃣", "🏴\U000e0067\U000e007f", "☃", "✈️"]
ENGLISH = ("the and you that it's don't I'll they've we're He'd I'M CAN'T stone cairn marks way back over under again Naïve café "
           "hello world <s> </s> <|endoftext|> <mask> [MASK] [SEP] <|im_start|> <think> <tool_call> <unk> naïve").split()


def word(rng):
    kind = rng.random()
    if kind < 0.35:
        return rng.choice(ENGLISH)
    if kind < 0.75:
        alphabet = rng.choice(ALPHABETS)
        return "".join(rng.choice(alphabet) + (rng.choice(MARKS) if rng.random() < 0.08 else "")
                       for _ in range(min(40, int(rng.expovariate(0.2)) + 1)))
    if kind < 0.85:
        return "".join(rng.choice(SYMBOLS) for _ in range(rng.choice([1, 1, 1, 2, 3, 8])))
    if kind < 0.93:
        return rng.choice(EMOJI)
    if kind < 0.97:
        return "".join(chr(code) for code in (rng.randrange(0x20, 0x3000) for _ in range(rng.randrange(1, 6))))
    return "".join(chr(code if not 0xD800 <= code < 0xE000 else 0xFFFD)
                   for code in (rng.choice([rng.randrange(0x11FFF), rng.randrange(0x1D000, 0x1FFFF), rng.randrange(0x110000)])
                                for _ in range(rng.randrange(1, 4))))


def line(rng):
    """A text of mixed scripts, as bytes; one of seven is broken UTF-8."""
    out = ""
    for _ in range(min(60, int(rng.expovariate(0.12)))):
        if rng.random() < 0.85:
            out += " " if rng.random() < 0.8 else rng.choice(SPACES_OF_ALL_KINDS) * rng.choice([1, 1, 1, 2, 3])
        out += word(rng)
    if rng.random() < 0.3:
        out = rng.choice(["  ", " ", "\n", "\t", ""]) + out + rng.choice(["  ", " ", "\n", " \n\n ", ""])
    text = bytearray(out.encode("utf-8", "replace"))
    if rng.random() < 0.14 and text:
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(text) or 1)
            if rng.random() < 0.5:
                text[at:at + 1] = bytes([rng.choice([0x80, 0xBF, 0xC0, 0xC3, 0xE2, 0xED, 0xF0, 0xF4, 0xF8, 0xFF, rng.randrange(256)])])
            else:
                del text[at:at + rng.randrange(1, 3)]
    return bytes(text)


def corpus(shakespeare, seed=1, lines=3000):
    rng = random.Random(seed)
    return shakespeare.split("\n")[:12000] + [line(rng).decode("utf-8", "replace") for _ in range(lines)]


def build(name, texts, vocabulary):
    """The tokenizer.json of a family, as text."""
    made, trainer = FAMILIES[name](vocabulary)
    wanted = made.pre_tokenizer
    made.pre_tokenizer = getattr(made, "while_training", wanted)
    if isinstance(trainer, trainers.UnigramTrainer):  # it wants a place for every character
        frequent = {c for c, _ in collections.Counter("".join(texts)).most_common(vocabulary // 5)}
        texts = ["".join(c for c in text if c in frequent) for text in texts]
    made.train_from_iterator(texts, trainer)
    made.pre_tokenizer = wanted
    getattr(made, "after", lambda: None)()
    content = json.loads(made.to_str())
    if getattr(made, "byte_fallback", False):
        content["model"]["byte_fallback"] = True
    return json.dumps(content, ensure_ascii=False)
