// What the conformance suite does not see of the CPU kernels: accuracy of the split float32 products against
// ordinary ones, independence of addresses and (where promised) of threads, special values.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/gemm/amx_f32.h"
#include "kernels/cpu/gemm/gemm_f32.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/registry.h"
#include "runtime/base/kernel.h"
#include "runtime/base/parallel.h"

namespace cairn::kernels {
namespace {

std::vector<float> draw(int64_t n, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = normal(generator);
  return v;
}

double rms_error(const std::vector<float>& c, const std::vector<double>& exact) {
  double sum = 0;
  for (size_t i = 0; i < c.size(); ++i) sum += (c[i] - exact[i]) * (c[i] - exact[i]);
  return std::sqrt(sum / static_cast<double>(c.size()));
}

// One kernel run with operands at a chosen offset from a 64-byte boundary.
struct Trial {
  std::vector<std::vector<std::byte>> storage;
  std::vector<Tensor> in, out;

  Tensor place(const TensorDesc& d, const void* data, size_t offset) {
    storage.emplace_back(static_cast<size_t>(d.bytes()) + 192);
    std::byte* p = storage.back().data();
    p += (64 - reinterpret_cast<uintptr_t>(p) % 64) % 64 + offset;
    if (data != nullptr) std::memcpy(p, data, static_cast<size_t>(d.bytes()));
    return {d, p};
  }
  void run(std::string_view op, const Attrs& attrs, int threads, uint32_t accumulate = 0,
           const Registry& registry = cpu_registry()) {
    std::vector<TensorDesc> in_desc, out_desc;
    for (const Tensor& t : in) in_desc.push_back(t.desc);
    for (const Tensor& t : out) out_desc.push_back(t.desc);
    const auto kernel = registry.find({op, in_desc, out_desc, ~0u, ~0u, &attrs, threads});
    ASSERT_NE(kernel, nullptr) << op;
    set_thread_count(threads);
    const Tensor workspace =
        place({DType::kU8, {std::max<int64_t>(1, kernel->workspace_bytes())}, 0}, nullptr, 0);
    kernel->run({in, out, workspace.data, accumulate, {}});
    set_thread_count(1);
  }
};

TEST(SplitProduct, IsAsAccurateAsFloat32AndAgreesForEveryOrder) {
  if (!cpu::has_amx()) GTEST_SKIP() << "needs amx";
  set_thread_count(1);
  for (const auto& [m, n, k] :
       {std::tuple<int64_t, int64_t, int64_t>{70, 45, 100}, {33, 200, 1600}, {200, 64, 33}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        const auto a = draw(m * k, 1), b = draw(k * n, 2);
        std::vector<double> exact(static_cast<size_t>(m * n));
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j)
            for (int64_t x = 0; x < k; ++x)
              exact[static_cast<size_t>(i * n + j)] +=
                  static_cast<double>(a[static_cast<size_t>(ta ? x * m + i : i * k + x)]) *
                  b[static_cast<size_t>(tb ? j * k + x : x * n + j)];
        const cpu::ProductShape shape{.m = m, .n = n, .k = k, .transpose_a = ta, .transpose_b = tb};
        std::vector<float> split(static_cast<size_t>(m * n)), plain = split, two = split;
        const auto go = [&](const auto& product, std::vector<float>& c) {
          std::vector<char> scratch(static_cast<size_t>(product.scratch_bytes()) + 64);
          char* p = scratch.data();
          p += (64 - reinterpret_cast<uintptr_t>(p) % 64) % 64;
          product.run(a.data(), b.data(), c.data(), p);
        };
        go(cpu::SplitProduct(shape, 1), split);
        go(cpu::Product(shape, 1), plain);
        EXPECT_LE(rms_error(split, exact), 1.5 * rms_error(plain, exact))
            << m << ' ' << n << ' ' << k << ta << tb;
        set_thread_count(2);
        go(cpu::SplitProduct(shape, 2), two);
        set_thread_count(1);
        EXPECT_EQ(std::memcmp(split.data(), two.data(), split.size() * 4), 0)
            << "other bits with two threads";
      }
}

// Sizes at which float32 goes to the tiles, in several blocks of k, with bias and with accumulation.
TEST(CpuKernels, LargeFloatProductsAgreeWithTheReference) {
  const int64_t rows = 300, k = 900, n = 261;
  const auto x = draw(rows * k, 8), w = draw(n * k, 9), bias = draw(n, 10), dy = draw(rows * n, 11);
  const auto largest_difference = [&](bool weight_gradient) {
    std::vector<float> results[2];
    for (int which = 0; which < 2; ++which) {
      Trial r;
      r.in = {r.place({DType::kF32, {rows, k}, 0}, x.data(), 0)};
      if (weight_gradient) {
        r.in.push_back(r.place({DType::kF32, {rows, n}, 0}, dy.data(), 0));
        r.out = {r.place({DType::kF32, {n, k}, 0}, w.data(), 0),
                 r.place({DType::kF32, {n}, 0}, bias.data(), 0)};
      } else {
        r.in.push_back(r.place({DType::kF32, {n, k}, 0}, w.data(), 0));
        r.in.push_back(r.place({DType::kF32, {n}, 0}, bias.data(), 0));
        r.out = {r.place({DType::kF32, {rows, n}, 0}, nullptr, 0),
                 r.place({DType::kF32, {rows, n}, 0}, nullptr, 0)};
      }
      const Attrs attrs = weight_gradient ? Attrs{} : Attrs{{"activation", std::string("relu")}};
      r.run(weight_gradient ? "linear_grad_weight" : "linear", attrs, 2, weight_gradient ? 3 : 0,
            which == 0 ? cpu_registry() : reference_registry());
      for (const Tensor& t : r.out)
        results[which].insert(results[which].end(), t.as<float>(), t.as<float>() + t.desc.shape.elements());
    }
    float worst = 0;
    for (size_t i = 0; i < results[0].size(); ++i)
      worst = std::max(worst, std::fabs(results[0][i] - results[1][i]));
    return worst;
  };
  EXPECT_LT(largest_difference(false), 3e-4f);  // sums of 900 products of size 1: about 30 in size
  EXPECT_LT(largest_difference(true), 2e-4f);
}

TEST(CpuKernels, BitsDoNotDependOnAddresses) {
  const int64_t rows = 37, k = 96, n = 65;
  const auto x = draw(rows * k, 3), w = draw(n * k, 4), bias = draw(n, 5);
  std::vector<bf16> half(x.size());
  for (size_t i = 0; i < x.size(); ++i) half[i] = to_bf16(x[i]);
  for (const DType type : {DType::kF32, DType::kBF16}) {
    std::vector<std::byte> first;
    for (const size_t offset : {0, 4, 20}) {
      Trial r;
      const void* data = type == DType::kF32 ? static_cast<const void*>(x.data()) : half.data();
      r.in = {r.place({type, {rows, k}, 0}, data, offset),
              r.place({DType::kF32, {n, k}, 0}, w.data(), offset),
              r.place({DType::kF32, {n}, 0}, bias.data(), offset)};
      r.out = {r.place({type, {rows, n}, 0}, nullptr, offset),
               r.place({type, {rows, n}, 0}, nullptr, offset)};
      r.run("linear", {{"activation", std::string("gelu_tanh")}}, 2);
      const auto* y = r.out[0].as<std::byte>();
      const std::vector<std::byte> bytes(y, y + r.out[0].desc.bytes());
      if (first.empty()) first = bytes;
      EXPECT_EQ(first, bytes) << dtype_name(type) << " at offset " << offset;
    }
  }
}

TEST(CpuKernels, SumOfSquaresHasTheSameBitsAtAnyThreadCountAndSeesInfinity) {
  auto x = draw(300'001, 6);
  const auto total = [&](int threads) {
    Trial r;
    r.in = {r.place({DType::kF32, {300'001}, 0}, x.data(), 0)};
    r.out = {r.place({DType::kF64, Shape{}, 0}, nullptr, 0)};
    r.run("sum_squares", {}, threads);
    return *r.out[0].as<double>();
  };
  const double one = total(1);
  EXPECT_EQ(one, total(2));
  EXPECT_EQ(one, total(3));
  EXPECT_NEAR(one, 300'001, 5000);
  x[123'456] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isinf(total(2)));
  x[123'456] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(total(2)));
}

TEST(CpuKernels, ActivationsKeepSpecialValues) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {nan, inf, 0.0f, -0.0f, 100.0f, -100.0f, 1e30f, -1e30f, 1e-30f, -3.0f};
  const auto map = [&](const char* op, const Attrs& attrs = {}) {
    Trial r;
    r.in = {r.place({DType::kF32, {10}, 0}, x.data(), 0)};
    r.out = {r.place({DType::kF32, {10}, 0}, nullptr, 0)};
    r.run(op, attrs, 1);
    return std::vector<float>(r.out[0].as<float>(), r.out[0].as<float>() + 10);
  };
  for (const auto& y : {map("gelu"), map("silu"), map("gelu", {{"approximate", std::string("erf")}})}) {
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], inf);
    EXPECT_EQ(y[2], 0.0f);
    EXPECT_EQ(y[4], 100.0f);
    EXPECT_NEAR(y[5], 0.0f, 1e-20);
    EXPECT_EQ(y[6], 1e30f);
    EXPECT_NEAR(y[7], 0.0f, 1e-3);
    EXPECT_NEAR(y[9], -0.0036f, 0.15f);
  }
  const auto p = map("softmax");
  EXPECT_TRUE(std::isnan(p[4]));
  // A NaN that came out of relu as 0 would be a loss that looks right.
  const auto r = map("relu");
  EXPECT_TRUE(std::isnan(r[0]));
  for (size_t i = 1; i < x.size(); ++i) EXPECT_EQ(r[i], x[i] > 0 ? x[i] : 0.0f);
}

// The same where a product does it on its way out, of a weight that is not a number.
TEST(CpuKernels, NotANumberPassesThroughTheActivationsOfProducts) {
  const auto upper = [](float x) {
    return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
  };  // bfloat16
  for (const char* activation : {"gelu_tanh", "gelu_erf", "relu", "silu"})
    for (const int64_t rows : {1, 3, 33})
      for (const DType type : {DType::kF32, DType::kBF16}) {
        std::vector<float> x(static_cast<size_t>(rows * 40), 1.0f), w(40 * 40, 0.5f);
        w[7 * 40 + 5] = std::numeric_limits<float>::quiet_NaN();
        std::vector<uint16_t> x16(x.size()), w16(w.size());
        std::transform(x.begin(), x.end(), x16.begin(), upper);
        std::transform(w.begin(), w.end(), w16.begin(), upper);
        const bool half = type == DType::kBF16;
        Trial r;
        r.in = {r.place({type, {rows, 40}, 0}, half ? static_cast<void*>(x16.data()) : x.data(), 0),
                r.place({type, {40, 40}, 0}, half ? static_cast<void*>(w16.data()) : w.data(), 0),
                {}};
        r.out = {r.place({type, {rows, 40}, 0}, nullptr, 0), {}};
        r.run("linear", {{"activation", std::string(activation)}}, 1);
        SCOPED_TRACE(std::string(activation) + " of " + std::to_string(rows) + " rows");
        for (int64_t i = 0; i < rows * 40; ++i) {
          const auto bits = half ? uint32_t{r.out[0].as<uint16_t>()[i]} << 16 : r.out[0].as<uint32_t>()[i];
          EXPECT_EQ(std::isnan(std::bit_cast<float>(bits)), i % 40 == 7);
        }
      }
}

TEST(CpuKernels, CrossEntropyMarksAnInvalidTargetAndSkipsAnIgnoredOne) {
  const auto logits = draw(4 * 50, 7);
  const std::vector<int32_t> targets = {3, -100, 49, 50};
  Trial r;
  r.in = {r.place({DType::kF32, {4, 50}, 0}, logits.data(), 0),
          r.place({DType::kI32, {4}, 0}, targets.data(), 0),
          r.place({DType::kF32, {4}, 0}, std::vector<float>{1, 1, 2, 1}.data(), 0)};
  r.out = {r.place({DType::kF64, Shape{}, 0}, nullptr, 0), r.place({DType::kF64, Shape{}, 0}, nullptr, 0),
           r.place({DType::kF32, {4, 50}, 0}, nullptr, 0)};
  r.run("cross_entropy_grad", {}, 2);
  EXPECT_TRUE(std::isnan(*r.out[0].as<double>()));
  EXPECT_EQ(*r.out[1].as<double>(), 4.0);
  const float* d = r.out[2].as<float>();
  for (int j = 0; j < 50; ++j) EXPECT_EQ(d[50 + j], 0.0f);
  EXPECT_TRUE(std::isnan(d[150]));
  double sum = 0;
  for (int j = 0; j < 50; ++j) sum += d[j];
  EXPECT_NEAR(sum, 0, 1e-6);
}

// By hand, and in rows long enough that they are compared in parts.
TEST(CpuKernels, AccuracyTakesTheFirstOfEqualLogitsAndNoRowWithANaN) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  constexpr int64_t kClasses = 1100;
  struct Row {
    int32_t target;
    std::vector<std::pair<int64_t, float>> logits;  // the others are 0
    double weight, hits, count;
  };
  const Row rows[] = {
      {700, {{700, 1}}, 1, 1, 1},
      {700, {{700, 1}, {701, 1}, {1099, 1}}, 0.25, 1, 1},  // the first of equal ones
      {700, {{700, 1}, {0, 1}}, 1, 0, 1},
      {700, {{700, 1}, {699, 1}}, 1, 0, 1},
      {0, {}, 1, 1, 1},
      {1099, {{1099, 1}}, 1, 1, 1},
      {1099, {{1099, -1}}, 1, 0, 1},
      {700, {{700, 1}, {3, nan}}, 1, 0, 1},
      {700, {{700, 1}, {1098, nan}}, 1, 0, 1},
      {700, {{700, nan}}, 1, 0, 1},
      {700, {{700, inf}}, 1, 1, 1},
      {700, {{700, inf}, {701, inf}}, 1, 1, 1},
      {700, {{700, 1}}, 0, 0, 0},
      {-100, {{700, 1}}, 1, 0, 0},
      {1100, {}, 1, 0, 1},
      {-1, {}, 1, 0, 1},
  };
  for (const Row& row : rows) {
    std::vector<float> logits(kClasses);
    for (const auto& [v, x] : row.logits) logits[static_cast<size_t>(v)] = x;
    const auto weight = static_cast<float>(row.weight);
    Trial r;
    r.in = {r.place({DType::kF32, {1, kClasses}, 0}, logits.data(), 0),
            r.place({DType::kI32, {1}, 0}, &row.target, 0), r.place({DType::kF32, {1}, 0}, &weight, 0)};
    r.out = {r.place({DType::kF64, Shape{}, 0}, nullptr, 0), r.place({DType::kF64, Shape{}, 0}, nullptr, 0)};
    r.run("accuracy", {}, 1);
    EXPECT_EQ(*r.out[0].as<double>(), row.hits) << "row " << &row - rows;
    EXPECT_EQ(*r.out[1].as<double>(), row.count) << "row " << &row - rows;
  }
}

TEST(CpuRegistry, NamesEveryRowOnceAndPacksForTheTilesOnly) {
  const Registry& registry = cpu_registry();
  for (size_t i = 0; i < registry.rows.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      EXPECT_FALSE(registry.rows[i].op == registry.rows[j].op &&
                   registry.rows[i].name == registry.rows[j].name);
  const TensorDesc w{DType::kF32, {100, 70}, 0};
  EXPECT_EQ(registry.packed_bytes(w, "forward", 8, DType::kF32, 1), 0);
  const int64_t expected = cpu::has_bf16_products() ? 128 * 96 * 2 : 0;
  EXPECT_EQ(registry.packed_bytes(w, "forward", 8, DType::kBF16, 1), expected);
  EXPECT_EQ(registry.packed_bytes(w, "input_grad", 8, DType::kBF16, 2),
            cpu::has_bf16_products() ? 96 * 128 * 2 : 0);
}

}  // namespace
}  // namespace cairn::kernels
