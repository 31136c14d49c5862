// The product seam as its callers use it: transposes, gaps between rows, batches, epilogues.
#include "kernels/cuda/products/product.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/conformance/interpreter.h"

namespace cairn::kernels::cuda {
namespace {

using conformance::Buffer;

double number(int64_t i) { return std::sin(static_cast<double>(i) * 1.7); }

Tensor numbers(Buffer& buffer, DType t, int64_t count, int64_t seed) {
  const Tensor tensor{{t, Shape{count}, 0}, buffer.data()};
  for (int64_t i = 0; i < count; ++i) conformance::set(tensor, i, number(i + 1000 * seed));
  return tensor;
}

void check(const ProductShape& s, const Product* product, bool accumulate = false) {
  const int64_t a_size = (s.batch - 1) * s.stride_a + (s.transpose_a ? s.k : s.m) * s.row_of_a();
  const int64_t b_size = (s.batch - 1) * s.stride_b + (s.transpose_b ? s.n : s.k) * s.row_of_b();
  const int64_t c_size = (s.batch - 1) * s.stride_c + s.m * s.row_of_c();
  const int64_t in = dtype_bytes(s.in), out = dtype_bytes(s.out);
  Buffer a_buffer(a_size * in), b_buffer(b_size * in), c_buffer(c_size * out), before_buffer(c_size * out),
      pre_buffer(c_size * out), bias_buffer(s.n * out), sums_buffer(s.m * out);
  const Tensor a = numbers(a_buffer, s.in, a_size, 1), b = numbers(b_buffer, s.in, b_size, 2),
               c = numbers(c_buffer, s.out, c_size, 3), before = numbers(before_buffer, s.out, c_size, 3),
               pre = numbers(pre_buffer, s.out, c_size, 4), bias = numbers(bias_buffer, s.out, s.n, 5),
               sums = numbers(sums_buffer, s.out, s.m, 6);
  Buffer workspace(product->workspace_bytes());
  product->run({.a = a.data,
                .b = b.data,
                .c = c.data,
                .bias = s.has_bias() ? bias.data : nullptr,
                .pre = s.has_pre() ? pre.data : nullptr,
                .sums = s.has_sums() ? sums.data : nullptr,
                .workspace = workspace.data(),
                .accumulate = accumulate});
  const double unit = s.out == DType::kBF16 ? 0x1p-7 : 1e-5;
  const auto of_a = [&](int64_t i, int64_t m, int64_t k) {
    return conformance::get(a,
                            i * s.stride_a + (s.transpose_a ? k * s.row_of_a() + m : m * s.row_of_a() + k));
  };
  for (int64_t m = 0; s.has_sums() && m < s.m; ++m) {
    double sum = 0;
    for (int64_t k = 0; k < s.k; ++k) sum += of_a(0, m, k);
    EXPECT_NEAR(conformance::get(sums, m), sum, unit * (4 + std::fabs(sum))) << to_string(s);
  }
  for (int64_t i = 0; i < s.batch; ++i)
    for (int64_t m = 0; m < s.m; ++m)
      for (int64_t n = 0; n < s.row_of_c(); ++n) {
        const int64_t at = i * s.stride_c + m * s.row_of_c() + n;
        if (n >= s.n) {
          EXPECT_EQ(conformance::get(c, at), conformance::get(before, at)) << "wrote between rows";
          continue;
        }
        double sum = s.has_bias() ? conformance::get(bias, n) : 0;
        for (int64_t k = 0; k < s.k; ++k)
          sum += of_a(i, m, k) * conformance::get(b, i * s.stride_b + (s.transpose_b ? n * s.row_of_b() + k
                                                                                     : k * s.row_of_b() + n));
        if (s.pre) EXPECT_NEAR(conformance::get(pre, at), sum, unit * (4 + std::fabs(sum))) << to_string(s);
        if (s.has_gelu())
          sum = 0.5 * sum * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
        if (s.has_derivative()) {
          const double x = conformance::get(pre, at), c1 = 0.7978845608028654;
          const double tanh = std::tanh(c1 * (x + 0.044715 * x * x * x));
          sum *= 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * c1 * (1 + 3 * 0.044715 * x * x);
        }
        if (accumulate) sum += conformance::get(before, at);
        EXPECT_NEAR(conformance::get(c, at), sum, unit * (4 + std::fabs(sum))) << to_string(s);
      }
  EXPECT_TRUE(workspace.guard_intact() && c_buffer.guard_intact() && pre_buffer.guard_intact() &&
              sums_buffer.guard_intact());
}

void check(const ProductShape& s, bool accumulate = false) { check(s, make_product(s).get(), accumulate); }

TEST(CudaProduct, TransposesAndGaps) {
  for (const DType in : {DType::kF32, DType::kBF16})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const bool gaps : {false, true}) {
          ProductShape s;
          s.m = 5, s.n = 9, s.k = 12, s.in = in, s.transpose_a = ta, s.transpose_b = tb;
          if (gaps) s.lda = 16, s.ldb = 24, s.ldc = 11;
          check(s);
          check(s, true);
          s.out = in;
          check(s);
        }
}

TEST(CudaProduct, Batches) {
  ProductShape s;
  s.m = 4, s.n = 6, s.k = 8, s.batch = 3, s.stride_a = 40, s.stride_b = 48, s.stride_c = 24;
  check(s);
}

// Where the library has no algorithm.
TEST(CudaProduct, Plain) {
  for (const DType in : {DType::kF32, DType::kBF16})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        ProductShape s;
        s.m = 37, s.n = 65, s.k = 1, s.in = in, s.transpose_a = ta, s.transpose_b = tb, s.ldc = 70;
        s.lda = 40, s.ldb = 67, s.batch = 2;
        s.stride_a = 40 * 37, s.stride_b = 67 * 65, s.stride_c = 37 * 70;
        ASSERT_EQ(try_product(s), nullptr);
        check(s);
        check(s, true);
        s.out = in;
        check(s);
        s.k = 35;
        check(s, make_plain_product(s).get());
      }
}

