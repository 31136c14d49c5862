// Vectors of float over float32, bfloat16 or float16 memory, for every Highway target. Included inside foreach_target
// files (per-target include guard); everything here lives in the target's namespace.
#if defined(CAIRN_KERNELS_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_KERNELS_CPU_SIMD_INL_H_
#undef CAIRN_KERNELS_CPU_SIMD_INL_H_
#else
#define CAIRN_KERNELS_CPU_SIMD_INL_H_
#endif

// GCC 12 warns about its own intrinsics (bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <hwy/highway.h>

#include "runtime/base/tensor.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using DF = hn::ScalableTag<float>;
using DU = hn::RebindToUnsigned<DF>;
using DH = hn::Rebind<uint16_t, DF>;
using V = hn::Vec<DF>;
inline constexpr size_t kMaxLanes = hn::MaxLanes(DF());

// Of the processor, for vectors.
inline constexpr int kRegisters =
    HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON || HWY_TARGET == HWY_SVE ? 32 : 16;

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(DF())); }
HWY_INLINE V set(float value) { return hn::Set(DF(), value); }

// Several vectors that are kept in registers: CAIRN_VECTORS(sum, [8][3]) declares `sum`, of at most 24. Vectors of SVE,
// whose size compilers do not know, cannot be elements of an array: there they have names, and elements say where they are.
#undef CAIRN_VECTORS
#if HWY_HAVE_SCALABLE
struct VectorSlot {
  V* at;
  HWY_INLINE operator V&() const { return *at; }
  HWY_INLINE void operator=(V v) { *at = v; }
};
#define CAIRN_VECTORS(name, dimensions)                                                                  \
  V name##_0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7, name##_8, name##_9,  \
      name##_10, name##_11, name##_12, name##_13, name##_14, name##_15, name##_16, name##_17, name##_18, \
      name##_19, name##_20, name##_21, name##_22, name##_23;                                             \
  V* const name##_at[] = {&name##_0,  &name##_1,  &name##_2,  &name##_3,  &name##_4,  &name##_5,         \
                          &name##_6,  &name##_7,  &name##_8,  &name##_9,  &name##_10, &name##_11,        \
                          &name##_12, &name##_13, &name##_14, &name##_15, &name##_16, &name##_17,        \
                          &name##_18, &name##_19, &name##_20, &name##_21, &name##_22, &name##_23};       \
  VectorSlot name dimensions;                                                                            \
  static_assert(sizeof name <= 24 * sizeof(VectorSlot));                                                 \
  bind_vectors<sizeof name / sizeof(VectorSlot)>(reinterpret_cast<VectorSlot*>(&name), name##_at)
template <size_t kCount>
HWY_INLINE void bind_vectors(VectorSlot* slots, V* const* at) {
#pragma GCC unroll 24
  for (size_t i = 0; i < kCount; ++i) slots[i].at = at[i];
}
#else
using VectorSlot = V;
#define CAIRN_VECTORS(name, dimensions) V name dimensions
#endif

// A full vector, or the first n elements of one (the rest read as 0 and are not written).
struct Full {};
struct Part {
  size_t n;
};

HWY_INLINE V get(Full, const float* p) { return hn::LoadU(DF(), p); }
HWY_INLINE V get(Full, const bf16* p) {
  const auto half = hn::LoadU(DH(), reinterpret_cast<const uint16_t*>(p));
  return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(DU(), half)));
}
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON || HWY_TARGET == HWY_SVE
#define CAIRN_HAS_F16C 1  // conversions in hardware, which take and give denormals
#else
#define CAIRN_HAS_F16C 0
#endif
#if CAIRN_HAS_F16C
using DHalf = hn::Rebind<hwy::float16_t, DF>;
#endif
HWY_INLINE V get(Full, const f16* p) {
#if CAIRN_HAS_F16C
  return hn::PromoteTo(DF(), hn::LoadU(DHalf(), reinterpret_cast<const hwy::float16_t*>(p)));
#else
  float lane[kMaxLanes];
  for (size_t i = 0; i < hn::Lanes(DF()); ++i) lane[i] = to_float(p[i]);
  return hn::LoadU(DF(), lane);
#endif
}
#if HWY_TARGET == HWY_AVX3
// Masked loads and stores touch no byte beyond. Through an array they would wait for its elements' stores.
HWY_INLINE V get(Part part, const float* p) {
  return V{_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << part.n) - 1), p)};
}
HWY_INLINE V get(Part part, const bf16* p) {
  const __m256i half = _mm256_maskz_loadu_epi16(static_cast<__mmask16>((1u << part.n) - 1), p);
  return V{_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
}
#endif
template <class T>
HWY_INLINE V get(Part part, const T* p) {
  T lane[kMaxLanes] = {};
  for (size_t i = 0; i < part.n; ++i) lane[i] = p[i];
  return get(Full(), lane);
}

// Round to nearest even; NaN remains NaN; denormals are kept (unlike the hardware's conversion).
HWY_INLINE hn::Vec<DU> round_bf16(V v) {
  const DU du;
  const auto u = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(du, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(u, hn::Set(du, 0x7fff)), odd));
  const auto quiet = hn::Or(hn::ShiftRight<16>(u), hn::Set(du, 0x40));
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, rounded);
}

