// Rotary positions. A block works out the angles of a few positions once and turns with them all heads of the
// sequences that are its share. Where positions or frequencies are given, or pairs lie otherwise, a block has a row.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "kernels/cuda/common/group.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 128, kAngles = 256;  // of a block, about

struct Shares {
  int64_t batch, length, heads, half;  // x[batch, length, heads, 2 half]
  int64_t positions, sequences;        // of a block
  double exponent;                     // an angle is position * 2^(exponent * i)
  float direction;
};

// Of pi * x.
__device__ __forceinline__ void sine_cosine(float x, float* sine, float* cosine) {
#ifdef __CUDACC__
  sincospif(x, sine, cosine);
#else
  *sine = static_cast<float>(std::sin(std::numbers::pi * x));
  *cosine = static_cast<float>(std::cos(std::numbers::pi * x));
#endif
}

template <int kCount, class T>
__global__ void __launch_bounds__(kThreads) rope(Shares s, const T* __restrict__ x, T* __restrict__ y) {
  CAIRN_DYNAMIC_SHARED(float, cosines);  // [positions, half], then as many sines
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * s.positions;
  const int positions = static_cast<int>(s.length - begin < s.positions ? s.length - begin : s.positions);
  const int half = static_cast<int>(s.half), heads = static_cast<int>(s.heads);
  float* const sines = cosines + s.positions * half;
  const int64_t first = blockIdx.y * s.sequences;
  const int64_t last = first + s.sequences < s.batch ? first + s.sequences : s.batch;
  // In float64 until less than a turn is left, in units of pi.
  for (int e = static_cast<int>(threadIdx.x); e < positions * half; e += kThreads) {
    const double angle =
        static_cast<double>(begin + e / half) * exp2(s.exponent * (e % half)) * (1 / std::numbers::pi);
    float sine, cosine;
    sine_cosine(static_cast<float>(angle - 2 * rint(angle / 2)), &sine, &cosine);
    cosines[e] = cosine;
    sines[e] = s.direction * sine;
  }
  __syncthreads();

  constexpr int kPart = kCount < 4 ? kCount : 4;
  const int groups = half / kCount, count = positions * heads * groups;
  for (int64_t b = first; b < last; ++b) {
    const int64_t base = (b * s.length + begin) * heads * 2 * half;
    for (int item = static_cast<int>(threadIdx.x); item < count; item += kThreads) {
      const int row = item / groups, i = item % groups * kCount, angle = row / heads * half + i;
      const int64_t low = base + static_cast<int64_t>(row) * 2 * half + i, high = low + half;
      Group<kCount> left = read<kCount>(x + low), right = read<kCount>(x + high);
      for (int q = 0; q < kCount; q += kPart) {
        const Group<kPart> cosine = read<kPart>(cosines + angle + q), sine = read<kPart>(sines + angle + q);
        for (int e = 0; e < kPart; ++e) {
          const float l = left.at[q + e], r = right.at[q + e];
          left.at[q + e] = l * cosine.at[e] - r * sine.at[e];
          right.at[q + e] = r * cosine.at[e] + l * sine.at[e];
        }
      }
      write(y + low, left);
      write(y + high, right);
    }
  }
}

constexpr int64_t kMostPairs = 1024;
struct Frequencies {
  double at[kMostPairs];  // in units of pi
};

// Of a row's heads, which have `dim` columns, 2 half of which turn.
struct Row {
  int64_t length;
  int heads, dim, half;
  bool interleaved;
  float factor, direction;
};

template <int kCount, class T>
__global__ void __launch_bounds__(kThreads)
    rope_rows(CAIRN_TABLE(Frequencies, frequencies), Row s, const int32_t* positions, const T* x, T* y) {
  CAIRN_DYNAMIC_SHARED(float, cosines);  // [half], then as many sines
  float* const sines = cosines + s.half;
  const int64_t row = blockIdx.x, base = row * s.heads * s.dim;
  const auto position = static_cast<double>(positions != nullptr ? positions[row] : row % s.length);
  for (int i = static_cast<int>(threadIdx.x); i < s.half; i += kThreads) {
    const double angle = position * frequencies.at[i];
    float sine, cosine;
    sine_cosine(static_cast<float>(angle - 2 * rint(angle / 2)), &sine, &cosine);
    cosines[i] = s.factor * cosine;
    sines[i] = s.factor * s.direction * sine;
  }
  __syncthreads();
  const int groups = s.half / kCount, pairs = s.heads * groups;
  for (int item = static_cast<int>(threadIdx.x); item < pairs; item += kThreads) {
    const int i = item % groups * kCount;
    const int64_t head = base + static_cast<int64_t>(item / groups) * s.dim;
    const int64_t low = head + (s.interleaved ? 2 * i : i), high = low + (s.interleaved ? 1 : s.half);
    Group<kCount> left = read<kCount>(x + low), right = read<kCount>(x + high);
    for (int e = 0; e < kCount; ++e) {
      const float l = left.at[e], r = right.at[e];
      left.at[e] = l * cosines[i + e] - r * sines[i + e];
      right.at[e] = r * cosines[i + e] + l * sines[i + e];
    }
    write(y + low, left);
    write(y + high, right);
  }
  const int rest = s.dim - 2 * s.half;
  for (int item = static_cast<int>(threadIdx.x); item < s.heads * rest; item += kThreads) {
    const int64_t at = base + static_cast<int64_t>(item / rest) * s.dim + 2 * s.half + item % rest;
    store(y + at, load(x + at));
  }
}

