#!/usr/bin/env python3
"""Every program that measures says how it is called, and refuses what it does not understand before it measures anything.

    usage_test.py FOLDER_OF_PROGRAMS"""
import pathlib
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(sys.argv[1])
PROGRAMS = sorted(path for path in (*FOLDER.glob("bench_*"), FOLDER / "cairn_gpu_rates") if path.is_file())
# What they do not understand, beside unknown options.
WRONG = {"bench_irregular": ["dense", "dense/", "dense/x", "dense/0", "dense/1.5", "thing/3", "dense/99999999999999"],
         "bench_kernels": ["--threads=", "--threads=0", "--threads=two", "--repeats=-1"],
         "bench_recompute_vs_offload": ["--threads=0", "--link=fast", "--link=-1", "--link=inf"],
         "bench_convolutions": ["--layer=0", "--dtype=f16", "more"],
         "bench_products": ["--threads=x", "--repeats=0", "more"],
         "bench_experts": ["--tokens=0", "--chosen=x", "--threads=0", "more"],
         "bench_optimizer": ["--parameters=f64", "--threads=1e99", "more"],
         "bench_floor": ["fp16"],
         "bench_step_products": ["width", "depth=2", "width=0", "amp=fp16"],
         "cairn_gpu_rates": ["--models", "--device", "more"]}


def run(program, *words):
    return subprocess.run([program, *words], text=True, capture_output=True, timeout=120, check=False)


class Usage(unittest.TestCase):
    def test_there_are_programs(self):
        self.assertGreater(len(PROGRAMS), 5)
        self.assertLessEqual({"bench_irregular", "bench_plan"}, {program.name for program in PROGRAMS})

    def test_help(self):
        for program in PROGRAMS:
            for word in ("--help", "-h"):
                with self.subTest(program=program.name, word=word):
                    done = run(program, word)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertIn(f"usage: {program.name}", done.stdout)

    def test_what_is_not_understood(self):
        for program in PROGRAMS:
            for word in ("--nonsense", "--nonsense=1", *WRONG.get(program.name, [])):
                with self.subTest(program=program.name, word=word):
                    done = run(program, word)
                    self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                    self.assertIn(word.split("=")[0].rpartition("/")[2], done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
