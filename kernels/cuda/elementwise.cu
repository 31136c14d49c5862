#include "kernels/cuda/rows.h"
#include "kernels/cuda/support.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void scale(const T* x, T* y, int64_t count, float factor) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) store(y + i, load(x + i) * factor);
}

}  // namespace

std::unique_ptr<Kernel> make_scale(const Signature& s) {
  if (!fast_float(s.in[0])) return nullptr;
  const int64_t count = s.in[0].shape.elements();
  const auto factor = static_cast<float>(s.attrs->real("factor"));
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), scale<T>, {.blocks = (count + kThreads - 1) / kThreads, .threads = kThreads},
             input<const T>(call, 0), output<T>(call, 0), count, factor);
    });
  });
}

}  // namespace cairn::kernels::cuda
