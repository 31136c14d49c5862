#include "kernels/cpu/softmax.h"

#include <cmath>

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softmax.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/long_sums-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

inline constexpr float kLowest = -3.0e38f;

template <class T>
float row_max(const T* x, int64_t n) {
  V top = set(kLowest);
  for_each_vector(0, n, [&](auto t, int64_t i) { top = hn::Max(top, keep(t, get(t, x + i), set(kLowest))); });
  return max_lanes(top);
}

// Terms that are summed in float32: a vocabulary is 50 000 long.
inline constexpr int64_t kBlock = 4096;

// Sum of exp(x - max), in blocks. The exponentials are left in e, when given, which may be x.
template <class T, class E>
double exp_sum(const T* x, int64_t n, float max, E* e) {
  const V shift = set(max);
  double total = 0;
  for (int64_t b = 0; b < n; b += kBlock) {
    V sum = hn::Zero(DF());
    for_each_vector(b, b + kBlock < n ? b + kBlock : n, [&](auto t, int64_t i) {
      const V v = exp(hn::Sub(get(t, x + i), shift));
      if (e != nullptr) put(t, v, e + i);
      sum = hn::Add(sum, keep(t, v, hn::Zero(DF())));
    });
    total += sum_lanes(sum);
  }
  return total;
}

template <class T>
void softmax_typed(const T* x, T* y, int64_t n) {
  const float max = row_max(x, n);
  const V factor = set(static_cast<float>(1.0 / exp_sum(x, n, max, y)));
  for_each_vector(0, n, [&](auto t, int64_t i) { put(t, hn::Mul(get(t, y + i), factor), y + i); });
}
void softmax_dispatch(DType type, const void* x, void* y, int64_t n) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    softmax_typed(static_cast<const T*>(x), static_cast<T*>(y), n);
  });
}

template <class T>
void softmax_grad_typed(const T* dy, const T* y, T* dx, int64_t n) {
  V sum = hn::Zero(DF());
  sum_row(
      n, sum, CAIRN_ADDS { sum = hn::MulAdd(get(t, dy + i), get(t, y + i), sum); });
  const V dot = set(sum_lanes(sum));
  for_each_vector(
      0, n, [&](auto t, int64_t i) { put(t, hn::Mul(get(t, y + i), hn::Sub(get(t, dy + i), dot)), dx + i); });
}
void softmax_grad_dispatch(DType type, const void* dy, const void* y, void* dx, int64_t n) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    softmax_grad_typed(static_cast<const T*>(dy), static_cast<const T*>(y), static_cast<T*>(dx), n);
  });
}

template <class T, class D>
double cross_entropy_typed(const T* x, int64_t n, int64_t target, float weight, D* d) {
  const float max = row_max(x, n), at = to_float(x[target]);  // x may be d: read before it is overwritten
  const double sum = exp_sum(x, n, max, d), log_sum = std::log(sum) + max;
  const double loss = log_sum - at;
  if (d == nullptr) return loss;
  const V factor = set(static_cast<float>(weight / sum));
  for_each_vector(0, n, [&](auto t, int64_t i) { put(t, hn::Mul(get(t, d + i), factor), d + i); });
  const float own = static_cast<float>(weight * (std::exp(static_cast<double>(at) - log_sum) - 1.0));
  d[target] = round_to<D>(own);
  return loss;
}
// The mean of a row, summed in blocks.
template <class T>
double row_mean(const T* x, int64_t n) {
  double total = 0;
  for (int64_t b = 0; b < n; b += kBlock) {
    V sum = hn::Zero(DF());
    for_each_vector(b, b + kBlock < n ? b + kBlock : n,
                    [&](auto t, int64_t i) { sum = hn::Add(sum, get(t, x + i)); });
    total += sum_lanes(sum);
  }
  return total / static_cast<double>(n);
}
// The same loss with label smoothing: the share `smoothing` of the target is spread evenly over all n classes.
template <class T, class D>
double smoothed_typed(const T* x, int64_t n, int64_t target, float weight, float smoothing, D* d) {
  const double at = to_float(x[target]), mean = row_mean(x, n);
  const float max = row_max(x, n);
  const double sum = exp_sum(x, n, max, d), log_sum = std::log(sum) + max;
  const double loss = log_sum - at + smoothing * (at - mean);
  if (d == nullptr) return loss;
  const double alike = smoothing / static_cast<double>(n);
  const V factor = set(static_cast<float>(weight / sum)), shift = set(static_cast<float>(weight * alike));
  for_each_vector(0, n, [&](auto t, int64_t i) { put(t, hn::MulSub(get(t, d + i), factor, shift), d + i); });
  d[target] = round_to<D>(static_cast<float>(weight * (std::exp(at - log_sum) - (1.0 - smoothing) - alike)));
  return loss;
}
double cross_entropy_dispatch(DType type_x, DType type_d, const void* x, int64_t n, int64_t target,
                              float weight, float smoothing, void* d) {
  return with_float(type_x, [&](auto zero_x) {
    return with_float(type_d, [&](auto zero_d) {
      if (smoothing > 0)
        return smoothed_typed(static_cast<const decltype(zero_x)*>(x), n, target, weight, smoothing,
                              static_cast<decltype(zero_d)*>(d));
      return cross_entropy_typed(static_cast<const decltype(zero_x)*>(x), n, target, weight,
                                 static_cast<decltype(zero_d)*>(d));
    });
  });
}

float largest_dispatch(DType type, const void* x, int64_t n, float than) {
  return with_float(type, [&](auto zero) {
    const float here = row_max(static_cast<const decltype(zero)*>(x), n);
    return here > than ? here : than;
  });
}

