// The op dequantise: blocks of any format that is read through it to float32 or half, by the codecs of runtime/formats.
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/rows.h"
#include "runtime/formats/codecs.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kEach = 4;  // neighbouring values of a thread

template <class Of, class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    dequantise(int64_t count, const typename Of::Block* x, T* y) {
  static_assert(Of::kBlock % kEach == 0);
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kElementwiseThreads + threadIdx.x) * kEach;
  if (at >= count) return;
  const typename Of::Block& block = x[at / Of::kBlock];
  const int first = static_cast<int>(at % Of::kBlock);
  Group<kEach> values;
  for (int i = 0; i < kEach; ++i) values.at[i] = Of::decode(block, first + i);
  if (count - at >= kEach) {
    write(y + at, values);
  } else {
    // A tensor's last ones; unrolled, so that they stay in registers.
    CAIRN_UNROLL for (int i = 0; i < kEach; ++i) {
      if (at + i < count) store(y + at + i, values.at[i]);
    }
  }
}

}  // namespace

std::unique_ptr<Kernel> make_dequantise(const Signature& s) {
  std::unique_ptr<Kernel> made;
  if (!fast_float(s.out[0])) return made;
  formats::with_dequantised(s.in[0].dtype, [&](auto codec) {
    using Of = decltype(codec);
    made = with_float(s.out[0].dtype, [count = s.in[0].shape.elements()](auto zero) {
      using T = decltype(zero);
      const int64_t threads = (count + kEach - 1) / kEach;
      return make_kernel([=](const Call& call) {
        launch(stream_of(call), dequantise<Of, T>,
               {.blocks = (threads + kElementwiseThreads - 1) / kElementwiseThreads,
                .threads = kElementwiseThreads},
               count, input<const typename Of::Block>(call, 0), output<T>(call, 0));
      });
    });
  });
  return made;
}

}  // namespace cairn::kernels::cuda
