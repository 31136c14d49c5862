// The op dequantise, and what decodes for others: blocks of any format that is read through it to float32 or half, by the
// codecs of runtime/formats.
#include "kernels/cuda/blocks.h"
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

// A thread has neighbouring values of a row of y. Rows of other ids than the table's are those of `before`, or zero.
template <class Of, class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    look_up(int64_t count, int64_t columns, int64_t first, int64_t rows, const typename Of::Block* table,
            const int32_t* ids, const T* before, T* y) {
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kElementwiseThreads + threadIdx.x) * kEach;
  if (at >= count) return;
  const int64_t row = ids[at / columns] - first;
  Group<kEach> values;
  if (row >= 0 && row < rows) {
    const int64_t from = row * columns + at % columns;
    const typename Of::Block& block = table[from / Of::kBlock];
    for (int i = 0; i < kEach; ++i) values.at[i] = Of::decode(block, static_cast<int>(from % Of::kBlock) + i);
  } else {
    for (int i = 0; i < kEach; ++i) values.at[i] = before != nullptr ? load(before + at + i) : 0.0f;
  }
  write(y + at, values);
}

LaunchSize size_for(int64_t count) {
  const int64_t threads = (count + kEach - 1) / kEach;
  return {.blocks = (threads + kElementwiseThreads - 1) / kElementwiseThreads,
          .threads = kElementwiseThreads};
}

}  // namespace

void decode_blocks(cudaStream_t stream, const TensorDesc& of, const void* blocks, DType type, void* to) {
  const int64_t count = of.shape.elements();
  formats::with_dequantised(of.dtype, [&](auto codec) {
    using Of = decltype(codec);
    with_float(type, [&](auto zero) {
      using T = decltype(zero);
      launch(stream, dequantise<Of, T>, size_for(count), count,
             static_cast<const typename Of::Block*>(blocks), static_cast<T*>(to));
    });
  });
}

std::unique_ptr<Kernel> make_dequantise(const Signature& s) {
  if (!in_blocks(s.in[0]) || !fast_float(s.out[0])) return nullptr;
  return make_kernel([from = s.in[0], type = s.out[0].dtype](const Call& call) {
    decode_blocks(stream_of(call), from, data_of(call.in, 0), type, data_of(call.out, 0));
  });
}

std::unique_ptr<Kernel> make_lookup_of_blocks(const Signature& s) {
  const TensorDesc table = s.in[0], y = s.out[0];
  const int64_t columns = table.shape.last(), first = s.attrs != nullptr ? s.attrs->integer("first") : 0;
  if (!in_blocks(table) || s.in[1].dtype != DType::kI32 || !fast_float(y) || columns % kEach != 0)
    return nullptr;
  std::unique_ptr<Kernel> made;
  formats::with_dequantised(table.dtype, [&](auto codec) {
    using Of = decltype(codec);
    made = with_float(y.dtype, [&](auto zero) {
      using T = decltype(zero);
      return make_kernel([=, count = y.shape.elements(), rows = table.shape[0]](const Call& call) {
        launch(stream_of(call), look_up<Of, T>, size_for(count), count, columns, first, rows,
               input<const typename Of::Block>(call, 0), input<const int32_t>(call, 1),
               input<const T>(call, 2), output<T>(call, 0));
      });
    });
  });
  return made;
}

}  // namespace cairn::kernels::cuda
