#!/usr/bin/env python3
"""The Rust crates: that made files are fresh, and that the crates do what they say against an installed prefix.

    rust_test.py fresh CAIRN
    rust_test.py crates BUILD_FOLDER CMAKE C_COMPILER
    rust_test.py asan BUILD_FOLDER ASAN_BUILD_FOLDER

asan runs the crate's tests on a libcairn with the address sanitizer's checks, whose runtime is loaded before the programs: what the
library reads and writes of the crate's memory, and what either leaks. (Miri, which checks Rust's own unsafe code, calls no C; nor
does the sanitizer of stable compilers look into Rust.)

Where a tool is missing it says so and leaves the rest, but on a machine that tests changes (CI is set) that is an error."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUST = ROOT / "bindings/rust"
BINDGEN = "bindgen 0.60"  # others write the same declarations in other words
# Functions that the safe crate does not call, and why.
NOT_REACHED = {"cairn_error_status": "the result of a call carries its status itself",
               "cairn_stepper_save": "cairn_stepper_save_as with no option set"}


def run(*command, fails=False, **options):
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **options)
    if (done.returncode != 0) != fails:
        raise SystemExit(f"{' '.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}")
    return done.stdout


def leave(what, why):
    print(f"not run: {what}: {why}")
    sys.exit(1 if os.environ.get("CI") else 0)


def fresh(cairn):
    if not shutil.which("bindgen"):
        leave("bindings/rust/make_bindings.sh --check", "bindgen is not installed (apt-get install bindgen)")
    version = run("bindgen", "--version").strip()
    if not version.startswith(BINDGEN):
        leave("bindings/rust/make_bindings.sh --check", f"it takes {BINDGEN}, and this is {version}")
    run(RUST / "make_bindings.sh", "--check", cairn)
    print("declarations, layout and ops are what header and library give")


def check_symbols():
    """Every function of the header is called by the safe crate."""
    source = "".join(path.read_text() for path in (RUST / "cairn/src").rglob("*.rs"))
    symbols = (ROOT / "capi/abi/symbols.txt").read_text().split()
    missing = [symbol for symbol in symbols if not re.search(rf"\b{symbol}\b", source)]
    if missing != list(NOT_REACHED):
        raise SystemExit(f"bindings/rust/cairn does not call {', '.join(missing)}; NOT_REACHED of this test names "
                         f"{', '.join(NOT_REACHED)}: give what is missing a safe form, or a reason there")
    print(f"{len(symbols)} functions of the header are reached")


def check_safe():
    for path in (RUST / "README.md", *(RUST / "cairn/examples").glob("*.rs")):
        assert not re.search(r"\bunsafe\b", path.read_text()), f"{path} has unsafe code"


class Cargo:
    """cargo with a target folder of its own, and a prefix that pkg-config finds."""

    def __init__(self, folder, pkgconfig):
        self.folder = folder
        self.target = folder / "target"
        self.environment = dict(os.environ, PKG_CONFIG_PATH=str(pkgconfig), RUST_BACKTRACE="0",
                                CARGO_INCREMENTAL="0")  # nothing is compiled twice here: no notes for that
        self.environment.pop("LD_LIBRARY_PATH", None)  # it finds the library by itself

    def __call__(self, command, *arguments, cwd=RUST, **options):
        # --locked: the lock file in the sources is whole.
        return run("cargo", command, "--offline", "--quiet", "--target-dir", self.target,
                   *(() if cwd != RUST else ("--locked",)), *arguments, cwd=cwd, env=self.environment, **options)

    def has(self, command):
        done = subprocess.run(["cargo", command, "--version"], capture_output=True, check=False)
        return done.returncode == 0


def check_tests(cargo):
    out = cargo("test", cwd=RUST)
    passed = sum(int(count) for count in re.findall(r"test result: ok\. (\d+) passed", out))
    assert passed >= 100, out
    print(f"cargo test: {passed} pass")
    if cargo.has("clippy"):
        cargo("clippy", "--all-targets", "--", "-D", "warnings")
        print("cargo clippy: clean")
    if cargo.has("fmt"):
        run("cargo", "fmt", "--check", cwd=RUST)
        print("cargo fmt: clean")
    cargo.environment["RUSTDOCFLAGS"] = "-D warnings"
    cargo("doc", "--no-deps")


def check_example(cargo, compiler, prefix, library):
    """The example gives the losses and, to the bit, the parameters of the one in C."""
    out = cargo("run", "--example", "train", "--", cargo.folder)
    program = cargo.folder / "train_c"
    run(compiler, ROOT / "capi/examples/train.c", f"-I{prefix}/include", f"-L{library}", "-lcairn", f"-Wl,-rpath,{library}",
        "-o", program)
    of_c = run(program, cargo.folder)
    steps = r"step +\d+: loss \S+, gradient norm \S+, rate [\d.]+"
    assert len(re.findall(steps, of_c)) == 9 and re.findall(steps, out) == re.findall(steps, of_c), out + of_c
    digest = r"parameters (\w{32}), the same to the bit; peak as planned"
    assert re.search(digest, out).group(1) == re.search(digest, of_c).group(1), out + of_c
    assert "counts: [1, 3, 5, 7, 9, 11" in out, out
    assert cargo("run", "--example", "train", "--", cargo.folder) == out, "another run says something else"
    print("the example: as the one in C, each time")
    shutil.rmtree(cargo.folder / "example-adapter-rust", ignore_errors=True)
    tuned = cargo("run", "--example", "finetune", "--", cargo.folder, ROOT / "tests/golden/data/objectives/model")
    assert re.search(r"loss \d.*\nwhat marks the way\? -> ", tuned), tuned
    print("the example that fine-tunes: an adapter is trained and saved")


def check_readme(cargo, prefix):
    """The README's program, as a crate outside that depends on the installed one."""
    body = re.search(r"^```rust\n(// main\.rs: .*?)^```", (RUST / "README.md").read_text(), re.S | re.M).group(1)
    crate = cargo.folder / "outside"
    (crate / "src").mkdir(parents=True, exist_ok=True)
    (crate / "src/main.rs").write_text(body)
    (crate / "Cargo.toml").write_text('[package]\nname = "outside"\nversion = "1.0.0"\nedition = "2021"\n[workspace]\n'
                                      f'[dependencies]\ncairn = {{ path = "{prefix}/share/cairn/bindings/rust/cairn" }}\n')
    answers = re.findall(r"(\d) xor (\d) = (-?\d+\.\d+)", cargo("run", cwd=crate))
    assert len(answers) == 4, answers
    for a, b, y in answers:
        assert abs(float(y) - (int(a) ^ int(b))) < 0.2, answers
    print("the README's program: works")


