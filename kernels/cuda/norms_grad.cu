// Gradients of layernorm and rmsnorm. h = (x - mean) * rstd, g = dy * gamma: dx = rstd * (g - mean(g) - h *
// mean(g h)) + da, without mean(g) for rmsnorm. dgamma and dbeta, sums over rows of dy h and of dy, go
// through partial sums. dx may lie on da: a thread reads what it adds before it writes there.
#include <algorithm>

#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/products/columns.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;

struct Operands {
  const float *gamma, *mean, *rstd;  // gamma: nullptr for 1; mean: nullptr for rmsnorm
  float* partial;                    // [blocks][2][columns]: dgamma, dbeta; nullptr: not wanted
};

// The block's sums of two numbers, with one barrier. `scratch` is not that of the call before.
__device__ __forceinline__ float2 sum_two(float a, float b, float2* scratch) {
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  a = warp_sum(a);
  b = warp_sum(b);
  if (warps == 1) return make_float2(a, b);
  if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = make_float2(a, b);
  __syncthreads();
  float2 total = scratch[0];
  for (int w = 1; w < warps; ++w) {
    total.x += scratch[w].x;
    total.y += scratch[w].y;
  }
  return total;
}

// A block takes every gridDim.x-th row; a thread owns the same columns of all of them, and the next row is on
// its way while this one is worked on: dy and x to registers where these are enough, the rest to the cache.
template <class T, int kVectors, bool kCentered>
__global__ void __launch_bounds__(512)
    norm_grad(const T* dy, const T* x, const T* da, T* dx, Operands o, int64_t rows, int columns) {
  CAIRN_SHARED float2 scratch[2][kWarp];
  constexpr int kCount = Vector<T>::kCount;
  constexpr bool kAhead = kVectors < 4;            // there are registers for the next row,
  constexpr bool kEarly = kVectors * kCount <= 8;  // and for da across the barrier
  const int vectors = columns / kCount, threads = static_cast<int>(blockDim.x);
  const auto n = static_cast<float>(columns);
  float gamma[kVectors][kCount], dgamma[kVectors][kCount], dbeta[kVectors][kCount];
  for (int i = 0; i < kVectors; ++i) {
    const int at = i * threads + static_cast<int>(threadIdx.x);
    load_floats(at < vectors ? o.gamma : nullptr, at * kCount, 1.0f, gamma[i]);
    for (int j = 0; j < kCount; ++j) dgamma[i][j] = dbeta[i][j] = 0;
  }
  Vector<T> next_x[kVectors], next_dy[kVectors];
  const auto fetch = [&](int64_t row) {
    for (int i = 0; i < kVectors; ++i) {
      const int at = i * threads + static_cast<int>(threadIdx.x);
      if (row >= rows || at >= vectors) continue;
      next_x[i] = load_vector(x + row * columns + at * kCount);
      next_dy[i] = load_vector(dy + row * columns + at * kCount);
      if (da != nullptr) prefetch(da + row * columns + at * kCount);
    }
  };
  const auto announce = [&](int64_t row) {  // a line of 128 bytes by each of the first threads
    const int at = static_cast<int>(threadIdx.x) * (8 * kCount);
    if (row >= rows || at >= columns) return;
    prefetch(x + row * columns + at);
    prefetch(dy + row * columns + at);
    if (da != nullptr) prefetch(da + row * columns + at);
  };
  if constexpr (kAhead) fetch(blockIdx.x);
  int turn = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
    if constexpr (!kAhead) fetch(row);
    const float mean = kCentered ? o.mean[row] : 0.0f, rstd = o.rstd[row];
    float h[kVectors][kCount], g[kVectors][kCount], g_sum = 0, gh_sum = 0;
    for (int i = 0; i < kVectors; ++i) {
      const bool inside = i * threads + static_cast<int>(threadIdx.x) < vectors;
      for (int j = 0; j < kCount; ++j) {
        const float d = inside ? load(&next_dy[i].at[j]) : 0.0f;
        h[i][j] = inside ? (load(&next_x[i].at[j]) - mean) * rstd : 0.0f;
        g[i][j] = d * gamma[i][j];
        dgamma[i][j] += d * h[i][j];
        if (kCentered) dbeta[i][j] += d;
        g_sum += g[i][j];
        gh_sum += g[i][j] * h[i][j];
      }
    }
    if constexpr (kAhead) fetch(row + gridDim.x);
    const auto more = [&](int i) {
      const int at = i * threads + static_cast<int>(threadIdx.x);
      return da != nullptr && at < vectors ? load_vector(da + row * columns + at * kCount) : Vector<T>{};
    };
    Vector<T> early[kEarly ? kVectors : 1];
    if constexpr (kEarly)
      for (int i = 0; i < kVectors; ++i) early[i] = more(i);
    const float2 sums = sum_two(g_sum, gh_sum, scratch[turn]);
    if (dx == nullptr) continue;
    const float g_mean = kCentered ? sums.x / n : 0.0f, gh_mean = sums.y / n;
    for (int i = 0; i < kVectors; ++i) {
      const int at = i * threads + static_cast<int>(threadIdx.x);
      if (at >= vectors) continue;
      Vector<T> v = kEarly ? early[i] : more(i);
      for (int j = 0; j < kCount; ++j)
        store(&v.at[j], rstd * (g[i][j] - g_mean - h[i][j] * gh_mean) + load(&v.at[j]));
      store_vector(dx + row * columns + at * kCount, v);
    }
    if constexpr (!kAhead) announce(row + gridDim.x);
  }
  if (o.partial == nullptr) return;
  float* out = o.partial + static_cast<int64_t>(blockIdx.x) * 2 * columns;
  for (int i = 0; i < kVectors; ++i) {
    const int at = i * threads + static_cast<int>(threadIdx.x);
    if (at >= vectors) continue;
    for (int j = 0; j < kCount; j += 4) {
      store_vector(out + at * kCount + j,
                   {{dgamma[i][j], dgamma[i][j + 1], dgamma[i][j + 2], dgamma[i][j + 3]}});
      if (kCentered)
        store_vector(out + columns + at * kCount + j,
                     {{dbeta[i][j], dbeta[i][j + 1], dbeta[i][j + 2], dbeta[i][j + 3]}});
    }
  }
}

