#!/usr/bin/env python3
"""A new optimizer is a row, the rule of its factors and a struct for each backend. Adds one that does not exist to a
copy of the sources, counts the files that change and compiles what reads them; under CAIRN_TEST=long builds the copy,
runs the conformance tests, which find it by its row, and trains with it.

    optimizer_test.py BUILD_FOLDER"""
import json
import pathlib
import sys
import unittest

import edits

sys.path.insert(0, str(edits.ROOT / "tests/support"))
import campaign  # noqa: E402

BUILD = pathlib.Path(sys.argv[1])
MOST_FILES = 6  # beside tests

# a = beta a + (1 - beta) g; p -= rate (a / (1 + |a|) + weight_decay p).
NAME = "tempered"
EDITS = [
    edits.Edit("runtime/ops/optimizers.def", 'weight_decay p); m = beta2 m + (1 - beta2) g.")\n', '''
OPTIMIZER(tempered, "a", "beta=0.9 weight_decay=0", hyper_tempered, UPDATE_ELEMENTWISE,
   "a = beta a + (1 - beta) g; p -= rate (a / (1 + abs(a)) + weight_decay p).")
'''),
    edits.Edit("runtime/ops/optimizers.def", 'HYPER(beta2_decay, \'m\', false, "beta2 is 1 - t^beta2_decay")\n',
               'HYPER(beta, \'u\', false, "share of the old mean in the new one")\n'),
    edits.Edit("runtime/ops/optimizers.cc", "using Values = std::span<const double>;\n", '''
void hyper_tempered(Values v, const UpdateStep& s, double* slots) {
  slots[0] = s.rate;
  slots[1] = v[1];
  slots[2] = v[2];
}
'''),
    edits.Edit("kernels/reference/updates.h", "namespace cairn::kernels::reference {\n", '''
struct Tempered {
  static constexpr std::string_view kName = "tempered";
  static constexpr int kStates = 1;
  double rate, beta, decay;

  explicit Tempered(const double* h) : rate(h[0]), beta(h[1]), decay(h[2]) {}
  void operator()(double g, double& p, double* state) const {
    double& a = state[0];
    a = beta * a + (1.0 - beta) * g;
    p -= rate * (a / (1.0 + std::fabs(a)) + decay * p);
  }
};
'''),
    edits.Edit("kernels/reference/updates.h", "UpdateList<AdamW, Sgd<0>, Sgd<1>, Lion", ", Tempered"),
    edits.Edit("kernels/cpu/simd/updates-inl.h", "namespace cairn::kernels::cpu {\n", '''
struct Tempered {
  static constexpr std::string_view kName = "tempered";
  static constexpr int kStates = 1;
  float gradient, rate, beta, one_minus_beta, decay;

  Tempered(const double* h, double factor)
      : gradient(static_cast<float>(factor)),
        rate(static_cast<float>(h[0])),
        beta(static_cast<float>(h[1])),
        one_minus_beta(static_cast<float>(1 - h[1])),
        decay(static_cast<float>(1 - h[0] * h[2])) {}
};
'''),
    edits.Edit("kernels/cpu/simd/updates-inl.h", "UpdateList<AdamW, Sgd<0>, Sgd<1>, Lion", ", Tempered"),
    edits.Edit("kernels/cpu/simd/updates-inl.h", "namespace cairn::kernels::cpu::HWY_NAMESPACE {\n", '''
HWY_INLINE void update(const Tempered& f, V grad, V& p, VectorSlot* state) {
  V& a = state[0];
  a = hn::MulAdd(hn::Mul(grad, set(f.gradient)), set(f.one_minus_beta), hn::Mul(a, set(f.beta)));
  const V step = hn::Div(a, hn::Add(set(1.0f), hn::Abs(a)));
  p = hn::NegMulAdd(set(f.rate), step, hn::Mul(p, set(f.decay)));
}
'''),
    edits.Edit("kernels/cuda/optimizers/updates.h", "namespace cairn::kernels::cuda {\n", '''
struct Tempered {
  static constexpr std::string_view kName = "tempered";
  static constexpr int kStates = 1;
  float gradient, rate, beta, one_minus_beta, decay;

  static __device__ __forceinline__ Tempered of(const double* hyper, double factor) {
    return {.gradient = static_cast<float>(factor),
            .rate = static_cast<float>(hyper[0]),
            .beta = static_cast<float>(hyper[1]),
            .one_minus_beta = static_cast<float>(1 - hyper[1]),
            .decay = static_cast<float>(1 - hyper[0] * hyper[2])};
  }
  __device__ __forceinline__ void operator()(float grad, float& p, float* state) const {
    float& a = state[0];
    a = fmaf(times(grad, gradient), one_minus_beta, times(a, beta));
    p = fmaf(-rate, a / (1.0f + fabsf(a)), times(p, decay));
  }
};
'''),
    edits.Edit("kernels/cuda/optimizers/updates.h", "UpdateList<AdamW, Sgd<0>, Sgd<1>, Lion", ", Tempered"),
    edits.Edit("capi/docs/ops.md", "weight\\_decay p); m = beta2 m +\n(1 - beta2) g.\n", '''
## tempered

States: a. Hyper-parameters: `rate_scale=1 beta=0.9 weight_decay=0`.

a = beta a + (1 - beta) g; p -= rate (a / (1 + abs(a)) + weight\\_decay p).
'''),
]
# What the changed files are compiled into.
READERS = ["runtime/ops/optimizers.cc", "kernels/reference/optimizer.cc", "kernels/cpu/optimizers/elementwise.cc"]
CUDA_READERS = [("kernels/cuda/optimizers/optimizer.cu", "emulated/optimizers/optimizer.cu.cc")]


class Optimizer(edits.RowTest):
    EDITS = EDITS

    def test_few_files_change(self):
        self.check_files(MOST_FILES, "an optimizer")

    def test_what_reads_its_row_compiles(self):
        self.check_compiles(BUILD, READERS, CUDA_READERS)

    @unittest.skipUnless(campaign.LONG, "builds a copy of the sources: CAIRN_TEST=long")
    def test_a_build_with_it_passes_the_conformance_tests_and_trains(self):
        sources, build = self.build_copy("test_conformance", "test_runtime_ops")
        cairn = build / "bin/cairn"
        self.assertEqual(edits.run(cairn, "ops", "--markdown"), (sources / "capi/docs/ops.md").read_text(encoding="utf-8"))
        tiny = ["layers=1", "heads=2", "width=16", "vocab=64", "seq=8", "data=random", "--steps", 3, "--json", "--quiet"]
        kept = json.loads(edits.run(cairn, "train", "gpt2", *tiny, f"optimizer={NAME}"))
        self.assertEqual(kept["optimizer"], NAME)
        self.assertEqual(kept["peak_bytes"], kept["planned_peak_bytes"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