// For what `rope` is not made for.
std::unique_ptr<Kernel> make_rows(const Signature& s, const Row& row) {
  std::vector<double> given = s.attrs->reals("frequencies");
  if (row.half > kMostPairs) return nullptr;
  const double base = s.attrs->real("base", 10000.0);
  if (given.empty())
    for (int i = 0; i < row.half; ++i)
      given.push_back(std::pow(base, -static_cast<double>(i) / static_cast<double>(row.half)));
  auto frequencies = std::make_shared<Frequencies>();
  for (size_t i = 0; i < given.size(); ++i) frequencies->at[i] = given[i] / std::numbers::pi;
  const LaunchSize size{.blocks = s.in[0].shape.rows(), .threads = kThreads, .shared_bytes = 8 * row.half};
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto make = [&]<int kCount>(std::integral_constant<int, kCount>) {
      return make_kernel([=](const Call& call) {
        launch(stream_of(call), rope_rows<kCount, T>, size, *frequencies, row, input<const int32_t>(call, 1),
               input<const T>(call, 0), output<T>(call, 0));
      });
    };
    const bool vectors = !row.interleaved && row.half % kGroupOf<T> == 0 && row.dim % kGroupOf<T> == 0;
    return vectors ? make(std::integral_constant<int, kGroupOf<T>>{})
                   : make(std::integral_constant<int, 1>{});
  });
}

template <int kCount, class T>
std::unique_ptr<Kernel> make_typed(const Shares& shares) {
  const int64_t bytes = 2 * shares.positions * shares.half * 4;
  if (bytes > 48 * 1024) allow_shared(rope<kCount, T>, bytes);
  const LaunchSize size{.blocks = (shares.length + shares.positions - 1) / shares.positions,
                        .threads = kThreads,
                        .shared_bytes = bytes,
                        .blocks_y = (shares.batch + shares.sequences - 1) / shares.sequences};
  return make_kernel([=](const Call& call) {
    launch(stream_of(call), rope<kCount, T>, size, shares, input<const T>(call, 0), output<T>(call, 0));
  });
}

}  // namespace

std::unique_ptr<Kernel> make_rope(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0] != s.in[0] || s.in[0].shape.rank < 2) return nullptr;
  const Shape& shape = s.in[0].shape;
  const int64_t heads = s.attrs->integer("heads"), dim = shape.last() / heads, length = shape[-2];
  const int64_t columns = s.attrs->integer("columns", dim);
  const Row row{.length = length,
                .heads = static_cast<int>(heads),
                .dim = static_cast<int>(dim),
                .half = static_cast<int>(columns / 2),
                .interleaved = s.attrs->integer("interleaved") != 0,
                .factor = static_cast<float>(s.attrs->real("factor", 1)),
                .direction = s.attrs->integer("inverse") != 0 ? -1.0f : 1.0f};
  if (columns != dim || row.interleaved || row.factor != 1 || s.has_in(1) || s.attrs->has("frequencies"))
    return make_rows(s, row);
  if (dim % 2 != 0) return nullptr;
  Shares shares{.batch = shape.elements() / (length * shape.last()),
                .length = length,
                .heads = heads,
                .half = dim / 2,
                .positions = 1,
                .sequences = 1,
                .exponent = -2.0 * std::log2(s.attrs->real("base", 10000.0)) / static_cast<double>(dim),
                .direction = s.attrs->integer("inverse") != 0 ? -1.0f : 1.0f};
  shares.positions = std::clamp<int64_t>(kAngles / shares.half, 1, length);
  // Blocks enough for several rounds on every multiprocessor; beyond that, angles serve more sequences.
  constexpr int64_t kEnough = 4096;
  const auto blocks_of = [&](int64_t positions) { return (length + positions - 1) / positions; };
  while (shares.positions > 1 && blocks_of(shares.positions) * shares.batch < kEnough)
    shares.positions = (shares.positions + 1) / 2;
  const int64_t blocks = blocks_of(shares.positions);
  const int64_t splits = std::clamp<int64_t>(kEnough / blocks, 1, shares.batch);
  shares.sequences = (shares.batch + splits - 1) / splits;
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return shares.half % kGroupOf<T> == 0 ? make_typed<kGroupOf<T>, T>(shares) : make_typed<1, T>(shares);
  });
}

}  // namespace cairn::kernels::cuda
