#include "kernels/cpu/conv/store.h"

#include "kernels/cpu/gemm/bf16/gemm.h"
#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/store.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

void store_dispatch(DType type, const float* c, int64_t rows, int64_t columns, const float* bias, void* y,
                    int64_t ld) {
  with_float(type, [&](auto zero) {
    auto* to = static_cast<decltype(zero)*>(y);
    for (int64_t r = 0; r < rows; ++r, to += ld, c += kPanel) {
      for_each_vector(0, columns, [&](auto t, int64_t j) {
        V v = get(Full(), c + j);
        if (bias != nullptr) v = add(v, get(t, bias + j));
        put(t, v, to + j);
      });
    }
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {
HWY_EXPORT(store_dispatch);
void store_sums(DType type, const float* c, int64_t rows, int64_t columns, const float* bias, void* y,
                int64_t ld) {
  CAIRN_DISPATCH(store_dispatch)(type, c, rows, columns, bias, y, ld);
}
}  // namespace cairn::kernels::cpu
#endif