TEST(CudaProduct, Epilogues) {
  for (const DType t : {DType::kF32, DType::kBF16})
    for (const Epilogue e : {Epilogue::kBias, Epilogue::kGelu, Epilogue::kGeluBias})
      for (const bool pre : {false, true}) {
        ProductShape s;
        s.m = 4, s.n = 16, s.k = 8, s.in = s.out = t, s.epilogue = e, s.pre = pre && e != Epilogue::kBias;
        check(s);
      }
}

TEST(CudaProduct, TheDerivativeOfGelu) {
  for (const DType t : {DType::kF32, DType::kBF16})
    for (const int64_t gap : {0, 24}) {
      ProductShape s;
      s.m = 5, s.n = 16, s.k = 8, s.ldc = gap, s.in = s.out = t, s.epilogue = Epilogue::kGeluDerivative;
      check(s);
      s.n = 12, s.ldc = 0;
      EXPECT_EQ(try_product(s), nullptr) << "rows of pre are multiples of 8";
    }
}

// The bias's gradient beside the weight's: sums of dy over its rows.
TEST(CudaProduct, SumsOfTheFirst) {
  for (const DType in : {DType::kF32, DType::kBF16})
    for (const bool transposed : {true, false})
      for (const bool add : {false, true}) {
        ProductShape s;
        s.m = 6, s.n = 16, s.k = 40, s.in = in, s.transpose_a = transposed, s.epilogue = Epilogue::kSumsOfA;
        check(s, add);
      }
}

TEST(CudaProduct, WhatIsRefusedHasAName) {
  ProductShape s;
  s.m = 4, s.n = 7, s.k = 8, s.epilogue = Epilogue::kGelu;
  try {
    make_product(s);
    FAIL() << "a gelu over rows of 7 is taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUnsupported);
    EXPECT_NE(std::string(e.what()).find("f32[4, 8] x [8, 7] to f32, with gelu"), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace cairn::kernels::cuda
