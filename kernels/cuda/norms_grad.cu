// Gradients of layernorm and rmsnorm. h = (x - mean) * rstd, g = dy * gamma: dx = rstd * (g - mean(g) - h *
// mean(g h)) + da, without mean(g) for rmsnorm. dgamma and dbeta, sums over rows of dy h and of dy, go
// through partial sums. dx may lie on da: a thread reads what it adds before it writes there.
#include <algorithm>

#include "kernels/cuda/common/group.h"
#include "kernels/cuda/common/mma.h"
#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/products/columns.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;

struct Operands {
  const float *gamma, *mean, *rstd;  // gamma: nullptr for 1; mean: nullptr for rmsnorm
  float* partial;                    // [blocks][2][columns]: dgamma, dbeta; nullptr: not wanted
  float offset = 0;                  // added to gamma

  __device__ __forceinline__ float factor(int64_t i) const {
    const float own = gamma != nullptr ? gamma[i] : 1.0f;
    return offset != 0 ? own + offset : own;
  }
};

// ---- rows by vectors: a team of warps takes a few rows at a time, a thread the same columns of all of them

// What a number of vectors per thread (1, 2, 4) means for the kernel.
template <int kVectors>
struct Team {
  static constexpr int kRows = kVectors == 1 ? 2 : 1;         // in hand at a time
  static constexpr int kThreads = kVectors == 1 ? 256 : 512;  // of a block, at most
  static constexpr int kStages = kVectors < 4 ? 3 : 2;        // in shared memory, of kRows rows each
  // Shared memory for a thread's vectors of that many operands.
  static constexpr int shared_bytes(int operands) { return kStages * operands * kRows * kVectors * 16; }
};

template <int kValues>
struct alignas(4 * kValues) Sums {
  float at[kValues];
};

// Adds up kValues numbers over a warp, in few shuffles: lanes halve among them what they add as long as there
// is more than one number. Lane l gets the sum of v[l / (kWarp / kValues)].
template <int kValues>
__device__ __forceinline__ float spread_sum(const Sums<kValues>& values) {
  const unsigned lane = threadIdx.x % kWarp;
  Sums<kValues> v = values;
  int by = kWarp / 2;
  CAIRN_UNROLL for (int half = kValues / 2; half > 0; half /= 2, by /= 2) {
    const bool upper = (lane & static_cast<unsigned>(by)) != 0;
    CAIRN_UNROLL for (int i = 0; i < half; ++i) {
      const float kept = upper ? v.at[i + half] : v.at[i], given = upper ? v.at[i] : v.at[i + half];
      v.at[i] = kept + __shfl_xor_sync(kAllLanes, given, by);
    }
  }
  CAIRN_UNROLL for (; by > 0; by /= 2) v.at[0] += __shfl_xor_sync(kAllLanes, v.at[0], by);
  return v.at[0];
}

// The sums over a team of `warps` warps, the first of which is the block's warp `first`; with one barrier of
// the block, or none for a team of one. `scratch` is not that of the call before.
template <int kValues>
__device__ __forceinline__ Sums<kValues> team_sums(const Sums<kValues>& v, int first, int warps,
                                                   Sums<kValues>* scratch) {
  constexpr unsigned kLanes = kWarp / kValues;
  const float own = spread_sum(v);
  Sums<kValues> total;
  if (warps == 1) {
    for (int i = 0; i < kValues; ++i) total.at[i] = __shfl_sync(kAllLanes, own, i * static_cast<int>(kLanes));
    return total;
  }
  if (threadIdx.x % kLanes == 0) scratch[threadIdx.x / kWarp].at[threadIdx.x % kWarp / kLanes] = own;
  __syncthreads();
  total = scratch[first];
  CAIRN_UNROLL_BY(2)
  for (int w = 1; w < warps; ++w) {
    const Sums<kValues> more = scratch[first + w];
    for (int i = 0; i < kValues; ++i) total.at[i] += more.at[i];
  }
  return total;
}