def check_messages(cargo):
    """What a build says where there is no cairn, another one, or no pkg-config."""
    other = Cargo(cargo.folder / "messages", cargo.folder / "nothing")
    other.environment["PKG_CONFIG_LIBDIR"] = str(cargo.folder / "nothing")
    out = other("build", "-p", "cairn-sys", fails=True)
    assert "pkg-config does not know cairn" in out and "PKG_CONFIG_PATH" in out, out
    newer = cargo.folder / "newer"
    newer.mkdir(exist_ok=True)
    (newer / "cairn.pc").write_text("Name: cairn\nDescription: of another time\nVersion: 2.1.0\nLibs: -lcairn\n")
    other.environment["PKG_CONFIG_PATH"] = str(newer)
    out = other("build", "-p", "cairn-sys", fails=True)
    assert "has version 2.1.0" in out and "1.x" in out, out
    other.environment["PKG_CONFIG"] = "no-such-pkg-config"
    out = other("build", "-p", "cairn-sys", fails=True)
    assert "cannot run 'no-such-pkg-config'" in out and "PKG_CONFIG" in out, out
    print("a build without cairn says what to do")


def crates(build, cmake, compiler):
    check_symbols()
    check_safe()
    if not shutil.which("cargo"):
        leave("cargo test in bindings/rust", "cargo is not installed (apt-get install cargo)")
    folder = pathlib.Path(build).resolve() / "rust"
    prefix = folder / "prefix"
    shutil.rmtree(prefix, ignore_errors=True)
    run(cmake, "--install", build, "--prefix", prefix)
    pkgconfig = next(prefix.rglob("cairn.pc")).parent
    cargo = Cargo(folder, pkgconfig)
    check_tests(cargo)
    check_example(cargo, compiler, prefix, pkgconfig.parent)
    check_readme(cargo, prefix)
    check_messages(cargo)


def asan(build, asan_build):
    library = pathlib.Path(asan_build).resolve() / "lib/libcairn.so"
    if not shutil.which("cargo") or not library.exists():
        leave("cargo test with the address sanitizer", "cargo is not installed" if library.exists() else f"there is no {library}")
    runtime = run("clang-14", "-print-file-name=libclang_rt.asan-x86_64.so").strip()
    if not pathlib.Path(runtime).exists():
        leave("cargo test with the address sanitizer", "its runtime is not installed (apt-get install libclang-rt-14-dev)")
    folder = pathlib.Path(build).resolve() / "rust-asan"
    folder.mkdir(exist_ok=True)
    version = re.search(r'CAIRN_VERSION_MAJOR (\d+)', (ROOT / "capi/include/cairn/cairn.h").read_text()).group(1)
    (folder / "cairn.pc").write_text(f"libdir={library.parent}\nincludedir={ROOT}/capi/include\nName: cairn\nDescription: with "
                                     f"checks\nVersion: {version}.0.0\nLibs: -L${{libdir}} -lcairn\nCflags: -I${{includedir}}\n")
    cargo = Cargo(folder, folder)
    host = re.search(r"^host: (\S+)$", run("rustc", "-vV"), re.M).group(1).upper().replace("-", "_")
    cargo.environment["RUSTFLAGS"] = "-C link-arg=-Wl,--allow-shlib-undefined"  # the runtime's symbols come with the runtime
    cargo.environment[f"CARGO_TARGET_{host}_RUNNER"] = (
        f"env LD_PRELOAD={runtime} ASAN_OPTIONS=detect_leaks=1:halt_on_error=1:allocator_may_return_null=1")
    # Not the test of flat memory: the sanitizer keeps freed blocks back, to see late uses of them.
    names = sorted(path.stem for path in (RUST / "cairn/tests").glob("*.rs") if path.stem != "handles")
    out = cargo("test", "--lib", *(word for name in names for word in ("--test", name)))
    passed = sum(int(count) for count in re.findall(r"test result: ok\. (\d+) passed", out))
    assert passed >= 30, out
    print(f"cargo test with the address sanitizer: {passed} pass")


if __name__ == "__main__":
    {"fresh": fresh, "crates": crates, "asan": asan}[sys.argv[1]](*sys.argv[2:])