// ---- rows of any length: dx by a block per row, the columns' partial sums by blocks of 32 columns

template <class T, bool kCentered>
__global__ void __launch_bounds__(kThreads) norm_grad_any(const T* dy_rows, const T* x_rows, const T* da_rows,
                                                          T* dx_rows, Operands o, int64_t columns) {
  CAIRN_SHARED float2 scratch[kWarp];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * columns;
  const T *dy = dy_rows + first, *x = x_rows + first;
  const float mean = kCentered ? o.mean[blockIdx.x] : 0.0f, rstd = o.rstd[blockIdx.x];
  float g_sum = 0, gh_sum = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) {
    const float g = load(dy + i) * (o.gamma != nullptr ? o.gamma[i] : 1.0f);
    g_sum += g;
    gh_sum += g * ((load(x + i) - mean) * rstd);
  }
  const float2 sums = sum_two(g_sum, gh_sum, scratch);
  const auto n = static_cast<float>(columns);
  const float g_mean = kCentered ? sums.x / n : 0.0f, gh_mean = sums.y / n;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) {
    const float g = load(dy + i) * (o.gamma != nullptr ? o.gamma[i] : 1.0f), h = (load(x + i) - mean) * rstd;
    const float more = da_rows != nullptr ? load(da_rows + first + i) : 0.0f;
    store(dx_rows + first + i, rstd * (g - g_mean - h * gh_mean) + more);
  }
}

template <class T, bool kCentered>
__global__ void __launch_bounds__(kThreads)
    norm_grad_columns(const T* dy, const T* x, Operands o, int64_t rows, int64_t columns,
                      int64_t rows_per_part) {
  CAIRN_SHARED float shared[2][kWarps][kWarp];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarp + lane;
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * rows_per_part;
  const int64_t end = begin + rows_per_part < rows ? begin + rows_per_part : rows;
  float dgamma = 0, dbeta = 0;
  if (column < columns)
    for (int64_t r = begin + warp; r < end; r += kWarps) {
      const float d = load(dy + r * columns + column), mean = kCentered ? o.mean[r] : 0.0f;
      dgamma += d * ((load(x + r * columns + column) - mean) * o.rstd[r]);
      dbeta += d;
    }
  shared[0][warp][lane] = dgamma;
  shared[1][warp][lane] = dbeta;
  __syncthreads();
  if (warp >= 2 || column >= columns) return;
  float total = 0;
  for (int w = 0; w < kWarps; ++w) total += shared[warp][w][lane];
  o.partial[(static_cast<int64_t>(blockIdx.y) * 2 + warp) * columns + column] = total;
}

