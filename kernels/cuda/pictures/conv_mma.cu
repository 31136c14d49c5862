// Convolutions in bfloat16 and float16 on tensor cores, as products of which one factor is gathered from x on its way to shared memory:
// 8 channels of a pixel at a time.
#include "kernels/cuda/common/mma_block.h"
#include "kernels/cuda/pictures/conv.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

using namespace mma_block;

constexpr int kPasses = 4;  // pieces of each factor that a thread copies

// sums = a b^T over `length` places; start(stage, from) starts to copy both factors' parts from place `from` on.
template <class T, bool kAlong, class Start>
__device__ __forceinline__ void multiply(Sums& sums, Shared shared, int length, bool works,
                                         const Start& start) {
  clear(sums);
  if (length > 0) start(shared, 0);
  cp_async_commit();
  Shared stage = shared;
  const Shared both = shared + shared + kStageBytes;
  CAIRN_UNROLL_BY(1)
  for (int from = 0; from < length; from += kDepth) {
    cp_async_wait<0>();
    __syncthreads();
    if (from + kDepth < length) {
      start(both - stage, from + kDepth);
      cp_async_commit();
    }
    const Fragments<kAlong, true> left(stage, warp_row());
    const Fragments<kAlong, false> right(stage + kFactorBytes, warp_column());
    CAIRN_UNROLL
    for (int quarter = 0; quarter < 4; ++quarter)
      if (works) add_quarter<T>(sums, left, right, quarter);
    stage = both - stage;
  }
}

// Of a group and a phase: rows of pixels, columns of channels.
template <class T>
__global__ void __launch_bounds__(kThreads, 2)
    conv_mma(ConvSizes z, const T* __restrict__ x, const T* __restrict__ weight, const float* bias, T* y) {
  CAIRN_DYNAMIC_SHARED(char, memory);
  constexpr int kPieces = kDepth / 8, kStep = kThreads / kPieces;
  static_assert(kStep * kPasses == kTile);
  const int phase = static_cast<int>(blockIdx.y), group = static_cast<int>(blockIdx.z);
  const ConvLine h = conv_line(z.h, z.transposed, phase / z.w.phases),
                 w = conv_line(z.w, z.transposed, phase % z.w.phases);
  const int across = (z.columns - 1) / kTile + 1, count = z.n * h.count * w.count;
  const int first_row = static_cast<int>(blockIdx.x) / across * kTile,
            first_column = static_cast<int>(blockIdx.x) % across * kTile;
  if (first_row >= count) return;
  const int piece = static_cast<int>(threadIdx.x) % kPieces, slow = static_cast<int>(threadIdx.x) / kPieces;
  ConvRow rows[kPasses];
  CAIRN_UNROLL
  for (int u = 0; u < kPasses; ++u) {
    ConvRow& r = rows[u] = conv_row(z, h, w, first_row + slow + u * kStep);
    r.h = r.h * h.step + h.base, r.w = r.w * w.step + w.base;
  }
  const int length = h.taps * w.taps * z.depth, columns = z.columns - first_column;
  x += group * z.depth;
  weight += (static_cast<int64_t>(group) * z.columns + first_column) * z.length();
  const auto start = [&](Shared stage, int from) {
    const bool inside = from + piece * 8 < length;
    const ConvPlace place = conv_place(inside ? from + piece * 8 : 0, z.depth, w.taps);
    const int down = h.read_offset(place.h), right = w.read_offset(place.w);
    const T* const along = weight + (h.tap(place.h) * z.w.window + w.tap(place.w)) * z.depth + place.channel;
    CAIRN_UNROLL
    for (int u = 0; u < kPasses; ++u) {
      const int at_h = rows[u].h + down, at_w = rows[u].w + right, row = slow + u * kStep;
      const bool there =
          inside && rows[u].n >= 0 && at_h >= 0 && at_h < z.h.from && at_w >= 0 && at_w < z.w.from;
      const int64_t pixel = there ? (static_cast<int64_t>(rows[u].n) * z.h.from + at_h) * z.w.from + at_w : 0;
      cp_async(stage + Tile<kDepth>::at(row, piece), x + pixel * z.channels_in() + place.channel, there);
      const bool column = inside && row < columns;
      cp_async(stage + kFactorBytes + Tile<kDepth>::at(row, piece),
               column ? along + static_cast<int64_t>(row) * z.length() : weight, column);
    }
  };
  Sums sums;
  const Shared shared = shared_address(memory);
  multiply<T, true>(sums, shared, length, warp_row() < count - first_row && warp_column() < columns, start);
  const int own_group = group * z.columns + first_column;
  if (bias != nullptr)
    each_pair(sums, [&](int, int column, float& low, float& high) {
      if (column >= columns) return;
      low += bias[own_group + column];
      high += bias[own_group + column + 1];
    });
  // Pixels of a phase are not neighbours: rows go through shared memory to be written in full pieces each.
  __syncthreads();
  each_pair(sums, [&](int row, int column, float low, float high) {
    store_shared(shared + Tile<kTile>::at(row, column / 8) + static_cast<unsigned>(column % 8 * 2),
                 pack_pair<T>(low, high));
  });
  __syncthreads();
  constexpr int kOutPieces = kTile / 8;
  const int out_piece = static_cast<int>(threadIdx.x) % kOutPieces;
  if (out_piece * 8 >= columns) return;
  CAIRN_UNROLL_BY(1)
  for (int row = static_cast<int>(threadIdx.x) / kOutPieces; row < kTile; row += kThreads / kOutPieces) {
    const ConvRow r = conv_row(z, h, w, first_row + row);
    if (r.n < 0) break;
    *reinterpret_cast<uint4*>(y + written_pixel(z, h, w, r) * z.channels_out() + own_group + out_piece * 8) =
        load_shared_16(shared + Tile<kTile>::at(row, out_piece));
  }
}

