#include "kernels/cpu/norm.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/long_sums-inl.h"
#include "kernels/cpu/simd/several-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// Some rows side by side: the sums over each are a chain.
template <bool centered, size_t kRows, class T>
void norm_rows(const NormRows& r, int64_t begin, int64_t end) {
  constexpr auto kStep = static_cast<int64_t>(kRows);
  const int64_t c = r.columns;
  const float inverse = 1.0f / static_cast<float>(c);
  const V zero = hn::Zero(DF());
  for (int64_t row = begin; row + kStep <= end; row += kStep) {
    const T* x = static_cast<const T*>(r.x) + row * c;
    T* y = static_cast<T*>(r.y) + row * c;
    auto mean = all_rows<kRows>(zero), squares = mean;
    if (centered) {
      auto sum = mean;
      sum_row(
          c, sum, CAIRN_ADDS { sum = add(sum, get_rows<kRows>(t, x + i, c)); });
      mean = each([&](V v) { return set(sum_lanes(v) * inverse); }, sum);
    }
    sum_row(
        c, squares, CAIRN_ADDS {
          const auto d = each([&](V v) { return keep(t, v, zero); }, sub(get_rows<kRows>(t, x + i, c), mean));
          squares = mul_add(d, d, squares);
        });
    const auto factor =
        each([&](V v) { return set(1.0f / std::sqrt(sum_lanes(v) * inverse + r.eps)); }, squares);
    for_each_vector(0, c, [&](auto t, int64_t i) {
      auto v = mul(sub(get_rows<kRows>(t, x + i, c), mean), factor);
      if (r.gamma != nullptr) v = mul(v, get(t, r.gamma + i));
      if (r.beta != nullptr) v = add(v, get(t, r.beta + i));
      put_rows<kRows>(t, v, y + i, c);
    });
    if (centered && r.mean != nullptr) put_rows<kRows>(Part{1}, mean, r.mean + row, 1);
    if (r.rstd != nullptr) put_rows<kRows>(Part{1}, factor, r.rstd + row, 1);
  }
}
template <bool centered, class T>
void norm_typed(const NormRows& r, int64_t begin, int64_t end) {
  const int64_t rest = end - (end - begin) % static_cast<int64_t>(kSomeRows);
  norm_rows<centered, kSomeRows, T>(r, begin, rest);
  norm_rows<centered, 1, T>(r, rest, end);
}

void norm_dispatch(const NormRows& r, int64_t begin, int64_t end) {
  with_float(r.type, [&](auto zero) {
    using T = decltype(zero);
    r.centered ? norm_typed<true, T>(r, begin, end) : norm_typed<false, T>(r, begin, end);
  });
}

