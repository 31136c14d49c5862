#include "kernels/cpu/elementwise.h"

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/activation-inl.h"
#include "kernels/cpu/simd/several-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// swish_clamped and its gradients.
HWY_INLINE V at_most(V x, V limit) { return hn::IfThenElse(hn::Gt(x, limit), limit, x); }
HWY_INLINE V within(V x, V limit) { return hn::Neg(at_most(hn::Neg(at_most(x, limit)), limit)); }
HWY_INLINE V steep(V gate) { return hn::Mul(set(static_cast<float>(kSwishSlope)), gate); }
HWY_INLINE V swish_clamped(V gate, V up, V limit) {
  const V g = at_most(gate, limit);
  return hn::Mul(hn::Mul(g, sigmoid(steep(g))), hn::Add(within(up, limit), set(1.0f)));
}
HWY_INLINE V swish_clamped_dgate(V dy, V gate, V up, V limit) {
  const V g = at_most(gate, limit), s = sigmoid(steep(g));
  const V slope = hn::Mul(s, hn::MulAdd(steep(g), hn::Sub(set(1.0f), s), set(1.0f)));
  const V d = hn::Mul(hn::Mul(dy, hn::Add(within(up, limit), set(1.0f))), slope);
  return hn::IfThenZeroElse(hn::Gt(gate, limit), d);
}
HWY_INLINE V swish_clamped_dup(V dy, V gate, V up, V limit) {
  const V g = at_most(gate, limit);
  return hn::IfThenZeroElse(hn::Gt(hn::Abs(up), limit), hn::Mul(dy, hn::Mul(g, sigmoid(steep(g)))));
}

template <class T>
void map_typed(Map map, const void* const in[3], void* const out[2], int64_t begin, int64_t end,
               float factor) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  const T* c = static_cast<const T*>(in[2]);
  T* y = static_cast<T*>(out[0]);
  T* z = static_cast<T*>(out[1]);
  const auto unary = [&](auto f) {
    for_each_several<kMany>(begin, end, [&](auto t, int64_t i) { put(t, each(f, get(t, a + i)), y + i); });
  };
  const auto binary = [&](auto f) {
    for_each_several<kMany>(begin, end,
                            [&](auto t, int64_t i) { put(t, each(f, get(t, a + i), get(t, b + i)), y + i); });
  };
  // Outputs dgate and dup.
  const auto gated = [&](auto of_gate, auto of_up) {
    for_each_vector(begin, end, [&](auto t, int64_t i) {
      const V dy = get(t, a + i), gate = get(t, b + i), up = get(t, c + i);
      const V dup = of_up(dy, gate, up);
      if (y != nullptr) put(t, of_gate(dy, gate, up), y + i);
      if (z != nullptr) put(t, dup, z + i);
    });
  };
  switch (map) {
#define FUNCTION(name, ...)             \
  case Map::k_##name:                   \
    return unary(CAIRN_FUNCTION(name)); \
  case Map::k_##name##_grad:            \
    return binary(CAIRN_FUNCTION(name##_grad));
#define PLAIN(name, ...) FUNCTION(name)
#include "runtime/base/elementwise.def"
#define GLU(word, function)                                                                 \
  case Map::kGlu_##word:                                                                    \
    return binary([](V gate, V up) { return hn::Mul(function(gate), up); });                \
  case Map::kGlu_##word##_grad:                                                             \
    return gated([](V dy, V gate, V up) { return function##_grad(hn::Mul(dy, up), gate); }, \
                 [](V dy, V gate, V) { return hn::Mul(dy, function(gate)); });
#define GLU_LIMITED(word)                                                                          \
  case Map::kGlu_##word:                                                                           \
    return binary([factor](V gate, V up) { return word(gate, up, set(factor)); });                 \
  case Map::kGlu_##word##_grad:                                                                    \
    return gated([factor](V dy, V gate, V up) { return word##_dgate(dy, gate, up, set(factor)); }, \
                 [factor](V dy, V gate, V up) { return word##_dup(dy, gate, up, set(factor)); });
    CAIRN_GLUS(GLU, GLU_LIMITED)
#undef GLU
#undef GLU_LIMITED
    case Map::kAdd:
      return binary([](V p, V q) { return hn::Add(p, q); });
    case Map::kMul:
      return binary([](V p, V q) { return hn::Mul(p, q); });
    case Map::kScale:
      return unary([factor](V x) { return hn::Mul(x, set(factor)); });
  }
}

void map_dispatch(Map map, DType type, const void* const in[3], void* const out[2], int64_t begin,
                  int64_t end, float factor) {
  with_float(type, [&](auto zero) { map_typed<decltype(zero)>(map, in, out, begin, end, factor); });
}

template <class TA, class TB>
void combine_typed(Map map, const void* a, const void* b, void* y, int64_t n) {
  const auto go = [&](auto f) {
    for_each_vector(0, n, [&](auto t, int64_t i) {
      put(t, f(get(t, static_cast<const TA*>(a) + i), get(t, static_cast<const TB*>(b) + i)),
          static_cast<TA*>(y) + i);
    });
  };
  if (map == Map::kAdd)
    go([](V p, V q) { return hn::Add(p, q); });
  else
    go([](V p, V q) { return hn::Mul(p, q); });
}

void combine_dispatch(Map map, DType type_a, DType type_b, const void* a, const void* b, void* y, int64_t n) {
  with_float(type_a, [&](auto zero) {
    using T = decltype(zero);
    if (type_b == type_a)
      combine_typed<T, T>(map, a, b, y, n);
    else
      combine_typed<T, float>(map, a, b, y, n);
  });
}

template <class TX, class TY>
void convert_typed(bool add, const void* x, void* y, int64_t n) {
  const TX* from = static_cast<const TX*>(x);
  TY* to = static_cast<TY*>(y);
  if (add)
    for_each_vector(0, n,
                    [&](auto t, int64_t i) { put(t, hn::Add(get(t, to + i), get(t, from + i)), to + i); });
  else
    for_each_vector(0, n, [&](auto t, int64_t i) { put(t, get(t, from + i), to + i); });
}

void convert_dispatch(DType type_x, DType type_y, bool add, const void* x, void* y, int64_t n) {
  with_float(type_x, [&](auto from) {
    with_float(type_y, [&](auto to) { convert_typed<decltype(from), decltype(to)>(add, x, y, n); });
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {
HWY_EXPORT(map_dispatch);
HWY_EXPORT(combine_dispatch);
HWY_EXPORT(convert_dispatch);

void map_elements(Map map, DType type, const void* const in[3], void* const out[2], int64_t begin,
                  int64_t end, float factor) {
  CAIRN_DISPATCH(map_dispatch)(map, type, in, out, begin, end, factor);
}
void combine_row(Map map, DType type_a, DType type_b, const void* a, const void* b, void* y, int64_t n) {
  CAIRN_DISPATCH(combine_dispatch)(map, type_a, type_b, a, b, y, n);
}
void convert(DType type_x, DType type_y, bool add, const void* x, void* y, int64_t n) {
  CAIRN_DISPATCH(convert_dispatch)(type_x, type_y, add, x, y, n);
}
}  // namespace cairn::kernels::cpu
#endif
