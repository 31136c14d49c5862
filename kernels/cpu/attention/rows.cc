#include <cmath>
#include <limits>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/activation-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

template <class T>
void clear(T* p, int64_t begin, int64_t end) {
  for_each_vector(begin, end, [&](auto t, int64_t i) { put(t, hn::Zero(DF()), p + i); });
}

using DI = hn::RebindToSigned<DF>;

// Of the keys from i on: those that a row with ids sees.
HWY_INLINE hn::Mask<DF> sees(Full, const ScoreRow& row, int64_t i) {
  return hn::RebindMask(DF(), hn::Eq(hn::LoadU(DI(), row.ids + i), hn::Set(DI(), row.own)));
}
HWY_INLINE hn::Mask<DF> sees(Part part, const ScoreRow& row, int64_t i) {
  int32_t ids[kMaxLanes];
  for (size_t lane = 0; lane < hn::Lanes(DF()); ++lane)
    ids[lane] = lane < part.n ? row.ids[i + static_cast<int64_t>(lane)] : -1;
  return hn::RebindMask(DF(), hn::Eq(hn::LoadU(DI(), ids), hn::Set(DI(), row.own)));
}

int64_t seen_of(const ScoreRow& row) {
  if (row.ids == nullptr) return row.seen.size();
  int64_t count = 0;
  for_each_vector(row.seen.begin, row.seen.end, [&](auto t, int64_t i) {
    count += static_cast<int64_t>(hn::CountTrue(DF(), sees(t, row, i)));
  });
  return count;
}

// Scores of products, -infinity where they are not seen. Returns how many are.
int64_t bend(const ScoreRow& row, float* s) {
  const float share = row.softcap > 0 ? 1 / row.softcap : 1;
  const V factor = set(row.softcap > 0 ? row.scale / row.softcap : row.scale), cap = set(row.softcap),
          nothing = set(-std::numeric_limits<float>::infinity());
  int64_t count = row.ids == nullptr ? row.seen.size() : 0;
  for_each_vector(row.seen.begin, row.seen.end, [&](auto t, int64_t i) {
    V score = hn::Mul(get(t, s + i), factor);
    if (row.added != nullptr) score = hn::MulAdd(get(t, row.added + i), set(share), score);
    if (row.softcap > 0) score = hn::Mul(tanh(score), cap);
    if (row.ids != nullptr) {
      const auto seen = sees(t, row, i);
      count += static_cast<int64_t>(hn::CountTrue(DF(), seen));
      score = hn::IfThenElse(seen, score, nothing);
    }
    put(t, score, s + i);
  });
  return count;
}

template <class T>
float score_row_typed(const ScoreRow& row, float* s, T* p) {
  const int64_t begin = row.seen.begin, end = row.seen.end;
  const bool bent = row.softcap > 0 || row.ids != nullptr || row.added != nullptr;
  if (row.seen.empty() || (bent && bend(row, s) == 0)) {
    clear(p, 0, row.n);
    return -std::numeric_limits<float>::infinity();
  }
  const float scale = bent ? 1.0f : row.scale;
  const V lowest = set(-3.0e38f);
  V top = lowest;
  for_each_vector(begin, end, [&](auto t, int64_t i) { top = hn::Max(top, keep(t, get(t, s + i), lowest)); });
  // scale may be negative: then the largest score is the smallest product.
  float largest = max_lanes(top) * scale;
  if (scale < 0) {
    V bottom = set(3.0e38f);
    for_each_vector(begin, end, [&](auto t, int64_t i) {
      bottom = hn::Min(bottom, keep(t, get(t, s + i), set(3.0e38f)));
    });
    largest = hn::GetLane(hn::MinOfLanes(DF(), bottom)) * scale;
  }
  if (row.sink != nullptr && *row.sink > largest) largest = *row.sink;
  const V factor = set(scale), shift = set(largest);
  V sum = hn::Zero(DF());
  for_each_vector(begin, end, [&](auto t, int64_t i) {
    const V v = exp(hn::MulSub(get(t, s + i), factor, shift));
    put(t, v, s + i);
    sum = hn::Add(sum, keep(t, v, hn::Zero(DF())));
  });
  float total = sum_lanes(sum);
  if (row.sink != nullptr) total += std::exp(*row.sink - largest);
  const float lse = largest + std::log(total);
  const V inverse = set(1.0f / total);
  for_each_vector(begin, end, [&](auto t, int64_t i) { put(t, hn::Mul(get(t, s + i), inverse), p + i); });
  clear(p, 0, begin);
  clear(p, end, row.n);
  return lse;
}
float score_row_dispatch(const ScoreRow& row, float* s, void* p) {
  return with_float(row.type,
                    [&](auto zero) { return score_row_typed(row, s, static_cast<decltype(zero)*>(p)); });
}