// Of a group and a part of the pixels: rows of outputs, columns of taps and channels.
template <class T>
__global__ void __launch_bounds__(kThreads, 2)
    conv_gradient_mma(ConvSizes z, int pixels, const T* __restrict__ x, const T* __restrict__ dy,
                      PartSums out) {
  CAIRN_DYNAMIC_SHARED(char, memory);
  constexpr int kPieces = kTile / 8, kStep = kThreads / kPieces;
  static_assert(kStep * kPasses == kDepth);
  const int group = static_cast<int>(blockIdx.z), parts = static_cast<int>(gridDim.y);
  const ConvLine h = conv_line(z.h, false, 0), w = conv_line(z.w, false, 0);
  const int length = z.length(), across = (length - 1) / kTile + 1;
  const int first_row = static_cast<int>(blockIdx.x) / across * kTile,
            first_column = static_cast<int>(blockIdx.x) % across * kTile;
  const auto cut = [&](unsigned part) {
    return static_cast<int>(static_cast<int64_t>(pixels) * part / parts);
  };
  const int begin = cut(blockIdx.y), end = cut(blockIdx.y + 1);
  const int piece = static_cast<int>(threadIdx.x) % kPieces, slow = static_cast<int>(threadIdx.x) / kPieces;
  const bool has_row = first_row + piece * 8 < z.columns, has_column = first_column + piece * 8 < length;
  const ConvPlace place = conv_place(has_column ? first_column + piece * 8 : 0, z.depth, w.taps);
  const int down = h.base + h.read_offset(place.h), right = w.base + w.read_offset(place.w);
  x += group * z.depth + place.channel;
  const T* const of_dy = dy + (has_row ? group * z.columns + first_row + piece * 8 : 0);
  const auto start = [&](Shared stage, int from) {
    CAIRN_UNROLL_BY(1)
    for (int u = 0; u < kPasses; ++u) {
      const int d = slow + u * kStep, pixel = begin + from + d;
      const bool inside = pixel < end;
      const ConvRow r = conv_row(z, h, w, inside ? pixel : 0);
      const int at_h = r.h * h.step + down, at_w = r.w * w.step + right;
      const bool there = inside && has_column && at_h >= 0 && at_h < z.h.from && at_w >= 0 && at_w < z.w.from,
                 row = inside && has_row;
      const int64_t read = there ? (static_cast<int64_t>(r.n) * z.h.from + at_h) * z.w.from + at_w : 0;
      cp_async(stage + Tile<kTile>::at(d, piece),
               of_dy + (row ? static_cast<int64_t>(pixel) * z.channels_out() : 0), row);
      cp_async(stage + kFactorBytes + Tile<kTile>::at(d, piece), x + read * z.channels_in(), there);
    }
  };
  Sums sums;
  multiply<T, false>(sums, shared_address(memory), end - begin,
                     first_row + warp_row() < z.columns && first_column + warp_column() < length, start);
  float* const to =
      out.to + (static_cast<int64_t>(blockIdx.y) * z.channels_out() + group * z.columns) * length;
  each_pair(sums, [&](int i, int j, float low, float high) {
    if (first_row + i >= z.columns || first_column + j >= length) return;
    auto* const at =
        reinterpret_cast<float2*>(to + static_cast<int64_t>(first_row + i) * length + first_column + j);
    const float2 before = out.add ? *at : make_float2(0, 0);
    *at = make_float2(before.x + low, before.y + high);
  });
}

int64_t tiles_of(int64_t count) { return (count - 1) / kTile + 1; }

// Channels of full pieces.
bool fits(DType type, const ConvSizes& z) { return is_half(type) && z.depth % 8 == 0 && z.columns % 8 == 0; }

std::unique_ptr<Kernel> make_mma(const Signature& s, bool transposed) {
  ConvCall c;
  if (!conv_call(s, transposed, &c) || !fits(c.type, c.z)) return nullptr;
  return with_half(c.type, [&](auto zero) {
    using T = decltype(zero);
    allow_shared(conv_mma<T>, kSharedBytes);
    return make_tiled_kernel<T>(c, conv_mma<T>, kTile, kThreads, kSharedBytes);
  });
}

}  // namespace

std::unique_ptr<Kernel> make_conv_mma(const Signature& s) { return make_mma(s, false); }
std::unique_ptr<Kernel> make_conv_transpose_mma(const Signature& s) { return make_mma(s, true); }

std::unique_ptr<Kernel> make_conv_grad_weight_mma(const Signature& s) {
  ConvGradient found;
  if (!conv_gradient(s, &found) || !fits(found.type, found.z)) return nullptr;
  const int64_t tiles = tiles_of(found.z.columns) * tiles_of(found.z.length());
  cut_into_parts(tiles * found.z.groups, 4 * kDepth, &found);
  return with_half(found.type, [&](auto zero) {
    using T = decltype(zero);
    allow_shared(conv_gradient_mma<T>, kSharedBytes);
    const LaunchSize size{.blocks = tiles,
                          .threads = kThreads,
                          .shared_bytes = kSharedBytes,
                          .blocks_y = found.parts,
                          .blocks_z = found.z.groups};
    return make_gradient_kernel(found, [g = found, size](const Call& call, const PartSums& sums) {
      launch(stream_of(call), conv_gradient_mma<T>, size, g.z, g.pixels, input<const T>(call, 0),
             input<const T>(call, 1), sums);
    });
  });
}

}  // namespace cairn::kernels::cuda
