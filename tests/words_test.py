#!/usr/bin/env python3
"""What a person reads from outside says things in the words of the field: no text and no name of the public ones uses a word of the list
below. The list only grows. Read are the public headers, the pages, the READMEs, what the command and the library print (string literals,
tables), and the names of symbols, fields, options and JSON keys."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A pattern of words, and what to say in their place. Words with an ordinary sense in English are kept in that sense by the pattern.
WORDS = {
    r"homes?(?! director)": "where it is stored; the tier that holds it",
    r"stay(?:s|ed|ing)?": "remains; is unchanged; is resident; is kept",
    r"(?<!right )(?<!ties )away(?! from zero)": "offloaded; not on the device",
    r"beside": "besides; next to; while ... runs",
    r"behind": "after; following",
    r"wholes?(?! numbers?| = | =,)(?<!as a whole)": "full; complete; all of it; in one piece",
    r"(?:made|makes?|making) again": "recomputed; recompute",
    r"(?:comes?|came|coming) down": "is fetched to the device",
    r"cliffs?": "a sudden rise of the step time",
    r"trials?": "an attempt; a candidate",
    r"outlooks?": "an estimate; a prediction",
    r"rungs?": "a level; a candidate",
    r"(?:sends?|sent|sending) around": "offload and fetch back",
    r"in the place of": "instead of",
    r"anew": "again",
    r"in (?:its|their) turn": "one after the other",
    r"as it lies": "as it is stored",
    r"dear(?:er|est)?": "expensive",
    r"knows? of": "knows; lists",
    r"all the same": "anyway; nevertheless",
}

PATTERN = re.compile(r"(?<![\w$/.`'\"-])(?:" + "|".join(f"(?:{word})(?!\w)" for word in WORDS) + ")", re.IGNORECASE)
# In a name the words stand between "_", "-", "." or capitals.
NAMES = {"home", "homes", "stay", "stays", "away", "beside", "behind", "whole", "cliff", "cliffs", "trial", "trials", "outlook", "rung", "rungs"}

# Names that are promises already, with the reason why each is kept.
PROMISES = {
    "whole": "the key of a recipe's option that takes whole numbers only (scripts/README.md)",
    "XDG_CACHE_HOME": "a variable of the system's",
}

PAGES = ["README.md", "CHANGELOG.md", "SECURITY.md", "capi/docs/**/*.md", "*/**/README.md"]
HEADERS = ["capi/include/**/*.h*"]
# Sources whose comments are pages of their own: godoc, rustdoc, the examples.
COMMENTED = ["bindings/go/*.go", "bindings/go/examples/**/*.go", "bindings/rust/cairn/src/**/*.rs", "bindings/rust/cairn/examples/*.rs",
             "capi/examples/*"]
# Files whose string literals are shown: help texts, manual pages, errors, descriptions in tables.
SHOWN = ["scripts/cli/**/*.lua", "scripts/cli/*.c", "scripts/pages/*.lua", "scripts/recipes/**/*.lua", "bindings/lua/cairn/**/*.lua",
         "capi/src/*", "runtime/**/*.cc", "runtime/**/*.h", "runtime/**/*.def", "kernels/**/*.cc", "kernels/**/*.def"]
NAMED = ["capi/abi/*.txt", "capi/docs/reference/json.md", "capi/docs/reference/options.md", "capi/docs/reference/commands.md"]

# READMEs that are rewritten at present and not read yet.
LATER = []

LITERAL = re.compile(r'''R"\w*\((?P<raw>.*?)\)\w*"|"(?P<plain>(?:[^"\\\n]|\\.)*)"|\[(=*)\[(?P<long>.*?)\]\3\]''', re.DOTALL)
COMMENTS = {
    ".lua": re.compile(r"""(\[\[.*?\]\]|"(?:[^"\\\n]|\\.)*")|--\[\[.*?\]\]|--[^\n]*""", re.DOTALL),
    "": re.compile(r"""(R"\w*\(.*?\)\w*"|"(?:[^"\\\n]|\\.)*")|'"'|//[^\n]*|/\*.*?\*/|^[ \t]*#[ \t]*include[^\n]*""", re.DOTALL | re.MULTILINE),
}
NAME = re.compile(r"`([^`\n]+)`|^ *(\w+)(?= at |$|=| size )", re.MULTILINE)


def files(patterns):
    found = {path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()}
    hidden = ("build/", "bench/results/", "bindings/rust/target/", *LATER)
    return sorted(path for path in found if not path.relative_to(ROOT).as_posix().startswith(hidden))


def shown(path):
    """The string literals of a source that hold a blank, so words and no name, at their lines; the rest of it is blank."""
    text = path.read_text(encoding="utf-8")
    comments = COMMENTS.get(path.suffix, COMMENTS[""])
    text = comments.sub(lambda found: found[1] or "\n" * found[0].count("\n"), text)
    lines = [""] * (text.count("\n") + 1)
    for found in LITERAL.finditer(text):
        words = found["raw"] or found["plain"] or found["long"] or ""
        for number, line in enumerate(words.split("\n") if " " in words else [], text.count("\n", 0, found.start())):
            lines[number] += " | " + line
    return "\n".join(lines)


def commented(path):
    """A source's comments, at their lines; nothing of a test."""
    text = "" if path.name.endswith("_test.go") else path.read_text(encoding="utf-8")
    return "\n".join(found[0] if (found := re.search(r"//.*|/\*.*|^ \*.*", line)) else "" for line in text.split("\n"))


def places(text):
    """Each word of the list, with its line. A phrase may be broken over two lines, of which the second may begin a comment's line."""
    lines = text.split("\n") + [""]
    for number, (line, following) in enumerate(zip(lines, lines[1:]), 1):
        joined = line + " " + following.lstrip(" \t*/-")
        yield from ((number, found[0]) for found in PATTERN.finditer(joined) if found.start() < len(line))


def remedy(word):
    return next(say for pattern, say in WORDS.items() if re.search(pattern, word, re.IGNORECASE))


def names(path):
    for found in NAME.finditer(path.read_text(encoding="utf-8")):
        for name in re.findall(r"[\w-]+", found[1] or found[2]):
            words = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
            yield from ((name, word) for word in words if word in NAMES and name not in PROMISES)


def complaints():
    read = [(path, path.read_text(encoding="utf-8")) for path in files(PAGES + HEADERS)]
    read += [(path, shown(path)) for path in files(SHOWN)] + [(path, commented(path)) for path in files(COMMENTED)]
    for path, text in read:
        for line, word in places(text):
            yield f"{path.relative_to(ROOT)}:{line}: '{word}'; say: {remedy(word)}"
    for path in files(NAMED):
        for name, word in names(path):
            yield f"{path.relative_to(ROOT)}: the name '{name}' uses '{word}'"
    if len(read) < 200:
        yield f"only {len(read)} files were read: the check looks in the wrong place"


def main():
    found = list(complaints())
    print("\n".join(found) or "public texts and names use the words of the field")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
