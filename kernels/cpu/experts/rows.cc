// Rows that go to their experts, and what comes back.
#include "kernels/cpu/rows.h"

#include <cstring>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"
#include "kernels/cpu/support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/experts/rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/long_sums-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// y = the sum of `k` rows of x, which has `rows`, each times its weight.
template <class T>
void combine_choices_typed(const T* x, int64_t rows, int64_t width, const int32_t* places,
                           const float* weights, int64_t k, T* y) {
  for_each_vector(0, width, [&](auto t, int64_t i) {
    V sum = hn::Zero(DF());
    for (int64_t j = 0; j < k; ++j)
      if (places[j] >= 0 && places[j] < rows)
        sum = hn::MulAdd(set(weights != nullptr ? weights[j] : 1.0f), get(t, x + places[j] * width + i), sum);
    put(t, sum, y + i);
  });
}
void combine_choices_dispatch(DType type, const void* x, int64_t rows, int64_t width, const int32_t* places,
                              const float* weights, int64_t k, void* y) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    combine_choices_typed(static_cast<const T*>(x), rows, width, places, weights, k, static_cast<T*>(y));
  });
}

float choice_dot_dispatch(DType type, const void* a, const void* b, int64_t n) {
  return with_float(type, [&](auto zero) {
    using T = decltype(zero);
    const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
    V sum = hn::Zero(DF());
    sum_row(
        n, sum, CAIRN_ADDS { sum = hn::MulAdd(get(t, x + i), get(t, y + i), sum); });
    return sum_lanes(sum);
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {
namespace {

HWY_EXPORT(combine_choices_dispatch);
HWY_EXPORT(choice_dot_dispatch);

// The types of x (and dy), places and weights; `moved` and `out` are of x's type.
bool fits(const Signature& s) {
  return fast_float(s.in[0]) && s.in[1].dtype == DType::kI32 && s.in[2].dtype == DType::kI32 &&
         s.out[0].dtype == s.in[0].dtype && (!s.has_in(3) || plain_f32(s.in[3]));
}

}  // namespace

std::unique_ptr<Kernel> make_gather_rows(const Signature& s) {
  if (!fits(s)) return nullptr;
  const DType type = s.in[0].dtype;
  const int64_t width = s.in[0].shape.last(), choices = s.in[2].shape.elements(), k = s.in[2].shape.last(),
                bytes = width * dtype_bytes(type);
  return make_kernel([=](const Call& call) {
    const char* x = input<const char>(call, 0);
    const int32_t* order = input<const int32_t>(call, 1);
    const float* weights = input<const float>(call, 3);
    char* y = output<char>(call, 0);
    parallel_for(choices, row_grain(width), [&](int64_t begin, int64_t end, int) {
      for (int64_t m = begin; m < end; ++m) {
        const int64_t from = order[m];
        char* to = y + m * bytes;
        if (from < 0 || from >= choices) {
          std::memset(to, 0, static_cast<size_t>(bytes));
        } else if (weights == nullptr) {
          std::memcpy(to, x + from / k * bytes, static_cast<size_t>(bytes));
        } else {
          const void* const in[3] = {x + from / k * bytes, nullptr, nullptr};
          void* const out[2] = {to, nullptr};
          map_elements(Map::kScale, type, in, out, 0, width, weights[from]);
        }
      }
    });
  });
}

std::unique_ptr<Kernel> make_combine_rows(const Signature& s) {
  if (!fits(s)) return nullptr;
  const DType type = s.in[0].dtype;
  const int64_t width = s.in[0].shape.last(), choices = s.in[2].shape.elements(), k = s.in[2].shape.last();
  return make_kernel([=](const Call& call) {
    const char* x = input<const char>(call, 0);
    const int32_t* places = input<const int32_t>(call, 2);
    const float* weights = input<const float>(call, 3);
    char* y = output<char>(call, 0);
    parallel_for(choices / k, row_grain(width * k), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) CAIRN_DISPATCH(combine_choices_dispatch)
      (type, x, choices, width, places + r * k, weights != nullptr ? weights + r * k : nullptr, k,
       y + r * width * dtype_bytes(type));
    });
  });
}

std::unique_ptr<Kernel> make_combine_rows_grad(const Signature& s) {
  if (!fast_float(s.in[0]) || s.in[1].dtype != s.in[0].dtype || !plain_f32(s.out[0])) return nullptr;
  const DType type = s.in[0].dtype;
  const int64_t width = s.in[0].shape.last(), choices = s.in[2].shape.elements(), k = s.in[2].shape.last(),
                bytes = width * dtype_bytes(type);
  return make_kernel([=](const Call& call) {
    const char *dy = input<const char>(call, 0), *x = input<const char>(call, 1);
    const int32_t* places = input<const int32_t>(call, 2);
    float* dweights = output<float>(call, 0);
    parallel_for(choices, row_grain(width), [&](int64_t begin, int64_t end, int) {
      for (int64_t j = begin; j < end; ++j) {
        const bool inside = places[j] >= 0 && places[j] < choices;
        dweights[j] = inside ? CAIRN_DISPATCH(choice_dot_dispatch)(type, dy + j / k * bytes,
                                                                   x + places[j] * bytes, width)
                             : 0;
      }
    });
  });
}

}  // namespace cairn::kernels::cpu
#endif
