// Statistics and sums by channel of x[rows, channels], whose rows may be of several samples with statistics of their own: how
// blocks and threads share out rows and channels.
#pragma once
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/products/columns.h"

namespace cairn::kernels::cuda {

// A block has `lanes` groups of neighbouring channels of a part of a sample's rows; its threads' slots take these rows in turn.
struct ChannelGrid {
  int channels, lanes, parts;
  int64_t tiles;            // of the channels
  int64_t rows, part_rows;  // of a sample; of a part, at least: the first `longer` parts have one more
  int longer;

  static constexpr int kThreads = 256;

  ChannelGrid(int64_t samples, int64_t rows_of_sample, int64_t all, int each)
      : channels(static_cast<int>(all)), lanes(1), rows(rows_of_sample) {
    while (lanes < kWarp && lanes * each < all) lanes *= 2;
    tiles = (all - 1) / (lanes * each) + 1;
    parts = static_cast<int>(row_parts(rows, tiles * samples, 4 * (kThreads / lanes)));
    part_rows = rows / parts, longer = static_cast<int>(rows % parts);
  }
  LaunchSize size(int64_t samples) const {
    return {.blocks = samples * int64_t{parts}, .threads = kThreads, .blocks_y = tiles};
  }

  // Of the block: its sample and the rows of it.
  struct Part {
    int64_t sample, begin, end;
  };
  __device__ __forceinline__ Part part() const {
    const int block = static_cast<int>(blockIdx.x), sample = block / parts, own = block - sample * parts;
    const int64_t begin = sample * rows + own * part_rows + (own < longer ? own : longer);
    return {sample, begin, begin + count(own)};
  }
  __device__ __forceinline__ int64_t count(int64_t part) const { return part_rows + (part < longer ? 1 : 0); }
  __device__ __forceinline__ int lane() const { return static_cast<int>(threadIdx.x) % lanes; }
  __device__ __forceinline__ int slot() const { return static_cast<int>(threadIdx.x) / lanes; }
  __device__ __forceinline__ int slots() const { return kThreads / lanes; }
  // The thread's first channel; may be after the last.
  template <int kCount>
  __device__ __forceinline__ int channel() const {
    return (static_cast<int>(blockIdx.y) * lanes + lane()) * kCount;
  }
};

// What sums over rows of T are made in: those of a channel may cancel to next to nothing.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, float>;

// The sums of all slots, for every thread of a lane; `shared`: kThreads of them. In a fixed order. Ends with a barrier.
template <int kCount, class Sum>
__device__ __forceinline__ void sum_slots(const ChannelGrid& grid, Sum (&sums)[kCount],
                                          Sum (*shared)[ChannelGrid::kThreads]) {
  for (int i = 0; i < kCount; ++i) shared[i][threadIdx.x] = sums[i];
  __syncthreads();
  for (int half = grid.slots() / 2; half > 0; half /= 2) {
    if (grid.slot() < half)
      for (int i = 0; i < kCount; ++i)
        shared[i][threadIdx.x] += shared[i][threadIdx.x + static_cast<unsigned>(half * grid.lanes)];
    __syncthreads();
  }
  for (int i = 0; i < kCount; ++i) sums[i] = shared[i][grid.lane()];
  __syncthreads();
}

// What x is normalised by: channel c of sample n by element n groups + c / each of both. second: the variance, or where `inverse`
// says so, 1 / sqrt(variance + eps).
struct ChannelStatistics {
  const float *mean, *second;
  bool inverse;
  float eps;
  int groups, each;

  template <class Sum = float>
  __device__ __forceinline__ Sum rstd(int64_t at) const {
    return inverse ? static_cast<Sum>(second[at])
                   : static_cast<Sum>(1) / sqrt(static_cast<Sum>(second[at]) + static_cast<Sum>(eps));
  }
};

// The sums by channel of dy h, h = (x - mean) rstd, and of dy, over all rows: what gamma and beta get.
class ChannelGradients {
 public:
  ChannelGradients(const ChannelGrid& grid, int64_t samples, DType dtype, int each)
      : grid_(grid), samples_(samples), dtype_(dtype), each_(each) {}
  int64_t workspace_bytes() const { return samples_ * grid_.parts * 2 * grid_.channels * 8; }
  // sums[2][channels]: both; nullptr: not wanted.
  void run(cudaStream_t stream, const void* dy, const void* x, const ChannelStatistics& statistics,
           void* workspace, Total dgamma, Total dbeta, double* sums = nullptr) const;

 private:
  ChannelGrid grid_;
  int64_t samples_;
  DType dtype_;
  int each_;
};

// Channels that a thread takes of rows of that many.
inline int channels_each(DType dtype, int64_t channels) {
  const int most = is_half(dtype) ? 8 : 4;
  return channels % most == 0 ? most : 1;
}
// body(T{}, that many).
template <class Body>
auto with_channels_each(DType dtype, int64_t channels, const Body& body) {
  return with_float(dtype, [&](auto zero) {
    constexpr int kMost = kGroupOf<decltype(zero)>;
    return channels % kMost == 0 ? body(zero, std::integral_constant<int, kMost>())
                                 : body(zero, std::integral_constant<int, 1>());
  });
}

}  // namespace cairn::kernels::cuda