HWY_INLINE void put(Full, V v, float* p) { hn::StoreU(v, DF(), p); }
#if HWY_TARGET == HWY_AVX3
// The same as round_bf16() in fewer steps, in the upper halves of lanes.
HWY_INLINE __m512i upper_bf16(V v) {
  const __m512i u = _mm512_castps_si512(v.raw);
  const __mmask16 odd = _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000));
  const __mmask16 nan = _mm512_cmp_ps_mask(v.raw, v.raw, _CMP_UNORD_Q);
  const __m512i down = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
  const __m512i rounded = _mm512_mask_add_epi32(down, odd, u, _mm512_set1_epi32(0x8000));
  return _mm512_mask_or_epi32(rounded, nan, u, _mm512_set1_epi32(0x400000));
}
alignas(64) inline constexpr uint16_t kUpperHalves[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                          23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                          45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
HWY_INLINE __m256i narrow_bf16(V v) {
  return _mm512_castsi512_si256(_mm512_permutexvar_epi16(_mm512_load_si512(kUpperHalves), upper_bf16(v)));
}
#endif
HWY_INLINE void put(Full, V v, bf16* p) {
#if HWY_TARGET == HWY_SCALAR
  p->bits = static_cast<uint16_t>(hn::GetLane(round_bf16(v)));
#elif HWY_TARGET == HWY_AVX2
  hn::StoreU(hn::DemoteTo(DH(), hn::BitCast(hn::RebindToSigned<DF>(), round_bf16(v))), DH(),
             reinterpret_cast<uint16_t*>(p));
#elif HWY_TARGET == HWY_AVX3
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow_bf16(v));
#else
  hn::StoreU(hn::TruncateTo(DH(), round_bf16(v)), DH(), reinterpret_cast<uint16_t*>(p));
#endif
}
HWY_INLINE void put(Full, V v, f16* p) {
#if CAIRN_HAS_F16C
  hn::StoreU(hn::DemoteTo(DHalf(), v), DHalf(), reinterpret_cast<hwy::float16_t*>(p));
#else
  float lane[kMaxLanes];
  hn::StoreU(v, DF(), lane);
  for (size_t i = 0; i < hn::Lanes(DF()); ++i) p[i] = to_f16(lane[i]);
#endif
}
#undef CAIRN_HAS_F16C
#if HWY_TARGET == HWY_AVX3
HWY_INLINE void put(Part part, V v, float* p) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << part.n) - 1), v.raw);
}
HWY_INLINE void put(Part part, V v, bf16* p) {
  _mm256_mask_storeu_epi16(p, static_cast<__mmask16>((1u << part.n) - 1), narrow_bf16(v));
}
#endif
template <class T>
HWY_INLINE void put(Part part, V v, T* p) {
  T lane[kMaxLanes];
  put(Full(), v, lane);
  for (size_t i = 0; i < part.n; ++i) p[i] = lane[i];
}

// Calls body(Full or Part, i) over [begin, end).
template <class Body>
HWY_INLINE void for_each_vector(int64_t begin, int64_t end, const Body& body) {
  const int64_t n = lanes();
  for (; begin + n <= end; begin += n) body(Full(), begin);
  if (begin < end) body(Part{static_cast<size_t>(end - begin)}, begin);
}

// with_float() of kernel_closure.h, compiled for the target.
template <class Body>
HWY_INLINE auto with_float(DType dtype, const Body& body) {
  return dtype == DType::kBF16 ? body(bf16{}) : dtype == DType::kF16 ? body(f16{}) : body(float{});
}

HWY_INLINE float sum_lanes(V v) { return hn::GetLane(hn::SumOfLanes(DF(), v)); }
HWY_INLINE float max_lanes(V v) { return hn::GetLane(hn::MaxOfLanes(DF(), v)); }

// Lanes at and beyond n take the value of `otherwise`.
HWY_INLINE V keep(Full, V v, V) { return v; }
HWY_INLINE V keep(Part part, V v, V otherwise) {
  return hn::IfThenElse(hn::FirstN(DF(), part.n), v, otherwise);
}

