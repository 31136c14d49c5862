// Rows to their experts and back: a warp moves a row, or adds up one of several.
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/experts/experts.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr size_t kOrder = 1, kPlaces = 2, kWeights = 3;  // operands
constexpr int kAhead = 4;                                // rows on their way at a time

struct MovedRows {
  int choices, k;
  int64_t columns;

  __device__ __forceinline__ bool has(int choice) const { return choice >= 0 && choice < choices; }
};

template <class T, int kCount>
__global__ void __launch_bounds__(kRowsThreads)
    gather_rows(MovedRows z, const T* x, const int32_t* order, const float* weights, T* y) {
  const int64_t row = row_of_warp();
  if (row >= z.choices) return;
  const int from = order[row];
  const bool there = z.has(from);
  const float weight = there && weights != nullptr ? weights[from] : 1;
  if (there) x += from / z.k * z.columns;
  y += row * z.columns;
  CAIRN_UNROLL_BY(4)
  for (int64_t c = lane_of_row() * kCount; c < z.columns; c += kWarp * kCount) {
    Group<kCount> v = {};
    if (there) v = read<kCount>(x + c);
    CAIRN_UNROLL
    for (int i = 0; i < kCount; ++i) v.at[i] *= weight;
    write(y + c, v);
  }
}

template <class T, int kCount>
__global__ void __launch_bounds__(kRowsThreads)
    combine_rows(MovedRows z, const T* x, const int32_t* places, const float* weights, T* y) {
  const int64_t row = row_of_warp();
  if (row >= z.choices / z.k) return;
  places += row * z.k;
  y += row * z.columns;
  for (int64_t c = lane_of_row() * kCount; c < z.columns; c += kWarp * kCount) {
    Group<kCount> sum = {};
    for (int first = 0; first < z.k; first += kAhead) {
      Group<kCount> in[kAhead];
      float weight[kAhead];
      CAIRN_UNROLL
      for (int u = 0; u < kAhead; ++u) {
        const int j = first + u, place = j < z.k ? places[j] : -1;
        weight[u] = 0;
        in[u] = {};
        if (!z.has(place)) continue;
        weight[u] = weights != nullptr ? weights[row * z.k + j] : 1;
        in[u] = read<kCount>(x + place * z.columns + c);
      }
      CAIRN_UNROLL
      for (int u = 0; u < kAhead; ++u) {
        CAIRN_UNROLL
        for (int i = 0; i < kCount; ++i) sum.at[i] += weight[u] * in[u].at[i];
      }
    }
    write(y + c, sum);
  }
}

template <class T, int kCount>
__global__ void __launch_bounds__(kRowsThreads)
    combine_rows_grad(MovedRows z, const T* dy, const T* x, const int32_t* places, float* dweights) {
  const int64_t choice = row_of_warp();
  if (choice >= z.choices) return;
  const int place = places[choice];
  const bool there = z.has(place);
  dy += choice / z.k * z.columns;
  if (there) x += place * z.columns;
  float sum = 0;
  for (int64_t c = lane_of_row() * kCount; there && c < z.columns; c += kWarp * kCount) {
    const Group<kCount> a = read<kCount>(dy + c), b = read<kCount>(x + c);
    CAIRN_UNROLL
    for (int i = 0; i < kCount; ++i) sum += a.at[i] * b.at[i];
  }
  sum = warp_sum(sum);
  if (lane_of_row() == 0) dweights[choice] = sum;
}

// Rows as the first operands, then numbers, of which the places are the last, then weights.
bool takes(const Signature& s, size_t rows) {
  for (size_t i = 0; i < rows; ++i)
    if (!fast_float(s.in[i]) || s.in[i].dtype != s.in[0].dtype) return false;
  for (size_t i = rows; i <= kPlaces; ++i)
    if (!plain_i32(s.in[i])) return false;
  return !s.has_in(kWeights) || plain_f32(s.in[kWeights]);
}

// body(sizes, T{}, how many elements of a row are read at once), with T the type of x.
template <class Body>
std::unique_ptr<Kernel> with_rows(const TensorDesc& x, const TensorDesc& places, const Body& body) {
  const MovedRows z{static_cast<int>(places.shape.elements()), static_cast<int>(places.shape.last()),
                    x.shape.last()};
  return with_float(x.dtype, [&](auto zero) {
    constexpr int kCount = kGroupOf<decltype(zero)>;
    return z.columns % kCount == 0 ? body(z, zero, std::integral_constant<int, kCount>{})
                                   : body(z, zero, std::integral_constant<int, 1>{});
  });
}

}  // namespace

std::unique_ptr<Kernel> make_gather_rows(const Signature& s) {
  if (!takes(s, 1) || s.out[0].dtype != s.in[0].dtype) return nullptr;
  return with_rows(s.in[0], s.in[kPlaces], [](const MovedRows& z, auto zero, auto count) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), gather_rows<T, decltype(count)::value>, size_of_rows(z.choices), z,
             input<const T>(call, 0), input<const int32_t>(call, kOrder), input<const float>(call, kWeights),
             output<T>(call, 0));
    });
  });
}

std::unique_ptr<Kernel> make_combine_rows(const Signature& s) {
  if (!takes(s, 1) || s.out[0].dtype != s.in[0].dtype) return nullptr;
  return with_rows(s.in[0], s.in[kPlaces], [](const MovedRows& z, auto zero, auto count) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), combine_rows<T, decltype(count)::value>, size_of_rows(z.choices / z.k), z,
             input<const T>(call, 0), input<const int32_t>(call, kPlaces), input<const float>(call, kWeights),
             output<T>(call, 0));
    });
  });
}

std::unique_ptr<Kernel> make_combine_rows_grad(const Signature& s) {
  if (!takes(s, 2) || !plain_f32(s.out[0])) return nullptr;
  return with_rows(s.in[0], s.in[kPlaces], [](const MovedRows& z, auto zero, auto count) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), combine_rows_grad<T, decltype(count)::value>, size_of_rows(z.choices), z,
             input<const T>(call, 0), input<const T>(call, 1), input<const int32_t>(call, kPlaces),
             output<float>(call, 0));
    });
  });
}

}  // namespace cairn::kernels::cuda
