#!/usr/bin/env python3
"""The README's Lua recipe and C program, taken out of it and run as its text says.

  readme_test.py README CAIRN LIBRARY_FOLDER INCLUDE_FOLDER
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile


def block(text, language, name):
    """The fenced block whose first line names the file."""
    for body in re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M):
        if name in body.splitlines()[0]:
            return body
    sys.exit(f"README has no {language} block that begins with a comment naming {name}")


def run(*command, cwd):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def main():
    readme, cairn, library, include = map(pathlib.Path, sys.argv[1:])
    text = readme.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "spell.lua").write_text(block(text, "lua", "spell.lua"), encoding="utf-8")
        report = json.loads(run(cairn, "train", "spell.lua", "--out", "run", "--json", "--quiet", cwd=folder))
        assert report["peak_bytes"] == report["planned_peak_bytes"], report
        assert report["loss"][-1] < 0.5 * report["loss"][0], report["loss"][::20]
        (folder / "xor.c").write_text(block(text, "c", "xor.c"), encoding="utf-8")
        run("cc", "-std=c11", "-Wall", "-Werror", "xor.c", "-I", include, "-L", library, "-lcairn", f"-Wl,-rpath,{library}", "-o",
            "xor", cwd=folder)
        answers = re.findall(r"(\d) xor (\d) = (-?\d+\.\d+)", run(folder / "xor", cwd=folder))
        assert len(answers) == 4, answers
        for a, b, y in answers:
            assert abs(float(y) - (int(a) ^ int(b))) < 0.2, answers
    print("the README's recipe and program do what it says")


main()