// With a softcap, ids, or what is added by distance.
template <class T>
void bent_grad_typed(const ScoreRow& row, const float* s, const float* dp, float lse, float delta,
                     bool constant, T* p, T* ds) {
  const bool caps = row.softcap > 0;
  const V factor = set(caps ? row.scale / row.softcap : row.scale), cap = set(row.softcap), shift = set(lse),
          center = set(delta), outer = set(constant ? 0.0f : row.scale),
          share = set(caps ? 1 / row.softcap : 1), unscaled = set(1 / row.scale);
  for_each_vector(row.seen.begin, row.seen.end, [&](auto t, int64_t i) {
    V score = hn::Mul(get(t, s + i), factor), slope = outer;
    if (row.added != nullptr) score = hn::MulAdd(get(t, row.added + i), share, score);
    if (caps) {
      const V bent = tanh(score);
      slope = hn::Mul(outer, hn::NegMulAdd(bent, bent, set(1.0f)));
      score = hn::Mul(bent, cap);
    }
    V prob = exp(hn::Sub(score, shift)),
      derivative = hn::Mul(hn::Mul(prob, slope), hn::Sub(get(t, dp + i), center));
    if (row.ids != nullptr) {
      const auto seen = sees(t, row, i);
      prob = hn::IfThenElseZero(seen, prob);
      derivative = hn::IfThenElseZero(seen, derivative);
    }
    if (row.added_sums != nullptr)
      put(t, hn::MulAdd(derivative, unscaled, get(t, row.added_sums + i)), row.added_sums + i);
    put(t, prob, p + i);
    put(t, derivative, ds + i);
  });
}

template <class T>
void score_grad_typed(const ScoreRow& row, const float* s, const float* dp, float lse, float delta, T* p,
                      T* ds) {
  const int64_t begin = row.seen.begin, end = row.seen.end;
  if (row.seen.empty() || lse == -std::numeric_limits<float>::infinity()) {
    clear(p, 0, row.n);
    clear(ds, 0, row.n);
    return;
  }
  // A softmax of one element is constant; rounding in delta must not give it a gradient.
  const bool constant = row.sink == nullptr && (row.ids != nullptr || end - begin == 1) && seen_of(row) == 1;
  if (row.softcap > 0 || row.ids != nullptr || row.added != nullptr) {
    bent_grad_typed(row, s, dp, lse, delta, constant, p, ds);
  } else if (constant) {
    clear(ds, begin, end);
    put(Part{1}, set(1.0f), p + begin);
  } else {
    const V factor = set(row.scale), shift = set(lse), center = set(delta);
    for_each_vector(begin, end, [&](auto t, int64_t i) {
      const V prob = exp(hn::MulSub(get(t, s + i), factor, shift));
      const V derivative = hn::Mul(hn::Mul(prob, factor), hn::Sub(get(t, dp + i), center));
      put(t, prob, p + i);
      put(t, derivative, ds + i);
    });
  }
  clear(p, 0, begin);
  clear(ds, 0, begin);
  clear(p, end, row.n);
  clear(ds, end, row.n);
}
void score_grad_dispatch(const ScoreRow& row, const float* s, const float* dp, float lse, float delta,
                         void* p, void* ds) {
  with_float(row.type, [&](auto zero) {
    using T = decltype(zero);
    score_grad_typed(row, s, dp, lse, delta, static_cast<T*>(p), static_cast<T*>(ds));
  });
}

template <class T>
float dot_typed(const T* a, const T* b, int64_t n) {
  V sum = hn::Zero(DF());
  for_each_vector(0, n, [&](auto t, int64_t i) { sum = hn::MulAdd(get(t, a + i), get(t, b + i), sum); });
  return sum_lanes(sum);
}
float dot_dispatch(DType type, const void* a, const void* b, int64_t n) {
  return with_float(type, [&](auto zero) {
    using T = decltype(zero);
    return dot_typed(static_cast<const T*>(a), static_cast<const T*>(b), n);
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {

HWY_EXPORT(score_row_dispatch);
HWY_EXPORT(score_grad_dispatch);
HWY_EXPORT(dot_dispatch);

float score_row(const ScoreRow& row, float* s, void* p) {
  return CAIRN_DISPATCH(score_row_dispatch)(row, s, p);
}
void score_grad_row(const ScoreRow& row, const float* s, const float* dp, float lse, float delta, void* p,
                    void* ds) {
  CAIRN_DISPATCH(score_grad_dispatch)(row, s, dp, lse, delta, p, ds);
}
float dot(DType type, const void* a, const void* b, int64_t n) {
  return CAIRN_DISPATCH(dot_dispatch)(type, a, b, n);
}

}  // namespace cairn::kernels::cpu
#endif
