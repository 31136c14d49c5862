// Moves: transpose, slice and its gradient, concat, of any element type; expand.
#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cuda/common/axes.h"
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

// Unit: what one access moves; sizes and strides count units.
template <class Unit>
__global__ void __launch_bounds__(kElementwiseThreads)
    gather(Walk walk, int64_t count, const Unit* __restrict__ x, Unit* __restrict__ y) {
  const int64_t first = elementwise_first();
  Unit taken[kElementwiseGroups];
  for (int u = 0; u < kElementwiseGroups; ++u)
    if (const int64_t i = first + u * kElementwiseThreads; i < count) taken[u] = x[walk_to(walk, i)];
  for (int u = 0; u < kElementwiseGroups; ++u)
    if (const int64_t i = first + u * kElementwiseThreads; i < count) y[i] = taken[u];
}

// y[rows, size] = x[rows, width] at column `begin`, which may be negative: x is wider then; elsewhere zero.
template <class Unit>
__global__ void __launch_bounds__(kElementwiseThreads)
    copy_columns(int64_t count, int64_t size, int64_t width, int64_t begin, int64_t pitch,
                 const Unit* __restrict__ x, Unit* __restrict__ y) {
  const int64_t first = elementwise_first();
  Unit taken[kElementwiseGroups];
  int64_t to[kElementwiseGroups];
  for (int u = 0; u < kElementwiseGroups; ++u) {
    const int64_t i = first + u * kElementwiseThreads;
    if (i >= count) break;
    const int64_t row = i / size, column = i - row * size, from = column - begin;
    taken[u] = from >= 0 && from < width ? x[row * width + from] : Unit{};
    to[u] = row * pitch + column;
  }
  for (int u = 0; u < kElementwiseGroups; ++u)
    if (first + u * kElementwiseThreads < count) y[to[u]] = taken[u];
}

// The axes that are last in x (a) and last in y (b) change places in tiles; blocks walk over the others, too.
constexpr int kTile = 64, kTileThreads = 256;
struct Tiles {
  Walk outer;                      // strides of x
  int64_t y_strides[kMaxRank];     // of the same axes
  int64_t a, b, x_pitch, y_pitch;  // sizes; strides of b in x and of a in y
};

// The block's tile: where it begins, and in which of the matrices that the other axes number.
struct Tile {
  int64_t a, b, x, y;
};
__device__ __forceinline__ Tile tile_of(const Tiles& t) {
  // Divisions of 32 bits: there are fewer than 2^31 blocks.
  const auto tiles_a = static_cast<unsigned>((t.a + kTile - 1) / kTile),
             tiles_b = static_cast<unsigned>((t.b + kTile - 1) / kTile);
  unsigned rest = blockIdx.x / tiles_a;
  Tile tile{static_cast<int64_t>(blockIdx.x - rest * tiles_a) * kTile, 0, 0, 0};
  const unsigned outer = rest / tiles_b;
  tile.b = static_cast<int64_t>(rest - outer * tiles_b) * kTile;
  rest = outer;
  for (int axis = t.outer.rank - 1; axis >= 0; --axis) {
    const auto size = static_cast<unsigned>(t.outer.sizes[axis]);
    const unsigned at = rest % size;
    tile.x += at * t.outer.strides[axis];
    tile.y += at * t.y_strides[axis];
    rest /= size;
  }
  return tile;
}

template <class Unit>
__global__ void __launch_bounds__(kTileThreads)
    swap_axes(Tiles t, const Unit* __restrict__ x, Unit* __restrict__ y) {
  constexpr int kPitch = kTile + (sizeof(Unit) < 4 ? 4 / static_cast<int>(sizeof(Unit)) : 1);  // no conflicts
  constexpr int kStep = kTileThreads / kTile;
  CAIRN_SHARED Unit tile[kTile * kPitch];
  const Tile place = tile_of(t);
  const int64_t a0 = place.a, b0 = place.b;
  x += place.x;
  y += place.y;
  const int column = static_cast<int>(threadIdx.x) % kTile, row = static_cast<int>(threadIdx.x) / kTile;
  Unit taken[kTile / kStep];
  for (int i = 0; i < kTile / kStep; ++i) {
    const int64_t of_b = b0 + row + i * kStep;
    taken[i] = of_b < t.b && a0 + column < t.a ? x[of_b * t.x_pitch + a0 + column] : Unit{};
  }
  for (int i = 0; i < kTile / kStep; ++i) tile[(row + i * kStep) * kPitch + column] = taken[i];
  __syncthreads();
  for (int i = 0; i < kTile / kStep; ++i)
    if (const int r = row + i * kStep; a0 + r < t.a && b0 + column < t.b)
      y[(a0 + r) * t.y_pitch + b0 + column] = tile[column * kPitch + r];
}

