#!/usr/bin/env python3
"""Every function of cairn.h has a contract: a comment before it, or before the unbroken group of functions it stands in,
that says since which version it is there. retain and release follow the rule in the header's introduction, once."""
import pathlib
import re
import sys

HEADER = pathlib.Path(__file__).resolve().parents[2] / "capi" / "include" / "cairn" / "cairn.h"


TOKENS = re.compile(r"""(?P<comment>/\*.*?\*/)|(?P<blank>\n[ \t]*\n)|(?P<function>CAIRN_API[^;]*;)
                        |(?P<other>\#(?:[^\n]*\\\n)*[^\n]*|(?:typedef|enum)[^;{]*(?:\{[^}]*\})?[^;{]*;)""",
                    re.S | re.X)


def problems(text):
    found, contract = [], None
    for token in TOKENS.finditer(text):
        if token.lastgroup == "comment":
            contract = token.group()
        elif token.lastgroup != "function":
            contract = None
        else:
            name = re.search(r"\b(cairn_\w+)\(", token.group()).group(1)
            if re.search(r"_(retain|release)$", name):
                continue
            if contract is None:
                found.append(f"{name}: no comment before it")
            elif not re.search(r"since: \d+\.\d+", contract):
                found.append(f"{name}: its comment does not say since:")
    return found


def main():
    text = HEADER.read_text()
    found = problems(text)
    # The check itself must see what it is for.
    probes = {
        "CAIRN_API int cairn_bare(void);": 1,
        "/* Does. */\nCAIRN_API int cairn_sinceless(void);": 1,
        "/* Does. since: 1.0 */\nCAIRN_API int cairn_good(void);\nCAIRN_API int cairn_group(void);": 0,
        "/* Does. since: 1.0 */\nCAIRN_API int cairn_good(void);\n\nCAIRN_API int cairn_alone(void);": 1,
        "/* A struct. since: 1.0 */\ntypedef struct x x;\nCAIRN_API int cairn_after(void);": 1,
    }
    for probe, count in probes.items():
        if len(problems(probe)) != count:
            found.append(f"the lint is wrong about: {probe!r}: {problems(probe)}")
    print("\n".join(found) or "every function has its contract")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
