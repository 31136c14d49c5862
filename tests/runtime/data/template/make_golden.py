#!/usr/bin/env python3
"""Writes golden/: what jinja2 makes of the templates there, and of random ones.

    PYTHON_WITH_JINJA2 tests/runtime/data/template/make_golden.py

values.json: what is given to templates, a JSON text each. NAME.json: what NAME.jinja makes of each of them; null: an error.
random.json: values, and a template and its text for each."""
import json
import pathlib
import random

import conversations
import judge
import random_templates

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
BESIDE = ("alone", "all")
RANDOM = 400


def write(name, rows):
    (GOLDEN / name).write_text("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")


def text_of(source, values):
    kind, text = judge.rendered(source, values)
    return text if kind == "text" else None


def main():
    given = [values for name, values in conversations.cases() if name.split("/")[1] in BESIDE]
    write("values.json", [json.dumps(values, ensure_ascii=False) for values in given])
    for path in sorted(GOLDEN.glob("*.jinja")):
        texts = [text_of(path.read_text(), values) for values in given]
        if not any(texts):
            raise SystemExit(f"{path.name} makes no text")
        write(path.stem + ".json", texts)
    rows, number = [], 0
    while len(rows) < RANDOM:
        source = random_templates.Maker(random.Random(f"golden/{number}")).template()
        text, number = text_of(source, random_templates.VALUES), number + 1
        if text is not None and " object at 0x" not in text and "range(" not in text and len(source) < 300:
            rows.append([source, text])
    write("random.json", [json.dumps(random_templates.VALUES, ensure_ascii=False), *rows])


if __name__ == "__main__":
    main()
