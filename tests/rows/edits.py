"""A made-up thing that is added to the sources by a list of edits: how many files have to change, and whether what
comes of it works. The edits are tried on copies; the sources stay as they are.

An edit is (file, anchor, text): the text is put behind the anchor, which stands in the file once; or, where the anchor is
None, it is a new file."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile
import unittest
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Edit(NamedTuple):
    file: str  # relative to the root
    anchor: str | None
    text: str


def files(edits):
    """The files that change, those of tests left out."""
    return sorted({edit.file for edit in edits if not edit.file.startswith("tests/")})


def apply(edits, to, read_from=ROOT):
    """Writes the files as they are after the edits below `to`."""
    changed = {}
    for edit in edits:
        if edit.anchor is None:
            changed[edit.file] = edit.text
            continue
        text = changed.get(edit.file) or (read_from / edit.file).read_text(encoding="utf-8")
        if text.count(edit.anchor) != 1:
            raise AssertionError(f"{edit.file} has the anchor {edit.anchor!r} {text.count(edit.anchor)} times, not "
                                 "once: the edit no longer fits the sources, bring it up to date")
        changed[edit.file] = text.replace(edit.anchor, edit.anchor + edit.text)
    for file, text in changed.items():
        path = to / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def copy_sources(to):
    """A whole copy of the sources, without what was built from them."""
    for part in ROOT.iterdir():
        if part.name in (".git", "build"):
            continue
        if part.is_dir():
            shutil.copytree(part, to / part.name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(part, to / part.name)


class Compiler:
    """Compiles sources as the build in `build` does, but without optimising, and with the files of `overlay` in place
    of those of the same name."""

    def __init__(self, build, overlay):
        self.overlay = overlay
        rows = json.loads((pathlib.Path(build) / "compile_commands.json").read_text(encoding="utf-8"))
        self.commands = {row["file"]: row for row in rows}

    def command(self, source, like=None):
        """Compiles `source` (relative to the root) with the flags of `like`, or its own."""
        row = self.commands[str(like or ROOT / source)]
        words, flags = shlex.split(row["command"]), []
        while words:
            word = words.pop(0)
            if word in ("-o", "-c", "-include"):
                words.pop(0)
            elif not word.startswith(("-O", "-g")) and word != "-Winvalid-pch":
                flags.append(word)
        path = self.overlay / source
        path = path if path.exists() else ROOT / source
        return [flags[0], f"-I{self.overlay}", *flags[1:], "-O0", "-x", "c++", str(path)]

    def run_all(self, commands):
        """Runs commands two at a time; the first that fails ends the test with what it said."""
        running = []
        while commands or running:
            while commands and len(running) < 2:
                command = [str(word) for word in commands.pop(0)]
                running.append((command, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                                          text=True, env=dict(os.environ, LC_ALL="C"))))
            command, process = running.pop(0)
            said = process.communicate()[0]
            if process.returncode != 0:
                for _, other in running:
                    other.kill()
                    other.communicate()
                raise AssertionError(f"{shlex.join(command)}\n{said}")

    def object(self, source, like=None, defines=()):
        """(command, object file) for one source."""
        out = self.overlay / (source.replace("/", "_") + ".o")
        return [*self.command(source, like), *defines, "-c", "-o", str(out)], out

    def syntax(self, source, like=None):
        return [*self.command(source, like), "-fsyntax-only"]


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-8000:]}")
    return done.stdout


class RowTest(unittest.TestCase):
    """A test of EDITS, with a folder of its own."""
    EDITS: list[Edit] = []

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="cairn-rows-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check_files(self, most, what):
        changed = files(self.EDITS)
        self.assertLessEqual(len(changed), most, f"{what} touches {', '.join(changed)}")

    def check_compiles(self, build, sources, cuda_sources):
        """cuda_sources: with the files through which the build compiles them as C++."""
        apply(self.EDITS, self.folder)
        compiler = Compiler(build, self.folder)
        commands = [compiler.syntax(source) for source in sources]
        commands += [compiler.syntax(source, like=build / copy) for source, copy in cuda_sources]
        compiler.run_all(commands)

    def build_copy(self, *tests):
        """Builds the command in a copy of the sources, builds these tests and runs them. The copy and its build."""
        sources = self.folder / "sources"
        sources.mkdir()
        copy_sources(sources)
        apply(self.EDITS, sources, read_from=sources)
        build = sources / "build/release"
        run("cmake", "--preset", "release", "-DCAIRN_BENCH=OFF", cwd=sources)
        run("cmake", "--build", build, "--target", *tests, "cairn_cli")
        for name in tests:
            run(build / "bin" / name)
        return sources, build
