#!/usr/bin/env python3
"""Writes runtime/data/tokenizer/unicode/versions.def: where the Unicode versions in PyPI's tokenizers differ from utf8proc's.

    PYTHON_WITH_TOKENIZERS tests/runtime/data/tokenizer/make_versions.py

The library has several: Oniguruma's for expressions, Rust's for digits and small letters, Unicode 9's for normal forms and Unicode
8's for punctuation. Each is asked about every character.
"""
import ctypes
import pathlib
import unicodedata

from tokenizers import Regex
from tokenizers import normalizers
from tokenizers import pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parents[4] / "runtime/data/tokenizer/unicode/versions.def"
CATEGORIES = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split()
ASCII_PUNCTUATION = set(map(ord, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"))
CHUNK = 512
# Planes 0, 1 and 14, and the ends of the blocks of plane 2 and 3, which grow; the rest is unassigned or the same for ages.
CODES = [code for first, last in ((0, 0xD800), (0xE000, 0x20000), (0x2A6D0, 0x2A700), (0x2B720, 0x2B760), (0x2EBE0, 0x2EE80),
                                  (0x2F800, 0x2FA40), (0x31340, 0x31360), (0x323A0, 0x33500), (0xE0000, 0xE0200))
         for code in range(first, last)]

utf8proc = ctypes.CDLL("libutf8proc.so.2")
utf8proc.utf8proc_tolower.restype = ctypes.c_int32
category = {code: CATEGORIES[utf8proc.utf8proc_category(code)] for code in CODES}


def chunks():
    return (CODES[at:at + CHUNK] for at in range(0, len(CODES), CHUNK))


def removed_by(splitter):
    """The characters that a pre-tokenizer removes."""
    found = set()
    for part in chunks():
        kept = set()
        for _, (begin, end) in splitter.pre_tokenize_str("".join(map(chr, part))):
            kept.update(range(begin, end))
        found |= {code for at, code in enumerate(part) if at not in kept}
    return found


def matching(expression):
    return removed_by(pre_tokenizers.Split(Regex(expression), "removed"))


def between(splitter, before, after, length):
    """The characters that are in a piece of that length when they stand between two others."""
    found = set()
    for part in chunks():
        text = "".join(before + chr(code) + after for code in part)
        for _, (begin, end) in splitter.pre_tokenize_str(text):
            if end - begin == length and begin % 3 == (0 if length == 2 else 1):
                found.add(part[begin // 3])
    return found


def vanishing(normalizer):
    return {code for code in CODES if normalizer.normalize_str("a" + chr(code) + "b") == "ab"}


def of(*categories):
    return {code for code in CODES if category[code] in categories or category[code][0] in categories}


def bert(**flags):
    return normalizers.BertNormalizer(**{"clean_text": False, "handle_chinese_chars": False, "strip_accents": False,
                                         "lowercase": False, **flags})


# Name of the bit, what the library says, what utf8proc says.
PROPERTIES = [
    ("kLetter", matching(r"\p{L}"), of("L")),
    ("kNumber", matching(r"\p{N}"), of("N")),
    ("kMark", matching(r"\p{M}"), of("M")),
    ("kUpperLike", matching(r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"), of("Lu", "Lt", "Lm", "Lo", "M")),
    ("kLowerLike", matching(r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"), of("Ll", "Lm", "Lo", "M")),
    ("kSpace", matching(r"\s"), of("Z") | {9, 10, 11, 12, 13, 0x85}),
    ("kNumeric", between(pre_tokenizers.Digits(individual_digits=True), "a", "a", 1), of("N")),
    ("kWord", between(pre_tokenizers.Whitespace(), "a", " ", 2), of("L", "M", "Nd", "Nl", "Pc") | {0x200C, 0x200D}),
    ("kPunctuation", removed_by(pre_tokenizers.Punctuation(behavior="removed")), of("P") | ASCII_PUNCTUATION),
    ("kControl", vanishing(bert(clean_text=True)) - {0, 0xFFFD}, of("Cc", "Cf", "Co") - {0, 9, 10, 13}),
    ("kCombining", vanishing(normalizers.StripAccents()), of("M")),
    ("kNonspacing", vanishing(bert(strip_accents=True)), of("Mn")),
]


def ranges(codes):
    found = []
    for code in sorted(codes):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def normal(code, options):
    out, text = ctypes.c_void_p(), chr(code).encode()
    size = utf8proc.utf8proc_map(text, ctypes.c_ssize_t(len(text)), ctypes.byref(out), ctypes.c_int(options))
    return ctypes.string_at(out, size).decode()


def later():
    """What has a class or a decomposition in utf8proc and none in the library."""
    stable, compat, decompose = 2, 4, 16
    nfd, nfkd = normalizers.NFD(), normalizers.NFKD()
    found = {code for code in CODES if nfkd.normalize_str(chr(code)) != normal(code, stable | compat | decompose) or
             nfd.normalize_str(chr(code)) != normal(code, stable | decompose)}
    return found | {code for code in CODES if unicodedata.combining(chr(code)) > 1 and
                    nfd.normalize_str(f"a{chr(code)}\u0334") == f"a{chr(code)}\u0334"}


def filled(rows):
    line = ""
    for row in rows:
        if line and len(line) + 1 + len(row) > 120:
            yield line
            line = ""
        line += (" " if line else "") + row
    if line:
        yield line


def main():
    lines = ["// Where the Unicode versions in PyPI's tokenizers differ from utf8proc's. Made by",
             "// tests/runtime/data/tokenizer/make_versions.py."]
    for macro, pick in (("GAINED", lambda theirs, ours: theirs - ours), ("LOST", lambda theirs, ours: ours - theirs)):
        lines.append(f"#ifdef CAIRN_{macro}")
        for name, theirs, ours in PROPERTIES:
            lines += filled(f"CAIRN_{macro}(0x{first:X}, 0x{last:X}, {name})" for first, last in ranges(pick(theirs, ours)))
        lines += [f"#undef CAIRN_{macro}", "#endif"]
    lines.append("#ifdef CAIRN_AFTER_UNICODE_9")
    lines += filled(f"CAIRN_AFTER_UNICODE_9(0x{first:X}, 0x{last:X})" for first, last in ranges(later()))
    lines += ["#undef CAIRN_AFTER_UNICODE_9", "#endif", "#ifdef CAIRN_SMALL_LETTER"]
    lower = normalizers.Lowercase()
    small = [(code, lower.normalize_str(chr(code))) for code in CODES]
    lines += filled(f"CAIRN_SMALL_LETTER(0x{code:X}, 0x{ord(text):X})" for code, text in small
                    if len(text) == 1 and ord(text) != utf8proc.utf8proc_tolower(code))
    lines += ["#undef CAIRN_SMALL_LETTER", "#endif"]
    OUT.write_text("\n".join(lines) + "\n")


main()