// As swap_axes, of elements of 16 bits whose rows begin at multiples of 16 bytes, which is what an access moves. Groups
// of 8 columns stand in the tile at another place in each 8 rows: no conflicts, neither here nor there.
__global__ void __launch_bounds__(kTileThreads)
    swap_pairs(Tiles t, const uint4* __restrict__ x, uint4* __restrict__ y) {
  constexpr int kEach = 8, kGroups = kTile / kEach, kPairs = kTile / 2, kStep = kTileThreads / kGroups;
  CAIRN_SHARED uint4 tile[kTile * kGroups];
  const Tile place = tile_of(t);
  const int64_t x_pitch = t.x_pitch / kEach, y_pitch = t.y_pitch / kEach;
  x += place.x / kEach;
  y += place.y / kEach;
  const int thread = static_cast<int>(threadIdx.x), group = thread % kGroups, row = thread / kGroups;
  uint4 taken[kTile / kStep];
  for (int i = 0; i < kTile / kStep; ++i) {
    const int64_t b = place.b + row + i * kStep, a = place.a + group * kEach;
    taken[i] = make_uint4(0, 0, 0, 0);
    if (b < t.b && a < t.a) taken[i] = x[b * x_pitch + a / kEach];
  }
  for (int i = 0; i < kTile / kStep; ++i) {
    const int r = row + i * kStep;
    tile[r * kGroups + (group ^ (r / kEach % kGroups))] = taken[i];
  }
  __syncthreads();
  // Columns 2 row and 2 row + 1 of the tile, rows 8 group to 8 group + 7: pairs of neighbours become two vectors.
  const auto* pairs = reinterpret_cast<const unsigned*>(tile);
  const int of_group = row / 4, in_group = row % 4;  // where the pair stands in each row
  unsigned low[kEach / 2], high[kEach / 2];
  for (int i = 0; i < kEach / 2; ++i) {
    const int r = group * kEach + 2 * i, at = (of_group ^ group) * 4 + in_group;
    const unsigned first = pairs[r * kPairs + at], second = pairs[(r + 1) * kPairs + at];
    low[i] = (first & 0xffffu) | second << 16;
    high[i] = first >> 16 | (second & 0xffff0000u);
  }
  const int64_t a = place.a + 2 * row, b = place.b + group * kEach;
  if (a >= t.a || b >= t.b) return;
  y += a * y_pitch + b / kEach;
  y[0] = make_uint4(low[0], low[1], low[2], low[3]);
  y[y_pitch] = make_uint4(high[0], high[1], high[2], high[3]);
}

// dx = factor * dy repeated: strides of repeated axes are 0. The last axis counts groups.
template <int kCount, class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    expand(Walk walk, bool repeats_last, float factor, int64_t groups, const T* __restrict__ dy,
           T* __restrict__ dx) {
  const int64_t first = elementwise_first();
  for (int u = 0; u < kElementwiseGroups; ++u) {
    const int64_t g = first + u * kElementwiseThreads;
    if (g >= groups) break;
    const T* from = dy + walk_to(walk, g);
    Group<kCount> group;
    if (repeats_last) {
      const float v = load(from) * factor;
      for (int i = 0; i < kCount; ++i) group.at[i] = v;
    } else {
      group = read<kCount>(from);
      for (int i = 0; i < kCount; ++i) group.at[i] *= factor;
    }
    write(dx + g * kCount, group);
  }
}

bool plain(const TensorDesc& d) { return d.packed_bytes == 0 && d.dtype != DType::kOpaque; }

// Calls body(unit) with the widest type whose size divides all of these numbers of bytes.
template <class Body>
auto with_unit(std::initializer_list<int64_t> bytes, const Body& body) {
  const auto divides = [&](int64_t unit) {
    return std::all_of(bytes.begin(), bytes.end(), [&](int64_t b) { return b % unit == 0; });
  };
  if (divides(16)) return body(uint4{});
  if (divides(8)) return body(uint2{});
  if (divides(4)) return body(uint32_t{});
  if (divides(2)) return body(uint16_t{});
  return body(uint8_t{});
}

std::array<int64_t, kMaxRank> dense_strides(const Shape& shape) {
  std::array<int64_t, kMaxRank> strides{};
  for (int64_t stride = 1, i = shape.rank - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = stride;
    stride *= shape[static_cast<int>(i)];
  }
  return strides;
}