// What functions do to a vector, and by the same names to two of them at once (several-inl.h).
HWY_INLINE V add(V a, V b) { return hn::Add(a, b); }
HWY_INLINE V sub(V a, V b) { return hn::Sub(a, b); }
HWY_INLINE V mul(V a, V b) { return hn::Mul(a, b); }
HWY_INLINE V div(V a, V b) { return hn::Div(a, b); }
HWY_INLINE V min(V a, V b) { return hn::Min(a, b); }
HWY_INLINE V max(V a, V b) { return hn::Max(a, b); }
HWY_INLINE V neg(V a) { return hn::Neg(a); }
HWY_INLINE V round(V a) { return hn::Round(a); }
HWY_INLINE V mul_add(V a, V b, V c) { return hn::MulAdd(a, b, c); }
HWY_INLINE V neg_mul_add(V a, V b, V c) { return hn::NegMulAdd(a, b, c); }

// p 2^n, which is e^x; n is an integer.
HWY_INLINE V scaled_power(V p, V n, [[maybe_unused]] V x) {
#if HWY_TARGET == HWY_AVX3
  return V{_mm512_scalef_ps(p.raw, n.raw)};
#else
  // Two factors of 2^(n/2): n = 128 alone would overflow the exponent field.
  const DF d;
  const hn::RebindToSigned<DF> di;
#if HWY_TARGET == HWY_AVX2  // without what Highway adds for numbers that are no integers of 32 bits
  const hn::VFromD<decltype(di)> i{_mm256_cvtps_epi32(n.raw)};
#else
  const auto i = hn::ConvertTo(di, n);
#endif
  const auto half = hn::ShiftRight<1>(i);
  const auto bias = hn::Set(di, 127);
  const V s0 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V s1 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(i, half), bias)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Mul(hn::Mul(p, s0), s1));
#endif
}

// e^x by Cody-Waite reduction and a polynomial of degree 7: within 2 ulp; 0 below -104, inf above 88.7, or e^most above that. NaN
// for NaN: the minimum and maximum of x86 give their second operand then.
template <class X>
HWY_INLINE X exp(X x, float most = 89.0f) {
  const X in = min(set(most), max(set(-104.0f), x));
  const X n = round(mul(in, set(1.44269504088896341f)));
  X r = neg_mul_add(n, set(0.693145751953125f), in);
  r = neg_mul_add(n, set(1.42860682030941723e-6f), r);
  X p = mul_add(set(1.0f / 5040.0f), r, set(1.0f / 720.0f));
  p = mul_add(p, r, set(1.0f / 120.0f));
  p = mul_add(p, r, set(1.0f / 24.0f));
  p = mul_add(p, r, set(1.0f / 6.0f));
  p = mul_add(p, r, set(0.5f));
  p = mul_add(p, r, set(1.0f));
  p = mul_add(p, r, set(1.0f));
  return scaled_power(p, n, x);
}

#if HWY_TARGET == HWY_AVX3
HWY_INLINE V reciprocal_estimate(V x) { return V{_mm512_rcp14_ps(x.raw)}; }  // of 14 bits
// a b, and 0 where x < limit.
HWY_INLINE V mul_from(V x, V limit, V a, V b) {
  return V{_mm512_maskz_mul_ps(_mm512_cmp_ps_mask(x.raw, limit.raw, _CMP_NLT_UQ), a.raw, b.raw)};
}
#endif

// 1 / (1 + e^-x). With AVX-512 by an estimate of 14 bits and one Newton step: within 2 ulp and cheaper than a
// division. The step needs an estimate above the denormals, so that below -87 the result is 0 there, and below -88.7 elsewhere.
template <class X>
HWY_INLINE X sigmoid(X x) {
#if HWY_TARGET == HWY_AVX3
  const X d = add(set(1.0f), exp(neg(x), 87.0f));
  const X estimate = reciprocal_estimate(d);
  return mul_from(x, set(-87.0f), estimate, neg_mul_add(d, estimate, set(2.0f)));
#else
  return div(set(1.0f), add(set(1.0f), exp(neg(x))));
#endif
}

// erfc(|x|) within 1.2e-7 relative: Chebyshev fit of Press et al., Numerical Recipes, 6.2.
HWY_INLINE V erfc_abs(V x) {
  const V z = hn::Abs(x);
  const V t = hn::Div(set(1.0f), hn::MulAdd(set(0.5f), z, set(1.0f)));
  V p = set(0.17087277f);
  for (float c : {-0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f, -0.18628806f, 0.09678418f,
                  0.37409196f, 1.00002368f, -1.26551223f})
    p = hn::MulAdd(p, t, set(c));
  return hn::Mul(t, exp(hn::NegMulAdd(z, z, p)));
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
