// Table lookup and its gradient, of a whole table or a part of one.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {
namespace {

bool integer_ids(const TensorDesc& d) { return d.dtype == DType::kI32; }

int64_t first_row(const Signature& s) { return s.attrs != nullptr ? s.attrs->integer("first") : 0; }

// Of a table that begins at row `first` of the whole one; other ids' rows are those of `before`, or zero.
std::unique_ptr<Kernel> make_lookup(const Signature& s) {
  if (!fast_float(s.in[0]) || !integer_ids(s.in[1]) || !fast_float(s.out[0])) return nullptr;
  const int64_t rows = s.in[0].shape[0], columns = s.in[0].shape.last(), count = s.in[1].shape.elements(),
                first = first_row(s);
  const DType table_type = s.in[0].dtype, y_type = s.out[0].dtype;
  const int64_t table_bytes = columns * dtype_bytes(table_type), y_bytes = columns * dtype_bytes(y_type);
  return make_kernel([=](const Call& call) {
    const char *table = input<const char>(call, 0), *before = input<const char>(call, 2);
    const int32_t* ids = input<const int32_t>(call, 1);
    char* y = output<char>(call, 0);
    parallel_for(count, row_grain(columns), [&](int64_t b, int64_t e, int) {
      for (int64_t i = b; i < e; ++i) {
        const int64_t row = ids[i] - first;
        if (row >= 0 && row < rows)
          convert(table_type, y_type, false, table + row * table_bytes, y + i * y_bytes, columns);
        else if (before != nullptr)
          std::memcpy(y + i * y_bytes, before + i * y_bytes, static_cast<size_t>(y_bytes));
        else
          std::memset(y + i * y_bytes, 0, static_cast<size_t>(y_bytes));
      }
    });
  });
}

// Threads own columns, so every row of the table is summed in token order at any thread count.
std::unique_ptr<Kernel> make_lookup_grad(const Signature& s) {
  if (!integer_ids(s.in[0]) || !fast_float(s.in[1]) || !plain_f32(s.out[0])) return nullptr;
  const int64_t rows = s.out[0].shape[0], columns = s.out[0].shape.last(), count = s.in[0].shape.elements(),
                first = first_row(s);
  const DType type = s.in[1].dtype;
  const int64_t bytes = dtype_bytes(type);
  return make_kernel([=](const Call& call) {
    const int32_t* ids = input<const int32_t>(call, 0);
    const char* dy = input<const char>(call, 1);
    float* table = output<float>(call, 0);
    if (!accumulates(call, 0))
      parallel_for(rows * columns, kGrain,
                   [&](int64_t b, int64_t e, int) { std::fill(table + b, table + e, 0.0f); });
    parallel_for(columns, 16, [&](int64_t b, int64_t e, int) {
      for (int64_t i = 0; i < count; ++i)
        if (const int64_t row = ids[i] - first; row >= 0 && row < rows)
          convert(type, DType::kF32, true, dy + (i * columns + b) * bytes, table + row * columns + b, e - b);
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> make_embedding(const Signature& s) { return make_lookup(s); }
std::unique_ptr<Kernel> make_embedding_part(const Signature& s) { return make_lookup(s); }
std::unique_ptr<Kernel> make_embedding_grad(const Signature& s) { return make_lookup_grad(s); }
std::unique_ptr<Kernel> make_embedding_part_grad(const Signature& s) { return make_lookup_grad(s); }

}  // namespace cairn::kernels::cpu
