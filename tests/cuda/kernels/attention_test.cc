// Attention at sizes that the conformance suite has no time for: several tiles both ways, groups of heads,
// heads narrower and wider than a tile, many blocks.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/cuda/attention/mma.h"
#include "kernels/cuda/rows.h"
#include "kernels/registry.h"
#include "tests/conformance/compare.h"
#include "tests/cuda/emulated/runtime.h"

namespace cairn::conformance {
namespace {

struct Size {
  int64_t batch, time, heads, kv_heads, dim;
  bool causal, packed;
  DType dtype;
  double range = 1;  // of q, k, v
  bool distances = false;
};

TensorDesc desc(DType dtype, std::initializer_list<int64_t> shape) { return {dtype, Shape(shape), 0}; }

// Operands and outputs of attention and its gradient.
struct Problem {
  Attrs attrs;
  std::vector<TensorDesc> in, out, grad_in, grad_out;
  std::vector<Buffer> buffers;
  std::vector<Tensor> tensors, grad_tensors;
  uint32_t in_present, grad_in_present, grad_out_present;

  explicit Problem(const Size& s)
      : attrs{{"heads", s.heads}, {"kv_heads", s.kv_heads}, {"causal", int64_t{s.causal}}, {"scale", 0.2}} {
    const int64_t slots = s.packed ? s.heads + 2 * s.kv_heads : s.heads;
    const TensorDesc q = desc(s.dtype, {s.batch, s.time, slots * s.dim}),
                     kv = s.packed ? TensorDesc{} : desc(s.dtype, {s.batch, s.time, s.kv_heads * s.dim}),
                     y = desc(s.dtype, {s.batch, s.time, s.heads * s.dim}),
                     lse = desc(DType::kF32, {s.batch, s.heads, s.time});
    in = {q, kv, kv};
    out = {y, lse};
    grad_in = {y, q, kv, kv, y, lse};
    grad_out = {q, kv, kv};
    in_present = s.packed ? 1 : 7;
    grad_in_present = s.packed ? 0b110011 : 0b111111;
    grad_out_present = s.packed ? 1 : 7;
    if (s.distances) {
      const TensorDesc distances = desc(DType::kF32, {s.heads, 2 * s.time - 1});
      in.insert(in.end(), {{}, {}, {}, {}, distances});
      grad_in.insert(grad_in.end(), {{}, {}, {}, {}, distances});
      grad_out.insert(grad_out.end(), {{}, distances});
      in_present |= 1u << 7, grad_in_present |= 1u << 10, grad_out_present |= 1u << 4;
    }
    for (const TensorDesc& d : grad_in) buffers.emplace_back(d.shape.rank > 0 ? d.bytes() : 0);
    for (size_t i = 0; i < grad_in.size(); ++i) {
      grad_tensors.push_back({grad_in[i], grad_in_present >> i & 1u ? buffers[i].data() : nullptr});
      if (grad_tensors[i] && (i < 4 || i == 10)) fill(grad_tensors[i], 70 + i, T({}, -s.range, s.range));
    }
    tensors = {grad_tensors[1], grad_tensors[2], grad_tensors[3]};
    tensors.insert(tensors.end(), grad_tensors.begin() + 6, grad_tensors.end());
    const auto oracle = kernels::select(kernels::reference_registry(), forward());
    Buffer workspace(oracle->workspace_bytes());
    const Tensor made[] = {grad_tensors[4], grad_tensors[5]};
    oracle->run({tensors, made, workspace.data(), 0, {}});
  }
  kernels::Signature forward() const { return {"attention", in, out, in_present, 3, &attrs, 1}; }
  kernels::Signature backward() const {
    return {"attention_grad", grad_in, grad_out, grad_in_present, grad_out_present, &attrs, 1};
  }
};

// How many rows took the signature.
int check(const kernels::Signature& s, const std::vector<Tensor>& in, const std::string& what) {
  int taken = 0;
  for (const kernels::KernelRow& row : kernels::cuda_registry().rows)
    if (row.op == s.op) taken += compare(row, s, in, s, in, {}, false, what) >= 0;
  return taken;
}

// backward: rows that take the gradient, if others.
void check(const Size& s, int rows, int backward = -1) {
  const Problem problem(s);
  const std::string what = cat("T ", s.time, " D ", s.dim, s.causal ? " causal" : "",
                               s.packed ? " packed " : " ", dtype_name(s.dtype));
  EXPECT_EQ(check(problem.forward(), problem.tensors, what), rows) << what;
  EXPECT_EQ(check(problem.backward(), problem.grad_tensors, what), backward < 0 ? rows : backward) << what;
}

TEST(CudaAttention, TilesInFloat32) {
  check({1, 200, 1, 1, 40, true, false, DType::kF32}, 1);
  check({1, 140, 4, 2, 72, false, true, DType::kF32}, 1);
  check({2, 70, 1, 1, 300, true, true, DType::kF32}, 1);  // three blocks of columns
}

TEST(CudaAttention, OnTensorCores) {
  check({1, 200, 2, 1, 64, true, true, DType::kBF16}, 3);
  check({1, 200, 1, 1, 128, true, false, DType::kBF16}, 3);
  check({1, 190, 1, 1, 96, false, false, DType::kBF16}, 3);
  check({1, 257, 3, 1, 40, true, false, DType::kBF16}, 3);
  check({2, 100, 2, 2, 8, false, true, DType::kBF16}, 3);
}

TEST(CudaAttention, WhatIsAddedByDistance) {
  for (const bool causal : {true, false}) {
    check({2, 150, 2, 1, 40, causal, causal, DType::kF32, 1, true}, 1);
    check({1, 70, 1, 1, 200, causal, false, DType::kF32, 1, true}, 1);
    check({2, 150, 2, 1, 64, causal, !causal, DType::kBF16, 1, true}, 2);
    check({1, 40, 3, 3, 24, causal, true, DType::kBF16, 1, true}, 2);
    check({1, 140, 1, 1, 128, causal, false, DType::kBF16, 1, true}, 2, 1);
  }
}

TEST(CudaAttention, LargeScores) {  // of hundreds: what is masked must not overflow into what is not
  check({1, 150, 1, 1, 64, true, false, DType::kBF16, 9}, 3);
  check({1, 131, 1, 1, 64, false, true, DType::kBF16, 9}, 3);
}

TEST(CudaAttention, OtherShapesInBfloat16) {
  check({1, 70, 1, 1, 20, true, false, DType::kBF16}, 1);
  check({1, 70, 1, 1, 256, false, false, DType::kBF16}, 1);
}

// Many blocks make the forward kernel give 32 queries to a warp; here few do.
TEST(CudaAttention, WideWarps) {
  for (const Size& size : {Size{1, 200, 2, 1, 64, true, false, DType::kBF16},
                           Size{1, 131, 1, 1, 128, true, true, DType::kBF16, 5},
                           Size{1, 150, 2, 2, 72, false, true, DType::kBF16}}) {
    const Problem problem(size);
    const kernels::Signature s = problem.forward();
    Outputs expected(s, 0), value(s, 0);
    run_into(*kernels::select(kernels::reference_registry(), s), problem.tensors, expected, 0, {},
             "reference");
    const auto shape = kernels::cuda::attention_shape(s, 0);
    ASSERT_TRUE(shape);
    run_into(*kernels::cuda::make_attention_mma_of(*shape, DType::kBF16, true), problem.tensors, value, 0, {},
             "wide");
    worst_error(s, expected, value, bound(ops::Tolerance::GEMM, DType::kBF16), cat("wide, D ", size.dim));
  }
}

TEST(CudaAttention, MakesOnlyTheGradientsThatAreWanted) {
  Problem problem({1, 70, 2, 1, 64, true, false, DType::kBF16});
  for (uint32_t present : {0b001u, 0b011u, 0b101u}) {
    problem.grad_out_present = present;
    EXPECT_EQ(check(problem.backward(), problem.grad_tensors, cat("outputs ", present)), 2);
  }
}

// A quadratic workspace makes the library's gradient go over parts of the batch, or of the heads of one sample.
TEST(CudaAttention, PartsHaveTheBitsOfTheWhole) {
  using kernels::cuda::emulated::libraries;
  for (const Size& size : {Size{256, 64, 1, 1, 8, true, true, DType::kBF16},
                           Size{1, 64, 256, 256, 8, false, false, DType::kBF16},
                           Size{1, 64, 256, 128, 16, true, true, DType::kBF16}}) {
    const std::string what = cat("batch ", size.batch, ", heads ", size.heads, " and ", size.kv_heads);
    const Problem problem(size);
    const kernels::Signature s = problem.backward();
    Outputs whole(s, 0), parts(s, 0);
    int64_t workspace = 0, linear = 0;
    for (const kernels::KernelRow& row : kernels::cuda_registry().rows) {
      if (row.op != s.op || row.name != "cudnn") continue;
      const auto at_once = row.make(s);
      libraries().attention = kernels::cuda::kLinearGradient - 1;
      const auto one_by_one = row.make(s);
      libraries().attention = kernels::cuda::kLinearGradient;
      ASSERT_TRUE(at_once && one_by_one) << what;
      linear = at_once->workspace_bytes(), workspace = one_by_one->workspace_bytes();
      run_into(*at_once, problem.grad_tensors, whole, 0, {}, what);
      run_into(*one_by_one, problem.grad_tensors, parts, 0, {}, what);
    }
    EXPECT_LT(workspace, linear * size.time / size.dim) << what << ": all at once";
    for (size_t i = 0; i < s.out.size(); ++i)
      if (s.has_out(i))
        EXPECT_EQ(0, std::memcmp(whole.tensors[i].data, parts.tensors[i].data,
                                 static_cast<size_t>(s.out[i].bytes())))
            << what << ", output " << i;
  }
}

}  // namespace
}  // namespace cairn::conformance
