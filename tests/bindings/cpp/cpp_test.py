#!/usr/bin/env python3
"""The C++ wrapper: that it reaches every function of cairn.h, compiles in every way it promises, does the same whether calls throw
or return, makes the bits of the C example, and keeps memory flat.

    cpp_test.py CXX_COMPILER LIBRARY EXAMPLE_C EXAMPLE_CPP

Under CAIRN_TEST=long: every compiler here with every version of C++, with and without exceptions; a million objects."""
import os
import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CXX, LIBRARY, EXAMPLE_C, EXAMPLE_CPP = sys.argv[1], *(pathlib.Path(word).resolve() for word in sys.argv[2:5])
ROOT = pathlib.Path(__file__).resolve().parents[3]
HERE = ROOT / "tests/bindings/cpp"
INCLUDE = ROOT / "capi/include"
sys.path.insert(0, str(ROOT / "tests/support"))
import campaign  # noqa: E402  pylint: disable=wrong-import-position

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror"]
BARE = ["-fno-exceptions", "-fno-rtti"]
# Functions that no class calls, and why.
NOT_REACHED = {}
COMPILERS = {"g++": ("17", "20", "23"), "clang++-14": ("17", "20", "2b")}


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def curve(out):
    lines = re.findall(r"step +\d+: loss \S+, gradient norm \S+, rate [\d.]+", out)
    return lines, re.search(r"parameters (\w{32}), the same to the bit; peak as planned", out)[1]


class Cpp(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="cairn-cpp-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def build(self, compiler, *files_and_flags):
        """A program of the sources, each with the flags that stand behind it, with those before the first for all."""
        shared, units = [], []
        for word in files_and_flags:
            if word.endswith(".cc"):
                units.append([word])
            else:
                (units[-1] if units else shared).append(word)
        objects = []
        for number, (source, *flags) in enumerate(units):
            objects.append(self.folder / f"{number}.o")
            run(compiler, *shared, *flags, *WARNINGS, "-O0", f"-I{INCLUDE}", f"-I{ROOT}", "-c", HERE / source, "-o", objects[-1])
        run(compiler, *objects, LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}", "-o", self.folder / "program")
        return self.folder / "program"

    def test_every_function_is_reached(self):
        source = "".join(path.read_text() for path in (INCLUDE / "cairn/cpp").glob("*.hpp"))
        symbols = (ROOT / "capi/abi/symbols.txt").read_text().split()
        self.assertGreater(len(symbols), 100)
        missing = [symbol for symbol in symbols if not re.search(rf"\b{symbol}\b", source)]
        self.assertEqual(missing, list(NOT_REACHED), "call it from a class, or say in NOT_REACHED of this test why not")

    def test_every_option_is_reached(self):
        """Each field of the structs that a class of the wrapper sets is set by name."""
        header = re.sub(r"/\*.*?\*/", "", (INCLUDE / "cairn/cairn.h").read_text(), flags=re.S)
        classes = {"plan_options": "plan_options.hpp", "stepper_options": "stepper.hpp", "device_options": "instance.hpp",
                   "instance_options": "instance.hpp", "parameter_options": "graph.hpp", "region_options": "graph.hpp",
                   "freeze_options": "graph.hpp", "custom_op": "custom_op.hpp"}
        elsewhere = {"release_user": "graph.hpp"}
        for name, file in classes.items():
            body = re.search(rf"typedef struct cairn_{name} \{{(.*?)\}} cairn_{name}_t;", header, re.S)[1]
            body = re.sub(r"\(\*(\w+)\)\([^)]*\)", r"\1", body)
            for field in re.findall(r"(\w+)(?:\[\w+\])?\s*[,;]", body):
                if field in ("struct_size", "reserved", "reserved2"):
                    continue
                text = (INCLUDE / "cairn/cpp" / elsewhere.get(field, file)).read_text()
                self.assertRegex(text, rf"\b(raw_?|options)\.{field}\b", f"cairn_{name}_t.{field}")

    def test_headers_stand_alone(self):
        headers = sorted((INCLUDE / "cairn/cpp").glob("*.hpp"))
        self.assertGreater(len(headers), 8)
        for header in headers:
            self.assertLessEqual(len(header.read_text().splitlines()), 400, header)
            for name in re.findall(r'#include "(.*?)"', header.read_text()):
                self.assertTrue((header.parent / name).exists(), f"{header}: {name}")
        for header in headers if campaign.LONG else ():
            run(CXX, "-std=c++17", *WARNINGS, "-fsyntax-only", "-x", "c++", header)

    def test_ways_to_compile(self):
        """Throwing and returning files in one program, in the oldest version of C++; memory stays flat."""
        print(run(self.build(CXX, "-std=c++17", "results.cc", *BARE, "throwing.cc"), 1_000_000 if campaign.LONG else 20_000),
              end="")

    def test_versions_of_the_language_in_one_program(self):
        for order in (("17", "23"), ("23", "17")):  # a linker takes the first of what both have
            first, second = order
            run(self.build(CXX, "-DSECOND=second", "mixed.cc", f"-std=c++{first}", "-DMAIN", "mixed.cc", f"-std=c++{second}"))

    def test_files_without_exceptions_beside_files_that_return(self):
        ways = BARE, ["-DCAIRN_HPP_NO_EXCEPTIONS"]
        for first, second in (ways, ways[::-1]):
            run(self.build(CXX, "-std=c++17", "-DSECOND=second", "returning.cc", *first, "-DMAIN", "returning.cc", *second))

    @unittest.skipUnless(campaign.LONG, "takes minutes; ./dev test long runs it")
    def test_all_ways_to_compile(self):
        for compiler, years in COMPILERS.items():
            if not shutil.which(compiler):
                print(f"not run: {compiler} is not installed")
                continue
            for year, returning, throwing in itertools.product(years, (BARE, ["-DCAIRN_HPP_NO_EXCEPTIONS"]), ([], BARE)):
                run(self.build(compiler, f"-std=c++{year}", "results.cc", *returning, "throwing.cc", *throwing), 1000)

    def test_older_versions_are_told(self):
        done = subprocess.run([CXX, "-std=c++14", f"-I{INCLUDE}", "-fsyntax-only", "-x", "c++", "-"], text=True, check=False,
                              input='#include "cairn/cairn.hpp"\n', capture_output=True)
        self.assertIn("cairn.hpp needs C++17 or later", done.stderr)

    def test_the_example_makes_the_bits_of_c(self):
        in_c, in_cpp = (curve(run(example, self.folder)) for example in (EXAMPLE_C, EXAMPLE_CPP))
        self.assertEqual(len(in_c[0]), 9)
        self.assertEqual(in_cpp, in_c)

    def test_the_pages_program(self):
        """capi/docs/cpp.md prints a program, which learns what it says."""
        body = re.search(r"^```cpp\n(// xor\.cpp: .*?)^```", (ROOT / "capi/docs/cpp.md").read_text(), re.S | re.M)[1]
        (self.folder / "xor.cpp").write_text(body)
        run(CXX, "-std=c++17", *WARNINGS, f"-I{INCLUDE}", self.folder / "xor.cpp", LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}", "-o",
            self.folder / "xor")
        answers = re.findall(r"(\d) xor (\d) = (-?\d+\.\d+)", run(self.folder / "xor"))
        self.assertEqual(len(answers), 4)
        for a, b, y in answers:
            self.assertLess(abs(float(y) - (int(a) ^ int(b))), 0.2, answers)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
