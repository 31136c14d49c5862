// Several vectors side by side: a chain of operations waits for each of its results, and a processor looks ahead only so far, so
// that a function of many steps is done for all of them step by step. The bits are those of one after the other.
#if defined(CAIRN_KERNELS_CPU_SEVERAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_KERNELS_CPU_SEVERAL_INL_H_
#undef CAIRN_KERNELS_CPU_SEVERAL_INL_H_
#else
#define CAIRN_KERNELS_CPU_SEVERAL_INL_H_
#endif

#include <algorithm>
#include <type_traits>
#include <utility>

#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// A function as an object: of vectors, and of several if there is one of those. Inlined, as several vectors are handed over in
// memory, in halves, and a processor does not forward two stores to one load.
#undef CAIRN_FUNCTION
#define CAIRN_FUNCTION(name)                                                              \
  [](auto... v) HWY_ATTR __attribute__((always_inline)) requires requires { name(v...); } \
  { return name(v...); }

#if HWY_HAVE_SCALABLE  // vectors whose size compilers do not know are members of nothing
template <class F, class... Vs>
HWY_INLINE V each(const F& f, Vs... v) {
  return f(v...);
}
template <size_t kCount, class Body>
HWY_INLINE void for_each_several(int64_t begin, int64_t end, const Body& body) {
  for_each_vector(begin, end, body);
}
inline constexpr size_t kMany = 1, kSomeRows = 1;
template <size_t kRows>
HWY_INLINE V all_rows(V v) {
  return v;
}
template <size_t kRows, class T, class P>
HWY_INLINE V get_rows(T t, const P* p, int64_t) {
  return get(t, p);
}
template <size_t kRows, class T, class P>
HWY_INLINE void put_rows(T t, V v, P* p, int64_t) {
  put(t, v, p);
}
#else

// As many as keep the processor busy and have room in its registers.
inline constexpr size_t kMany = HWY_TARGET == HWY_AVX3 ? 8 : 2;
inline constexpr size_t kSomeRows = 4;  // where each is a chain of its own: of sums over it

template <size_t kCount>
struct Several {
  V v[kCount];
};
template <size_t k, size_t kCount>
HWY_INLINE V pick(const Several<kCount>& x) {
  return x.v[k];
}
template <size_t k>
HWY_INLINE V pick(V constant) {
  return constant;
}
template <size_t k, class F, class... Xs>
HWY_INLINE V one_of(const F& f, const Xs&... x) {
  return f(pick<k>(x)...);
}
template <class F, size_t... k, class... Xs>
HWY_INLINE Several<sizeof...(k)> side_by_side(std::index_sequence<k...>, const F& f, const Xs&... x) {
  return {{one_of<k>(f, x...)...}};
}

// How many an operand is; 0: a vector, which goes with each of the others.
template <class X>
inline constexpr size_t kCountOf = 0;
template <size_t kCount>
inline constexpr size_t kCountOf<Several<kCount>> = kCount;
template <class... Xs>
inline constexpr size_t kMostOf = std::max({kCountOf<Xs>...});

// f of what it takes; of several, where it takes them not, one after the other.
template <class F, class... Xs>
HWY_INLINE auto each(const F& f, const Xs&... x) {
  if constexpr (std::is_invocable_v<const F&, Xs...>)
    return f(x...);
  else
    return side_by_side(std::make_index_sequence<kMostOf<Xs...>>(), f, x...);
}

#undef CAIRN_FOR_SEVERAL
#define CAIRN_FOR_SEVERAL(name)                                                                           \
  template <class... Xs>                                                                                  \
  requires(kMostOf<Xs...> > 0) HWY_INLINE auto name(Xs... x) {                                            \
    return side_by_side(                                                                                  \
        std::make_index_sequence<kMostOf<Xs...>>(), [](auto... v) HWY_ATTR { return name(v...); }, x...); \
  }
CAIRN_FOR_SEVERAL(add)
CAIRN_FOR_SEVERAL(sub)
CAIRN_FOR_SEVERAL(mul)
CAIRN_FOR_SEVERAL(div)
CAIRN_FOR_SEVERAL(min)
CAIRN_FOR_SEVERAL(max)
CAIRN_FOR_SEVERAL(neg)
CAIRN_FOR_SEVERAL(round)
CAIRN_FOR_SEVERAL(mul_add)
CAIRN_FOR_SEVERAL(neg_mul_add)
CAIRN_FOR_SEVERAL(scaled_power)
#if HWY_TARGET == HWY_AVX3
CAIRN_FOR_SEVERAL(reciprocal_estimate)
CAIRN_FOR_SEVERAL(mul_from)
#endif

// Full vectors, one after the other.
template <size_t kCount>
struct Times {};
template <size_t kCount, class T>
HWY_INLINE Several<kCount> get(Times<kCount>, const T* p) {
  return [p]<size_t... k>(std::index_sequence<k...>) HWY_ATTR {
    return Several<kCount>{{get(Full(), p + static_cast<int64_t>(k) * lanes())...}};
  }
  (std::make_index_sequence<kCount>());
}
HWY_INLINE void put_two(V low, V high, bf16* p) {
#if HWY_TARGET == HWY_AVX3
  _mm512_storeu_si512(
      p, _mm512_permutex2var_epi16(upper_bf16(low), _mm512_load_si512(kUpperHalves), upper_bf16(high)));
#else
  put(Full(), low, p);
  put(Full(), high, p + lanes());
#endif
}
template <class T>
HWY_INLINE void put_two(V low, V high, T* p) {
  put(Full(), low, p);
  put(Full(), high, p + lanes());
}
template <size_t kCount, class T>
HWY_INLINE void put(Times<kCount>, const Several<kCount>& x, T* p) {
  static_assert(kCount % 2 == 0);
  [&]<size_t... k>(std::index_sequence<k...>) HWY_ATTR {
    (put_two(x.v[2 * k], x.v[2 * k + 1], p + static_cast<int64_t>(2 * k) * lanes()), ...);
  }
  (std::make_index_sequence<kCount / 2>());
}

template <size_t kRows>
HWY_INLINE auto all_rows(V v) {
  if constexpr (kRows == 1)
    return v;
  else
    return [v]<size_t... k>(std::index_sequence<k...>) HWY_ATTR { return Several<kRows>{{((void)k, v)...}}; }
  (std::make_index_sequence<kRows>());
}
// The same columns of neighbouring rows, `stride` elements from each other.
template <size_t kRows, class T, class P>
HWY_INLINE auto get_rows(T t, const P* p, int64_t stride) {
  if constexpr (kRows == 1)
    return get(t, p);
  else
    return [&]<size_t... k>(std::index_sequence<k...>) HWY_ATTR {
      return Several<kRows>{{get(t, p + static_cast<int64_t>(k) * stride)...}};
    }
  (std::make_index_sequence<kRows>());
}
template <size_t kRows, class T, class X, class P>
HWY_INLINE void put_rows(T t, const X& x, P* p, int64_t stride) {
  [&]<size_t... k>(std::index_sequence<k...>) HWY_ATTR {
    (put(t, pick<k>(x), p + static_cast<int64_t>(k) * stride), ...);
  }
  (std::make_index_sequence<kRows>());
}

// Calls body(Times<kCount>, Full or Part, i) over [begin, end).
template <size_t kCount, class Body>
HWY_INLINE void for_each_several(int64_t begin, int64_t end, const Body& body) {
  const int64_t n = static_cast<int64_t>(kCount) * lanes();
  for (; begin + n <= end; begin += n) body(Times<kCount>(), begin);
  for_each_vector(begin, end, body);
}
#endif

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
