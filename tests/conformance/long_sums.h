// Sums over many rows, of terms of one sign: what one accumulator in float32 rounds away shows in the third digit at
// half a million. Against the reference, which sums in float64.
#pragma once
#include "tests/conformance/compare.h"
#include "tests/conformance/gradient_cases.h"
#include "tests/conformance/updates.h"

namespace cairn::conformance {

struct LongSum {
  Direct call;
  std::vector<double> numbers;  // of each operand: each element between this and its double, or just this
  size_t first = 0;             // output that is compared; those before it have no long sums
};

inline std::vector<LongSum> long_sums(int64_t rows, int64_t columns, DType t) {
  const TensorDesc x{t, {rows, columns}, 0}, ids{DType::kI32, {rows}, 0}, row{DType::kF32, {rows}, 0},
      column{DType::kF32, {columns}, 0}, table{DType::kF32, {3, columns}, 0}, one{DType::kF64, Shape{}, 0};
  return {
      {{"reduce_leading", {x}, {column}, with("rank", int64_t{1})}, {0.1}},
      {{"reduce_sum", {x}, {{t, {columns}, 0}}, with("axes", List{0})}, {0.1}},
      {{"reduce_sum", {x}, {{t, Shape{}, 0}}, with("axes", List{})}, {0.1}},
      {{"reduce_mean", {x}, {{t, {columns}, 0}}, with("axes", List{0})}, {0.1}},
      {{"layernorm_grad", {x, x, column, row, row}, {x, column, column}, {}}, {0.1, 0.3, 1, 0.1, 0.7}, 1},
      {{"rmsnorm_grad", {x, x, column, row}, {x, column}, {}}, {0.1, 0.3, 1, 0.7}, 1},
      {{"linear_grad_weight", {x, x}, {{DType::kF32, {columns, columns}, 0}, column}, {}}, {0.3, 0.1}, 1},
      {{"embedding_grad", {ids, x}, {table}, with("vocab", int64_t{3})}, {1, 0.1}},
      {{"sum_squares", {x}, {one}, {}}, {0.1}},
      {{"mse", {x, x}, {one, one}, {}}, {0.1, 0.3}},
      {{"accuracy", {x, ids}, {one, one}, {}}, {0.1, 0}},
      {{"cross_entropy", {x, ids, row}, {one, one}, {}}, {0.1, 0, 0.3}},
  };
}

// Along rows that are as long.
inline std::vector<LongSum> wide_sums(int64_t columns, DType t) {
  const TensorDesc x{t, {5, columns}, 0}, row{DType::kF32, {5}, 0}, column{DType::kF32, {columns}, 0};
  return {
      {{"rmsnorm", {x, column}, {x, row}, {}}, {0.1, 1}},
      {{"rmsnorm_grad", {x, x, column, row}, {x, column}, {}}, {0.1, 0.3, 1, 0.7}},
      {{"softmax_grad", {x, x}, {x}, {}}, {0.1, 3 / static_cast<double>(columns)}},
  };
}

// All elements `from`, or numbers between it and its double.
inline void fill_evenly(const Tensor& t, double from, bool constant) {
  for (int64_t i = 0; i < t.desc.shape.elements(); ++i)
    set(t, i, constant ? from : from * (1 + static_cast<double>(i * 40503 % 65536) / 65536));
}

// `within`: of the largest sum. What is there before is added to where outputs are sums over micro-batches.
inline void check_long_sums(const kernels::Registry& registry, const std::vector<LongSum>& list, int threads,
                            double within) {
  for (const LongSum& sum : list)
    for (const bool constant : {true, false}) {
      const Direct& d = sum.call;
      const kernels::Signature s{d.op, d.in, d.out, present_of(d.in), present_of(d.out), &d.attrs, threads};
      const auto kernel = registry.find(s), oracle = kernels::reference_registry().find(s);
      if (kernel == nullptr) continue;  // the reference's is taken
      const std::string what = cat(d.op, ' ', to_string(d.in[0]), " to ", to_string(d.out[sum.first]),
                                   constant ? ", one number, " : ", numbers, ", threads, " threads");
      uint32_t sums = 0;
      for (size_t o = 0; o < d.out.size(); ++o)
        if (ops::find(d.op)->outputs[o].accumulates) sums |= 1u << o;
      std::vector<Buffer> buffers;
      std::vector<Tensor> in;
      for (size_t i = 0; i < d.in.size(); ++i) {
        buffers.emplace_back(d.in[i].bytes());
        in.push_back({d.in[i], buffers[i].data()});
        fill_evenly(in[i], sum.numbers[i], constant || d.in[i].dtype == DType::kI32);
      }
      Outputs value(s, sums), expected(s, sums);
      set_thread_count(threads);
      run_into(*kernel, in, value, sums, {}, what);
      set_thread_count(1);
      run_into(*oracle, in, expected, sums, {}, what + " reference");
      for (size_t o = sum.first; o < d.out.size(); ++o) {
        const double largest = largest_of(expected.tensors[o]);
        double worst = 0;
        for (int64_t i = 0; i < d.out[o].shape.elements(); ++i)
          worst =
              std::max(worst, std::fabs(get(value.tensors[o], i) - get(expected.tensors[o], i)) / largest);
        EXPECT_LE(worst, d.out[o].dtype == DType::kBF16 ? 0x1p-8 : within) << what << ", output " << o;
      }
    }
}

}  // namespace cairn::conformance
