#!/usr/bin/env python3
"""A new elementwise op is a row and a function for each backend. Adds one that does not exist to a copy of the
sources, counts the files that change, compiles the kernels that come of it and runs them; under CAIRN_TEST=long builds
the copy and runs the conformance tests and `cairn ops` on it.

    op_test.py BUILD_FOLDER LIBRARY...      the libraries that the kernels need, as files"""
import pathlib
import sys
import unittest

import edits

sys.path.insert(0, str(edits.ROOT / "tests/support"))
import campaign  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
LIBRARIES = sys.argv[2:]
MOST_FILES = 5  # beside tests

# y = x / (1 + |x|), and its derivative 1 / (1 + |x|)^2.
OP = "softsign"
EDITS = [
    edits.Edit("runtime/base/elementwise.def", 'FUNCTION(silu, silu, "")\n', '''
UNARY(softsign, "", x, ELEMENTWISE, "y = x / (1 + abs(x)).")
FUNCTION(softsign, softsign, "")
'''),
    edits.Edit("kernels/reference/activations.h",
               "inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }\n", '''
inline double softsign(double x) { return x / (1.0 + std::fabs(x)); }
inline double softsign_grad(double dy, double x) { return dy / ((1.0 + std::fabs(x)) * (1.0 + std::fabs(x))); }
'''),
    edits.Edit("kernels/cpu/simd/activation-inl.h",
               "HWY_INLINE V relu(V x) { return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(DF())), x); }\n", '''
HWY_INLINE V softsign(V x) { return hn::Div(x, hn::Add(set(1.0f), hn::Abs(x))); }
HWY_INLINE V softsign_grad(V dy, V x) {
  const V d = hn::Add(set(1.0f), hn::Abs(x));
  return hn::Div(dy, hn::Mul(d, d));
}
'''),
    edits.Edit("kernels/cuda/common/activations.h",
               "__device__ __forceinline__ float silu(float x) { return x * sigmoid(x); }\n", '''
__device__ __forceinline__ float softsign(float x) { return x / (1.0f + fabsf(x)); }
__device__ __forceinline__ float softsign_grad(float dy, float x) {
  const float d = 1.0f + fabsf(x);
  return dy / (d * d);
}
'''),
    edits.Edit("capi/docs/ops.md", "gelu\\_tanh, gelu\\_erf, relu, silu", ", softsign"),
    edits.Edit("capi/docs/ops.md", "y = x / (1 + exp(-x)).\n", '''
## softsign

`softsign(x) -> y`

y = x / (1 + abs(x)).
'''),
]
# Compiled as they are after the edits, and linked into a program that runs the op's kernels.
KERNELS = ["kernels/reference/elementwise.cc", "kernels/cpu/elementwise.cc", "kernels/cpu/elementwise_rows.cc"]
# With the file through which the build compiles them as C++.
CUDA_KERNELS = [("kernels/cuda/elementwise.cu", "emulated/elementwise.cu.cc")]
# What else reads the changed files by a list of its own; only compiled.
READERS = ["runtime/ops/table.cc", "runtime/ops/functions.cc", "runtime/ops/gradients/elementwise.cc",
           "kernels/cpu/gemm/epilogue.cc", "kernels/reference/products.cc"]
CUDA_READERS = [("kernels/cuda/products/linear.cu", "emulated/products/linear.cu.cc"),
                ("kernels/cuda/products/linear_grad.cu", "emulated/products/linear_grad.cu.cc")]


class Op(edits.RowTest):
    EDITS = EDITS

    def test_few_files_change(self):
        self.check_files(MOST_FILES, "an elementwise op")

    def test_its_kernels_work(self):
        edits.apply(EDITS, self.folder)
        compiler = edits.Compiler(BUILD, self.folder)
        steps = [compiler.object("tests/rows/unary_check.cc", like=edits.ROOT / KERNELS[0],
                                 defines=[f"-DOP={OP}", "-DREADS_Y=0"])]
        steps += [compiler.object(source) for source in KERNELS]
        steps += [compiler.object(source, like=BUILD / copy) for source, copy in CUDA_KERNELS]
        compiler.run_all([command for command, _ in steps])
        program = self.folder / "unary_check"
        edits.run("c++", "-o", program, *(out for _, out in steps), *LIBRARIES)
        said = edits.run(program)
        self.assertEqual(said.count("agrees"), 1 + 4 * 3, said)  # the oracle itself, and four calls of each backend

    def test_what_reads_its_row_compiles(self):
        self.check_compiles(BUILD, READERS, CUDA_READERS)

    @unittest.skipUnless(campaign.LONG, "builds a copy of the sources: CAIRN_TEST=long")
    def test_a_build_with_it_passes_the_conformance_tests(self):
        sources, build = self.build_copy("test_conformance", "test_runtime_ops")
        page = edits.run(build / "bin/cairn", "ops", "--markdown")
        self.assertEqual(page, (sources / "capi/docs/ops.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
