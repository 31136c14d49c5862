"""Debian packages (cmake/packages.cmake): what they depend on and under which licences, installed by dpkg into a clean root and
used from there, and installed beside, and over, packages of other versions.

    packages_test.py BUILD_FOLDER CMAKE C_COMPILER

They are linked from the objects of BUILD_FOLDER; in the place of the plugin for GPUs is the emulated one. Under CAIRN_TEST=long
also: lintian, and apt in a Debian of its own."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

from outside import EXAMPLES, ROOT, check_trains, run

BUILD, CMAKE, CC = sys.argv[1:4]
sys.path.insert(0, str(ROOT / "tests"))
from support.campaign import LONG  # noqa: E402

AS_ROOT = [] if os.getuid() == 0 else ["fakeroot"]
TRIPLET = run(CC, "-print-multiarch").strip() or "."

# Packages that ours may depend on: licence of what is loaded, and words of their copyright file that say so. No GPL or LGPL, but
# for what is part of every Debian: the C library, and the compiler's, whose exception lets any program use it.
LICENCES = {
    "libc6": ("LGPL-2.1+ (the system)", "Lesser General Public"),
    "libgcc-s1": ("GPL-3 with the GCC Runtime Library Exception (the system)", "GCC Runtime Library Exception"),
    "libstdc++6": ("GPL-3 with the GCC Runtime Library Exception (the system)", "GCC Runtime Library Exception"),
    "libhwy1": ("Apache-2.0 or BSD-3-clause", "Apache-2.0"),
    "libluajit-5.1-2": ("MIT", "License: MIT/X"),
    "libluajit2-5.1-2": ("MIT", None),  # another build of the same
    "libsimdjson14": ("Apache-2.0 or MIT", "Apache-2.0"),
    "libonig5": ("BSD-2-clause", "BSD-2-clause"),
    "libspng0": ("BSD-2-clause", "BSD-2-Clause"),
    "libturbojpeg0": ("IJG and BSD-3-clause", "BSD-3-clause"),
    "libutf8proc2": ("MIT", "License: Expat"),
    "libwebp7": ("BSD-3-clause", "Neither the name of Google"),
    "zlib1g": ("Zlib", None),
    "libxxhash0": ("BSD-2-clause", "BSD-2-clause"),
}
SYSTEM = ("libc6", "libgcc-s1", "libstdc++6")
def build_packages(folder, *options):
    """Paths of the packages by name."""
    run(CMAKE, "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCAIRN_TESTS=OFF", "-DCAIRN_BENCH=OFF",
        "-DCAIRN_PACKAGES=ON", f"-DCAIRN_OBJECTS_OF={BUILD}", *options)
    run(CMAKE, "--build", folder)
    run(pathlib.Path(CMAKE).with_name("cpack"), *([] if LONG else ["-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip"]), cwd=folder)
    return {path.name.split("_")[0]: path for path in folder.glob("*.deb")}


def field(package, name):
    return run("dpkg-deb", "-f", package, name).strip()


def depends(package):
    """[[(name, relation)]] of each dependency's alternatives."""
    return [[re.fullmatch(r"(\S+)(?: \((.*)\))?", one.strip()).groups() for one in group.split("|")]
            for group in field(package, "Depends").split(",")]


