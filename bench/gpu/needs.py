#!/usr/bin/env python3
"""What a machine must have to run the bundle, noted where the bundle is made and checked where it runs.

  bench/gpu/needs.py --write build/gpu --arch 90a     reads what its files ask for, into build/gpu/needs.json
  bench/gpu/needs.py build/gpu                        says what this machine lacks, all of it at once; exit code 1
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

NAME = "needs.json"
DRIVER = 580  # the first that CUDA 13 runs on
LIBRARIES = ["libcublasLt.so.13"]
# Versions of symbols, by the library that gives them.
FAMILIES = {"GLIBC": "the C library (glibc)", "GLIBCXX": "the C++ library (libstdc++.so.6, GLIBCXX)"}
ELSEWHERE = "/usr/local/cuda/lib64"  # where the plugin looks as well
REMEDY = {"libcublasLt.so.13": "install the CUDA 13 toolkit, or `pip install nvidia-cublas` and name its Python: --torch"}


def number(text):
    return tuple(int(part) for part in re.findall(r"\d+", str(text)))


def highest(versions):
    return max(versions, key=number, default=None)


def files_of(bundle):
    return sorted(f for part in ("bin", "lib") for f in (bundle / part).iterdir() if f.is_file())


def asked_for(bundle):
    """{family: highest version of a symbol that a file of the bundle takes from another library}"""
    found = {}
    for file in files_of(bundle):
        text = subprocess.run(["objdump", "-p", file], capture_output=True, text=True, check=True).stdout
        references = text.partition("Version References:")[2]
        for family, version in re.findall(r"\b([A-Z]+)_(\d+(?:\.\d+)+)\b", references):
            if family in FAMILIES:
                found.setdefault(family, set()).add(version)
    return {family: highest(versions) for family, versions in found.items()}


def strangers(bundle):
    """Files that the bundle has but its programs take from elsewhere; the C library's and the compiler's are not in it."""
    own = {f.name for f in files_of(bundle)}
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    found = set()
    for file in sorted((bundle / "bin").iterdir()):
        text = subprocess.run(["ldd", file], capture_output=True, text=True, check=True, env=environment).stdout
        for name, path in re.findall(r"(\S+) => (\S+) \(", text):
            if name in own and bundle.resolve() not in pathlib.Path(path).resolve().parents:
                found.add(f"{file.name} takes {name} from {path}")
    return sorted(found)


def write(bundle, arch):
    needs = {"versions": asked_for(bundle), "driver": DRIVER, "libraries": LIBRARIES, "architecture": arch}
    (bundle / NAME).write_text(json.dumps(needs, indent=1) + "\n")
    return needs


def output(words, environment=None):
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    except OSError:
        return subprocess.CompletedProcess(words, 127, "", "")


def version_here(family):
    if family == "GLIBC":
        return highest(re.findall(r"[\d.]+", os.confstr("CS_GNU_LIBC_VERSION") or ""))
    words = ("import ctypes, re; ctypes.CDLL('libstdc++.so.6')\n"
             "path = next(l.split()[-1] for l in open('/proc/self/maps') if 'libstdc++' in l)\n"
             "print(*re.findall(rb'GLIBCXX_[0-9.]+', open(path, 'rb').read()))\n")
    return highest(re.findall(r"GLIBCXX_(\d[\d.]*\d)", output([sys.executable, "-c", words]).stdout))


def opens(library, environment):
    words = [sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])"]
    return any(output([*words, name], environment).returncode == 0 for name in (library, f"{ELSEWHERE}/{library}"))


def missing_files(bundle, environment):
    """Libraries that no program of the bundle finds here."""
    found = set()
    if shutil.which("ldd"):
        for file in files_of(bundle):
            found.update(re.findall(r"(\S+) => not found", output(["ldd", str(file)], environment).stdout))
    return sorted(found)


def facts(needs, bundle, environment):
    """What this machine has of what is asked for."""
    query = ["nvidia-smi", "--format=csv,noheader"]
    return {"versions": {family: version_here(family) for family in needs["versions"]},
            "driver": output([*query, "--query-gpu=driver_version"], environment).stdout.strip().split("\n")[0],
            "capability": output([*query, "--query-gpu=compute_cap"], environment).stdout.strip().split("\n")[0],
            "libraries": [name for name in needs["libraries"] if opens(name, environment)],
            "missing": missing_files(bundle, environment)}


def lacking(needs, have):
    """One sentence for each thing that is not there."""
    lines = []
    for family, wanted in needs["versions"].items():
        here = have["versions"].get(family)
        if here is None or number(here) < number(wanted):
            lines.append(f"{FAMILIES[family]} is {here or 'not found'}; {wanted} or later is needed: make the bundle on "
                         "an older system")
    if not have["driver"]:
        lines.append(f"there is no NVIDIA driver (nvidia-smi names none); {needs['driver']} or later is needed")
    elif number(have["driver"])[0] < needs["driver"]:
        lines.append(f"the NVIDIA driver is {have['driver']}; CUDA 13 needs {needs['driver']} or later")
    built = number(needs["architecture"])[0]
    if have["capability"] and number(have["capability"].replace(".", "")) != (built,):
        lines.append(f"the GPU has compute capability {have['capability']}; the bundle is for {built // 10}.{built % 10}: "
                     "make it again with CAIRN_GPU_ARCH")
    for name in needs["libraries"]:
        if name not in have["libraries"]:
            lines.append(f"{name} cannot be opened: {REMEDY.get(name, 'install it')}")
    lines += [f"{name}, which the bundle's programs need, is not found" for name in have["missing"]]
    return lines


def problem(bundle, environment=None):
    """One message about all that this machine lacks; "": nothing, or the bundle does not say what it needs."""
    bundle = pathlib.Path(bundle)
    if not (bundle / NAME).exists():
        return ""
    needs = json.loads((bundle / NAME).read_text())
    lines = lacking(needs, facts(needs, bundle, environment or dict(os.environ)))
    return "\n".join(["this machine cannot run the bundle:", *(f"  - {line}" for line in lines)]) if lines else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("bundle", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--arch", default="90a")
    options = parser.parse_args()
    if options.write:
        print(json.dumps(write(options.bundle, options.arch)))
        for line in (wrong := strangers(options.bundle)):
            print(line, file=sys.stderr)
        return 1 if wrong else 0
    text = problem(options.bundle)
    print(text or "nothing is missing here")
    return 1 if text else 0


if __name__ == "__main__":
    sys.exit(main())