template <class T, bool kCentered>
std::unique_ptr<Kernel> make_norm_grad_of(const Signature& s) {
  constexpr int64_t kCount = Vector<T>::kCount;
  constexpr int kMax = kCount == 8 ? 2 : 4;  // vectors per thread: 16 columns
  const int64_t rows = s.in[1].shape.rows(), columns = s.in[1].shape.last();
  const bool sums = s.has_out(1) || (kCentered && s.has_out(2));
  const bool vectors = columns % kCount == 0 && columns / kCount <= 512 * kMax;
  const int64_t count = columns / kCount, each = count <= 512 ? 1 : count <= 1024 ? 2 : 4;
  const int64_t threads = ((count + each - 1) / each + kWarp - 1) / kWarp * kWarp;
  const int64_t tiles = (columns + kWarp - 1) / kWarp;
  // By vectors: no more blocks than run at once, given the registers of a thread. Else: parts of the columns'
  // sums.
  int64_t parts = 0, rows_per_part = rows;
  if (vectors) {
    const int64_t held = each * kCount <= 4   ? 1024
                         : each * kCount <= 8 ? 640
                                              : 512;  // threads of a multiprocessor, by fours of warps
    parts = std::min((rows + 7) / 8, 132 * std::max<int64_t>(1, held / threads));
  } else {
    parts = row_parts(rows, tiles, 4 * kWarps);
    rows_per_part = (rows + parts - 1) / parts;
    parts = (rows + rows_per_part - 1) / rows_per_part;
  }
  Workspace space;
  const int64_t partial_at = sums ? space.add(parts * 2 * columns * 4) : 0;
  return make_kernel(
      [=](const Call& call) {
        const cudaStream_t stream = stream_of(call);
        float* partial = sums ? Workspace::at<float>(call, partial_at) : nullptr;
        const Operands o{input<const float>(call, 2), kCentered ? input<const float>(call, 3) : nullptr,
                         input<const float>(call, kCentered ? 4 : 3), partial};
        const T *dy = input<const T>(call, 0), *x = input<const T>(call, 1),
                *da = input<const T>(call, kCentered ? 5 : 4);
        T* dx = output<T>(call, 0);
        if (vectors) {
          auto* kernel = norm_grad<T, 1, kCentered>;
          if (each == 2) kernel = norm_grad<T, 2, kCentered>;
          if constexpr (kMax == 4)
            if (each == 4) kernel = norm_grad<T, 4, kCentered>;
          launch(stream, kernel, {.blocks = parts, .threads = static_cast<int>(threads)}, dy, x, da, dx, o,
                 rows, static_cast<int>(columns));
        } else {
          if (dx != nullptr)
            launch(stream, norm_grad_any<T, kCentered>, {.blocks = rows, .threads = kThreads}, dy, x, da, dx,
                   o, columns);
          if (sums)
            launch(stream, norm_grad_columns<T, kCentered>,
                   {.blocks = tiles, .threads = kThreads, .blocks_y = parts}, dy, x, o, rows, columns,
                   rows_per_part);
        }
        if (float* dgamma = output<float>(call, 1))
          sum_partials(stream, partial, parts, columns, 2 * columns, dgamma, accumulates(call, 1));
        if constexpr (kCentered)
          if (float* dbeta = output<float>(call, 2))
            sum_partials(stream, partial + columns, parts, columns, 2 * columns, dbeta, accumulates(call, 2));
      },
      space.bytes());
}

template <bool kCentered>
std::unique_ptr<Kernel> make_norm_grad(const Signature& s) {
  constexpr size_t kAdded = kCentered ? 5 : 4;
  const DType t = s.in[1].dtype;
  if (!fast_float(s.in[1]) || s.in[0].dtype != t || (s.has_out(0) && s.out[0].dtype != t)) return nullptr;
  for (size_t i = 2; i < s.in.size(); ++i)
    if (s.has_in(i) && (i == kAdded ? s.in[i].dtype != t : !plain_f32(s.in[i]))) return nullptr;
  for (size_t i = 1; i < s.out.size(); ++i)
    if (s.has_out(i) && !plain_f32(s.out[i])) return nullptr;
  return with_float(t, [&](auto zero) { return make_norm_grad_of<decltype(zero), kCentered>(s); });
}

}  // namespace

std::unique_ptr<Kernel> make_layernorm_grad(const Signature& s) { return make_norm_grad<true>(s); }
std::unique_ptr<Kernel> make_rmsnorm_grad(const Signature& s) { return make_norm_grad<false>(s); }

}  // namespace cairn::kernels::cuda
