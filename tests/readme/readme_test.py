#!/usr/bin/env python3
"""What the READMEs print, run as they say: recipes, Lua and C programs, and every `cairn` command in order.

  readme_test.py SOURCE CAIRN LIBRARY_FOLDER

Long commands get fewer steps, but under CAIRN_TEST=long they run as printed.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import campaign  # noqa: E402  pylint: disable=wrong-import-position

READMES = ("README.md", "scripts/README.md", "bindings/lua/README.md")
# Later options count, so these shorten what is printed.
SHORTER = {"train": ["--steps", "2"], "verify": ["--steps", "2", "--budgets", "1"], "profile": ["--steps", "2"],
           "generate": ["--tokens", "4"]}


def blocks(text, language):
    """(file name, body) of the fenced blocks whose first line is a comment that names a file."""
    for body in re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M):
        name = re.match(r"(?:--|/\*) (\w+\.\w+):", body)
        if name:
            yield name.group(1), body


def commands(text):
    """The words of each indented line that calls the command `cairn`."""
    for line in re.findall(r"^    (cairn .*)$", text, re.M):
        yield shlex.split(line, comments=True)[1:]


def run(*command, cwd):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def check_recipe(name, body, cairn, folder):
    printed = re.search(r"`cairn train \S+ ([^`]*)`", body)
    settings = shlex.split(printed.group(1)) if printed else []
    report = json.loads(run(cairn, "train", name, *settings, "--out", name + ".out", "--json", "--quiet", cwd=folder))
    assert report["peak_bytes"] == report["planned_peak_bytes"], report
    assert report["loss"][-1] < 0.6 * report["loss"][0], report["loss"][::20]


def check_program(library, include, folder):
    run("cc", "-std=c11", "-Wall", "-Werror", "xor.c", "-I", include, "-L", library, "-lcairn", f"-Wl,-rpath,{library}",
        "-o", "xor", cwd=folder)
    answers = re.findall(r"(\d) xor (\d) = (-?\d+\.\d+)", run(folder / "xor", cwd=folder))
    assert len(answers) == 4, answers
    for a, b, y in answers:
        assert abs(float(y) - (int(a) ^ int(b))) < 0.2, answers


def main():
    source, cairn, library = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "book.txt").write_text("Once upon a time a pile of stones marked the way back. " * 400)
        for readme in READMES:
            text = (source / readme).read_text(encoding="utf-8")
            programs = [*blocks(text, "lua"), *blocks(text, "c")]
            for name, body in programs:
                (folder / name).write_text(body, encoding="utf-8")
                if name.endswith(".c"):
                    check_program(library, source / "capi/include", folder)
                elif "dataset =" in body:
                    check_recipe(name, body, cairn, folder)
                else:
                    run(cairn, "lua", name, cwd=folder)
            printed = list(commands(text))
            for words in printed:
                shorter = [] if campaign.LONG or "--steps" in words else SHORTER.get(words[0], [])
                run(cairn, *words, *shorter, "--quiet", cwd=folder)
            count += len(programs) + len(printed)
    assert count >= 13, count
    print(f"{count} programs and commands of the READMEs do what they say")


main()
