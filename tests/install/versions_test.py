"""A library of another major version, under whatever name it was loaded, is refused with both versions named: by the C++ wrapper,
the Lua binding and the command. The stand-in has every symbol, so that the loader finds nothing wrong.

    versions_test.py CAIRN C_COMPILER CXX_COMPILER"""
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

from outside import ROOT, run

CAIRN, CC, CXX = sys.argv[1:4]
LUA_PATH = f"{ROOT}/bindings/lua/?.lua;;"
CPP = r"""
#include <cairn/cairn.hpp>
#include <cstdio>
int main() {
  try {
    cairn::Instance::create();
  } catch (const cairn::Error& error) {
    std::printf("%d %s\n", error.status(), error.what());
  }
}
"""


def stand_in(folder, version):
    """A libcairn.so.1 that says it is `version`, and can do nothing."""
    major, minor, patch = map(int, version.split("."))
    lines = ["#include <stdint.h>", f'const char* cairn_version(void) {{ return "{version}"; }}',
             f"uint32_t cairn_version_number(void) {{ return {major * 10000 + minor * 100 + patch}; }}"]
    symbols = (ROOT / "capi/abi/symbols.txt").read_text().split()
    lines += [f"void {name}(void) {{}}" for name in symbols if not name.startswith("cairn_version")]
    folder.mkdir()
    (folder / "stand_in.c").write_text("\n".join(lines))
    (folder / "map").write_text("CAIRN_1.0 { global: cairn_*; local: *; };")
    library = folder / "libcairn.so.1"
    run(CC, "-shared", "-fPIC", folder / "stand_in.c", "-o", library, "-Wl,-soname,libcairn.so.1",
        f"-Wl,--version-script={folder / 'map'}")
    return library


class Versions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="cairn-versions-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.next_major = stand_in(cls.folder / "next", "2.3.4")
        cls.older = stand_in(cls.folder / "older", "0.9.0")
        cls.version = re.match(r"cairn (\S+)", run(CAIRN, "--version"))[1]

    def refused(self, said, library, version):
        for words in (str(library), version, "libcairn 1.x"):
            self.assertIn(words, said)

    def test_the_command(self):
        for library, version in ((self.next_major, "2.3.4"), (self.older, "0.9.0")):
            said = run(CAIRN, "devices", fails=True, env=dict(os.environ, LD_LIBRARY_PATH=str(library.parent)))
            self.refused(said, library, version)
            self.assertEqual(said.count("\n"), 1)
            self.assertIn(f"{self.version} or later", said)

    def test_lua(self):
        lua = [shutil.which("luajit") or self.skipTest("no luajit here"), "-e", 'require "cairn"']
        for library, version in ((self.next_major, "2.3.4"), (self.older, "0.9.0")):
            said = run(*lua, fails=True, env=dict(os.environ, LUA_PATH=LUA_PATH, CAIRN_LIBRARY=str(library)))
            self.refused(said, library, version)
            self.assertIn("CAIRN_LIBRARY", said)
        # One that is named is taken, or nothing.
        missing = self.folder / "nowhere.so"
        said = run(*lua, fails=True, env=dict(os.environ, LUA_PATH=LUA_PATH, CAIRN_LIBRARY=str(missing)))
        self.assertIn(str(missing), said)
        # What the system's loader finds is looked at as well.
        environment = dict(os.environ, LUA_PATH=LUA_PATH, LD_LIBRARY_PATH=str(self.next_major.parent))
        environment.pop("CAIRN_LIBRARY", None)
        said = run(*lua, fails=True, env=environment)
        self.assertIn("libcairn 1.x was not found", said)
        self.assertIn("libcairn.so.1: this is cairn 2.3.4", said)

    def test_lua_without_ffi(self):
        program = ('package.loaded.cairn, package.loaded.ffi = nil, nil\n'
                   'package.preload.ffi = function() error("none") end\nrequire "cairn"')
        said = run(CAIRN, "lua", self.write("plain.lua", program), fails=True)
        self.assertIn("written on LuaJIT's module 'ffi'", said)

    def test_cpp(self):
        program = self.folder / "program"
        run(CXX, "-std=c++17", "-O0", f"-I{ROOT}/capi/include", self.write("program.cc", CPP), self.next_major, "-o",
            program)
        said = run(program, env=dict(os.environ, LD_LIBRARY_PATH=str(self.next_major.parent)))
        self.assertRegex(said, r"^5 the libcairn in use is version 2\.3\.4, and this program was compiled for 1\.x; .*so\.1")

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
