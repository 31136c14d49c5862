#!/usr/bin/env python3
"""What `cmake --install` lays out builds programs outside: with pkg-config and with find_package, shared and static.
usage: install_test.py BUILD_FOLDER CMAKE C_COMPILER"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(outside C)
find_package(cairn 1.0 REQUIRED)
add_executable(shared train.c)
target_link_libraries(shared PRIVATE cairn::cairn)
add_executable(static train.c)
target_link_libraries(static PRIVATE cairn::static)
"""


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(program, folder, environment=None, needs_library=False):
    out = run(program, folder, env=environment)
    if "the same to the bit" not in out:
        raise SystemExit(f"{program} says:\n{out}")
    linked = "libcairn.so" in run("readelf", "-d", program)
    if linked != needs_library:
        raise SystemExit(f"{program} {'needs' if linked else 'does not need'} libcairn.so")
    print(f"{program.name}: works")


def main():
    build, cmake, cc = sys.argv[1:4]
    with tempfile.TemporaryDirectory(prefix="cairn-install-") as name:
        folder = pathlib.Path(name)
        first, prefix = folder / "first", folder / "moved"
        run(cmake, "--install", build, "--prefix", first)
        first.rename(prefix)  # nothing in it may name where it was
        source = folder / "train.c"
        source.write_text((ROOT / "capi/examples/train.c").read_text())

        pc = next(prefix.rglob("cairn.pc")).parent
        library = pc.parent
        environment = dict(os.environ, PKG_CONFIG_PATH=str(pc))

        def flags(*which):
            return run("pkg-config", *which, "cairn", env=environment).split()

        shared = folder / "pkgconfig_shared"
        run(cc, source, *flags("--cflags", "--libs"), "-o", shared)
        check(shared, folder, dict(environment, LD_LIBRARY_PATH=str(library)), needs_library=True)
        static = folder / "pkgconfig_static"
        # The same flags; of the two libraries of that name, the archive.
        run(cc, source, *["-l:libcairn.a" if flag == "-lcairn" else flag for flag in flags("--static", "--cflags", "--libs")],
            "-o", static)
        check(static, folder)

        (folder / "CMakeLists.txt").write_text(PROJECT)
        run(cmake, "-S", folder, "-B", folder / "out", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={cc}")
        run(cmake, "--build", folder / "out")
        check(folder / "out/shared", folder, needs_library=True)
        check(folder / "out/static", folder)

        for wanted in ("include/cairn/cairn.h", "include/cairn/cairn.hpp", "include/cairn/cairn_config.h"):
            if not (prefix / wanted).exists():
                raise SystemExit(f"{wanted} is not installed")
        command = prefix / "bin/cairn"
        if (pathlib.Path(build) / "bin/cairn").exists():
            out = run(command, "devices", cwd=folder)
            if "cpu" not in out:
                raise SystemExit(f"cairn devices says:\n{out}")
            print("the command: works")


if __name__ == "__main__":
    main()
