// Vectors that are computed side by side, and bfloat16 as vectors round it: an element's bits are those of the scalar function,
// wherever it stands.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm/epilogue.h"
#include "kernels/registry.h"
#include "runtime/base/kernel.h"
#include "runtime/base/tensor.h"

namespace cairn::kernels::cpu {
namespace {

float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Every upper half, with lower halves around each boundary of rounding: ties, denormals, infinities and NaN included.
TEST(Several, RoundsToBFloat16AsScalarsDo) {
  for (const uint32_t low : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
    std::vector<float> x(65536);
    for (uint32_t high = 0; high < 65536; ++high) x[high] = from_bits(high << 16 | low);
    std::vector<bf16> y(x.size());
    convert(DType::kF32, DType::kBF16, false, x.data(), y.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i].bits, to_bf16(x[i]).bits) << i << " " << low;
    // Two vectors at once, and parts of one.
    constexpr int64_t kColumns = 29;
    const LinearEpilogue pairs(Activation::kNone, nullptr, y.data(), nullptr, kPanel);
    std::vector<bf16> parts(2048 * kColumns);
    const LinearEpilogue narrow(Activation::kNone, nullptr, parts.data(), nullptr, kColumns);
    std::fill(y.begin(), y.end(), bf16{});
    pairs.block(x.data(), 0, 2048, 0, kPanel);
    narrow.block(x.data(), 0, 2048, 0, kColumns);
    for (size_t i = 0; i < x.size(); ++i) {
      const uint16_t expected = to_bf16(x[i]).bits;
      ASSERT_EQ(y[i].bits, expected) << i << " " << low;
      if (i % kPanel < kColumns)
        ASSERT_EQ(parts[i / kPanel * kColumns + i % kPanel].bits, expected) << i << " " << low;
    }
  }
}

std::vector<bf16> draw(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  std::vector<bf16> all(static_cast<size_t>(n));
  for (bf16& x : all) x = to_bf16(normal(random));
  return all;
}

TEST(Several, AnElementHasTheSameBitsAnywhere) {
  constexpr int64_t kMost = 300;
  const std::vector<bf16> x = draw(kMost, 1), dy = draw(kMost, 2);
  for (const Map map : {
#define FUNCTION(name, ...) Map::k_##name, Map::k_##name##_grad,
#include "runtime/base/elementwise.def"
           Map::kAdd, Map::kMul, Map::kScale}) {
    const auto apply = [&](int64_t begin, int64_t end) {
      std::vector<bf16> y(kMost, bf16{0x1234});
      const void* const in[3] = {dy.data(), x.data(), nullptr};
      void* const out[2] = {y.data(), nullptr};
      map_elements(map, DType::kBF16, in, out, begin, end, 0.5f);
      return y;
    };
    std::vector<bf16> alone(kMost);
    for (int64_t i = 0; i < kMost; ++i)
      alone[static_cast<size_t>(i)] = apply(i, i + 1)[static_cast<size_t>(i)];
    for (int64_t begin = 0; begin < 40; begin += 13)
      for (int64_t end = begin; end <= kMost; ++end) {
        const std::vector<bf16> y = apply(begin, end);
        for (int64_t i = 0; i < kMost; ++i) {
          const bool inside = i >= begin && i < end;
          ASSERT_EQ(y[static_cast<size_t>(i)].bits, inside ? alone[static_cast<size_t>(i)].bits : 0x1234)
              << static_cast<int>(map) << " " << begin << " " << end << " " << i;
        }
      }
  }
}

TEST(Several, ARowHasTheSameNormBesideOthers) {
  for (const std::string_view op : {"layernorm", "rmsnorm"})
    for (const int64_t columns : {5, 48, 67}) {
      constexpr int64_t kRows = 11;
      std::vector<bf16> x = draw(kRows * columns, 3);
      std::vector<float> gamma(static_cast<size_t>(columns), 1.5f), beta(static_cast<size_t>(columns), 0.25f);
      const bool centered = op == "layernorm";
      const auto norm = [&](int64_t first, int64_t rows) {
        std::vector<bf16> y(static_cast<size_t>(rows * columns));
        std::vector<float> mean(static_cast<size_t>(rows)), rstd(mean);
        const TensorDesc wide{DType::kBF16, {rows, columns}, 0}, each{DType::kF32, {rows}, 0},
            vector{DType::kF32, {columns}, 0};
        std::vector<Tensor> in{{wide, x.data() + first * columns}, {vector, gamma.data()}},
            out{{wide, y.data()}};
        if (centered) in.push_back({vector, beta.data()}), out.push_back({each, mean.data()});
        out.push_back({each, rstd.data()});
        std::vector<TensorDesc> in_desc, out_desc;
        for (const Tensor& t : in) in_desc.push_back(t.desc);
        for (const Tensor& t : out) out_desc.push_back(t.desc);
        const Attrs attrs;
        const auto kernel = cpu_registry().find({op, in_desc, out_desc, ~0u, ~0u, &attrs, 1});
        EXPECT_NE(kernel, nullptr) << op;
        if (kernel != nullptr) kernel->run({in, out, nullptr, 0, {}});
        std::vector<uint32_t> bits;
        for (int64_t r = 0; r < rows; ++r) {
          const auto at = static_cast<size_t>(r);
          for (int64_t i = 0; i < columns; ++i) bits.push_back(y[static_cast<size_t>(r * columns + i)].bits);
          for (const float value : {mean[at], rstd[at]}) {
            uint32_t own;
            std::memcpy(&own, &value, sizeof own);
            bits.push_back(own);
          }
        }
        return bits;
      };
      std::vector<uint32_t> alone;
      for (int64_t r = 0; r < kRows; ++r)
        for (const uint32_t b : norm(r, 1)) alone.push_back(b);
      EXPECT_EQ(norm(0, kRows), alone) << op << " " << columns;
    }
}

}  // namespace
}  // namespace cairn::kernels::cpu
