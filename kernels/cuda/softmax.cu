// softmax over the last axis and its gradient: rows in registers, or element by element.
#include "kernels/cuda/rows.h"
#include "kernels/cuda/rowwise.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256;

template <class T, int kVectors, bool kWarpRow>
__global__ void __launch_bounds__(kRowThreads<T, kWarpRow>)
    softmax(const T* x, T* y, int64_t rows, int columns) {
  CAIRN_SHARED float scratch[kWarp];
  constexpr int kCount = kVectors * Vector<T>::kCount;
  const RowPlace place = row_place<kWarpRow>();
  if (place.row >= rows) return;
  const int vectors = columns / Vector<T>::kCount;
  float v[kCount], largest = -INFINITY, sum = 0;
  load_row<T, kVectors>(x + place.row * columns, vectors, place, -INFINITY, v);
  for (int i = 0; i < kCount; ++i) largest = fmaxf(largest, v[i]);
  largest = row_max<kWarpRow>(largest, scratch);
  for (int i = 0; i < kVectors; ++i) {
    // Elements after the row's end must not be part of a sum over a row of -infinity.
    if (i * place.lanes + place.lane >= vectors) continue;
    for (int j = 0; j < Vector<T>::kCount; ++j) {
      float& e = v[i * Vector<T>::kCount + j];
      e = expf(e - largest);
      sum += e;
    }
  }
  const float scale = 1.0f / row_sum<kWarpRow>(sum, scratch);
  for (int i = 0; i < kCount; ++i) v[i] *= scale;
  store_row<T, kVectors>(y + place.row * columns, vectors, place, v);
}

template <class T>
__global__ void __launch_bounds__(kThreads) softmax_any(const T* rows, T* to, int64_t columns) {
  CAIRN_SHARED float scratch[kWarp];
  const T* x = rows + blockIdx.x * columns;
  T* y = to + blockIdx.x * columns;
  float largest = -INFINITY, sum = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) largest = fmaxf(largest, load(x + i));
  largest = block_max(largest, scratch);
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) sum += expf(load(x + i) - largest);
  const float scale = 1.0f / block_sum(sum, scratch);
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) store(y + i, expf(load(x + i) - largest) * scale);
}

// dx = y * (dy - sum(dy * y)).
template <class T, int kVectors, bool kWarpRow>
__global__ void __launch_bounds__(kRowThreads<T, kWarpRow>)
    softmax_grad(const T* dy, const T* y, T* dx, int64_t rows, int columns) {
  CAIRN_SHARED float scratch[kWarp];
  constexpr int kCount = kVectors * Vector<T>::kCount;
  const RowPlace place = row_place<kWarpRow>();
  if (place.row >= rows) return;
  const int vectors = columns / Vector<T>::kCount;
  float d[kCount], v[kCount], sum = 0;
  load_row<T, kVectors>(dy + place.row * columns, vectors, place, 0.0f, d);
  load_row<T, kVectors>(y + place.row * columns, vectors, place, 0.0f, v);
  for (int i = 0; i < kCount; ++i) sum += d[i] * v[i];
  sum = row_sum<kWarpRow>(sum, scratch);
  for (int i = 0; i < kCount; ++i) v[i] *= d[i] - sum;
  store_row<T, kVectors>(dx + place.row * columns, vectors, place, v);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    softmax_grad_any(const T* dy_rows, const T* y_rows, T* to, int64_t columns) {
  CAIRN_SHARED float scratch[kWarp];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * columns;
  const T *dy = dy_rows + first, *y = y_rows + first;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) sum += load(dy + i) * load(y + i);
  sum = block_sum(sum, scratch);
  for (int64_t i = threadIdx.x; i < columns; i += kThreads)
    store(to + first + i, load(y + i) * (load(dy + i) - sum));
}

bool uniform(const Signature& s) {
  for (const TensorDesc& d : s.in)
    if (!fast_float(d) || d.dtype != s.in[0].dtype) return false;
  return s.out[0].dtype == s.in[0].dtype;
}

}  // namespace

std::unique_ptr<Kernel> make_softmax(const Signature& s) {
  if (!uniform(s)) return nullptr;
  const int64_t rows = s.in[0].shape.rows(), columns = s.in[0].shape.last();
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    std::unique_ptr<Kernel> made;
    const bool fits = with_row_in_registers<T>(rows, columns, [&](auto vectors, auto warp, RowLaunch size) {
      constexpr int kVectors = decltype(vectors)::value;
      constexpr bool kWarpRow = decltype(warp)::value;
      made = make_kernel([=](const Call& call) {
        launch(stream_of(call), softmax<T, kVectors, kWarpRow>,
               {.blocks = size.blocks, .threads = size.threads}, input<const T>(call, 0), output<T>(call, 0),
               rows, static_cast<int>(columns));
      });
    });
    if (!fits)
      made = make_kernel([=](const Call& call) {
        launch(stream_of(call), softmax_any<T>, {.blocks = rows, .threads = kThreads},
               input<const T>(call, 0), output<T>(call, 0), columns);
      });
    return made;
  });
}

std::unique_ptr<Kernel> make_softmax_grad(const Signature& s) {
  if (!uniform(s)) return nullptr;
  const int64_t rows = s.in[0].shape.rows(), columns = s.in[0].shape.last();
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    std::unique_ptr<Kernel> made;
    const bool fits = with_row_in_registers<T>(rows, columns, [&](auto vectors, auto warp, RowLaunch size) {
      constexpr int kVectors = decltype(vectors)::value;
      constexpr bool kWarpRow = decltype(warp)::value;
      made = make_kernel([=](const Call& call) {
        launch(stream_of(call), softmax_grad<T, kVectors, kWarpRow>,
               {.blocks = size.blocks, .threads = size.threads}, input<const T>(call, 0),
               input<const T>(call, 1), output<T>(call, 0), rows, static_cast<int>(columns));
      });
    });
    if (!fits)
      made = make_kernel([=](const Call& call) {
        launch(stream_of(call), softmax_grad_any<T>, {.blocks = rows, .threads = kThreads},
               input<const T>(call, 0), input<const T>(call, 1), output<T>(call, 0), columns);
      });
    return made;
  });
}

}  // namespace cairn::kernels::cuda