// Copies in units of several bytes that divide the last axis of y (of one element, if that axis is not the last one of x).
std::unique_ptr<Kernel> make_gather(const Walk& elements, int64_t count, int64_t bytes) {
  const int last = elements.rank - 1;
  const bool rows = elements.strides[last] == 1;
  return with_unit({bytes * (rows ? elements.sizes[last] : 1)}, [&](auto unit) {
    using Unit = decltype(unit);
    const int64_t each = static_cast<int64_t>(sizeof(Unit)) / bytes;
    Walk walk = elements;
    if (each > 1) {
      walk.sizes[last] /= each;
      for (int a = 0; a < last; ++a) walk.strides[a] /= each;
    }
    return make_kernel([walk, units = count / each](const Call& call) {
      launch(stream_of(call), gather<Unit>, elementwise_size(units), walk, units, input<const Unit>(call, 0),
             output<Unit>(call, 0));
    });
  });
}

// nullptr if tiles would be mostly empty.
std::unique_ptr<Kernel> make_swap(const Walk& walk, int64_t count, int64_t bytes) {
  constexpr int64_t kMin = 8, kMaxBlocks = (int64_t{1} << 31) - 1;
  const int b = walk.rank - 1;
  int a = 0;
  while (walk.strides[a] != 1) ++a;
  if (a == b || walk.sizes[a] < kMin || walk.sizes[b] < kMin) return nullptr;
  Tiles tiles{.outer = {},
              .y_strides = {},
              .a = walk.sizes[a],
              .b = walk.sizes[b],
              .x_pitch = walk.strides[b],
              .y_pitch = 0};
  int64_t stride = count;
  for (int i = 0; i < walk.rank; ++i) {
    stride /= walk.sizes[i];
    if (i == a) tiles.y_pitch = stride;
    if (i == a || i == b) continue;
    const int to = tiles.outer.rank++;
    tiles.outer.sizes[to] = walk.sizes[i];
    tiles.outer.strides[to] = walk.strides[i];
    tiles.y_strides[to] = stride;
  }
  const int64_t outer = count / (tiles.a * tiles.b);
  const int64_t blocks = outer * ((tiles.a + kTile - 1) / kTile) * ((tiles.b + kTile - 1) / kTile);
  if (blocks > kMaxBlocks) return nullptr;
  const auto make = [&](auto unit) {
    using Unit = decltype(unit);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), swap_axes<Unit>, {.blocks = blocks, .threads = kTileThreads}, tiles,
             input<const Unit>(call, 0), output<Unit>(call, 0));
    });
  };
  if (bytes == 1) return make(uint8_t{});
  const auto vectors = [&] {
    constexpr int64_t kEach = 8;
    bool ok = tiles.a % kEach == 0 && tiles.b % kEach == 0 && tiles.x_pitch % kEach == 0 &&
              tiles.y_pitch % kEach == 0;
    for (int i = 0; i < tiles.outer.rank; ++i)
      ok = ok && tiles.outer.strides[i] % kEach == 0 && tiles.y_strides[i] % kEach == 0;
    return ok;
  };
  if (bytes == 2 && vectors())
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), swap_pairs, {.blocks = blocks, .threads = kTileThreads}, tiles,
             input<const uint4>(call, 0), output<uint4>(call, 0));
    });
  if (bytes == 2) return make(uint16_t{});
  return bytes == 4 ? make(uint32_t{}) : make(uint2{});
}

// Bytes before an axis, along one step of it, and its sizes.
struct Around {
  int64_t outer = 1, inner = 1;
  int axis;
  Around(const Signature& s, const TensorDesc& d) : axis(static_cast<int>(s.attrs->integer("axis"))) {
    if (axis < 0) axis += d.shape.rank;
    for (int i = 0; i < d.shape.rank; ++i)
      if (i != axis) (i < axis ? outer : inner) *= d.shape[i];
    inner *= dtype_bytes(d.dtype);
  }
};

