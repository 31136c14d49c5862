#!/usr/bin/env python3
"""The headers compile alone, included twice, without a warning, in every language version they promise.
usage: header_test.py C_COMPILER CXX_COMPILER"""
import pathlib
import subprocess
import sys

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "capi" / "include"
FLAGS = ["-Wall", "-Wextra", "-Wshadow", "-pedantic", "-Werror", "-c", "-o", "/dev/null", f"-I{INCLUDE}"]
USE = """
cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
cairn_custom_op_t op = CAIRN_CUSTOM_OP_INIT;
cairn_plan_summary_t summary = CAIRN_PLAN_SUMMARY_INIT;
cairn_step_report_t report = CAIRN_STEP_REPORT_INIT;
cairn_value_info_t info = CAIRN_VALUE_INFO_INIT;
"""


def compiles(compiler, language, standard, header, use):
    source = f'#include "cairn/{header}"\n#include "cairn/{header}"\n{use}'
    return subprocess.run([compiler, "-x", language, f"-std={standard}", *FLAGS, "-"], input=source, text=True).returncode == 0


def main():
    cc, cxx = sys.argv[1:3]
    cases = [(cc, "c", standard, "cairn.h", USE) for standard in ("c99", "c11", "c17")]
    cases += [(cxx, "c++", f"c++{year}", "cairn.h", USE) for year in ("11", "14", "17", "20")]
    cases += [(cxx, "c++", f"c++{year}", "cairn.hpp", "cairn::Graph graph;") for year in ("17", "20")]
    bad = [f"{header} as {standard}" for cc_, lang, standard, header, use in cases
           if not compiles(cc_, lang, standard, header, use)]
    if compiles(cc, "c", "c11", "cairn.h", "int main(void) { cairn_graph_create(0, 0, 0); return 0; }"):
        bad.append("an ignored status compiles without a warning")
    print("\n".join(bad) or f"{len(cases)} ways to compile")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