// Rows are copied to shared memory a few groups ahead. A thread reads there what it copied itself, so that it
// waits for its own copies alone and registers hold no rows; the sums over a row are the one thing shared.
template <class T, int kVectors, bool kCentered>
__global__ void __launch_bounds__(Team<kVectors>::kThreads, kVectors == 1 ? 3 : 1)
    norm_grad(const T* dy, const T* x, const T* da, T* dx, Operands o, int rows, int columns, int team_size) {
  constexpr int kCount = Vector<T>::kCount, kRows = Team<kVectors>::kRows, kStages = Team<kVectors>::kStages;
  constexpr int kSums = kCentered ? 2 : 1;  // of a row: of g (x - mean), and of g
  CAIRN_SHARED Sums<kSums * kRows> scratch[2][Team<kVectors>::kThreads / kWarp];
  CAIRN_DYNAMIC_SHARED(char, buffer);
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  const int teams = threads / team_size, team = thread / team_size, place = thread - team * team_size;
  const int step = teams * kRows * static_cast<int>(gridDim.x), vectors = columns / kCount;
  int first = teams * kRows * static_cast<int>(blockIdx.x);  // row of the block's
  const auto inside = [&](int i) { return i * team_size + place < vectors; };
  // Shared memory: [warp][stage][dy, x, da][row][vector][lane].
  constexpr int kEach = kRows * kVectors, kSlot = kWarp * 16;  // of an operand's vectors; bytes
  const int stage_bytes = (da != nullptr ? 3 : 2) * kEach * kSlot, lane = thread % kWarp;
  const int own = thread / kWarp * (kStages * stage_bytes) + lane * 16;
  const auto slot = [](int operand, int r, int i) { return (operand * kEach + r * kVectors + i) * kSlot; };
  const Shared stages_at = shared_address(buffer) + static_cast<Shared>(own);
  // Starts to copy the rows from `row` on into a stage. at: the byte of an operand that the thread's first vector begins at.
  // stage: where the stage begins, in bytes after the first one.
  const auto fetch = [&](int row, int64_t at, int stage) {
    const auto copy = [&](const T* operand, int which) {
      const T* const from = reinterpret_cast<const T*>(reinterpret_cast<const char*>(operand) + at);
      const Shared stage_at = stages_at + static_cast<Shared>(stage);
      CAIRN_UNROLL for (int r = 0; r < kRows; ++r) CAIRN_UNROLL for (int i = 0; i < kVectors; ++i) {
        const bool there = row + r < rows && inside(i);  // else zeros, which add nothing to any sum
        cp_async(stage_at + static_cast<Shared>(slot(which, r, i)),
                 from + (r * columns + i * team_size * kCount), there);
      }
    };
    copy(dy, 0);
    copy(x, 1);
    if (da != nullptr) copy(da, 2);
    cp_async_commit();
  };
  float next_mean[kRows], next_rstd[kRows];
  const auto fetch_moments = [&](int row) {
    for (int r = 0; r < kRows; ++r) {
      const int at = row + r < rows ? row + r : rows - 1;
      next_mean[r] = kCentered ? o.mean[at] : 0.0f;
      next_rstd[r] = o.rstd[at];
    }
  };
  int row = first + team * kRows;
  int64_t ahead = (static_cast<int64_t>(row) * columns + place * kCount) * static_cast<int64_t>(sizeof(T));
  const int64_t step_bytes = static_cast<int64_t>(step) * columns * static_cast<int64_t>(sizeof(T));
  for (int s = 0; s + 1 < kStages; ++s, ahead += step_bytes) fetch(row + s * step, ahead, s * stage_bytes);
  fetch_moments(row);
  float gamma[kVectors][kCount], dgamma[kVectors][kCount], dbeta[kVectors][kCount];
  for (int i = 0; i < kVectors; ++i) {
    load_floats(inside(i) ? o.gamma : nullptr, (i * team_size + place) * kCount, 1.0f, gamma[i]);
    if (o.offset != 0)
      for (int j = 0; j < kCount; ++j) gamma[i][j] += o.offset;
    for (int j = 0; j < kCount; ++j) dgamma[i][j] = dbeta[i][j] = 0;
  }
  const float share = 1.0f / static_cast<float>(columns);
  const int last_stage = (kStages - 1) * stage_bytes;
  int stage = 0, turn = 0;
  // All teams of a block run the loop equally often, as it has a barrier.
  for (; first < rows; first += step, row += step, ahead += step_bytes, turn ^= 1) {
    float mean[kRows], rstd[kRows];
    for (int r = 0; r < kRows; ++r) mean[r] = next_mean[r], rstd[r] = next_rstd[r];
    cp_async_wait<kStages - 2>();
    fetch(row + (kStages - 1) * step, ahead, stage == 0 ? last_stage : stage - stage_bytes);
    fetch_moments(row + step);
    const char* const held = buffer + own + stage;
    const auto read_held = [&](int operand, int r, int i) {
      return read<kCount>(reinterpret_cast<const T*>(held + slot(operand, r, i)));
    };
    Sums<kSums * kRows> sums;
    CAIRN_UNROLL for (int r = 0; r < kRows; ++r) {
      float gx_sum = 0, g_sum = 0;
      CAIRN_UNROLL for (int i = 0; i < kVectors; ++i) {
        const Group<kCount> d = read_held(0, r, i), v = read_held(1, r, i);
        for (int j = 0; j < kCount; ++j) {
          const float product = d.at[j] * (v.at[j] - mean[r]);
          dgamma[i][j] = fmaf(product, rstd[r], dgamma[i][j]);
          gx_sum = fmaf(product, gamma[i][j], gx_sum);
          if (!kCentered) continue;
          dbeta[i][j] += d.at[j];
          g_sum = fmaf(d.at[j], gamma[i][j], g_sum);
        }
      }
      sums.at[kSums * r] = gx_sum;
      if constexpr (kCentered) sums.at[kSums * r + 1] = g_sum;
    }
    if (dx != nullptr) {
      const int warps = team_size / kWarp;
      T* const to = reinterpret_cast<T*>(reinterpret_cast<char*>(dx) + (ahead - (kStages - 1) * step_bytes));
      sums = team_sums(sums, team * warps, warps, scratch[turn]);
      CAIRN_UNROLL for (int r = 0; r < kRows; ++r) {
        if (row + r >= rows) break;
        const float slope = sums.at[kSums * r] * share * rstd[r] * rstd[r];  // of mean(g h) h along x
        const float g_mean = kCentered ? sums.at[kSums * r + kSums - 1] * share : 0.0f;
        CAIRN_UNROLL for (int i = 0; i < kVectors; ++i) {
          if (!inside(i)) break;
          const Group<kCount> d = read_held(0, r, i), v = read_held(1, r, i);
          Group<kCount> out;
          for (int j = 0; j < kCount; ++j) {
            const float rest = fmaf(mean[r] - v.at[j], slope, -g_mean);
            out.at[j] = rstd[r] * fmaf(d.at[j], gamma[i][j], rest);
          }
          if (da != nullptr) {
            const Group<kCount> more = read_held(2, r, i);
            for (int j = 0; j < kCount; ++j) out.at[j] += more.at[j];
          }
          write(to + (r * columns + i * team_size * kCount), out);
        }
      }
    }
    stage = stage == last_stage ? 0 : stage + stage_bytes;
  }
  cp_async_wait<0>();
  if (o.partial == nullptr) return;
  float* out = o.partial + static_cast<int64_t>(blockIdx.x) * 2 * columns;
  if (teams > 1) {  // their sums meet where rows were
    __syncthreads();
    out = reinterpret_cast<float*>(buffer) + team * 2 * columns;
  }
  for (int i = 0; i < kVectors; ++i) {
    if (!inside(i)) continue;
    float* const at = out + (i * team_size + place) * kCount;
    for (int j = 0; j < kCount; j += 4) {
      store_vector(at + j, {{dgamma[i][j], dgamma[i][j + 1], dgamma[i][j + 2], dgamma[i][j + 3]}});
      if (kCentered)
        store_vector(at + columns + j, {{dbeta[i][j], dbeta[i][j + 1], dbeta[i][j + 2], dbeta[i][j + 3]}});
    }
  }
  if (teams == 1) return;
  __syncthreads();
  const auto* const found = reinterpret_cast<const float*>(buffer);
  for (int c = thread; c < (kCentered ? 2 : 1) * columns; c += threads) {
    float total = found[c];
    CAIRN_UNROLL_BY(1)
    for (int t = 1; t < teams; ++t) total += found[t * 2 * columns + c];
    o.partial[static_cast<int64_t>(blockIdx.x) * 2 * columns + c] = total;
  }
}

