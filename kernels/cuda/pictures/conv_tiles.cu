// Convolutions of any type and size: tiles in shared memory, a sum in order for each element. float32 is multiplied as float32.
#include "kernels/cuda/pictures/conv.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kTile = 64, kDepth = 16, kThreads = 256, kEach = 4, kPitch = kTile + 4;
constexpr int kPasses = kTile * kDepth / kThreads;
using Factor = float[kDepth][kPitch];
using Sums = float[kEach][kEach];

__device__ __forceinline__ int own_row() { return static_cast<int>(threadIdx.x) / (kTile / kEach) * kEach; }
__device__ __forceinline__ int own_column() {
  return static_cast<int>(threadIdx.x) % (kTile / kEach) * kEach;
}

__device__ __forceinline__ void multiply(Sums& sums, const Factor& a, const Factor& b) {
  CAIRN_UNROLL_BY(4)
  for (int d = 0; d < kDepth; ++d) {
    const Vector<float> left = load_vector(&a[d][own_row()]), right = load_vector(&b[d][own_column()]);
    CAIRN_UNROLL
    for (int i = 0; i < kEach; ++i) {
      CAIRN_UNROLL
      for (int j = 0; j < kEach; ++j) sums[i][j] += left.at[i] * right.at[j];
    }
  }
}

// Of a group and a phase: rows of pixels, columns of channels.
template <class T>
__global__ void __launch_bounds__(kThreads, 2)
    conv_tiles(ConvSizes z, const T* __restrict__ x, const T* __restrict__ weight, const float* bias, T* y) {
  alignas(16) CAIRN_SHARED float tile_a[kDepth][kPitch];
  alignas(16) CAIRN_SHARED float tile_b[kDepth][kPitch];
  const int phase = static_cast<int>(blockIdx.y), group = static_cast<int>(blockIdx.z);
  const ConvLine h = conv_line(z.h, z.transposed, phase / z.w.phases),
                 w = conv_line(z.w, z.transposed, phase % z.w.phases);
  const int across = (z.columns - 1) / kTile + 1;
  const int first_row = static_cast<int>(blockIdx.x) / across * kTile,
            first_column = static_cast<int>(blockIdx.x) % across * kTile;
  if (first_row >= z.n * h.count * w.count) return;
  const int fast = static_cast<int>(threadIdx.x) % kDepth, slow = static_cast<int>(threadIdx.x) / kDepth;
  ConvRow rows[kPasses];
  CAIRN_UNROLL
  for (int u = 0; u < kPasses; ++u) {
    ConvRow& r = rows[u] = conv_row(z, h, w, first_row + slow + u * (kTile / kPasses));
    r.h = r.h * h.step + h.base, r.w = r.w * w.step + w.base;
  }
  Sums sums = {};
  const int length = h.taps * w.taps * z.depth, channels = z.channels_in();
  for (int from = 0; from < length; from += kDepth) {
    const bool inside = from + fast < length;
    const ConvPlace place = conv_place(inside ? from + fast : 0, z.depth, w.taps);
    const int down = h.read_offset(place.h), right = w.read_offset(place.w);
    const T* const own = x + group * z.depth + place.channel;
    const int64_t along =
        (static_cast<int64_t>(h.tap(place.h)) * z.w.window + w.tap(place.w)) * z.depth + place.channel;
    CAIRN_UNROLL
    for (int u = 0; u < kPasses; ++u) {
      const int at_h = rows[u].h + down, at_w = rows[u].w + right;
      const bool there =
          inside && rows[u].n >= 0 && at_h >= 0 && at_h < z.h.from && at_w >= 0 && at_w < z.w.from;
      const int64_t pixel = (static_cast<int64_t>(rows[u].n) * z.h.from + at_h) * z.w.from + at_w;
      tile_a[fast][slow + u * (kTile / kPasses)] = there ? load(own + pixel * channels) : 0.0f;
      const int column = first_column + slow + u * (kTile / kPasses);
      tile_b[fast][slow + u * (kTile / kPasses)] =
          inside && column < z.columns
              ? load(weight + (static_cast<int64_t>(group) * z.columns + column) * z.length() + along)
              : 0.0f;
    }
    __syncthreads();
    multiply(sums, tile_a, tile_b);
    __syncthreads();
  }
  const int column = first_column + own_column(), own_group = group * z.columns;
  for (int i = 0; i < kEach; ++i) {
    const ConvRow r = conv_row(z, h, w, first_row + own_row() + i);
    if (r.n < 0) break;
    T* const to = y + written_pixel(z, h, w, r) * z.channels_out() + own_group;
    CAIRN_UNROLL
    for (int j = 0; j < kEach; ++j)
      if (column + j < z.columns)
        store(to + column + j, bias != nullptr ? sums[i][j] + bias[own_group + column + j] : sums[i][j]);
  }
}