// Columns of input `in` to those of the output that start `offset` bytes into a row.
struct Columns {
  size_t in;
  int64_t rows, size, width, begin, pitch, offset;  // as for copy_columns, in bytes
};
std::function<void(const Call&)> move_columns(const Columns& c) {
  return with_unit({c.size, c.width, c.begin, c.pitch, c.offset}, [&](auto unit) {
    using Unit = decltype(unit);
    constexpr auto kUnit = static_cast<int64_t>(sizeof(Unit));
    return std::function<void(const Call&)>([c](const Call& call) {
      const int64_t count = c.rows * c.size / kUnit;
      launch(stream_of(call), copy_columns<Unit>, elementwise_size(count), count, c.size / kUnit,
             c.width / kUnit, c.begin / kUnit, c.pitch / kUnit, input<const Unit>(call, c.in),
             output<Unit>(call, 0) + c.offset / kUnit);
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> make_transpose(const Signature& s) {
  if (!plain(s.in[0])) return nullptr;
  const Shape& shape = s.in[0].shape;
  const std::array<int64_t, kMaxRank> of_x = dense_strides(shape);
  std::vector<int64_t> sizes, strides;
  for (int64_t axis : s.attrs->list("perm")) {
    if (axis < 0) axis += shape.rank;
    sizes.push_back(shape[static_cast<int>(axis)]);
    strides.push_back(of_x[static_cast<size_t>(axis)]);
  }
  const Walk walk = make_walk(sizes, strides);
  const int64_t count = shape.elements(), bytes = dtype_bytes(s.in[0].dtype);
  auto kernel = make_swap(walk, count, bytes);
  return kernel != nullptr ? std::move(kernel) : make_gather(walk, count, bytes);
}

std::unique_ptr<Kernel> make_slice(const Signature& s) {
  if (!plain(s.in[0])) return nullptr;
  const Around around(s, s.in[0]);
  const int64_t size = s.out[0].shape[around.axis] * around.inner;
  return make_kernel(move_columns({.in = 0,
                                   .rows = around.outer,
                                   .size = size,
                                   .width = s.in[0].shape[around.axis] * around.inner,
                                   .begin = -s.attrs->integer("begin") * around.inner,
                                   .pitch = size,
                                   .offset = 0}));
}

std::unique_ptr<Kernel> make_slice_grad(const Signature& s) {
  if (!plain(s.in[0])) return nullptr;
  const Around around(s, s.out[0]);
  const int64_t size = s.out[0].shape[around.axis] * around.inner;
  return make_kernel(move_columns({.in = 0,
                                   .rows = around.outer,
                                   .size = size,
                                   .width = s.in[0].shape[around.axis] * around.inner,
                                   .begin = s.attrs->integer("begin") * around.inner,
                                   .pitch = size,
                                   .offset = 0}));
}

std::unique_ptr<Kernel> make_concat(const Signature& s) {
  if (!plain(s.out[0])) return nullptr;
  const Around around(s, s.out[0]);
  std::vector<std::function<void(const Call&)>> moves;
  int64_t offset = 0;
  for (size_t i = 0; i < s.in.size(); ++i) {
    if (!s.has_in(i)) continue;
    if (s.in[i].dtype != s.out[0].dtype) return nullptr;
    const int64_t width = s.in[i].shape[around.axis] * around.inner;
    moves.push_back(move_columns({.in = i,
                                  .rows = around.outer,
                                  .size = width,
                                  .width = width,
                                  .begin = 0,
                                  .pitch = s.out[0].shape[around.axis] * around.inner,
                                  .offset = offset}));
    offset += width;
  }
  return make_kernel([moves](const Call& call) {
    for (const auto& move : moves) move(call);
  });
}

std::unique_ptr<Kernel> make_expand(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != s.in[0].dtype) return nullptr;
  const Shape& shape = s.out[0].shape;
  std::vector<int64_t> axes = s.attrs->list("axes"), strides(static_cast<size_t>(shape.rank));
  std::vector<bool> repeated(strides.size(), axes.empty());
  for (const int64_t a : axes) repeated[static_cast<size_t>(a < 0 ? a + shape.rank : a)] = true;
  for (int64_t stride = 1, i = shape.rank - 1; i >= 0; --i) {
    const auto axis = static_cast<size_t>(i);
    strides[axis] = repeated[axis] ? 0 : stride;
    if (!repeated[axis]) stride *= shape[static_cast<int>(i)];
  }
  Walk walk = make_walk(shape.span(), strides);
  const int last = walk.rank - 1;
  const bool repeats_last = walk.strides[last] == 0;
  const int64_t count = shape.elements();
  const auto factor = static_cast<float>(s.attrs->real("factor", 1.0));
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto make = [&]<int kCount>(std::integral_constant<int, kCount>) {
      walk.sizes[last] /= kCount;
      walk.strides[last] *= kCount;
      return make_kernel([=, groups = count / kCount](const Call& call) {
        launch(stream_of(call), expand<kCount, T>, elementwise_size(groups), walk, repeats_last, factor,
               groups, input<const T>(call, 0), output<T>(call, 0));
      });
    };
    constexpr std::integral_constant<int, kGroupOf<T>> kGroup{};
    return walk.sizes[last] % kGroup == 0 ? make(kGroup) : make(std::integral_constant<int, 1>{});
  });
}

}  // namespace cairn::kernels::cuda
