// Grouped products of any type and size: tiles in shared memory, a sum in order for each element. float32 is multiplied
// as float32, as everywhere in this backend.
#include "kernels/cuda/experts/grouped.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kTile = 64, kDepth = 16, kThreads = 256, kEach = 4, kPitch = kTile + 4;

// Rows of a factor. kAlong: neighbours in memory are of one row, along the sums; else of one place in the sums.
template <class T, bool kAlong>
struct Factor {
  const T* at;
  int64_t ld;
  int rows;

  __device__ __forceinline__ void copy(float (*to)[kPitch], int from, int length) const {
    constexpr int kFast = kAlong ? kDepth : kTile;
    const int fast = static_cast<int>(threadIdx.x) % kFast, slow = static_cast<int>(threadIdx.x) / kFast;
    CAIRN_UNROLL
    for (int u = 0; u < kTile * kDepth / kThreads; ++u) {
      const int other = slow + u * (kThreads / kFast), row = kAlong ? other : fast,
                depth = kAlong ? fast : other;
      const bool there = row < rows && from + depth < length;
      to[depth][row] = there ? load(at + (kAlong ? row * ld + from + depth : (from + depth) * ld + row)) : 0;
    }
  }
};

// sums = a b^T, of four rows of each for a thread.
template <class A, class B, bool kAlongA, bool kAlongB>
__device__ __forceinline__ void multiply(float (&sums)[kEach][kEach], const Factor<A, kAlongA>& a,
                                         const Factor<B, kAlongB>& b, int length) {
  alignas(16) CAIRN_SHARED float tile_a[kDepth][kPitch];
  alignas(16) CAIRN_SHARED float tile_b[kDepth][kPitch];
  const int x = static_cast<int>(threadIdx.x) % (kTile / kEach) * kEach,
            y = static_cast<int>(threadIdx.x) / (kTile / kEach) * kEach;
  for (int i = 0; i < kEach; ++i)
    for (int j = 0; j < kEach; ++j) sums[i][j] = 0;
  const bool works = y < a.rows && x < b.rows;
  for (int from = 0; from < length; from += kDepth) {
    a.copy(tile_a, from, length);
    b.copy(tile_b, from, length);
    __syncthreads();
    for (int d = 0; d < kDepth && works; ++d) {
      const Vector<float> left = load_vector(&tile_a[d][y]), right = load_vector(&tile_b[d][x]);
      CAIRN_UNROLL
      for (int i = 0; i < kEach; ++i) {
        CAIRN_UNROLL
        for (int j = 0; j < kEach; ++j) sums[i][j] += left.at[i] * right.at[j];
      }
    }
    __syncthreads();
  }
}

// body(row, column, sum) for the thread's sums that are in the matrix.
template <class Body>
__device__ __forceinline__ void each_sum(const float (&sums)[kEach][kEach], int rows, int columns,
                                         const Body& body) {
  const int x = static_cast<int>(threadIdx.x) % (kTile / kEach) * kEach,
            y = static_cast<int>(threadIdx.x) / (kTile / kEach) * kEach;
  CAIRN_UNROLL
  for (int i = 0; i < kEach; ++i) {
    CAIRN_UNROLL
    for (int j = 0; j < kEach; ++j)
      if (y + i < rows && x + j < columns) body(y + i, x + j, sums[i][j]);
  }
}

int64_t tiles_of(int columns) { return (columns - 1) / kTile + 1; }

