// Moves of bytes: transpose, slice, concat. Any element type with 2, 4 or 8 bytes.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {
namespace {

int64_t axis_of(const Signature& s, const Shape& shape) {
  const int64_t axis = s.attrs->integer("axis");
  return axis < 0 ? axis + shape.rank : axis;
}
struct Split {
  int64_t outer = 1, inner = 1;
};
Split split_at(const Shape& shape, int64_t axis) {
  Split split;
  for (int i = 0; i < axis; ++i) split.outer *= shape[i];
  for (int i = static_cast<int>(axis) + 1; i < shape.rank; ++i) split.inner *= shape[i];
  return split;
}
bool plain(const TensorDesc& d) { return d.packed_bytes == 0 && d.dtype != DType::kOpaque; }

// Rows of `bytes` from one pitch to another.
void copy_rows(const char* from, int64_t from_pitch, char* to, int64_t to_pitch, int64_t rows,
               int64_t bytes) {
  parallel_for(rows, std::max<int64_t>(1, 32768 / bytes), [&](int64_t b, int64_t e, int) {
    for (int64_t r = b; r < e; ++r)
      std::memcpy(to + r * to_pitch, from + r * from_pitch, static_cast<size_t>(bytes));
  });
}

struct Permutation {
  int rank;
  std::array<int64_t, kMaxRank> dims, strides;  // of y's axes: extent, stride in x (elements)
};

template <class T>
void transpose_typed(const Permutation& p, const T* x, T* y, int64_t rows) {
  const int64_t n = p.dims[static_cast<size_t>(p.rank - 1)],
                step = p.strides[static_cast<size_t>(p.rank - 1)];
  parallel_for(rows, row_grain(n), [&](int64_t b, int64_t e, int) {
    for (int64_t r = b; r < e; ++r) {
      int64_t rest = r, at = 0;
      for (int a = p.rank - 2; a >= 0; --a) {
        at += rest % p.dims[static_cast<size_t>(a)] * p.strides[static_cast<size_t>(a)];
        rest /= p.dims[static_cast<size_t>(a)];
      }
      if (step == 1)
        std::memcpy(y + r * n, x + at, static_cast<size_t>(n) * sizeof(T));
      else
        for (int64_t i = 0; i < n; ++i) y[r * n + i] = x[at + i * step];
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> make_transpose(const Signature& s) {
  if (!plain(s.in[0])) return nullptr;
  const std::vector<int64_t> perm = s.attrs->list("perm");
  const Shape& shape = s.in[0].shape;
  Permutation p{.rank = shape.rank, .dims = {}, .strides = {}};
  std::array<int64_t, kMaxRank> strides{};
  int64_t stride = 1;
  for (int i = shape.rank - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = stride;
    stride *= shape[i];
  }
  for (int i = 0; i < shape.rank; ++i) {
    const int64_t from = perm[static_cast<size_t>(i)] < 0 ? perm[static_cast<size_t>(i)] + shape.rank
                                                          : perm[static_cast<size_t>(i)];
    p.dims[static_cast<size_t>(i)] = shape[static_cast<int>(from)];
    p.strides[static_cast<size_t>(i)] = strides[static_cast<size_t>(from)];
  }
  if (p.rank == 0) return nullptr;
  const int64_t rows = stride / p.dims[static_cast<size_t>(p.rank - 1)], bytes = dtype_bytes(s.in[0].dtype);
  return make_kernel([=](const Call& call) {
    const void* x = data_of(call.in, 0);
    void* y = data_of(call.out, 0);
    if (bytes == 2)
      transpose_typed(p, static_cast<const uint16_t*>(x), static_cast<uint16_t*>(y), rows);
    else if (bytes == 4)
      transpose_typed(p, static_cast<const uint32_t*>(x), static_cast<uint32_t*>(y), rows);
    else if (bytes == 8)
      transpose_typed(p, static_cast<const uint64_t*>(x), static_cast<uint64_t*>(y), rows);
    else
      transpose_typed(p, static_cast<const uint8_t*>(x), static_cast<uint8_t*>(y), rows);
  });
}

std::unique_ptr<Kernel> make_slice(const Signature& s) {
  if (!plain(s.in[0])) return nullptr;
  const int64_t axis = axis_of(s, s.in[0].shape), bytes = dtype_bytes(s.in[0].dtype);
  const Split split = split_at(s.in[0].shape, axis);
  const int64_t unit = split.inner * bytes, size = s.in[0].shape[static_cast<int>(axis)];
  const int64_t kept = s.out[0].shape[static_cast<int>(axis)];
  int64_t begin = s.attrs->integer("begin");
  if (begin < 0) begin += size;
  return make_kernel([=](const Call& call) {
    copy_rows(input<const char>(call, 0) + begin * unit, size * unit, output<char>(call, 0), kept * unit,
              split.outer, kept * unit);
  });
}

std::unique_ptr<Kernel> make_slice_grad(const Signature& s) {
  if (!plain(s.in[0])) return nullptr;
  const int64_t axis = axis_of(s, s.in[0].shape), bytes = dtype_bytes(s.in[0].dtype);
  const Split split = split_at(s.in[0].shape, axis);
  const int64_t unit = split.inner * bytes, size = s.out[0].shape[static_cast<int>(axis)];
  const int64_t kept = s.in[0].shape[static_cast<int>(axis)];
  int64_t begin = s.attrs->integer("begin");
  if (begin < 0) begin += size;
  return make_kernel([=](const Call& call) {
    const char* dy = input<const char>(call, 0);
    char* dx = output<char>(call, 0);
    parallel_for(split.outer, std::max<int64_t>(1, 32768 / (size * unit)), [&](int64_t b, int64_t e, int) {
      for (int64_t r = b; r < e; ++r) {
        char* row = dx + r * size * unit;
        std::memset(row, 0, static_cast<size_t>(begin * unit));
        std::memcpy(row + begin * unit, dy + r * kept * unit, static_cast<size_t>(kept * unit));
        std::memset(row + (begin + kept) * unit, 0, static_cast<size_t>((size - begin - kept) * unit));
      }
    });
  });
}

std::unique_ptr<Kernel> make_concat(const Signature& s) {
  if (!plain(s.out[0])) return nullptr;
  const int64_t axis = axis_of(s, s.out[0].shape), bytes = dtype_bytes(s.out[0].dtype);
  const Split split = split_at(s.out[0].shape, axis);
  const int64_t unit = split.inner * bytes, pitch = s.out[0].shape[static_cast<int>(axis)] * unit;
  std::vector<int64_t> widths;
  for (size_t i = 0; i < s.in.size(); ++i) {
    if (s.has_in(i) && s.in[i].dtype != s.out[0].dtype) return nullptr;
    widths.push_back(s.has_in(i) ? s.in[i].shape[static_cast<int>(axis)] * unit : 0);
  }
  return make_kernel([=](const Call& call) {
    int64_t at = 0;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] == 0) continue;
      copy_rows(input<const char>(call, i), widths[i], output<char>(call, 0) + at, pitch, split.outer,
                widths[i]);
      at += widths[i];
    }
  });
}

}  // namespace cairn::kernels::cpu
