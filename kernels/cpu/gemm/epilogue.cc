#include "kernels/cpu/gemm/epilogue.h"

#include <algorithm>

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/long_sums.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/epilogue.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/activation-inl.h"
#include "kernels/cpu/simd/long_sums-inl.h"
#include "kernels/cpu/simd/several-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

template <class F>
void linear_block(const LinearEpilogue& e, const float* c, int64_t m, int64_t rows, int64_t n,
                  int64_t columns, F act) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = c + r * kPanel;
    bf16* y = e.y_ + (m + r) * e.ld_ + n;
    bf16* pre = e.pre_ != nullptr ? e.pre_ + (m + r) * e.ld_ + n : nullptr;
    for_each_several<2>(0, columns, [&](auto t, int64_t i) {
      auto v = get(t, from + i);
      if (e.bias_ != nullptr) v = each([](V s, V b) { return hn::Add(s, b); }, v, get(t, e.bias_ + n + i));
      if (pre != nullptr) {
        put(t, v, pre + i);
        v = get(t, pre + i);
      }
      put(t, each(act, v), y + i);
    });
  }
}

template <class Use>
void with_activation(Activation act, Use use) {
  switch (act) {
    case Activation::kNone:
      return use([](V v) { return v; });
#define FUNCTION(name, ...)  \
  case Activation::k_##name: \
    return use(CAIRN_FUNCTION(name));
#include "runtime/base/elementwise.def"
  }
}

// use(f) with f(sum, pre) = sum act'(pre).
template <class Use>
void with_derivative(Activation act, Use use) {
  switch (act) {
    case Activation::kNone:
      return use([](V sum, V) { return sum; });
#define FUNCTION(name, ...)  \
  case Activation::k_##name: \
    return use(CAIRN_FUNCTION(name##_grad));
#include "runtime/base/elementwise.def"
  }
}

void block_dispatch(const LinearEpilogue& e, const float* c, int64_t m, int64_t rows, int64_t n,
                    int64_t columns) {
  with_activation(e.act_, [&](auto f) { linear_block(e, c, m, rows, n, columns, f); });
}
void activate_dispatch(Activation act, const float* x, float* y, int64_t n) {
  with_activation(act, [&](auto f) {
    for_each_vector(0, n, [&](auto t, int64_t i) { put(t, f(get(t, x + i)), y + i); });
  });
}

void multiply_derivatives_dispatch(Activation act, DType type, const void* pre, void* y, int64_t n) {
  with_derivative(act, [&](auto f) {
    with_float(type, [&](auto zero) {
      using T = decltype(zero);
      const T* p = static_cast<const T*>(pre);
      T* to = static_cast<T*>(y);
      for_each_several<kMany>(
          0, n, [&](auto t, int64_t i) { put(t, each(f, get(t, to + i), get(t, p + i)), to + i); });
    });
  });
}

template <class T>
void long_column_sums(const T* x, int64_t ld, int64_t rows, int64_t columns, float* sums, bool keep_sums) {
  for_each_several<4>(0, columns, [&](auto t, int64_t i) {
    const auto before = get(t, sums + i);
    auto high = each([](V) { return hn::Zero(DF()); }, before), low = high;
    for (int64_t b = 0; b < rows; b += kSumBlock) {
      auto sum = get(t, x + b * ld + i);
      const int64_t end = std::min(rows, b + kSumBlock);
      for (int64_t r = b + 1; r < end; ++r) sum = add(sum, get(t, x + r * ld + i));
      add_to_total(high, low, sum);
    }
    const auto total = each(CAIRN_FUNCTION(rounded_total), high, low);
    put(t, keep_sums ? add(before, total) : total, sums + i);
  });
}

template <class T>
void column_sums_typed(const T* x, int64_t ld, int64_t rows, int64_t columns, float* sums, bool keep_sums) {
  if (sums_by_blocks(rows)) return long_column_sums(x, ld, rows, columns, sums, keep_sums);
  if (!keep_sums) std::fill(sums, sums + columns, 0.0f);
  // A block of rows is summed from zero and then added: shorter chains round less.
  constexpr int64_t kRows = 64;
  for_each_several<4>(0, columns, [&](auto t, int64_t i) {
    auto total = get(t, sums + i);
    for (int64_t b = 0; b < rows; b += kRows) {
      auto sum = each([](V) { return hn::Zero(DF()); }, total);
      const int64_t end = std::min(rows, b + kRows);
      for (int64_t r = b; r < end; ++r) sum = add(sum, get(t, x + r * ld + i));
      total = add(total, sum);
    }
    put(t, total, sums + i);
  });
}
void column_sums_dispatch(DType type, const void* x, int64_t ld, int64_t rows, int64_t columns, float* sums,
                          bool add) {
  with_float(type, [&](auto zero) {
    column_sums_typed(static_cast<const decltype(zero)*>(x), ld, rows, columns, sums, add);
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {

HWY_EXPORT(block_dispatch);
HWY_EXPORT(activate_dispatch);
HWY_EXPORT(multiply_derivatives_dispatch);
HWY_EXPORT(column_sums_dispatch);

bool parse_activation(std::string_view word, Activation* out) {
  static constexpr std::pair<std::string_view, Activation> kWords[] = {
      {"", Activation::kNone},
#define FUNCTION(name, ...) {#name, Activation::k_##name},
#include "runtime/base/elementwise.def"
  };
  for (const auto& [name, act] : kWords)
    if (name == word) {
      *out = act;
      return true;
    }
  return false;
}

void LinearEpilogue::block(const float* c, int64_t m, int64_t rows, int64_t n, int64_t columns) const {
  CAIRN_DISPATCH(block_dispatch)(*this, c, m, rows, n, columns);
}
void activate(Activation act, const float* x, float* y, int64_t n) {
  CAIRN_DISPATCH(activate_dispatch)(act, x, y, n);
}
void DerivativeEpilogue::finished(int64_t m, int64_t rows, int64_t n0, int64_t n1) const {
  const bool whole = n0 == 0 && n1 == ld_;
  for (int64_t r = m; r < m + rows; r += whole ? rows : 1)
    multiply_derivatives(act_, DType::kBF16, pre_ + r * ld_ + n0, y_ + r * ld_ + n0,
                         whole ? rows * ld_ : n1 - n0);
}
void multiply_derivatives(Activation act, DType type, const void* pre, void* y, int64_t n) {
  CAIRN_DISPATCH(multiply_derivatives_dispatch)(act, type, pre, y, n);
}
void column_sums(DType type, const void* x, int64_t ld, int64_t rows, int64_t columns, float* sums,
                 bool add) {
  CAIRN_DISPATCH(column_sums_dispatch)(type, x, ld, rows, columns, sums, add);
}

}  // namespace cairn::kernels::cpu
#endif
