// Values of weights that are stored in blocks (formats that are read through `dequantise`), by vectors: what the op
// `dequantise` makes, products that read the blocks themselves decode, and lookups give.
#pragma once
#include "runtime/base/tensor.h"

namespace cairn::kernels::cpu {

inline bool in_blocks(const TensorDesc& d) {
  return d.packed_bytes == 0 && format(d.dtype).read == Read::kDequantised;
}

// What values become: rounded once from float32 to `value`, and stored as `stored`: the same type, or float32.
struct DecodedAs {
  DType value, stored;
  explicit DecodedAs(DType type) : value(type), stored(type) {}
  DecodedAs(DType value_, DType stored_) : value(value_), stored(stored_) {}
};

// `rows` times `count` values of the blocks: row r begins at value first + r * pitch and goes to `to` + r * ld elements.
struct BlockRows {
  DType format;
  const void* blocks;
  int64_t first, pitch, rows, count;
};
void decode_rows(const BlockRows& from, DecodedAs as, void* to, int64_t ld);

inline void decode_values(DType format, const void* blocks, int64_t first, int64_t count, DType type,
                          void* to) {
  decode_rows({format, blocks, first, 0, 1, count}, DecodedAs(type), to, 0);
}

}  // namespace cairn::kernels::cpu
