"""libcairn.so asks a host for few libraries, and for no symbol that another copy of a library in the host could give it:

    dependencies_test.py LIBRARY

Everything the dynamic linker would load with it is looked at, not only what it names itself.
"""
import re
import subprocess
import sys

LIBRARY = sys.argv[1]

# What libcairn.so may name, and why. tests/install/packages_test.py looks at their licences.
ALLOWED = {
    "libc.so.6": "the system",
    "libm.so.6": "the system",
    "libgcc_s.so.1": "the compiler",
    "libstdc++.so.6": "the compiler",
    "ld-linux-x86-64.so.2": "the system",
    "libhwy.so.1": "SIMD of the CPU's kernels",
    "libonig.so.5": "regular expressions of tokenizers",
    "libsimdjson.so.14": "JSON",
    "libspng.so.0": "pictures of .png files",
    "libturbojpeg.so.0": "pictures of .jpg files",
    "libutf8proc.so.2": "Unicode's tables",
    "libwebp.so.7": "pictures of .webp files",
    "libxxhash.so.0": "digests",
    "libz.so.1": "MNIST's .gz files",
}
# Libraries of which a host is likely to have another version, and whose symbols then mix: nowhere in what is loaded.
FORBIDDEN_LIBRARIES = re.compile(r"libprotobuf|libsentencepiece|libabsl|libflatbuffers|libgflags|libglog")
FORBIDDEN_SYMBOLS = re.compile(r"\b(google::protobuf|sentencepiece|absl|flatbuffers)::")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    problems = []
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", LIBRARY))
    assert "libc.so.6" in needed, needed
    for name in needed:
        if name not in ALLOWED and not re.match(r"lib(asan|ubsan|tsan)\.so", name):
            problems.append(f"names {name}, which is not among {', '.join(ALLOWED)}")
    loaded = output("ldd", LIBRARY)
    assert "libc.so.6" in loaded, loaded
    for line in loaded.splitlines():
        if FORBIDDEN_LIBRARIES.search(line):
            problems.append(f"makes the linker load {line.strip()}")
    symbols = output("nm", "-D", "-C", LIBRARY)
    assert "cairn_tokenizer_open" in symbols
    for line in symbols.splitlines():
        if FORBIDDEN_SYMBOLS.search(line):
            problems.append(f"has the dynamic symbol {line.strip()}")
    for problem in problems:
        print(f"{LIBRARY} {problem}")
    return 1 if problems else 0


sys.exit(main())