// With g = dy gamma, h = (x - mean) rstd: dx = rstd (g - mean(g) - h mean(g h)) + da; without centering the
// middle term is left out. dgamma = sum over rows of dy h, dbeta of dy.
template <bool centered, class T>
void norm_grad_typed(const NormGradRows& r, float* dgamma, float* dbeta, int64_t begin, int64_t end) {
  const int64_t c = r.columns;
  const float inverse = 1.0f / static_cast<float>(c);
  for (int64_t row = begin; row < end; ++row) {
    const T* x = static_cast<const T*>(r.x) + row * c;
    const T* dy = static_cast<const T*>(r.dy) + row * c;
    const V mean = set(centered ? r.mean[row] : 0.0f), rstd = set(r.rstd[row]);
    const V zero = hn::Zero(DF());
    V sum_g = zero, sum_gh = zero;
    const auto add_up = CAIRN_ADDS {
      const V d = get(t, dy + i), h = hn::Mul(hn::Sub(get(t, x + i), mean), rstd);
      const V g = r.gamma != nullptr ? hn::Mul(d, get(t, r.gamma + i)) : d;
      sum_g = hn::Add(sum_g, g);
      sum_gh = hn::MulAdd(g, h, sum_gh);
      if (dgamma != nullptr) put(t, hn::MulAdd(d, h, get(t, dgamma + i)), dgamma + i);
      if (dbeta != nullptr) put(t, hn::Add(get(t, dbeta + i), d), dbeta + i);
    };
    if (c <= kRowChain) {
      for_each_vector(0, c, add_up);
    } else {
      V high_g = zero, high_gh = zero, low_g = zero, low_gh = zero;
      for (int64_t at = 0; at < c; at += kRowBlock) {
        sum_g = sum_gh = zero;
        for_each_vector(at, std::min(c, at + kRowBlock), add_up);
        add_to_total(high_g, low_g, sum_g);
        add_to_total(high_gh, low_gh, sum_gh);
      }
      sum_g = rounded_total(high_g, low_g);
      sum_gh = rounded_total(high_gh, low_gh);
    }
    if (r.dx == nullptr) continue;
    T* dx = static_cast<T*>(r.dx) + row * c;
    const T* da = r.da != nullptr ? static_cast<const T*>(r.da) + row * c : nullptr;
    const V mean_g = set(centered ? sum_lanes(sum_g) * inverse : 0.0f),
            mean_gh = set(sum_lanes(sum_gh) * inverse);
    for_each_vector(0, c, [&](auto t, int64_t i) {
      const V d = get(t, dy + i), h = hn::Mul(hn::Sub(get(t, x + i), mean), rstd);
      const V g = r.gamma != nullptr ? hn::Mul(d, get(t, r.gamma + i)) : d;
      V v = hn::Mul(rstd, hn::Sub(hn::Sub(g, mean_g), hn::Mul(h, mean_gh)));
      if (da != nullptr) v = hn::Add(v, get(t, da + i));
      put(t, v, dx + i);
    });
  }
}