// Of a group and a part of the pixels: rows of outputs, columns of taps and channels.
template <class T>
__global__ void __launch_bounds__(kThreads, 2)
    conv_gradient_tiles(ConvSizes z, int pixels, const T* __restrict__ x, const T* __restrict__ dy,
                        PartSums out) {
  alignas(16) CAIRN_SHARED float tile_a[kDepth][kPitch];
  alignas(16) CAIRN_SHARED float tile_b[kDepth][kPitch];
  const int group = static_cast<int>(blockIdx.z), parts = static_cast<int>(gridDim.y);
  const ConvLine h = conv_line(z.h, false, 0), w = conv_line(z.w, false, 0);
  const int length = z.length(), across = (length - 1) / kTile + 1;
  const int first_row = static_cast<int>(blockIdx.x) / across * kTile,
            first_column = static_cast<int>(blockIdx.x) % across * kTile;
  const auto cut = [&](unsigned part) {
    return static_cast<int>(static_cast<int64_t>(pixels) * part / parts);
  };
  const int begin = cut(blockIdx.y), end = cut(blockIdx.y + 1);
  const int fast = static_cast<int>(threadIdx.x) % kTile, slow = static_cast<int>(threadIdx.x) / kTile;
  const bool has_row = first_row + fast < z.columns, has_column = first_column + fast < length;
  const ConvPlace place = conv_place(has_column ? first_column + fast : 0, z.depth, w.taps);
  const int down = h.base + h.read_offset(place.h), right = w.base + w.read_offset(place.w);
  const T* const of_x = x + group * z.depth + place.channel;
  const T* const of_dy = dy + group * z.columns + first_row + fast;
  Sums sums = {};
  for (int from = begin; from < end; from += kDepth) {
    CAIRN_UNROLL
    for (int u = 0; u < kPasses; ++u) {
      const int d = slow + u * (kThreads / kTile), pixel = from + d;
      const bool inside = pixel < end;
      const ConvRow r = conv_row(z, h, w, pixel);
      const int at_h = r.h * h.step + down, at_w = r.w * w.step + right;
      const bool there = inside && has_column && at_h >= 0 && at_h < z.h.from && at_w >= 0 && at_w < z.w.from;
      tile_a[d][fast] =
          inside && has_row ? load(of_dy + static_cast<int64_t>(pixel) * z.channels_out()) : 0.0f;
      tile_b[d][fast] = there
                            ? load(of_x + ((static_cast<int64_t>(r.n) * z.h.from + at_h) * z.w.from + at_w) *
                                              z.channels_in())
                            : 0.0f;
    }
    __syncthreads();
    multiply(sums, tile_a, tile_b);
    __syncthreads();
  }
  float* const to =
      out.to + (static_cast<int64_t>(blockIdx.y) * z.channels_out() + group * z.columns) * length;
  CAIRN_UNROLL
  for (int i = 0; i < kEach; ++i) {
    CAIRN_UNROLL
    for (int j = 0; j < kEach; ++j) {
      const int row = first_row + own_row() + i, column = first_column + own_column() + j;
      if (row >= z.columns || column >= length) continue;
      float* const at = to + static_cast<int64_t>(row) * length + column;
      *at = out.add ? *at + sums[i][j] : sums[i][j];
    }
  }
}

int64_t tiles_of(int64_t count) { return (count - 1) / kTile + 1; }

std::unique_ptr<Kernel> make_tiles(const Signature& s, bool transposed) {
  ConvCall c;
  if (!conv_call(s, transposed, &c)) return nullptr;
  return with_float(c.type, [&](auto zero) {
    using T = decltype(zero);
    return make_tiled_kernel<T>(c, conv_tiles<T>, kTile, kThreads, 0);
  });
}

}  // namespace

std::unique_ptr<Kernel> make_conv_tiles(const Signature& s) { return make_tiles(s, false); }
std::unique_ptr<Kernel> make_conv_transpose_tiles(const Signature& s) { return make_tiles(s, true); }

std::unique_ptr<Kernel> make_conv_grad_weight_tiles(const Signature& s) {
  ConvGradient found;
  if (!conv_gradient(s, &found)) return nullptr;
  const int64_t tiles = tiles_of(found.z.columns) * tiles_of(found.z.length());
  cut_into_parts(tiles * found.z.groups, 8 * kDepth, &found);
  return with_float(found.type, [&](auto zero) {
    using T = decltype(zero);
    const LaunchSize size{
        .blocks = tiles, .threads = kThreads, .blocks_y = found.parts, .blocks_z = found.z.groups};
    return make_gradient_kernel(found, [g = found, size](const Call& call, const PartSums& sums) {
      launch(stream_of(call), conv_gradient_tiles<T>, size, g.z, g.pixels, input<const T>(call, 0),
             input<const T>(call, 1), sums);
    });
  });
}

}  // namespace cairn::kernels::cuda
