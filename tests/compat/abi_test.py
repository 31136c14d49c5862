"""Programs that were compiled with the headers of earlier releases (tests/compat/<release>/abi: headers and programs as they
were), and linked with a library that has that release's symbols and no others, run on today's library; and abidiff finds in today's
header nothing but additions.

    abi_test.py LIBRARY C_COMPILER CXX_COMPILER

What abidiff compares are two libraries of empty functions, compiled from the two headers with all that a debugger knows of types:
the header is the promise, and the library itself is compared with it by capi/abi/abi.py. A record of the types of the whole
library (abidw) would be megabytes of what nobody promised."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARY, CC, CXX = pathlib.Path(sys.argv[1]).resolve(), *sys.argv[2:4]
ROOT = pathlib.Path(__file__).resolve().parents[2]
OLDER = sorted(path for path in pathlib.Path(__file__).resolve().parent.glob("*/abi"))
TODAY = ROOT / "capi/include"
sys.path.insert(0, str(ROOT / "capi/abi"))
import abi  # noqa: E402

# What abidiff may say: that there are more functions, and that structs have more fields at their ends. A field in the middle
# moves others, of which it says that they changed. (Its own rule for this, has_data_member_inserted_at, hides any change of a struct.)
ALLOWED = [re.compile(pattern) for pattern in (
    r"(Functions|Variables) changes summary: ", r"\d+ Added functions?:", r"\[A\] 'function ",
    r"\d+ functions? with some indirect sub-type changes?:", r"\[C\] 'function .* has some indirect sub-type changes:",
    r"parameter \d+ of type '.*' has sub-type changes:", r"in (pointed to|unqualified underlying) type '.*':",
    r"underlying type 'struct \w+' changed:", r"type size changed from \d+ to \d+ \(in bits\)",
    r"(unqualified underlying )?type '.*' changed, as reported earlier", r"\d+ data member insertions?:",
    r"'.*', at offset \d+ \(in bits\)")]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Abi(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="cairn-abi-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def changed(self, before, after):
        """Today's header with one text in the place of another."""
        shutil.copytree(TODAY, self.folder / "changed", dirs_exist_ok=True)
        header = self.folder / "changed/cairn/cairn.h"
        text = (TODAY / "cairn/cairn.h").read_text()
        self.assertEqual(text.count(before), 1, before)
        header.write_text(text.replace(before, after))
        return self.folder / "changed"

    def test_older_programs_run(self):
        self.assertGreaterEqual(len(OLDER), 1)
        for older in OLDER:
            programs = sorted(path for path in (older / "examples").glob("*.c*"))
            self.assertGreater(len(programs), 5)
            # What such a program knows of the library: its SONAME, and symbols with their versions.
            recorded = self.hollow(older, "recorded")
            for source in programs:
                program = self.folder / source.name.replace(".", "_")
                compiler = [CXX, "-std=c++17"] if source.suffix == ".cpp" else [CC, "-std=c11"]
                run(*compiler, "-O0", f"-I{older}", source, recorded, "-lm", "-o", program)
                said = run(program, self.folder, env=dict(os.environ, LD_LIBRARY_PATH=str(LIBRARY.parent)))
                if source.name == "train.c":
                    self.assertIn("the same to the bit", said, program)

    def test_everything_promised_is_so(self):
        for older in OLDER:
            self.assertEqual(abi.broken_promises(older / "cairn/cairn.h", CC), [])

    def test_changes_would_be_found(self):
        changes = [("  uint64_t requested_bytes;\n  uint64_t in_use_bytes;\n",
                    "  uint64_t in_use_bytes;\n  uint64_t requested_bytes;\n", "struct cairn_memory_fault_t"),
                   ("CAIRN_STATUS_IO = 8", "CAIRN_STATUS_IO = 80", "constant CAIRN_STATUS_IO = 8"),
                   ("CAIRN_API uint32_t cairn_version_number(void);", "", "function cairn_version_number"),
                   ("  uint32_t rank; /* at most 8 */\n  uint32_t dtype;\n",
                    "  uint32_t rank;\n  uint32_t dtype;\n  uint64_t more;\n", "struct cairn_tensor_desc_t")]
        for before, after, named in changes:
            header = self.changed(before, after) / "cairn/cairn.h"
            found = abi.broken_promises(TODAY / "cairn/cairn.h", CC, header)
            self.assertTrue([problem for problem in found if named in problem], named)

    def hollow(self, include, name):
        """A library with every function of a header, and nothing in it."""
        text = run(CC, "-E", "-P", "-DCAIRN_CDEF", f"-I{include}", include / "cairn/cairn.h")
        functions = re.findall(r"^[^;{}]*?\bcairn_\w+\([^;{}]*\);", text, flags=re.M)
        functions = [each for each in functions if "typedef" not in each]
        self.assertEqual(len(functions), len(abi.declarations(include / "cairn/cairn.h")[0]))
        source = self.folder / f"{name}.c"
        bodies = [each.rstrip(";") + " { __builtin_trap(); }" for each in functions]
        source.write_text('#include "cairn/cairn.h"\n' + "\n".join(bodies))
        library, versions = self.folder / f"{name}.so", self.folder / "versions"
        versions.write_text("CAIRN_1.0 { global: cairn_*; local: *; };")
        run(CC, "-shared", "-fPIC", "-g", "-O0", f"-I{include}", source, "-o", library, "-Wl,-soname,libcairn.so.1",
            f"-Wl,--version-script={versions}")
        return library

    @unittest.skipUnless(shutil.which("abidiff"), "no abidiff here; ./dev test long installs abigail-tools")
    def test_abidiff(self):
        def broken(before, after):
            done = subprocess.run(["abidiff", "--no-show-locs", "--harmless", str(before), str(after)], capture_output=True,
                                  text=True, check=False, env=dict(os.environ, LC_ALL="C"))
            self.assertIn("Functions changes summary: " if done.returncode else "", done.stdout, done.stderr)
            lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
            return [line for line in lines if not any(allowed.match(line) for allowed in ALLOWED)
                    or re.match(r"(Functions|Variables) changes summary: [1-9]", line)]

        today = self.hollow(TODAY, "today")
        for older in OLDER:
            self.assertEqual(broken(self.hollow(older, "older"), today), [])
        # Also where sizes and places stay, and in the middle of a struct.
        for before, after in (("  uint32_t rank; /* at most 8 */\n", "  float rank; /* at most 8 */\n"),
                              ("  uint64_t in_use_bytes;\n", "  uint64_t in_use_bytes;\n  uint64_t more;\n"),
                              ("CAIRN_API uint32_t cairn_version_number(void);", "")):
            self.assertNotEqual(broken(today, self.hollow(self.changed(before, after), "changed")), [], after)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
