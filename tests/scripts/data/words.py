"""Tiny decoders with a tokenizer of words for the tests beside this file: wN is token N, and <e>, token 2, ends a text."""
import json
import os
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case

DECODERS = ROOT / "tests/golden/data/decoders"
LAST = 2
SPECIAL = {1: "<s>", LAST: "<e>", 3: "<u>", 4: "<a>", 5: "<t>"}
TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"},
    "post_processor": None, "decoder": None,
    "added_tokens": [{"id": number, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                      "special": True} for number, word in SPECIAL.items()],
    "model": {"type": "WordLevel", "unk_token": "w0", "vocab": {SPECIAL.get(i, f"w{i}"): i for i in range(40)}},
}


def words(tokens):
    return "".join(f"{SPECIAL.get(token, f'w{token}')} " for token in tokens)


class Words(Case):
    def model(self, family, template=None):
        """A directory of a model of tests/golden/data/decoders with the tokenizer of words."""
        folder = self.folder / family
        folder.mkdir(exist_ok=True)
        for name in ("config.json", "model.safetensors"):
            if not (folder / name).exists():
                os.symlink(DECODERS / family / name, folder / name)
        (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
        (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<e>", "bos_token": {"content": "<s>"}}))
        if template:
            (folder / "chat_template.jinja").write_text(template)
        return folder

    def rows(self, rows, name="rows.jsonl"):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return path

    def json(self, *arguments, **options):
        done = self.cairn(*arguments, "--json", "--quiet", "--threads", 1, **options)
        return json.loads(done.stdout)

    def templated(self, *arguments):
        """What cairn template prints of each row."""
        return [json.loads(line) for line in self.cairn("template", *arguments, "--json").stdout.splitlines()]