HWY_INLINE int64_t count(Full, hn::Mask<DF> of) { return static_cast<int64_t>(hn::CountTrue(DF(), of)); }
HWY_INLINE int64_t count(Part part, hn::Mask<DF> of) {
  return count(Full(), hn::And(of, hn::FirstN(DF(), part.n)));
}

int64_t before_target_dispatch(DType type, const void* logits, int64_t n, int64_t target, int64_t most) {
  return with_float(type, [&](auto zero) HWY_ATTR {
    constexpr int64_t kCompared = 512;  // before a row that has enough is left
    const auto* const x = static_cast<const decltype(zero)*>(logits);
    const V own = set(to_float(x[target]));
    int64_t before = 0, nans = 0;
    for (int64_t b = 0; b < n && before < most; b += kCompared) {
      const int64_t end = b + kCompared < n ? b + kCompared : n;
      const int64_t middle = target < b ? b : target < end ? target : end;
      for_each_vector(b, middle, [&](auto t, int64_t i) HWY_ATTR {
        const V v = get(t, x + i);
        before += count(t, hn::Not(hn::Lt(v, own)));
        nans += count(t, hn::IsNaN(v));
      });
      for_each_vector(middle, end, [&](auto t, int64_t i) HWY_ATTR {
        const V v = get(t, x + i);
        before += count(t, hn::Not(hn::Le(v, own)));
        nans += count(t, hn::IsNaN(v));
      });
    }
    return nans > 0 ? most : before;
  });
}

static_assert(kMaxLanes <= kOpenTerms);
int64_t lanes_dispatch() { return lanes(); }

// Goes through the part as exp_sum() does through a full row.
template <class T>
double exp_sum_part(const T* x, int64_t first, int64_t n, bool last, float max, double total, float* open) {
  const V shift = set(max);
  for (int64_t b = first; b < first + n;) {
    const int64_t full = b / kBlock * kBlock + kBlock, end = full < first + n ? full : first + n;
    V sum = b % kBlock == 0 ? hn::Zero(DF()) : hn::LoadU(DF(), open);
    for_each_vector(b - first, end - first, [&](auto t, int64_t i) {
      sum = hn::Add(sum, keep(t, exp(hn::Sub(get(t, x + i), shift)), hn::Zero(DF())));
    });
    if (end == full || last)
      total += sum_lanes(sum);
    else
      hn::StoreU(sum, DF(), open);
    b = end;
  }
  return total;
}
double exp_sum_part_dispatch(DType type, const void* x, int64_t first, int64_t n, bool last, float max,
                             double total, float* open) {
  return with_float(type, [&](auto zero) {
    return exp_sum_part(static_cast<const decltype(zero)*>(x), first, n, last, max, total, open);
  });
}

template <class T>
void cross_entropy_part_typed(T* x, int64_t n, float max, double sum, int64_t target, float at,
                              float weight) {
  const V shift = set(max), factor = set(static_cast<float>(weight / sum));
  for_each_vector(0, n, [&](auto t, int64_t i) {
    put(t, exp(hn::Sub(get(t, x + i), shift)), x + i);  // rounded, as where all of a row is there
    put(t, hn::Mul(get(t, x + i), factor), x + i);
  });
  if (target < 0) return;
  const double log_sum = std::log(sum) + max;
  const float own = static_cast<float>(weight * (std::exp(static_cast<double>(at) - log_sum) - 1.0));
  x[target] = round_to<T>(own);
}
void cross_entropy_part_dispatch(DType type, void* x, int64_t n, float max, double sum, int64_t target,
                                 float at, float weight) {
  with_float(type, [&](auto zero) {
    cross_entropy_part_typed(static_cast<decltype(zero)*>(x), n, max, sum, target, at, weight);
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {
HWY_EXPORT(softmax_dispatch);
HWY_EXPORT(softmax_grad_dispatch);
HWY_EXPORT(cross_entropy_dispatch);
HWY_EXPORT(before_target_dispatch);
HWY_EXPORT(largest_dispatch);
HWY_EXPORT(exp_sum_part_dispatch);
HWY_EXPORT(lanes_dispatch);
HWY_EXPORT(cross_entropy_part_dispatch);

void softmax_row(DType type, const void* x, void* y, int64_t n) {
  CAIRN_DISPATCH(softmax_dispatch)(type, x, y, n);
}
void softmax_grad_row(DType type, const void* dy, const void* y, void* dx, int64_t n) {
  CAIRN_DISPATCH(softmax_grad_dispatch)(type, dy, y, dx, n);
}
double cross_entropy_row(DType type_x, DType type_d, const void* x, int64_t n, int64_t target, float weight,
                         float smoothing, void* d) {
  return CAIRN_DISPATCH(cross_entropy_dispatch)(type_x, type_d, x, n, target, weight, smoothing, d);
}
int64_t before_target(DType type, const void* x, int64_t n, int64_t target, int64_t most) {
  return CAIRN_DISPATCH(before_target_dispatch)(type, x, n, target, most);
}
int64_t lanes_of_exponentials() { return CAIRN_DISPATCH(lanes_dispatch)(); }
float largest_of(DType type, const void* x, int64_t n, float than) {
  return CAIRN_DISPATCH(largest_dispatch)(type, x, n, than);
}
double sum_exponentials(DType type, const void* x, int64_t first, int64_t n, bool last, float max, double sum,
                        float* open) {
  return CAIRN_DISPATCH(exp_sum_part_dispatch)(type, x, first, n, last, max, sum, open);
}
void cross_entropy_part(DType type, void* x, int64_t n, float max, double sum, int64_t target, float at,
                        float weight) {
  CAIRN_DISPATCH(cross_entropy_part_dispatch)(type, x, n, max, sum, target, at, weight);
}
}  // namespace cairn::kernels::cpu
#endif
