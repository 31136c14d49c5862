// Sums over axes and their reverse: reduce_sum, reduce_mean, reduce_leading, expand. The axes named are
// gathered into [outer, reduced, inner]; other patterns are left to the reference rows.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/long_sums.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {
namespace {

struct Reduction {
  int64_t outer = 1, reduced = 1, inner = 1;
};

// Of a shape and a list of axes (empty: all), when the axes are neighbours.
std::optional<Reduction> reduction_of(const Shape& shape, std::vector<int64_t> axes) {
  if (axes.empty())
    for (int i = 0; i < shape.rank; ++i) axes.push_back(i);
  for (int64_t& a : axes)
    if (a < 0) a += shape.rank;
  std::sort(axes.begin(), axes.end());
  Reduction f;
  if (axes.empty()) return f;
  if (axes.back() - axes.front() + 1 != static_cast<int64_t>(axes.size())) return std::nullopt;
  for (int i = 0; i < shape.rank; ++i)
    (i < axes.front() ? f.outer : i > axes.back() ? f.inner : f.reduced) *= shape[i];
  return f;
}

// y[outer, inner] (+)= factor * sum over reduced of x. Threads own outputs; sums run in order of the reduced
// axis, in float64 where that axis is contiguous, else in float32 rows, by blocks of them where they are many.
std::unique_ptr<Kernel> make_sum(const Signature& s, Reduction f, float factor) {
  if (!fast_float(s.in[0]) || !plain_f32(s.out[0])) return nullptr;
  const DType type = s.in[0].dtype;
  const int64_t bytes = dtype_bytes(type);
  return make_kernel([=](const Call& call) {
    const char* x = input<const char>(call, 0);
    float* y = output<float>(call, 0);
    const bool add = accumulates(call, 0);
    if (f.inner == 1) {
      parallel_for(f.outer, row_grain(f.reduced), [&](int64_t b, int64_t e, int) {
        for (int64_t o = b; o < e; ++o) {
          double sums[8] = {};
          for (int64_t i = 0; i < f.reduced; ++i) {
            const char* p = x + (o * f.reduced + i) * bytes;
            sums[i % 8] += with_float(
                type, [&](auto zero) { return to_float(*reinterpret_cast<const decltype(zero)*>(p)); });
          }
          double total = 0;
          for (double v : sums) total += v;
          const float value = static_cast<float>(total * factor);
          y[o] = add ? y[o] + value : value;
        }
      });
      return;
    }
    parallel_for(
        f.inner, std::max<int64_t>(16, kGrain / f.reduced / 16 * 16), [&](int64_t b, int64_t e, int) {
          constexpr int64_t kStrip = 1024;
          float sums[kStrip], high[kStrip], low[kStrip];
          const bool blocks = sums_by_blocks(f.reduced);
          const int64_t step = blocks ? kSumBlock : f.reduced;
          for (int64_t o = 0; o < f.outer; ++o)
            for (int64_t at = b; at < e; at += kStrip) {
              const int64_t n = std::min(kStrip, e - at);
              std::fill(sums, sums + n, 0.0f);
              for (float* total : {high, low})
                if (blocks) std::fill(total, total + n, 0.0f);
              for (int64_t begin = 0; begin < f.reduced; begin += step) {
                const int64_t end = std::min(f.reduced, begin + step);
                for (int64_t i = begin; i < end; ++i)
                  convert(type, DType::kF32, true, x + ((o * f.reduced + i) * f.inner + at) * bytes, sums, n);
                if (blocks) end_block(sums, high, low, n);
              }
              if (blocks) end_totals(sums, high, low, n);
              float* to = y + o * f.inner + at;
              for (int64_t j = 0; j < n; ++j) to[j] = add ? to[j] + sums[j] * factor : sums[j] * factor;
            }
        });
  });
}

}  // namespace

std::unique_ptr<Kernel> make_reduce_sum(const Signature& s) {
  const auto f = reduction_of(s.in[0].shape, s.attrs->list("axes"));
  return f ? make_sum(s, *f, 1.0f) : nullptr;
}
std::unique_ptr<Kernel> make_reduce_mean(const Signature& s) {
  const auto f = reduction_of(s.in[0].shape, s.attrs->list("axes"));
  return f ? make_sum(s, *f, 1.0f / static_cast<float>(f->reduced)) : nullptr;
}
std::unique_ptr<Kernel> make_reduce_leading(const Signature& s) {
  const int64_t rank = s.attrs->integer("rank");
  Reduction f;
  for (int i = 0; i < s.in[0].shape.rank; ++i)
    (i < s.in[0].shape.rank - rank ? f.reduced : f.inner) *= s.in[0].shape[i];
  return make_sum(s, f, 1.0f);
}

std::unique_ptr<Kernel> make_reduce_axes(const Signature& s) {
  const auto f = reduction_of(s.in[0].shape, s.attrs->list("axes"));
  return f ? make_sum(s, *f, 1.0f) : nullptr;
}

std::unique_ptr<Kernel> make_expand(const Signature& s) {
  if (!plain_f32(s.in[0]) || !plain_f32(s.out[0])) return nullptr;
  const auto f = reduction_of(s.out[0].shape, s.attrs->list("axes"));
  if (!f) return nullptr;
  const float factor = static_cast<float>(s.attrs->real("factor", 1.0));
  return make_kernel([f = *f, factor](const Call& call) {
    const float* dy = input<const float>(call, 0);
    float* dx = output<float>(call, 0);
    parallel_for(f.outer * f.reduced, row_grain(f.inner), [&](int64_t b, int64_t e, int) {
      for (int64_t r = b; r < e; ++r) {
        const float* from = dy + r / f.reduced * f.inner;
        for (int64_t i = 0; i < f.inner; ++i) dx[r * f.inner + i] = from[i] * factor;
      }
    });
  });
}

}  // namespace cairn::kernels::cpu
