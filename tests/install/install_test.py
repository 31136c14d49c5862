"""What `cmake --install` lays out builds programs outside, wherever it was moved: with pkg-config and with find_package, shared
and static; and the components that packages are made of.

    install_test.py BUILD_FOLDER CMAKE C_COMPILER"""
import ctypes
import os
import pathlib
import re
import shlex
import sys
import tempfile
import unittest

from outside import EXAMPLES, ROOT, check_trains, run

BUILD, CMAKE, CC = sys.argv[1:4]
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(outside C)
find_package(cairn 1.0 REQUIRED COMPONENTS static tokenizers reports device_plugins png jpeg webp zlib)
add_executable(shared train.c)
target_link_libraries(shared PRIVATE cairn::cairn)
add_executable(static train.c)
target_link_libraries(static PRIVATE cairn::static)
find_package(cairn 2.0 QUIET)
if(cairn_FOUND)
  message(FATAL_ERROR "cairn 1 is taken for cairn 2")
endif()
"""
# By component: files that it has, some of many.
COMPONENTS = {
    "library": {"lib/libcairn.so.1"},
    "development": {"include/cairn/cairn.h", "include/cairn/cairn.hpp", "include/cairn/cpp/graph.hpp",
                    "include/cairn/cairn_config.h", "lib/libcairn.so",
                    "lib/libcairn.a", "lib/pkgconfig/cairn.pc", "lib/cmake/cairn/cairnConfig.cmake",
                    "share/cairn/bindings/go/go.mod", "share/cairn/bindings/rust/cairn/src/lib.rs",
                    "share/cairn/bindings/rust/cairn-sys/Cargo.toml"},
    "command": {"bin/cairn", "share/man/man1/cairn.1", "share/man/man1/cairn-train.1", "share/man/man7/cairn-recipes.7",
                "share/bash-completion/completions/cairn", "share/zsh/site-functions/_cairn",
                "share/fish/vendor_completions.d/cairn.fish", "share/cairn/scripts/recipes/gpt2.lua",
                "share/cairn/scripts/devices/h100.json", "share/cairn/bindings/lua/cairn.lua"},
}


def files_of(prefix):
    return {path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if not path.is_dir() or path.is_symlink()}


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="cairn-install-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        first, cls.prefix = cls.folder / "first", cls.folder / "moved with blanks"
        run(CMAKE, "--install", BUILD, "--prefix", first, "--strip")
        first.rename(cls.prefix)  # nothing in it may name where it was
        (cls.folder / "train.c").write_text((EXAMPLES / "train.c").read_text())
        cls.library = next(cls.prefix.rglob("cairn.pc")).parent.parent

    def flags(self, *which):
        environment = dict(os.environ, PKG_CONFIG_PATH=str(self.library / "pkgconfig"))
        return shlex.split(run("pkg-config", *which, "cairn", env=environment))

    def test_pkg_config(self):
        shared, static = self.folder / "pkgconfig_shared", self.folder / "pkgconfig_static"
        run(CC, self.folder / "train.c", *self.flags("--cflags", "--libs"), "-o", shared)
        check_trains(shared, self.folder, dict(os.environ, LD_LIBRARY_PATH=str(self.library)), needs_library=True)
        # The same flags; of the two libraries of that name, the archive.
        flags = ["-l:libcairn.a" if flag == "-lcairn" else flag for flag in self.flags("--static", "--cflags", "--libs")]
        run(CC, self.folder / "train.c", *flags, "-o", static)
        check_trains(static, self.folder)
        self.assertEqual(self.flags("--variable=parts"), ["tokenizers", "reports", "device_plugins", "png", "jpeg", "webp", "zlib"])

    def test_what_has_the_archive_inside_exports_none_of_it(self):
        plugin, source = self.folder / "libplugin.so", self.folder / "plugin.c"
        source.write_text('''#include <cairn/cairn.h>
__attribute__((visibility("default"))) uint32_t plugin_answer(void) {
  cairn_instance_t* instance = 0;
  if (cairn_instance_create(0, &instance, 0) != CAIRN_STATUS_OK) return 0;
  cairn_instance_release(instance);
  return cairn_version_number();
}
''')
        flags = ["-l:libcairn.a" if flag == "-lcairn" else flag for flag in self.flags("--static", "--cflags", "--libs")]
        run(CC, "-shared", "-fPIC", source, *flags, "-o", plugin)
        exported = [line.split()[1:] for line in run("nm", "-D", "--defined-only", plugin).splitlines()]
        # Weak ones are instances of the C++ library's templates, as every library in C++ has them.
        self.assertEqual([name for kind, name in exported if kind not in "WVu"], ["plugin_answer"])
        self.assertNotEqual(ctypes.CDLL(str(plugin)).plugin_answer(), 0)

    def test_names_of_the_library(self):
        header = (self.prefix / "include/cairn/cairn.h").read_text()
        numbers = [re.search(rf"^#define CAIRN_VERSION_{part} (\d+)$", header, flags=re.M)[1]
                   for part in ("MAJOR", "MINOR", "PATCH")]
        version, soname = ".".join(numbers), f"libcairn.so.{numbers[0]}"
        self.assertEqual(self.flags("--modversion"), [version])
        self.assertEqual(os.readlink(self.library / "libcairn.so"), soname)
        self.assertEqual(os.readlink(self.library / soname), f"libcairn.so.{version}")
        self.assertIn(f"Library soname: [{soname}]", run("readelf", "-d", self.library / soname))
        self.assertIn(f"cairn {version}\n", run(self.prefix / "bin/cairn", "--version"))

    def test_find_package(self):
        (self.folder / "CMakeLists.txt").write_text(PROJECT)
        out = self.folder / "out"
        run(CMAKE, "-S", self.folder, "-B", out, f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_C_COMPILER={CC}")
        run(CMAKE, "--build", out)
        check_trains(out / "shared", self.folder, needs_library=True)
        check_trains(out / "static", self.folder)

    def test_the_command(self):
        command = self.prefix / "bin/cairn"
        self.assertIn("cpu", run(command, "devices", cwd=self.folder))
        # All that recipes and models' directories need is installed.
        for path in (ROOT / "scripts").rglob("*.lua"):
            part = path.relative_to(ROOT)
            self.assertTrue(part.parts[1] == "pages" or len(part.parts) == 2 or (self.prefix / "share/cairn" / part).exists(), part)
        tiny = ["layers=1", "heads=1", "width=8", "seq=8", "vocab=32", "data=random", "--steps", "1", "--json"]
        self.assertIn('"steps":1', run(command, "train", "gpt2", *tiny, cwd=self.folder))
        # Its Lua files are those beside it, and it knows of no other place.
        (self.prefix / "share/cairn").rename(self.prefix / "share/elsewhere")
        try:
            self.assertIn("set CAIRN_LUA_ROOT", run(command, "devices", cwd=self.folder, fails=True))
            environment = dict(os.environ, CAIRN_LUA_ROOT=str(self.prefix / "share/elsewhere"))
            self.assertIn("cpu", run(command, "devices", cwd=self.folder, env=environment))
        finally:
            (self.prefix / "share/elsewhere").rename(self.prefix / "share/cairn")

    def test_links_of_the_pages_lead_somewhere(self):
        pages = sorted(self.prefix.rglob("share/doc/**/*.md"))
        self.assertIn("scripts.md", {page.name for page in pages})
        for page in pages:
            for link in re.findall(r"\]\(([^)#: ]+)(?:#[^)]*)?\)", page.read_text()):
                self.assertTrue((page.parent / link).exists(), f"{page.relative_to(self.prefix)}: {link}")

    def test_components_are_the_whole(self):
        whole, parts = files_of(self.prefix), []
        for component, wanted in COMPONENTS.items():
            prefix = self.folder / component
            run(CMAKE, "--install", BUILD, "--prefix", prefix, "--component", component)
            parts.append(files_of(prefix))
            self.assertLessEqual({path.replace("lib/", f"{self.library.relative_to(self.prefix)}/") if path.startswith("lib/")
                                  else path for path in wanted}, parts[-1], component)
        self.assertEqual(set.union(*parts), whole)
        self.assertEqual(sum(map(len, parts)), len(whole), "a file is in two components")

    def test_folders_that_are_absolute(self):
        """As builds have them whose parts go to folders of their own: the library's is not below the prefix."""
        prefix, library, tree = self.folder / "apart", self.folder / "libraries/lib", self.folder / "tree"
        run(CMAKE, "-S", ROOT, "-B", tree, "-G", "Ninja", f"-DCMAKE_C_COMPILER={CC}", "-DCAIRN_TESTS=OFF", "-DCAIRN_BENCH=OFF",
            "-DCAIRN_BUILD_STATIC=OFF", f"-DCAIRN_OBJECTS_OF={BUILD}", f"-DCMAKE_INSTALL_PREFIX={prefix}",
            f"-DCMAKE_INSTALL_LIBDIR={library}", f"-DCMAKE_INSTALL_INCLUDEDIR={self.folder}/headers")
        run(CMAKE, "--build", tree)
        run(CMAKE, "--install", tree)
        environment = dict(os.environ, PKG_CONFIG_PATH=str(library / "pkgconfig"))
        environment.pop("LD_LIBRARY_PATH", None)
        flags = shlex.split(run("pkg-config", "--cflags", "--libs", "cairn", env=environment))
        run(CC, self.folder / "train.c", *flags, f"-Wl,-rpath,{library}", "-o", self.folder / "apart_train")
        check_trains(self.folder / "apart_train", self.folder, needs_library=True)
        self.assertRegex(run(prefix / "bin/cairn", "--version", env=environment), r"^cairn \d")

    def test_nothing_names_where_it_was_built(self):
        for path in self.prefix.rglob("*"):
            if path.is_file() and path.suffix != ".a":  # archives keep their lines for debuggers
                self.assertNotIn(BUILD.encode(), path.read_bytes(), path)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
