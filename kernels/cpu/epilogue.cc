#include "kernels/cpu/epilogue.h"

#include <algorithm>

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/epilogue.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/activation-inl.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

template <class F>
void linear_block(const LinearEpilogue& e, const float* c, int64_t m, int64_t rows, int64_t n,
                  int64_t columns, F act) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = c + r * kPanel;
    bf16* y = e.y_ + (m + r) * e.ld_ + n;
    bf16* pre = e.pre_ != nullptr ? e.pre_ + (m + r) * e.ld_ + n : nullptr;
    sweep(0, columns, [&](auto t, int64_t i) {
      V v = get(t, from + i);
      if (e.bias_ != nullptr) v = hn::Add(v, get(t, e.bias_ + n + i));
      if (pre != nullptr) {
        put(t, v, pre + i);
        v = get(t, pre + i);
      }
      put(t, act(v), y + i);
    });
  }
}

void block_dispatch(const LinearEpilogue& e, const float* c, int64_t m, int64_t rows, int64_t n,
                    int64_t columns) {
  switch (e.act_) {
    case Activation::kNone:
      return linear_block(e, c, m, rows, n, columns, [](V v) { return v; });
    case Activation::kGeluTanh:
      return linear_block(e, c, m, rows, n, columns, [](V v) { return gelu_tanh(v); });
    case Activation::kGeluErf:
      return linear_block(e, c, m, rows, n, columns, [](V v) { return gelu_erf(v); });
    case Activation::kRelu:
      return linear_block(e, c, m, rows, n, columns, [](V v) { return relu(v); });
    case Activation::kSilu:
      return linear_block(e, c, m, rows, n, columns, [](V v) { return silu(v); });
  }
}

template <class F>
void activate_with(const float* x, float* y, int64_t n, F act) {
  sweep(0, n, [&](auto t, int64_t i) { put(t, act(get(t, x + i)), y + i); });
}
void activate_dispatch(Activation act, const float* x, float* y, int64_t n) {
  switch (act) {
    case Activation::kNone:
      return activate_with(x, y, n, [](V v) { return v; });
    case Activation::kGeluTanh:
      return activate_with(x, y, n, [](V v) { return gelu_tanh(v); });
    case Activation::kGeluErf:
      return activate_with(x, y, n, [](V v) { return gelu_erf(v); });
    case Activation::kRelu:
      return activate_with(x, y, n, [](V v) { return relu(v); });
    case Activation::kSilu:
      return activate_with(x, y, n, [](V v) { return silu(v); });
  }
}

template <class T>
void column_sums_typed(const T* x, int64_t ld, int64_t rows, int64_t columns, float* sums, bool add) {
  if (!add) std::fill(sums, sums + columns, 0.0f);
  // A block of rows is summed from zero and then added: shorter chains round less.
  constexpr int64_t kRows = 64;
  sweep(0, columns, [&](auto t, int64_t i) {
    V total = get(t, sums + i);
    for (int64_t b = 0; b < rows; b += kRows) {
      V sum = hn::Zero(DF());
      const int64_t end = std::min(rows, b + kRows);
      for (int64_t r = b; r < end; ++r) sum = hn::Add(sum, get(t, x + r * ld + i));
      total = hn::Add(total, sum);
    }
    put(t, total, sums + i);
  });
}
void column_sums_dispatch(bool half, const void* x, int64_t ld, int64_t rows, int64_t columns, float* sums,
                          bool add) {
  half ? column_sums_typed(static_cast<const bf16*>(x), ld, rows, columns, sums, add)
       : column_sums_typed(static_cast<const float*>(x), ld, rows, columns, sums, add);
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {

HWY_EXPORT(block_dispatch);
HWY_EXPORT(activate_dispatch);
HWY_EXPORT(column_sums_dispatch);

bool parse_activation(std::string_view word, Activation* out) {
  static constexpr std::pair<std::string_view, Activation> kWords[] = {{"", Activation::kNone},
                                                                       {"gelu_tanh", Activation::kGeluTanh},
                                                                       {"gelu_erf", Activation::kGeluErf},
                                                                       {"relu", Activation::kRelu},
                                                                       {"silu", Activation::kSilu}};
  for (const auto& [name, act] : kWords)
    if (name == word) {
      *out = act;
      return true;
    }
  return false;
}

void LinearEpilogue::block(const float* c, int64_t m, int64_t rows, int64_t n, int64_t columns) const {
  HWY_DYNAMIC_DISPATCH(block_dispatch)(*this, c, m, rows, n, columns);
}
void activate(Activation act, const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(activate_dispatch)(act, x, y, n);
}
void column_sums(bool half, const void* x, int64_t ld, int64_t rows, int64_t columns, float* sums, bool add) {
  HWY_DYNAMIC_DISPATCH(column_sums_dispatch)(half, x, ld, rows, columns, sums, add);
}

}  // namespace cairn::kernels::cpu
#endif
