// The sum of squares in the order in which a GPU adds them up, for sums that the host computes for one: chunks of a tensor, each by
// a block of threads that take four neighbours at a time, then the chunks' sums by such a block.
#include <array>

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optimizers/squares_of_threads.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// sums[i] += x[i]^2, which is exact in float64 before it is added.
void add_squares(const float* x, int64_t n, double* sums) {
  int64_t i = 0;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  const hn::ScalableTag<double> dd;
  const hn::Half<DF> dh;
  const auto half = static_cast<int64_t>(hn::Lanes(dd));
  for (; i + half <= n; i += half) {
    const auto v = hn::PromoteTo(dd, hn::LoadU(dh, x + i));
    hn::StoreU(hn::MulAdd(v, v, hn::LoadU(dd, sums + i)), dd, sums + i);
  }
#endif
  for (; i < n; ++i) {
    const double v = x[i];
    sums[i] += v * v;
  }
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"
#include "runtime/base/optimizers/squares.h"

namespace cairn::kernels::cpu {

HWY_EXPORT(add_squares);

namespace {

constexpr int64_t kThreads = kSquaresThreads, kGroup = 4, kRow = kThreads * kGroup, kWarp = 32;

// Adds up as a block of GPU threads does: each warp by halving, then the warps one after the other.
double block_sum(double* of_threads) {
  double total = 0;
  for (int64_t warp = 0; warp < kThreads; warp += kWarp) {
    double* const v = of_threads + warp;
    for (int64_t by = kWarp / 2; by > 0; by /= 2)
      for (int64_t lane = 0; lane < by; ++lane) v[lane] += v[lane + by];
    total = warp == 0 ? v[0] : total + v[0];
  }
  return total;
}

double chunk_squares(const float* x, int64_t count) {
  std::array<double, kRow> sums{};
  const int64_t grouped = count / kGroup * kGroup;
  for (int64_t i = 0; i < grouped; i += kRow)
    CAIRN_DISPATCH(add_squares)(x + i, std::min(kRow, grouped - i), sums.data());
  std::array<double, kThreads> of_threads;
  for (int64_t t = 0; t < kThreads; ++t) {
    const double* const s = sums.data() + t * kGroup;
    of_threads[static_cast<size_t>(t)] = (s[0] + s[2]) + (s[1] + s[3]);
  }
  for (int64_t i = grouped; i < count; ++i) {
    const double v = x[i];
    of_threads[static_cast<size_t>(i - grouped)] += v * v;
  }
  return block_sum(of_threads.data());
}

}  // namespace

std::unique_ptr<Kernel> make_squares_of_threads(const Signature& s) {
  if (s.attrs == nullptr || s.attrs->integer("threads", 0) != kThreads || s.in[0].dtype != DType::kF32 ||
      s.in[0].packed_bytes != 0 || s.out[0].dtype != DType::kF64)
    return nullptr;
  const int64_t count = s.in[0].shape.elements(), chunk = squares_chunk(count),
                parts = (count + chunk - 1) / chunk;
  return make_kernel(
      [=](const Call& call) {
        const float* const x = input<float>(call, 0);
        double* const sums = static_cast<double*>(call.workspace);
        parallel_for(parts, 1, [&](int64_t begin, int64_t end, int) {
          for (int64_t p = begin; p < end; ++p)
            sums[p] = chunk_squares(x + p * chunk, std::min(chunk, count - p * chunk));
        });
        std::array<double, kThreads> of_threads{};
        for (int64_t p = 0; p < parts; ++p) of_threads[static_cast<size_t>(p % kThreads)] += sums[p];
        const double sum = block_sum(of_threads.data());
        double* const total = output<double>(call, 0);
        *total = accumulates(call, 0) ? *total + sum : sum;
      },
      parts * 8);
}

}  // namespace cairn::kernels::cpu
#endif