// ---- rows of any length: dx by a block per row, the columns' partial sums by blocks of 32 columns

// The sums of two numbers over a block of kThreads.
__device__ __forceinline__ float2 sum_two(float a, float b, float2* scratch) {
  a = warp_sum(a);
  b = warp_sum(b);
  if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = make_float2(a, b);
  __syncthreads();
  float2 total = scratch[0];
  for (int w = 1; w < kWarps; ++w) {
    total.x += scratch[w].x;
    total.y += scratch[w].y;
  }
  return total;
}

template <class T, bool kCentered>
__global__ void __launch_bounds__(kThreads) norm_grad_any(const T* dy_rows, const T* x_rows, const T* da_rows,
                                                          T* dx_rows, Operands o, int64_t columns) {
  CAIRN_SHARED float2 scratch[kWarp];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * columns;
  const T *dy = dy_rows + first, *x = x_rows + first;
  const float mean = kCentered ? o.mean[blockIdx.x] : 0.0f, rstd = o.rstd[blockIdx.x];
  float g_sum = 0, gh_sum = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) {
    const float g = load(dy + i) * o.factor(i);
    g_sum += g;
    gh_sum += g * ((load(x + i) - mean) * rstd);
  }
  const float2 sums = sum_two(g_sum, gh_sum, scratch);
  const auto n = static_cast<float>(columns);
  const float g_mean = kCentered ? sums.x / n : 0.0f, gh_mean = sums.y / n;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) {
    const float g = load(dy + i) * o.factor(i), h = (load(x + i) - mean) * rstd;
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

template <class T>
struct VectorLaunch {
  void (*kernel)(const T*, const T*, const T*, T*, Operands, int, int, int);
  LaunchSize size;
  int team_size;
};

// No more blocks than run at once, given registers and shared memory.
template <class T, int kVectors, bool kCentered>
VectorLaunch<T> vector_launch(int64_t rows, int64_t vectors, int operands) {
  using Of = Team<kVectors>;
  constexpr int64_t kShared = 228 * 1024,
                    kBlockShared = 2 * 1024;  // the second: of a block, besides its rows
  const int64_t warps = ((vectors + kVectors - 1) / kVectors + kWarp - 1) / kWarp;
  const int64_t teams = kVectors == 1 ? std::max<int64_t>(1, Of::kThreads / kWarp / warps) : 1;
  const int64_t threads = teams * warps * kWarp, shared = threads * Of::shared_bytes(operands);
  // Warps of a multiprocessor, given the registers.
  constexpr int64_t kHeld = kVectors == 1 ? (kCentered ? 24 : 28) : kVectors == 2 ? 18 : 16;
  const int64_t resident =
      std::max<int64_t>(1, std::min<int64_t>(kHeld / (teams * warps), kShared / (shared + kBlockShared)));
  const int64_t least = 2 * Of::kRows * teams;  // rows of a block
  auto* const kernel = norm_grad<T, kVectors, kCentered>;
  allow_shared(kernel, Of::kThreads * Of::shared_bytes(3));
  return {kernel,
          {.blocks = std::min((rows + least - 1) / least, kGridMultiprocessors * resident),
           .threads = static_cast<int>(threads),
           .shared_bytes = shared},
          static_cast<int>(warps * kWarp)};
}

template <class T, bool kCentered>
std::unique_ptr<Kernel> make_norm_grad_of(const Signature& s) {
  constexpr int64_t kCount = Vector<T>::kCount;
  constexpr int64_t kMost = kCount == 8 ? 1024 : 2048;  // vectors of a row
  constexpr size_t kAdded = kCentered ? 5 : 4;
  const int64_t rows = s.in[1].shape.rows(), columns = s.in[1].shape.last(), count = columns / kCount;
  const bool sums = s.has_out(1) || (kCentered && s.has_out(2));
  const bool vectors = columns % kCount == 0 && count <= kMost && rows <= int64_t{1} << 30;
  const int64_t tiles = (columns + kWarp - 1) / kWarp;
  VectorLaunch<T> by_vectors = {};
  int64_t parts = 0, rows_per_part = rows;  // of the columns' sums
  if (vectors) {
    const int operands = s.has_in(kAdded) ? 3 : 2;
    by_vectors = count <= 256 ? vector_launch<T, 1, kCentered>(rows, count, operands)
                              : vector_launch<T, 2, kCentered>(rows, count, operands);
    if constexpr (kMost > 1024)
      if (count > 1024) by_vectors = vector_launch<T, 4, kCentered>(rows, count, operands);
    parts = by_vectors.size.blocks;
  } else {
    parts = row_parts(rows, tiles, 4 * kWarps);
    rows_per_part = (rows + parts - 1) / parts;
    parts = (rows + rows_per_part - 1) / rows_per_part;
  }
  const auto offset = static_cast<float>(s.attrs != nullptr ? s.attrs->real("offset") : 0);
  Workspace space;
  const int64_t partial_at = sums ? space.add(parts * 2 * columns * 4) : 0;
  return make_kernel(
      [=](const Call& call) {
        const cudaStream_t stream = stream_of(call);
        float* partial = sums ? Workspace::at<float>(call, partial_at) : nullptr;
        const Operands o{input<const float>(call, 2), kCentered ? input<const float>(call, 3) : nullptr,
                         input<const float>(call, kCentered ? 4 : 3), partial, offset};
        const T *dy = input<const T>(call, 0), *x = input<const T>(call, 1),
                *da = input<const T>(call, kAdded);
        T* dx = output<T>(call, 0);
        if (vectors) {
          launch(stream, by_vectors.kernel, by_vectors.size, dy, x, da, dx, o, static_cast<int>(rows),
                 static_cast<int>(columns), by_vectors.team_size);
        } else {
          if (dx != nullptr)
            launch(stream, norm_grad_any<T, kCentered>, {.blocks = rows, .threads = kThreads}, dy, x, da, dx,
                   o, columns);
          if (sums)
            launch(stream, norm_grad_columns<T, kCentered>,
                   {.blocks = tiles, .threads = kThreads, .blocks_y = parts}, dy, x, o, rows, columns,
                   rows_per_part);
        }
        if (!sums) return;
        Total dgamma{output<float>(call, 1), accumulates(call, 1)}, dbeta;
        if (kCentered) dbeta = {output<float>(call, 2), accumulates(call, 2)};
        sum_partials(stream, partial, parts, columns, 2 * columns, dgamma, dbeta);
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
