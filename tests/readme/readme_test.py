#!/usr/bin/env python3
"""What the READMEs and the pages of capi/docs print, run as they say: recipes, Lua and C programs, and every `cairn` command in
order, each page in a folder of its own.

  readme_test.py SOURCE CAIRN LIBRARY_FOLDER [PAGE ...]

A line `cairn ...  # exit code N` must end so. A comment <!-- same parameters --> behind commands says that the last two runs
printed the same digest of their parameters; <!-- numbers of the last command, within 10 % --> that the block of JSON behind it is
part of what that command printed. Long commands get fewer steps, but under CAIRN_TEST=long they run as printed.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import campaign  # noqa: E402  pylint: disable=wrong-import-position

READMES = ("README.md", "scripts/README.md", "bindings/lua/README.md")
# Later options count, so these shorten what is printed without a number of steps.
SHORTER = {"train": ["--steps", "2"], "verify": ["--steps", "2", "--budgets", "1"], "profile": ["--steps", "2"],
           "generate": ["--tokens", "4"]}
FEWER = 50  # of so many printed steps, one is taken


def pages(source):
    made = {"functions.md", "commands.md", "options.md", "json.md", "nn.md", "ops.md"}  # by generators, and compared by tests of their own
    docs = sorted(path for path in (source / "capi/docs").rglob("*.md") if path.name not in made)
    return [source / readme for readme in READMES] + docs


def blocks(text, language):
    """(file name, body) of the fenced blocks whose first line is a comment that names a file."""
    for body in re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M):
        name = re.match(r"(?:--|/\*) (\w+\.\w+):", body)
        if name:
            yield name.group(1), body


def lines_of(text):
    """What is to be done, in order: the lines of indented blocks that begin with `cairn` or `cat`, and remarks about them."""
    return re.findall(r"^    ((?:cairn|cat) [^\n]*)$|^<!-- (same parameters) -->$|"
                      r"^<!-- numbers of the last command, within 10 % -->\n```json\n(.*?)^```$", text, re.M | re.S)


def apart(printed, said, path=""):
    """What the page says otherwise than the command: numbers that differ by more than a tenth."""
    if isinstance(said, dict):
        return [each for key in said for each in apart(printed[key], said[key], f"{path}.{key}")]
    return [] if abs(printed - said) <= 0.1 * abs(said) else [f"{path}: {printed}, and not {said}"]


def shorter(words):
    if campaign.LONG:
        return words
    if "--predicted" in words or any(word.startswith("schedule=") for word in words):
        return words  # runs nothing; ends where the schedule says
    if "--steps" not in words:
        return [*words, *SHORTER.get(words[0], [])]
    at = words.index("--steps") + 1
    steps = int(words[at])
    return [*words[:at], str(steps if steps < 100 else steps // FEWER), *words[at + 1:]]


class Folder:
    """Where the commands of a page run."""

    def __init__(self, source, cairn, path):
        self.cairn, self.path, self.digests, self.printed = cairn, path, [], ""
        (path / "book.txt").write_text("Once upon a time a pile of stones marked the way back. " * 400)
        for name in ("README.md", "SECURITY.md", "capi"):
            (path / name).symlink_to(source / name)
        self.environment = dict(os.environ, XDG_CACHE_HOME=str(path / "cache"))

    def run(self, *command, code=0, brief=True):
        environment = dict(self.environment)
        if not brief:
            environment.pop("LD_LIBRARY_PATH", None)
        done = subprocess.run([str(word) for word in command], cwd=self.path, capture_output=True, text=True, check=False,
                              env=environment)
        if done.returncode != code:
            sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}")
        if "DIFFERENT" in done.stdout:
            sys.exit(f"{' '.join(map(str, command))}\nplanned and measured bytes differ\n{done.stdout}")
        self.digests += re.findall(r"^parameters +(\w{32})$", done.stdout, re.M)
        return done.stdout

    def do(self, line):
        if line.startswith("cat "):
            self.run("sh", "-c", line)
            return
        code = re.search(r"# exit code (\d+)$", line)
        words = shlex.split(line, comments=True)[1:]
        # What is compared with the page is searched for as the product does it.
        self.printed = self.run(self.cairn, *shorter(words), "--quiet", code=int(code[1]) if code else 0,
                                brief="--json" not in words)

    def check_numbers(self, said):
        wrong = apart(json.loads(self.printed), json.loads(said))
        if wrong:
            sys.exit("numbers of a page are old:\n" + "\n".join(wrong))

    def check_same(self):
        before, after = self.digests[-2:]
        if before != after:
            sys.exit(f"these runs are said to have the same parameters: {before} and {after}")


def check_recipe(name, body, folder):
    printed = re.search(r"`cairn train \S+ ([^`]*)`", body)
    settings = shlex.split(printed.group(1)) if printed else []
    report = json.loads(folder.run(folder.cairn, "train", name, *settings, "--out", name + ".out", "--json", "--quiet"))
    assert report["peak_bytes"] == report["planned_peak_bytes"], report
    assert report["loss"][-1] < 0.6 * report["loss"][0], report["loss"][::20]


def check_program(name, library, include, folder):
    folder.run("cc", "-std=c11", "-Wall", "-Werror", name, "-I", include, "-L", library, "-lcairn", f"-Wl,-rpath,{library}",
               "-lm", "-o", "program")
    out = folder.run(folder.path / "program")
    if name == "xor.c":
        answers = re.findall(r"(\d) xor (\d) = (-?\d+\.\d+)", out)
        assert len(answers) == 4, out
        for a, b, y in answers:
            assert abs(float(y) - (int(a) ^ int(b))) < 0.2, answers


def check_page(page, source, cairn, library, folder):
    """Returns how many programs and commands were run."""
    text = page.read_text(encoding="utf-8")
    todo = lines_of(text)
    trained = {word for line, _, _ in todo for word in line.split()}
    programs = [*blocks(text, "lua"), *blocks(text, "c")]
    for name, body in programs:
        (folder.path / name).write_text(body, encoding="utf-8")
        if name.endswith(".c"):
            check_program(name, library, source / "capi/include", folder)
        elif name in trained:
            continue  # by the page's own commands
        elif "dataset =" in body:
            check_recipe(name, body, folder)
        else:
            folder.run(cairn, "lua", name)
    for line, same, numbers in todo:
        if same:
            folder.check_same()
        elif numbers:
            folder.check_numbers(numbers)
        else:
            folder.do(line)
    return len(programs) + len(todo)


def main():
    source, cairn, library = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    wanted = [pathlib.Path(word).resolve() for word in sys.argv[4:]] or pages(source)
    count = 0
    for page in wanted:
        with tempfile.TemporaryDirectory() as path:
            count += check_page(page, source, cairn, library, Folder(source, cairn, pathlib.Path(path)))
    assert sys.argv[4:] or count >= 60, count
    print(f"{count} programs and commands do what the pages say")


main()
