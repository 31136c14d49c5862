// Products on the AMX tiles of numbers that were float16 or bfloat16: fewer parts than of float32, and the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/gemm/amx_f32.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/widened.h"
#include "kernels/registry.h"
#include "runtime/base/parallel.h"
#include "runtime/base/tensor.h"

namespace cairn::kernels {
namespace {

// Of all sizes that the type has, denormals and zeros included.
std::vector<float> numbers_of(DType type, int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> size(-24, 4);
  std::vector<float> all(static_cast<size_t>(count));
  for (float& x : all) {
    x = std::ldexp(normal(random), size(random));
    if (type == DType::kF16) x = to_float(to_f16(x));
    if (type == DType::kBF16) x = to_float(to_bf16(x));
  }
  return all;
}

std::vector<float> product(const cpu::ProductShape& shape, const std::vector<float>& a,
                           const std::vector<float>& b) {
  const cpu::SplitProduct split(shape, 1);
  std::vector<char> scratch(static_cast<size_t>(split.scratch_bytes()) + 64);
  char* const p = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  std::vector<float> c(static_cast<size_t>(shape.m * shape.n), 1.0f);
  split.run(a.data(), b.data(), c.data(), p);
  return c;
}

TEST(SplitParts, OfNarrowNumbersMakeTheSameBitsAsThree) {
  if (!cpu::has_amx()) GTEST_SKIP() << "needs amx";
  set_thread_count(1);
  const int64_t m = 70, n = 45, k = 900;
  for (const DType left : {DType::kF32, DType::kF16, DType::kBF16})
    for (const DType right : {DType::kF32, DType::kF16, DType::kBF16})
      for (const bool transpose : {false, true}) {
        const auto a = numbers_of(left, m * k, 1), b = numbers_of(right, n * k, 2);
        cpu::ProductShape shape{.m = m, .n = n, .k = k, .transpose_a = transpose, .transpose_b = !transpose};
        shape.add = transpose;
        const auto three = product(shape, a, b);
        shape.parts_a = cpu::float_parts(left), shape.parts_b = cpu::float_parts(right);
        const auto fewer = product(shape, a, b);
        EXPECT_EQ(std::memcmp(three.data(), fewer.data(), three.size() * 4), 0)
            << dtype_name(left) << ' ' << dtype_name(right);
      }
}

// One step of k: no sum rounds, and what comes out is the product of two float16 numbers, of 22 bits.
TEST(SplitParts, ProductsOfFloat16AreExact) {
  if (!cpu::has_amx()) GTEST_SKIP() << "needs amx";
  set_thread_count(1);
  // All significands of 11 bits beside those of all lengths; ends of the range: 2^-24, 65504.
  std::vector<float> a,
      b = {1.0f, 65504.0f, 0x1p-24f, -1.5f, 0x1.ffcp-14f, 0x1.554p0f, 0x1.aa8p3f, 0x1.004p-7f};
  for (int i = 1024; i < 2048; ++i) a.push_back(std::ldexp(static_cast<float>(i), i % 24 - 24));
  for (int bits = 1; bits <= 11; ++bits) a.push_back(std::ldexp(static_cast<float>((1 << bits) - 1), -24));
  a.push_back(65504.0f);
  const auto m = static_cast<int64_t>(a.size()), n = static_cast<int64_t>(b.size());
  const auto c = product({.m = m, .n = n, .k = 1, .parts_a = 2, .parts_b = 2}, a, b);
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b.size(); ++j) {
      ASSERT_EQ(to_float(to_f16(a[i])), a[i]) << "not a float16";
      EXPECT_EQ(c[i * b.size() + j], a[i] * b[j]) << a[i] << " * " << b[j];
    }
}

// The rows of the table: sizes at which float16 goes to the tiles, against the reference's sums in double.
TEST(SplitParts, LinearInFloat16IsAsNearAsItsRounding) {
  set_thread_count(2);
  const int64_t rows = 300, k = 300, n = 261;
  const auto x = numbers_of(DType::kF16, rows * k, 3), dy = numbers_of(DType::kF16, rows * n, 4),
             w = numbers_of(DType::kF32, n * k, 5);
  std::vector<f16> x16(x.size()), dy16(dy.size());
  for (size_t i = 0; i < x.size(); ++i) x16[i] = to_f16(x[i]);
  for (size_t i = 0; i < dy.size(); ++i) dy16[i] = to_f16(dy[i]);
  const auto run = [&](std::string_view op, const std::vector<Tensor>& in, const std::vector<Tensor>& out) {
    std::vector<TensorDesc> in_descs, out_descs;
    for (const Tensor& t : in) in_descs.push_back(t.desc);
    for (const Tensor& t : out) out_descs.push_back(t.desc);
    const Attrs attrs;
    const auto kernel = cpu_registry().find({op, in_descs, out_descs, ~0u, ~0u, &attrs, 2});
    ASSERT_NE(kernel, nullptr) << op;
    std::vector<char> space(static_cast<size_t>(kernel->workspace_bytes()) + 64);
    kernel->run({in, out, space.data() + (64 - reinterpret_cast<uintptr_t>(space.data()) % 64) % 64, 0, {}});
  };
  std::vector<f16> y(static_cast<size_t>(rows * n)), dx(x.size());
  std::vector<float> dw(w.size());
  const auto tensor = [](DType type, int64_t a, int64_t b, const void* data) {
    return Tensor{TensorDesc{type, {a, b}, 0}, const_cast<void*>(data)};
  };
  const Tensor of_x = tensor(DType::kF16, rows, k, x16.data()), of_w = tensor(DType::kF32, n, k, w.data()),
               of_dy = tensor(DType::kF16, rows, n, dy16.data());
  run("linear", {of_x, of_w}, {tensor(DType::kF16, rows, n, y.data())});
  run("linear_grad_input", {of_dy, of_w}, {tensor(DType::kF16, rows, k, dx.data())});
  run("linear_grad_weight", {of_x, of_dy}, {tensor(DType::kF32, n, k, dw.data())});
  set_thread_count(1);
  // Each sum beside the sum of its terms' sizes, which bounds what roundings of float32 may add up to.
  const auto check = [](float is, double sum, double size, double rounding) {
    EXPECT_NEAR(is, sum, size * 0x1p-20 + std::fabs(sum) * rounding + 0x1p-25);
  };
  const auto at = [](const std::vector<float>& v, int64_t i) {
    return static_cast<double>(v[static_cast<size_t>(i)]);
  };
  for (int64_t i = 0; i < rows; i += 7)
    for (int64_t j = 0; j < n; j += 5) {
      double sum = 0, size = 0;
      for (int64_t s = 0; s < k; ++s) {
        const double term = at(x, i * k + s) * at(w, j * k + s);
        sum += term, size += std::fabs(term);
      }
      check(to_float(y[static_cast<size_t>(i * n + j)]), sum, size, 0x1p-11);
    }
  for (int64_t i = 0; i < rows; i += 7)
    for (int64_t j = 0; j < k; j += 5) {
      double sum = 0, size = 0;
      for (int64_t s = 0; s < n; ++s) {
        const double term = at(dy, i * n + s) * at(w, s * k + j);
        sum += term, size += std::fabs(term);
      }
      check(to_float(dx[static_cast<size_t>(i * k + j)]), sum, size, 0x1p-11);
    }
  for (int64_t i = 0; i < n; i += 7)
    for (int64_t j = 0; j < k; j += 5) {
      double sum = 0, size = 0;
      for (int64_t s = 0; s < rows; ++s) {
        const double term = at(dy, s * n + i) * at(x, s * k + j);
        sum += term, size += std::fabs(term);
      }
      check(dw[static_cast<size_t>(i * k + j)], sum, size, 0);
    }
}

}  // namespace
}  // namespace cairn::kernels