void norm_grad_dispatch(const NormGradRows& r, float* dgamma, float* dbeta, int64_t begin, int64_t end) {
  with_float(r.type, [&](auto zero) {
    using T = decltype(zero);
    r.centered ? norm_grad_typed<true, T>(r, dgamma, dbeta, begin, end)
               : norm_grad_typed<false, T>(r, dgamma, dbeta, begin, end);
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/long_sums.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {
namespace {

HWY_EXPORT(norm_dispatch);
HWY_EXPORT(norm_grad_dispatch);

// What rows are multiplied by: gamma + offset, in `space`; gamma itself where there is no offset.
struct Factors {
  float offset;
  int64_t columns;

  explicit Factors(const Signature& s, int64_t of)
      : offset(s.attrs != nullptr ? static_cast<float>(s.attrs->real("offset")) : 0.0f), columns(of) {}
  int64_t bytes() const { return offset != 0 ? columns * 4 : 0; }
  const float* operator()(const float* gamma, float* space) const {
    if (offset == 0) return gamma;
    for (int64_t i = 0; i < columns; ++i) space[i] = gamma[i] + offset;
    return space;
  }
};

std::unique_ptr<Kernel> make_norm(const Signature& s, bool centered) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != s.in[0].dtype) return nullptr;
  for (size_t i = 1; i < s.in.size(); ++i)
    if (s.has_in(i) && !plain_f32(s.in[i])) return nullptr;
  NormRows r{.columns = s.in[0].shape.last(), .type = s.in[0].dtype, .centered = centered};
  r.eps = static_cast<float>(s.attrs != nullptr ? s.attrs->real("eps", 1e-5) : 1e-5);
  const int64_t rows = s.in[0].shape.rows();
  const Factors factors(s, r.columns);
  const auto run = [r, rows, factors](const Call& call) {
    NormRows q = r;
    q.x = data_of(call.in, 0);
    q.gamma = factors(input<const float>(call, 1), static_cast<float*>(call.workspace));
    q.beta = r.centered ? input<const float>(call, 2) : nullptr;
    q.y = data_of(call.out, 0);
    q.mean = r.centered ? output<float>(call, 1) : nullptr;
    q.rstd = output<float>(call, r.centered ? 2 : 1);
    parallel_for(rows, row_grain(q.columns), [&](int64_t b, int64_t e, int) {
      CAIRN_DISPATCH(norm_dispatch)(q, b, e);
    });
  };
  return make_kernel(run, factors.bytes());
}

std::unique_ptr<Kernel> make_norm_grad(const Signature& s, bool centered) {
  const size_t da = centered ? 5 : 4;
  if (!fast_float(s.in[0]) || s.in[1].dtype != s.in[0].dtype) return nullptr;
  for (size_t i = 2; i < s.in.size(); ++i)
    if (s.has_in(i) && (i == da ? s.in[i].dtype != s.in[0].dtype : !plain_f32(s.in[i]))) return nullptr;
  NormGradRows r{.columns = s.in[0].shape.last(), .type = s.in[0].dtype, .centered = centered};
  const int64_t rows = s.in[0].shape.rows(), threads = s.threads;
  // Each thread sums its rows into its own two rows of the workspace; they are added up in thread order. Many rows are
  // summed by blocks, whose totals are four rows more.
  const int64_t stride = align_up(r.columns * 4, kAlignment) / 4, both = 2 * stride;
  const bool blocks = sums_by_blocks(rows) && (s.has_out(1) || (centered && s.has_out(2)));
  const int64_t own = blocks ? 3 * both : both;
  const Factors factors(s, r.columns);
  return make_kernel(
      [=](const Call& call) {
        NormGradRows q = r;
        q.dy = data_of(call.in, 0);
        q.x = data_of(call.in, 1);
        q.gamma = factors(input<const float>(call, 2), static_cast<float*>(call.workspace) + threads * own);
        q.mean = r.centered ? input<const float>(call, 3) : nullptr;
        q.rstd = input<const float>(call, r.centered ? 4 : 3);
        q.da = data_of(call.in, da);
        q.dx = data_of(call.out, 0);
        float* sums[2] = {output<float>(call, 1), r.centered ? output<float>(call, 2) : nullptr};
        float* partial = static_cast<float*>(call.workspace);
        std::memset(partial, 0, static_cast<size_t>(threads * own * 4));
        parallel_for(rows, row_grain(q.columns), [&](int64_t b, int64_t e, int thread) {
          float *mine = partial + thread * own, *high = mine + both, *low = high + both;
          const int64_t step = blocks ? kSumBlock : e - b, used = sums[1] != nullptr ? both : stride;
          for (int64_t at = b; at < e; at += step) {
            CAIRN_DISPATCH(norm_grad_dispatch)
            (q, sums[0] != nullptr ? mine : nullptr, sums[1] != nullptr ? mine + stride : nullptr, at,
             std::min(at + step, e));
            if (blocks) end_block(mine, high, low, used);
          }
          if (blocks) end_totals(mine, high, low, used);
        });
        for (int which = 0; which < 2; ++which) {
          if (sums[which] == nullptr) continue;
          const bool add = accumulates(call, static_cast<size_t>(which) + 1);
          for (int64_t i = 0; i < q.columns; ++i) {
            float total = 0;
            for (int64_t t = 0; t < threads; ++t) total += partial[t * own + which * stride + i];
            sums[which][i] = add ? sums[which][i] + total : total;
          }
        }
      },
      threads * own * 4 + factors.bytes());
}

}  // namespace

std::unique_ptr<Kernel> make_layernorm(const Signature& s) { return make_norm(s, true); }
std::unique_ptr<Kernel> make_rmsnorm(const Signature& s) { return make_norm(s, false); }
std::unique_ptr<Kernel> make_layernorm_grad(const Signature& s) { return make_norm_grad(s, true); }
std::unique_ptr<Kernel> make_rmsnorm_grad(const Signature& s) { return make_norm_grad(s, false); }

}  // namespace cairn::kernels::cpu
#endif
