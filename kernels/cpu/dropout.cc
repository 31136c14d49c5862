// Dropout with the bits of runtime/base/random.h: block b of four elements is Philox of (key, b).
#include <cmath>

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dropout.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/philox-inl.h"
#include "kernels/cpu/simd/simd-inl.h"
#include "runtime/base/random.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

template <class T>
void dropout_typed(const RandomKey& key, uint64_t first, float least, float factor, const T* x, T* y,
                   int64_t begin, int64_t end) {
  constexpr int64_t kBlocks = 64;
  uint32_t bits[4 * kBlocks];
  const V threshold = set(least), scale = set(factor);
  const hn::RebindToSigned<DF> di;
  for (int64_t at = begin; at < end; at += 4 * kBlocks) {
    philox_blocks(key, first + static_cast<uint64_t>(at / 4), kBlocks, bits);
    const int64_t n = end - at < 4 * kBlocks ? end - at : 4 * kBlocks;
    for_each_vector(0, n, [&](auto t, int64_t i) {
      const auto u = hn::ShiftRight<8>(hn::LoadU(DU(), bits + i));
      const V uniforms = hn::Mul(hn::ConvertTo(DF(), hn::BitCast(di, u)), set(0x1p-24f));
      put(t, hn::IfThenElseZero(hn::Ge(uniforms, threshold), hn::Mul(get(t, x + at + i), scale)), y + at + i);
    });
  }
}
// first: of the tensor's blocks of random numbers.
void dropout_dispatch(DType type, const RandomKey& key, uint64_t first, float least, float factor,
                      const void* x, void* y, int64_t begin, int64_t end) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    dropout_typed(key, first, least, factor, static_cast<const T*>(x), static_cast<T*>(y), begin, end);
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {

HWY_EXPORT(dropout_dispatch);

std::unique_ptr<Kernel> make_dropout(const Signature& s) {
  if (!uniform_fast(s)) return nullptr;
  const int64_t count = s.in[0].shape.elements();
  const DType type = s.in[0].dtype;
  const double rate = s.attrs->real("rate");
  // uniform = k / 2^24 >= rate exactly when k >= ceil(rate 2^24), which float32 holds.
  const float threshold = static_cast<float>(std::ceil(rate * 0x1p24) * 0x1p-24);
  const float factor = static_cast<float>(1.0 / (1.0 - rate));
  const uint32_t op = static_cast<uint32_t>(s.attrs->integer("rng"));
  const int64_t first = s.attrs->integer("first", 0);
  if (first < 0 || first % 4 != 0) return nullptr;
  return make_kernel([=](const Call& call) {
    RandomKey key = call.key;
    key.op = op;
    parallel_for(count, kGrain, [&](int64_t b, int64_t e, int) {
      CAIRN_DISPATCH(dropout_dispatch)
      (type, key, static_cast<uint64_t>(first / 4), threshold, factor, data_of(call.in, 0),
       data_of(call.out, 0), b, e);
    });
  });
}

}  // namespace cairn::kernels::cpu
#endif
