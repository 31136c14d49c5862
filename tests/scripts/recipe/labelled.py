"""Texts with labels for the tests beside this file: a word says which of two labels a text has."""
import csv
import json
import random

WORDS = {"pos": ["great", "lovely", "wonderful", "excellent"], "neg": ["awful", "terrible", "boring", "poor"]}
OTHERS = "the film was and a very quite story with actors scene music of it I thought".split()


def texts(count, seed=1, share=0.3):
    """(text, label) pairs, of which `share` are positive."""
    draw, made = random.Random(seed), []
    for _ in range(count):
        label = "pos" if draw.random() < share else "neg"
        words = draw.choices(OTHERS, k=draw.randint(1, 8))
        words.insert(draw.randint(0, len(words)), draw.choice(WORDS[label]))
        made.append((" ".join(words), label))
    return made


def write(path, pairs):
    """As the ending of the path says."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        if path.suffix == ".jsonl":
            file.writelines(json.dumps({"text": text, "label": label}) + "\n" for text, label in pairs)
        elif path.suffix == ".tsv":
            file.writelines(f"{text}\t{label}\n" for text, label in [("text", "label"), *pairs])
        else:
            csv.writer(file).writerows([("label", "text"), *((label, text) for text, label in pairs)])
    return path
