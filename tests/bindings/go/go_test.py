#!/usr/bin/env python3
"""The Go module against an installed prefix, without a network: its form, its tests, its example beside C's, its README's program.

  go_test.py BUILD_FOLDER CMAKE C_COMPILER

CAIRN_TEST=long runs the tests once more with Go's race detector, which compiles Go's library with it first."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/support"))
import campaign  # noqa: E402  pylint: disable=wrong-import-position

MODULE = ROOT / "bindings/go"


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, check=False, **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def install(build, cmake, folder):
    """A prefix, and the environment in which Go builds against it and nothing comes from elsewhere."""
    prefix = folder / "prefix"
    shutil.rmtree(prefix, ignore_errors=True)
    run(cmake, "--install", build, "--prefix", prefix)
    pkgconfig = next(prefix.rglob("cairn.pc")).parent
    return prefix, dict(os.environ, PKG_CONFIG_PATH=str(pkgconfig), LD_LIBRARY_PATH=str(pkgconfig.parent), GOFLAGS="-mod=mod",
                        GOPROXY="off", GOSUMDB="off", GOTOOLCHAIN="local", GOWORK="off", GO111MODULE="on", CGO_ENABLED="1",
                        GOCACHE=str(folder / "cache"), GOPATH=str(folder / "path"))


def installed_module(prefix):
    """The module as it is installed, whole with its tests. All else is done there: Go compiles a module once for each folder."""
    installed = prefix / "share/cairn/bindings/go"
    missing = [str(file.relative_to(MODULE)) for file in sorted(MODULE.rglob("*.go"))
               if not (installed / file.relative_to(MODULE)).exists()]
    if missing:
        raise SystemExit(f"cmake --install leaves out {', '.join(missing)} of the Go module: mend its patterns in cmake/library.cmake")
    return installed


def check_form(module, environment):
    unformatted = run("gofmt", "-l", ".", cwd=MODULE, env=environment)
    if unformatted:
        raise SystemExit(f"gofmt would change:\n{unformatted}")
    run("go", "vet", "./...", cwd=module, env=environment)
    print("form: gofmt and go vet find nothing")


def check_tests(module, environment):
    # All checks of what is passed to C: an option of the program in older versions of Go, of the compiler since 1.21.
    version = re.match(r"go1\.(\d+)", run("go", "env", "GOVERSION", env=environment))
    checks = {"GODEBUG": "cgocheck=2"} if version and int(version.group(1)) < 21 else {"GOEXPERIMENT": "cgocheck2"}
    out = run("go", "test", "-count=1", "./...", cwd=module, env=dict(environment, **checks))
    print(re.search(r"^ok .*", out, re.M).group(0), "with all checks of cgo")
    if campaign.LONG:
        run("go", "test", "-race", "-count=1", "./...", cwd=module, env=dict(environment, CAIRN_TEST="full"))
        print("race detector: nothing")


def curve(out):
    """Steps, losses, norms and rates that a training example prints, and the digest of its parameters."""
    lines = re.findall(r"step +\d+: loss \S+, gradient norm \S+, rate \d+\.\d+", out)
    return lines, re.search(r"parameters (\w{32}), the same to the bit", out).group(1)


def check_example(module, compiler, folder, environment):
    flags = run("pkg-config", "--cflags", "--libs", "cairn", env=environment).split()
    run(compiler, ROOT / "capi/examples/train.c", *flags, "-o", folder / "train-c")
    run("go", "build", "-o", folder / "train-go", "./examples/train", cwd=module, env=environment)
    in_c = run(folder / "train-c", folder, env=environment)
    in_go = run(folder / "train-go", folder, env=environment)
    if curve(in_c) != curve(in_go) or len(curve(in_c)[0]) < 9:
        raise SystemExit(f"the examples train otherwise.\nC:\n{in_c}\nGo:\n{in_go}")
    if "counting: [3 5 7 9 11 13 15 17 19 21 23 25]" not in in_go:
        raise SystemExit(f"the trained model does not count on from 3 5:\n{in_go}")
    print("examples: Go's curve and parameters are C's")
    run("go", "build", "-o", folder / "finetune-go", "./examples/finetune", cwd=module, env=environment)
    shutil.rmtree(folder / "example-adapter-go", ignore_errors=True)
    tuned = run(folder / "finetune-go", folder, ROOT / "tests/golden/data/objectives/model", env=environment)
    if not re.search(r"loss \d.*\nwhat marks the way\? -> ", tuned):
        raise SystemExit(f"the example that fine-tunes prints:\n{tuned}")


def check_readme(prefix, folder, environment):
    """Each program of the README, in a module as the README prints it."""
    text = (MODULE / "README.md").read_text(encoding="utf-8")
    printed = re.search(r"^    module xor\n(?:    .*\n)+", text, re.M).group(0)
    module = re.sub(r"^    ", "", printed, flags=re.M).replace("/usr/local", str(prefix))
    programs = re.findall(r"^```go\n(// (\w+)\.go: .*?)^```", text, re.M | re.S)
    for body, name in programs:
        place = folder / "readme" / name
        place.mkdir(parents=True, exist_ok=True)
        (place / "go.mod").write_text(module, encoding="utf-8")
        (place / f"{name}.go").write_text(body, encoding="utf-8")
        if run("gofmt", "-l", ".", cwd=place, env=environment):
            raise SystemExit(f"gofmt would change {name}.go of the README")
        out = run("go", "run", ".", cwd=place, env=environment)
        answers = re.findall(r"(\d) xor (\d) = (-?\d+\.\d+)", out)
        if len(answers) != 4 or any(abs(float(y) - (int(a) ^ int(b))) > 0.2 for a, b, y in answers):
            raise SystemExit(f"{name}.go of the README prints:\n{out}")
    if not programs:
        raise SystemExit("the README has no program")
    print(f"README: {len(programs)} program runs as printed")


def main():
    build, cmake, compiler = sys.argv[1:4]
    missing = [tool for tool in ("go", "gofmt", "pkg-config") if not shutil.which(tool)]
    if missing:
        print(f"not run: the Go binding: {', '.join(missing)} is not installed (apt-get install golang-go)")
        return
    folder = pathlib.Path(build) / "tests/go"
    folder.mkdir(parents=True, exist_ok=True)
    prefix, environment = install(build, cmake, folder)
    module = installed_module(prefix)
    check_form(module, environment)
    check_tests(module, environment)
    check_example(module, compiler, folder, environment)
    check_readme(prefix, folder, environment)


if __name__ == "__main__":
    main()
