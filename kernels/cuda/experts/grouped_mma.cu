// Grouped products in bfloat16 and float16 on tensor cores: a block has 128 rows and 128 columns, and the next part of
// the sums is copied to shared memory while it multiplies. Weights in float32 are rounded on their way there, so there
// is no copy of them, and an expert without rows is not read.
#include "kernels/cuda/common/mma_block.h"
#include "kernels/cuda/experts/grouped.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

using namespace mma_block;

constexpr int kGroup =
    8;  // tiles of rows whose blocks run at the same time, and read weights that one of them brought

template <class T, bool kAlong>
struct Factor {
  const T* at;
  int ld, count;  // rows or columns of the product that are there

  __device__ __forceinline__ const T* part(int from) const {
    return at + (kAlong ? from : static_cast<int64_t>(from) * ld);
  }
  __device__ __forceinline__ int64_t part_after() const {
    return kAlong ? kDepth : kDepth * static_cast<int64_t>(ld);
  }
  __device__ __forceinline__ int rows(int left) const { return kAlong ? count : left; }
  __device__ __forceinline__ int columns(int left) const { return kAlong ? left : count; }
};

// Copies of a factor: of T as they are, all at once; of float32 rounded, through registers, a quarter at a time.
template <class T, class From, bool kAlong>
class Copier {
 public:
  // Of the places of the sums from `from` on, of which there are `left`.
  __device__ __forceinline__ void start(int quarter, Shared to, const Factor<From, kAlong>& f, int from,
                                        int left) {
    const From* const part = f.part(from);
    const int rows = f.rows(left), columns = f.columns(left);
    if constexpr (!kRounds) {
      if (quarter == 0) copy_rows<In::kD, In::kRows, kThreads>(to, part, f.ld, rows, columns);
    } else {
      const int row = row_of(quarter);
      low_ = high_ = {};
      if (row >= rows || piece() * 8 >= columns) return;
      const From* const p = part + static_cast<int64_t>(row) * f.ld + piece() * 8;
      low_ = load_vector(p);
      high_ = load_vector(p + 4);
      // The next part is on its way to the level 2 cache meanwhile.
      if (kDepth + (kAlong ? piece() * 8 : row) < left) prefetch(p + f.part_after());
    }
  }
  __device__ __forceinline__ void finish(int quarter, Shared to) const {
    if constexpr (kRounds)
      store_shared_16(
          to + Tile<In::kD>::at(row_of(quarter), piece()),
          make_uint4(pack_pair<T>(low_.at[0], low_.at[1]), pack_pair<T>(low_.at[2], low_.at[3]),
                     pack_pair<T>(high_.at[0], high_.at[1]), pack_pair<T>(high_.at[2], high_.at[3])));
  }

 private:
  using In = Layout<kAlong>;
  static constexpr bool kRounds = !std::is_same_v<T, From>;
  static constexpr int kPieces = Tile<In::kD>::kPieces;
  static_assert(In::kRows * kPieces == 4 * kThreads);
  __device__ __forceinline__ static int piece() { return thread_anew() % kPieces; }
  __device__ __forceinline__ static int row_of(int quarter) {
    return thread_anew() / kPieces + quarter * (kThreads / kPieces);
  }

  Vector<float> low_, high_;
};

// sums = a b^T over `length` places.
template <class T, class W, bool kAlongA, bool kAlongB>
__device__ __forceinline__ void multiply(Sums& sums, Shared shared, const Factor<T, kAlongA>& a,
                                         const Factor<W, kAlongB>& b, int length) {
  clear(sums);
  const bool works = warp_row() < a.count && warp_column() < b.count;
  Copier<T, T, kAlongA> copy_a;
  Copier<T, W, kAlongB> copy_b;
  const auto start = [&](int quarter, Shared stage, int from) {
    if (quarter == 0) copy_a.start(quarter, stage, a, from, length - from);
    copy_b.start(quarter, stage + kFactorBytes, b, from, length - from);
    if (quarter == 0) cp_async_commit();
  };
  for (int quarter = 0; quarter < 4 && length > 0; ++quarter) {
    start(quarter, shared, 0);
    copy_b.finish(quarter, shared + kFactorBytes);
  }
  Shared stage = shared;
  const Shared both = shared + shared + kStageBytes;
  for (int from = 0; from < length; from += kDepth) {
    const bool more = from + kDepth < length;
    cp_async_wait<0>();
    __syncthreads();
    const Fragments<kAlongA, true> left(stage, warp_row());
    const Fragments<kAlongB, false> right(stage + kFactorBytes, warp_column());
    CAIRN_UNROLL
    for (int quarter = 0; quarter < 4; ++quarter) {
      if (more) start(quarter, both - stage, from + kDepth);
      if (works) add_quarter<T>(sums, left, right, quarter);
      if (more) copy_b.finish(quarter, both - stage + kFactorBytes);
    }
    stage = both - stage;
  }
}

int64_t tiles_of(int columns) { return (columns - 1) / kTile + 1; }

