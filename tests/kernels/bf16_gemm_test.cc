// Products of bfloat16: how many rows, panels and steps go by at a time is a matter of caches alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm/bf16/gemm.h"
#include "kernels/cpu/gemm/epilogue.h"
#include "kernels/cpu/simd/isa.h"

namespace cairn::kernels::cpu {
namespace {

std::vector<bf16> draw(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<bf16> v(static_cast<size_t>(n));
  for (bf16& x : v) x = to_bf16(normal(random));
  return v;
}

struct Aligned {
  explicit Aligned(int64_t bytes) : bytes_(static_cast<size_t>(bytes) + 64) {}
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes_.data() + (64 - reinterpret_cast<uintptr_t>(bytes_.data()) % 64) % 64);
  }
  std::vector<char> bytes_;
};

struct Sizes {
  int64_t m, n, k;
};

// More rows than stay near at once, more steps than a share has, and a last panel that is not whole.
constexpr Sizes kSizes[] = {{1100, 70, 64}, {300, 45, 1600}, {50, 96, 736}};

struct Problem {
  Sizes s;
  std::vector<bf16> a, w;
  Aligned packed;
  GemmOperands g;

  explicit Problem(const Sizes& sizes)
      : s(sizes), a(draw(s.m * s.k, 1)), w(draw(s.n * s.k, 2)), packed(packed_b_bytes(s.n, s.k)) {
    pack_b_transposed(w.data(), s.k, s.n, s.k, packed.as<bf16>(), 0, panels(s.n));
    g = row_major(a.data(), s.k, packed.as<bf16>(), s.k);
  }
  double exact(int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t x = 0; x < s.k; ++x)
      sum += static_cast<double>(to_float(a[static_cast<size_t>(i * s.k + x)])) *
             to_float(w[static_cast<size_t>(j * s.k + x)]);
    return sum;
  }
};

TEST(Bf16Gemm, RowsAndPanelsTogetherOrApartGiveTheSameBits) {
  if (!has_bf16_products()) GTEST_SKIP() << "needs products of bfloat16";
  for (const Sizes& s : kSizes) {
    Problem p(s);
    Aligned scratch(kGemmScratch);
    std::vector<bf16> whole(static_cast<size_t>(s.m * s.n)), parts = whole;
    const LinearEpilogue to_whole(Activation::kNone, nullptr, whole.data(), nullptr, s.n);
    const LinearEpilogue to_parts(Activation::kNone, nullptr, parts.data(), nullptr, s.n);
    bf16_gemm(p.g, 0, s.m, s.n, 0, panels(s.n), scratch.as<float>(), to_whole);
    for (int64_t m = 0; m < s.m; m += 32)
      for (int64_t at = 0; at < panels(s.n); ++at)
        bf16_gemm(p.g, m, std::min(s.m, m + 32), s.n, at, at + 1, scratch.as<float>(), to_parts);
    EXPECT_EQ(std::memcmp(whole.data(), parts.data(), whole.size() * sizeof(bf16)), 0) << s.m << " rows";
    for (int64_t i = 0; i < s.m; i += 37)
      for (int64_t j = 0; j < s.n; j += 7) {
        const double want = p.exact(i, j);
        EXPECT_NEAR(to_float(whole[static_cast<size_t>(i * s.n + j)]), want,
                    0.005 * (std::abs(want) + std::sqrt(static_cast<double>(s.k))));
      }
  }
}

TEST(Bf16Gemm, SumsOfWholePanelsInMemoryAreThoseOfTheEpilogue) {
  if (!has_bf16_products()) GTEST_SKIP() << "needs products of bfloat16";
  struct Keep final : Epilogue {
    float* to;
    int64_t ld;
    Keep(float* t, int64_t l) : to(t), ld(l) {}
    void block(const float* c, int64_t m, int64_t rows, int64_t n, int64_t columns) const override {
      for (int64_t r = 0; r < rows; ++r)
        std::memcpy(to + (m + r) * ld + n, c + r * kPanel, static_cast<size_t>(columns) * 4);
    }
  };
  for (const Sizes& s : kSizes) {
    Problem p(s);
    Aligned scratch(kSumRows * kPanel * 4);
    std::vector<float> sums(static_cast<size_t>(s.m * s.n)), kept = sums;
    bf16_gemm(p.g, 0, s.m, s.n, 0, panels(s.n), scratch.as<float>(), Keep(kept.data(), s.n));
    bf16_gemm_f32(p.g, 0, s.m, s.n, 0, panels(s.n), scratch.as<float>(), sums.data(), s.n, false);
    // Columns of a panel that is not whole are summed share by share where they lie in memory.
    const int64_t whole = s.n / kPanel * kPanel;
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < s.n; ++j) {
        const float sum = sums[static_cast<size_t>(i * s.n + j)],
                    want = kept[static_cast<size_t>(i * s.n + j)];
        if (j < whole)
          ASSERT_EQ(sum, want) << i << ", " << j << " of " << s.m;
        else
          ASSERT_NEAR(sum, want, 1e-4f * std::sqrt(static_cast<float>(s.k)))
              << i << ", " << j << " of " << s.m;
      }
  }
}

// The last elements of a row that is no whole vector: nothing beyond is written, and nothing is lost.
TEST(Vectors, PartsOfThemLeaveWhatIsBehindAlone) {
  for (const DType to : {DType::kF32, DType::kBF16})
    for (const DType from : {DType::kF32, DType::kBF16})
      for (int64_t n = 1; n < 40; ++n) {
        std::vector<float> x(64), y(64, 7.0f);
        for (int64_t i = 0; i < 64; ++i) {
          if (from == DType::kF32)
            x[static_cast<size_t>(i)] = static_cast<float>(i - 20);
          else
            reinterpret_cast<bf16*>(x.data())[i] = to_bf16(static_cast<float>(i - 20));
        }
        const std::vector<float> before = y;
        convert(from, to, false, x.data(), y.data(), n);
        for (int64_t i = 0; i < n; ++i)
          EXPECT_EQ(
              to == DType::kF32 ? y[static_cast<size_t>(i)] : to_float(reinterpret_cast<bf16*>(y.data())[i]),
              static_cast<float>(i - 20));
        const auto done = static_cast<size_t>(n * dtype_bytes(to));
        EXPECT_EQ(std::memcmp(reinterpret_cast<char*>(y.data()) + done,
                              reinterpret_cast<const char*>(before.data()) + done, y.size() * 4 - done),
                  0)
            << n << " elements";
      }
}

}  // namespace
}  // namespace cairn::kernels::cpu