template <class T, class W, bool kAlong>
__global__ void __launch_bounds__(kThreads)
    grouped_tiles(GroupedSizes z, const T* a, const W* w, const int32_t* starts, const float* bias, T* c) {
  const unsigned tiles = static_cast<unsigned>(z.outer - 1) / kTile + 1;
  const RowTile tile = row_tile<kTile>(starts, z, blockIdx.x / tiles);
  if (tile.count == 0) return;
  const int column = static_cast<int>(blockIdx.x % tiles) * kTile;
  w += tile.expert * z.weights() + static_cast<int64_t>(column) * (kAlong ? z.inner : 1);
  float sums[kEach][kEach];
  multiply(sums, Factor<T, true>{a + tile.first * z.inner, z.inner, tile.count},
           Factor<W, kAlong>{w, kAlong ? z.inner : z.outer, z.outer - column}, z.inner);
  c += tile.first * z.outer + column;
  if (bias != nullptr) bias += static_cast<int64_t>(tile.expert) * z.outer + column;
  each_sum(sums, tile.count, z.outer - column, [&](int i, int j, float sum) {
    store(c + static_cast<int64_t>(i) * z.outer + j, bias != nullptr ? sum + bias[j] : sum);
  });
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    grouped_gradient_tiles(GroupedSizes z, const T* a, const T* b, const int32_t* starts, float* c,
                           bool add) {
  const unsigned across = static_cast<unsigned>(z.outer - 1) / kTile + 1,
                 down = static_cast<unsigned>(z.inner - 1) / kTile + 1;
  const int column = static_cast<int>(blockIdx.x % across) * kTile,
            row = static_cast<int>(blockIdx.x / across % down) * kTile,
            expert = static_cast<int>(blockIdx.x / across / down);
  const experts::Rows rows = experts::rows_of(starts, expert, z.rows);
  float sums[kEach][kEach];
  multiply(sums, Factor<T, false>{a + rows.begin * z.inner + row, z.inner, z.inner - row},
           Factor<T, false>{b + rows.begin * z.outer + column, z.outer, z.outer - column},
           static_cast<int>(rows.end - rows.begin));
  c += expert * z.weights() + static_cast<int64_t>(row) * z.outer + column;
  each_sum(sums, z.inner - row, z.outer - column, [&](int i, int j, float sum) {
    float* const to = c + static_cast<int64_t>(i) * z.outer + j;
    *to = add ? *to + sum : sum;
  });
}

template <class T, class W>
std::unique_ptr<Kernel> make_with(const GroupedProduct& p) {
  const auto kernel = p.along ? grouped_tiles<T, W, true> : grouped_tiles<T, W, false>;
  const LaunchSize size{.blocks = most_tiles<kTile>(p.sizes) * tiles_of(p.sizes.outer), .threads = kThreads};
  return make_kernel([=](const Call& call) {
    launch(stream_of(call), kernel, size, p.sizes, input<const T>(call, 0), input<const W>(call, 1),
           p.starts(call), p.biases(call), output<T>(call, 0));
    carry_rows(call, p);
  });
}

std::unique_ptr<Kernel> make_product_of(const Signature& s, bool of_input) {
  const auto p = grouped_product(s, of_input);
  if (!p) return nullptr;
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return s.in[1].dtype == DType::kF32 ? make_with<T, float>(*p) : make_with<T, T>(*p);
  });
}

}  // namespace

std::unique_ptr<Kernel> make_grouped_linear(const Signature& s) { return make_product_of(s, false); }
std::unique_ptr<Kernel> make_grouped_linear_grad_input(const Signature& s) {
  return make_product_of(s, true);
}

std::unique_ptr<Kernel> make_grouped_linear_grad_weight(const Signature& s) {
  const auto found = grouped_gradient(s);
  if (!found) return nullptr;
  const GroupedGradient g = *found;
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      const int64_t blocks = tiles_of(g.sizes.inner) * tiles_of(g.sizes.outer) * g.sizes.experts;
      launch(stream_of(call), grouped_gradient_tiles<T>, {.blocks = blocks, .threads = kThreads}, g.sizes,
             input<const T>(call, g.a), input<const T>(call, g.b), input<const int32_t>(call, 2) + g.first,
             output<float>(call, 0), accumulates(call, 0));
      sum_columns_of_experts(call, g);
    });
  });
}

}  // namespace cairn::kernels::cuda
