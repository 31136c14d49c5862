// Ops on values that outlive a run: running_mean, move_mean, append, effective, effective_rows, average. And row_numbers.
#include "kernels/cuda/common/support.h"
#include "kernels/cuda/rows.h"
#include "runtime/formats/split.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256;
LaunchSize size_of(int64_t count) {
  return {.blocks = std::max<int64_t>(1, (count + kThreads - 1) / kThreads), .threads = kThreads};
}
__device__ __forceinline__ int64_t own() { return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; }

// A thread has a column, and one more the number of rows. Neighbours read neighbours.
template <class T>
__global__ void __launch_bounds__(kThreads)
    column_sums(int64_t rows, int64_t columns, bool adds, const T* __restrict__ x, double* sums) {
  const int64_t column = own();
  if (column > columns) return;
  double sum = column == columns ? static_cast<double>(rows) : 0.0;
  for (int64_t row = 0; column < columns && row < rows; ++row)
    sum += static_cast<double>(load(x + row * columns + column));
  sums[column] = adds ? sums[column] + sum : sum;
}

__global__ void __launch_bounds__(kThreads)
    move_mean(int64_t columns, double momentum, const double* sums, float* mean) {
  const int64_t column = own();
  const double rows = sums[columns];
  if (column >= columns || rows == 0) return;
  const double was = static_cast<double>(mean[column]);
  mean[column] = static_cast<float>(was + momentum * (sums[column] / rows - was));
}

struct Rows {  // of a cache, and of what is appended to each sample of it
  int64_t rows, more, width;
  bool ring;
};

template <class From, class To>
__global__ void __launch_bounds__(kThreads) append(Rows rows, int64_t elements, const From* __restrict__ x,
                                                   const int32_t* position, const int32_t* count, To* cache) {
  const int64_t i = own();
  if (i >= elements) return;
  const int64_t sample = i / (rows.more * rows.width), from = i / rows.width % rows.more;
  const int64_t valid = count == nullptr || count[sample] > rows.more ? rows.more : count[sample];
  if (from >= valid || (rows.ring && from < valid - rows.rows)) return;
  int64_t row = position[sample] + from;
  if (rows.ring) row %= rows.rows;
  if (row < 0 || row >= rows.rows) return;
  store(cache + (sample * rows.rows + row) * rows.width + i % rows.width, load(x + i));
}

// The rows of one micro-batch, to or from those of all, word by word.
template <class Word>
__global__ void __launch_bounds__(kThreads)
    copy_rows(uint32_t micro, const RandomKey* replayed, bool gathers, int64_t words,
              const Word* __restrict__ from, Word* to) {
  const int64_t i = own();
  if (i >= words) return;
  const int64_t place = (replayed != nullptr ? replayed->micro : micro) * words;
  to[i + (gathers ? place : 0)] = from[i + (gathers ? 0 : place)];
}

template <class Word>
std::unique_ptr<Kernel> make_copy_rows(int64_t words, bool gathers) {
  return make_kernel([=](const Call& call) {
    const StreamContext lane = lane_of(call);
    launch(lane.stream, copy_rows<Word>, size_of(words), call.key.micro, lane.key, gathers, words,
           input<const Word>(call, 0), output<Word>(call, 0));
  });
}

std::unique_ptr<Kernel> make_copy_rows(const TensorDesc& rows, bool gathers) {
  const int64_t bytes = rows.bytes();
  if (bytes == 0) return nullptr;
  if (bytes % 16 == 0) return make_copy_rows<uint4>(bytes / 16, gathers);
  if (bytes % 4 == 0) return make_copy_rows<uint32_t>(bytes / 4, gathers);
  return make_copy_rows<uint8_t>(bytes, gathers);
}

template <class T>
__global__ void __launch_bounds__(kThreads) average(int64_t count, float share, const T* __restrict__ p,
                                                    const uint16_t* __restrict__ low, float* ema) {
  const int64_t i = own();
  if (i >= count) return;
  float now = load(p + i);
  if constexpr (std::is_same_v<T, bf16>)
    if (low != nullptr) now = join_halves(p[i], low[i]);
  ema[i] += share * (now - ema[i]);
}

__global__ void __launch_bounds__(kThreads) row_numbers(int64_t rows, int32_t* y) {
  if (own() < rows) y[own()] = static_cast<int32_t>(own());
}

}  // namespace

std::unique_ptr<Kernel> make_effective(const Signature& s) { return make_copy_rows(s.in[0], true); }
std::unique_ptr<Kernel> make_effective_rows(const Signature& s) { return make_copy_rows(s.out[0], false); }
std::unique_ptr<Kernel> make_average(const Signature& s) {
  if (!fast_float(s.in[0]) || !plain_f32(s.out[0])) return nullptr;
  const int64_t count = s.out[0].shape.elements();
  const auto share = static_cast<float>(1 - s.attrs->real("decay"));
  const bool split = s.has_in(1);
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), average<T>, size_of(count), count, share, input<const T>(call, 0),
             split ? input<const uint16_t>(call, 1) : nullptr, output<float>(call, 0));
    });
  });
}
std::unique_ptr<Kernel> make_row_numbers(const Signature& s) {
  const int64_t rows = s.out[0].shape[0];
  if (rows == 0) return nullptr;
  return make_kernel([=](const Call& call) {
    launch(stream_of(call), row_numbers, size_of(rows), rows, output<int32_t>(call, 0));
  });
}

std::unique_ptr<Kernel> make_running_mean(const Signature& s) {
  if (!fast_float(s.in[0])) return nullptr;
  const int64_t columns = s.in[0].shape.last(), rows = s.in[0].shape.elements() / columns;
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), column_sums<T>, size_of(columns + 1), rows, columns, accumulates(call, 0),
             input<const T>(call, 0), output<double>(call, 0));
    });
  });
}

std::unique_ptr<Kernel> make_move_mean(const Signature& s) {
  if (!plain_f32(s.out[0])) return nullptr;
  const int64_t columns = s.out[0].shape.elements();
  return make_kernel([=, momentum = s.attrs->real("momentum", 0.1)](const Call& call) {
    launch(stream_of(call), move_mean, size_of(columns), columns, momentum, input<const double>(call, 0),
           output<float>(call, 0));
  });
}

std::unique_ptr<Kernel> make_append(const Signature& s) {
  if (!fast_float(s.in[1]) || !fast_float(s.out[0])) return nullptr;
  const Shape& cache = s.out[0].shape;
  const int axis = cache.rank >= 3 ? 1 : 0;
  const int64_t samples = axis == 1 ? cache[0] : 1, elements = s.in[1].shape.elements();
  if (cache.elements() == 0 || elements == 0) return nullptr;
  const Rows rows = {cache[axis], s.in[1].shape[axis], cache.elements() / (samples * cache[axis]),
                     s.attrs->integer("ring") != 0};
  return with_float(s.in[1].dtype, [&](auto from) {
    return with_float(s.out[0].dtype, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      return make_kernel([=](const Call& call) {
        const int32_t* count = call.in.size() > 3 && call.in[3] ? input<const int32_t>(call, 3) : nullptr;
        launch(stream_of(call), append<From, To>, size_of(elements), rows, elements,
               input<const From>(call, 1), input<const int32_t>(call, 2), count, output<To>(call, 0));
      });
    });
  });
}

}  // namespace cairn::kernels::cuda