template <class T, class W, bool kAlong>
__global__ void __launch_bounds__(kThreads, 2)
    grouped_mma(GroupedSizes z, const T* a, const W* w, const int32_t* starts, const float* bias, T* c) {
  CAIRN_DYNAMIC_SHARED(char, memory);
  const unsigned in_group = (static_cast<unsigned>(z.outer - 1) / kTile + 1) * kGroup;
  const unsigned place = blockIdx.x % in_group;
  const RowTile tile = row_tile<kTile>(starts, z, blockIdx.x / in_group * kGroup + place % kGroup);
  if (tile.count == 0) return;
  const int first = static_cast<int>(place / kGroup) * kTile, columns = z.outer - first;
  const Shared shared = shared_address(memory);
  w += tile.expert * z.weights() + static_cast<int64_t>(first) * (kAlong ? z.inner : 1);
  Sums sums;
  multiply<T>(sums, shared, Factor<T, true>{a + tile.first * z.inner, z.inner, tile.count},
              Factor<W, kAlong>{w, kAlong ? z.inner : z.outer, columns}, z.inner);
  if (bias != nullptr) {
    bias += static_cast<int64_t>(tile.expert) * z.outer + first;
    each_pair(sums, [&](int, int column, float& low, float& high) {
      if (column >= columns) return;
      low += bias[column];
      high += bias[column + 1];
    });
  }
  __syncthreads();
  constexpr float kAsTheyAre[kM][2] = {{1, 1}, {1, 1}};
  using Out = Tile<kWarpColumns>;
  store_rows<kWarpColumns>(sums, kAsTheyAre,
                           shared + static_cast<unsigned>(own_warp() * Out::bytes(kWarpRows)),
                           c + (tile.first + warp_row()) * z.outer + first + warp_column(), z.outer,
                           tile.count - warp_row(), columns - warp_column());
}

template <class T>
__global__ void __launch_bounds__(kThreads, 2)
    grouped_gradient_mma(GroupedSizes z, const T* a, const T* b, const int32_t* starts, float* c, bool add) {
  CAIRN_DYNAMIC_SHARED(char, memory);
  const unsigned across = static_cast<unsigned>(z.outer - 1) / kTile + 1,
                 down = static_cast<unsigned>(z.inner - 1) / kTile + 1;
  const int column = static_cast<int>(blockIdx.x % across) * kTile,
            row = static_cast<int>(blockIdx.x / across % down) * kTile,
            expert = static_cast<int>(blockIdx.x / across / down);
  const experts::Rows rows = experts::rows_of(starts, expert, z.rows);
  Sums sums;
  multiply<T>(sums, shared_address(memory),
              Factor<T, false>{a + rows.begin * z.inner + row, z.inner, z.inner - row},
              Factor<T, false>{b + rows.begin * z.outer + column, z.outer, z.outer - column},
              static_cast<int>(rows.end - rows.begin));
  c += expert * z.weights() + static_cast<int64_t>(row) * z.outer + column;
  each_pair(sums, [&](int i, int j, float low, float high) {
    if (row + i >= z.inner || column + j >= z.outer) return;
    auto* const to = reinterpret_cast<float2*>(c + static_cast<int64_t>(i) * z.outer + j);
    const float2 before = add ? *to : make_float2(0, 0);
    *to = make_float2(before.x + low, before.y + high);
  });
}

// Rows of full pieces.
bool fits(const Signature& s, const GroupedSizes& z) {
  return is_half(s.in[0].dtype) && z.inner % 8 == 0 && z.outer % 8 == 0;
}

template <class T, class W>
std::unique_ptr<Kernel> make_with(const GroupedProduct& p) {
  const auto kernel = p.along ? grouped_mma<T, W, true> : grouped_mma<T, W, false>;
  allow_shared(kernel, kSharedBytes);
  const int64_t groups = (most_tiles<kTile>(p.sizes) - 1) / kGroup + 1;
  const LaunchSize size{
      .blocks = groups * kGroup * tiles_of(p.sizes.outer), .threads = kThreads, .shared_bytes = kSharedBytes};
  return make_kernel([=](const Call& call) {
    launch(stream_of(call), kernel, size, p.sizes, input<const T>(call, 0), input<const W>(call, 1),
           p.starts(call), p.biases(call), output<T>(call, 0));
    carry_rows(call, p);
  });
}

std::unique_ptr<Kernel> make_product_of(const Signature& s, bool of_input) {
  const auto p = grouped_product(s, of_input);
  if (!p || !fits(s, p->sizes)) return nullptr;
  return with_half(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return s.in[1].dtype == DType::kF32 ? make_with<T, float>(*p) : make_with<T, T>(*p);
  });
}

}  // namespace

std::unique_ptr<Kernel> make_grouped_linear_mma(const Signature& s) { return make_product_of(s, false); }
std::unique_ptr<Kernel> make_grouped_linear_grad_input_mma(const Signature& s) {
  return make_product_of(s, true);
}

std::unique_ptr<Kernel> make_grouped_linear_grad_weight_mma(const Signature& s) {
  const auto found = grouped_gradient(s);
  if (!found || !fits(s, found->sizes)) return nullptr;
  const GroupedGradient g = *found;
  return with_half(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    allow_shared(grouped_gradient_mma<T>, kSharedBytes);
    return make_kernel([=](const Call& call) {
      const LaunchSize size{.blocks = tiles_of(g.sizes.inner) * tiles_of(g.sizes.outer) * g.sizes.experts,
                            .threads = kThreads,
                            .shared_bytes = kSharedBytes};
      launch(stream_of(call), grouped_gradient_mma<T>, size, g.sizes, input<const T>(call, g.a),
             input<const T>(call, g.b), input<const int32_t>(call, 2) + g.first, output<float>(call, 0),
             accumulates(call, 0));
      sum_columns_of_experts(call, g);
    });
  });
}

}  // namespace cairn::kernels::cuda