class Root:
    """A system of its own for dpkg, that has what every Debian has, as far as dpkg knows."""

    def __init__(self, folder):
        self.folder = folder
        state = folder / "var/lib/dpkg"
        for name in ("info", "updates", "triggers"):
            (state / name).mkdir(parents=True)
        architecture = run("dpkg", "--print-architecture").strip()
        entries = [f"Package: {name}\nStatus: install ok installed\nMaintainer: nobody\nArchitecture: {architecture}\n"
                   f"Version: 99:1\nDescription: is there\n" for name in LICENCES]
        (state / "status").write_text("\n".join(entries))
        for name in LICENCES:
            for suffix in ("list", "md5sums"):
                (state / f"info/{name}.{suffix}").write_text("")
        self.environment = dict(os.environ, DPKG_FRONTEND_LOCKED="", PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")

    def dpkg(self, *arguments, fails=False):
        return run(*AS_ROOT, "dpkg", f"--root={self.folder}", "--force-not-root", f"--log={self.folder}/log", *arguments,
                   fails=fails, env=self.environment)

    def versions(self):
        out = run("dpkg-query", f"--admindir={self.folder}/var/lib/dpkg", "-W", "-f",
                  "${Package} ${Version} ${db:Status-Status}\n")
        return {name: version for name, version, status in map(str.split, out.splitlines())
                if status == "installed" and name not in LICENCES}


def make_package(folder, name, version, files, relations=""):
    """A package of another version: `files` by path, with what is in them."""
    tree = folder / f"{name}-{version}"
    for path, text in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    (tree / "DEBIAN").mkdir(parents=True)
    architecture = run("dpkg", "--print-architecture").strip()
    (tree / "DEBIAN/control").write_text(f"Package: {name}\nVersion: {version}\nArchitecture: {architecture}\n"
                                         f"Maintainer: nobody <nobody@localhost>\nDescription: older\n{relations}")
    run("dpkg-deb", "-Znone", "--root-owner-group", "--build", tree, folder / f"{name}_{version}.deb")
    return folder / f"{name}_{version}.deb"


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="cairn-packages-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.packages = build_packages(cls.folder / "build", f"-DCAIRN_CUDA_LIBRARY={BUILD}/emulated/lib/libcairn_cuda.so")
        cls.version = field(cls.packages["libcairn1"], "Version")

    def root(self, name):
        return Root(self.folder / name)

    def test_names_versions_and_files(self):
        self.assertEqual(sorted(self.packages), ["cairn", "cairn-cuda", "libcairn-dev", "libcairn1"])
        whole = []
        for name, package in self.packages.items():
            self.assertEqual(field(package, "Version"), self.version)
            lines = [line.split(None, 5) for line in run("dpkg-deb", "-c", package).splitlines()]
            self.assertEqual({line[1] for line in lines}, {"root/root"})
            files = [line[5].split(" -> ")[0] for line in lines if not line[0].startswith("d")]
            whole += files
            for wanted in ("copyright", "changelog.Debian.gz", "changelog.gz"):
                self.assertIn(f"./usr/share/doc/{name}/{wanted}", files)
            # A name and an address, as policy asks (5.6.2); a name that can be no host's, where none was stated.
            self.assertRegex(field(package, "Maintainer"), r"^[^<>@]+ <[^<>@ ]+@[\w.-]+\.invalid>$")
            # Those of several architectures go beside each other: what is in them of one lies in a folder of its name.
            several = name in ("libcairn1", "libcairn-dev")
            self.assertEqual(field(package, "Multi-Arch").replace("no", ""), "same" if several else "")  # dpkg may say no
            if several:
                tree = self.folder / f"of one architecture {name}"
                run("dpkg-deb", "-x", package, tree)
                for path in tree.rglob("*"):
                    if path.is_file() and path.read_bytes()[:4] == b"\x7fELF" or path.suffix in (".a", ".pc"):
                        self.assertIn(f"/lib/{TRIPLET}/", str(path))
            control = run("dpkg-deb", "-I", package)
            self.assertNotRegex(control, "postinst|preinst|postrm|prerm")  # nothing runs as root
            self.assertEqual("triggers" in control, name == "libcairn1")
        self.assertEqual(len(whole), len(set(whole)), "a file is in two packages")
        self.assertRegex(run("dpkg-deb", "-I", self.packages["libcairn1"], "shlibs"),
                         rf"^libcairn 1 libcairn1 \(>= {re.escape(self.version)}\)")

    def test_dependencies_and_their_licences(self):
        wanted = {"libcairn-dev": {("libcairn1", f"= {self.version}")}, "cairn-cuda": {("libcairn1", f"= {self.version}")},
                  "cairn": {("libcairn1", f">= {self.version.split('-')[0]}")}, "libcairn1": set()}
        for name, package in self.packages.items():
            ours = {one for group in depends(package) for one in group if one[0] in self.packages}
            self.assertEqual(ours, wanted[name])
            for one, _ in (one for group in depends(package) for one in group):
                if one in self.packages:
                    continue
                self.assertIn(one, LICENCES, f"{name} depends on {one}: look at its licence, and add it to the table")
                licence, words = LICENCES[one]
                self.assertTrue(one in SYSTEM or "GPL" not in licence, f"{one}: {licence}")
                copyright_file = pathlib.Path(f"/usr/share/doc/{one}/copyright")
                if words and copyright_file.exists():
                    self.assertIn(words, copyright_file.read_text(errors="replace"), f"{one} is not under {licence}")
        # What is loaded is what is declared.
        tree = self.folder / "tree"
        run("dpkg-deb", "-x", self.packages["libcairn1"], tree)
        declared = {one for group in depends(self.packages["libcairn1"]) for one, _ in group}
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", next(tree.rglob("libcairn.so.1.*"))))
        owners = {owner for library in needed if not library.startswith("ld-") for owner in re.findall(
            r"^([^:\s]+)(?::\w+)?: ", run("dpkg", "-S", f"*/{library}"), flags=re.M)}
        self.assertLessEqual({"libhwy1", "libonig5", "libsimdjson14", "libspng0", "libturbojpeg0", "libutf8proc2", "libwebp7", "libxxhash0"}, owners)
        self.assertLessEqual(declared, owners | {"libc6"})

    def test_installed_into_a_clean_root(self):
        root = self.root("clean")
        said = root.dpkg("-i", self.packages["cairn"], fails=True)
        self.assertRegex(said, r"cairn depends on libcairn1")
        root.dpkg("-i", *self.packages.values())
        self.assertEqual(root.versions(), {name: self.version for name in self.packages})
        self.assertEqual(root.dpkg("--audit"), "")
        root.dpkg("--verify")
        usr, scratch = root.folder / "usr", self.folder / "used"
        scratch.mkdir()
        library = usr / "lib" / TRIPLET
        environment = dict(os.environ, PKG_CONFIG_LIBDIR=str(library / "pkgconfig"), LD_LIBRARY_PATH=str(library),
                           HOME=str(scratch))
        for name in ("CAIRN_LIBRARY", "CAIRN_LUA_ROOT", "PKG_CONFIG_PATH"):
            environment.pop(name, None)
        flags = shlex.split(run("pkg-config", "--cflags", "--libs", "cairn", env=environment))
        source = usr / "share/doc/libcairn-dev/examples/train.c"
        run(CC, source, *flags, "-o", scratch / "train")
        check_trains(scratch / "train", scratch, environment, needs_library=True)
        (scratch / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.25)
project(outside C)
find_package(cairn 1.0 REQUIRED)
add_executable(with_cmake {source})
target_link_libraries(with_cmake PRIVATE cairn::cairn)
add_executable(static {source})
target_link_libraries(static PRIVATE cairn::static)
""")
        run(CMAKE, "-S", scratch, "-B", scratch / "out", f"-DCMAKE_PREFIX_PATH={usr}", f"-DCMAKE_C_COMPILER={CC}")
        run(CMAKE, "--build", scratch / "out")
        check_trains(scratch / "out/with_cmake", scratch, environment, needs_library=True)
        check_trains(scratch / "out/static", scratch)

        run(usr / "bin/cairn", "train", "mlp", "--steps", 2, "--out", scratch / "run", cwd=scratch, env=environment)
        self.assertTrue((scratch / "run/run.json").exists())
        self.assertNotIn("RUNPATH", run("readelf", "-d", usr / "bin/cairn"))
        self.assertIn("cuda:0", run(usr / "bin/cairn", "devices", cwd=scratch, env=environment))
        for page in ("man1/cairn.1.gz", "man1/cairn-train.1.gz", "man7/cairn-recipes.7.gz"):
            self.assertTrue((usr / "share/man" / page).exists(), page)
        if shutil.which("luajit"):
            modules = usr / "share/lua/5.1"
            said = run("luajit", "-e", 'print(require("cairn").version(), require("cairn").nn.Linear(2, 3))', cwd=scratch,
                       env=dict(environment, LUA_PATH=f"{modules}/?.lua"))
            self.assertIn(self.version.split("-")[0], said)
        root.dpkg("-r", *self.packages)
        self.assertEqual(root.versions(), {})
        self.assertEqual([path for path in usr.rglob("*") if not path.is_dir()] if usr.exists() else [], [])

    def test_beside_and_over_other_versions(self):
        root, folder = self.root("upgraded"), self.folder / "other"
        folder.mkdir()
        library = f"usr/lib/{TRIPLET}"
        older = [make_package(folder, "libcairn1", "0.9.0-1", {f"{library}/libcairn.so.1.0": "", f"{library}/libcairn.so.1": ""}),
                 make_package(folder, "libcairn-dev", "0.9.0-1", {"usr/include/cairn/cairn.h": "", f"{library}/libcairn.so": ""},
                              "Depends: libcairn1 (= 0.9.0-1)\n"),
                 make_package(folder, "cairn", "0.9.0-1", {"usr/bin/cairn": "", "usr/share/cairn/scripts/cli/gone.lua": ""},
                              "Depends: libcairn1 (>= 0.9.0)\n")]
        others = [make_package(folder, f"libcairn{major}", f"{major}.1.0-1", {
            f"{library}/libcairn.so.{major}": "", f"{library}/libcairn.so.{major}.1.0": "",
            f"usr/share/doc/libcairn{major}/copyright": ""}) for major in (0, 2)]
        root.dpkg("-i", *older, *others)
        # Neither the command nor the headers go with an older library.
        said = root.dpkg("-i", self.packages["cairn"], fails=True)
        self.assertIn(f"cairn depends on libcairn1 (>= {self.version.split('-')[0]})", said)
        said = root.dpkg("-i", self.packages["libcairn-dev"], fails=True)
        self.assertRegex(said, rf"libcairn-dev:\w+ depends on libcairn1 \(= {re.escape(self.version)}\)")
        said = root.dpkg("-i", self.packages["cairn-cuda"], fails=True)
        self.assertIn(f"cairn-cuda depends on libcairn1 (= {self.version})", said)
        root.dpkg("-i", *self.packages.values())
        self.assertEqual(root.versions(), dict({name: self.version for name in self.packages}, libcairn0="0.1.0-1",
                                               libcairn2="2.1.0-1"))
        self.assertEqual(root.dpkg("--audit"), "")
        names = {path.name for path in (root.folder / library).iterdir()}
        self.assertLessEqual({*(f"libcairn.so.{major}" for major in range(3)), f"libcairn.so.{self.version.split('-')[0]}"},
                             names)
        self.assertNotIn("libcairn.so.1.0", names)
        self.assertFalse((root.folder / "usr/share/cairn/scripts/cli/gone.lua").exists())
        root.dpkg("-r", "libcairn0", "libcairn2")
        self.assertIn("cpu", run(root.folder / "usr/bin/cairn", "devices",
                                 env=dict(os.environ, LD_LIBRARY_PATH=str(root.folder / library))))

    def test_a_file_of_another_package(self):
        """A stranger's package with a file of ours: dpkg names both, and what was installed stays whole."""
        root, folder = self.root("strangers"), self.folder / "stranger"
        folder.mkdir()
        library = f"usr/lib/{TRIPLET}/libcairn.so.1"
        root.dpkg("-i", make_package(folder, "stranger", "1.0", {library: "", "usr/bin/cairn": "a stranger's"}))
        said = root.dpkg("-i", self.packages["libcairn1"], fails=True)
        self.assertRegex(said, rf"trying to overwrite '/{library}', which is also in package stranger 1\.0")
        self.assertNotIn("libcairn1", root.versions())
        root.dpkg("-i", "--force-depends", self.packages["cairn"], fails=True)
        self.assertEqual((root.folder / "usr/bin/cairn").read_text(), "a stranger's")
        root.dpkg("-r", "stranger")
        root.dpkg("-i", self.packages["libcairn1"], self.packages["cairn"])
        self.assertEqual(root.dpkg("--audit"), "")

    @unittest.skipUnless(LONG, "takes ten seconds; ./dev test long runs it")
    @unittest.skipUnless(shutil.which("lintian"), "no lintian here; ./dev test long installs it")
    def test_lintian(self):
        # What is meant is in the packages themselves, with reasons (cmake/packages/*.overrides.in).
        said = subprocess.run(["lintian", "--no-cfg", "--display-info", "--allow-root", *map(str, self.packages.values())],
                              capture_output=True, text=True, check=False)
        # Whether the compiler cuts words is another matter from build to build.
        found = [line for line in said.stdout.splitlines() if re.match("[EWI]: ", line)
                 and not re.search(r"unused-override (spelling-error-in-binary|hardening-no-fortify-functions)", line)]
        self.assertEqual(found, [], said.stdout + said.stderr)

    @unittest.skipUnless(LONG, "downloads a Debian; ./dev test long does")
    @unittest.skipUnless(shutil.which("debootstrap") and os.getuid() == 0, "no debootstrap here, or not as root")
    def test_apt_in_a_debian_of_its_own(self):
        debian = self.folder / "debian"
        done = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", str(debian)], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            self.skipTest(f"debootstrap: {(done.stdout + done.stderr).strip().splitlines()[-1]}")
        for package in self.packages.values():
            shutil.copy(package, debian / "tmp")
        shutil.copy("/etc/resolv.conf", debian / "etc/resolv.conf")
        names = [f"/tmp/{package.name}" for package in self.packages.values()]
        run("chroot", debian, "apt-get", "update")
        run("chroot", debian, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "--no-install-recommends",
            *names, "gcc", "libc6-dev", "pkgconf", "luajit")
        run("chroot", debian, "sh", "-c",
            "cc /usr/share/doc/libcairn-dev/examples/train.c $(pkg-config --cflags --libs cairn) -o /tmp/t")
        self.assertIn("the same to the bit", run("chroot", debian, "/tmp/t", "/tmp"))
        self.assertIn("cpu", run("chroot", debian, "cairn", "devices"))
        self.assertIn("1.", run("chroot", debian, "luajit", "-e", 'print(require("cairn").version())'))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
