// How threads share the products of rows that are grouped by expert.
#pragma once
#include <algorithm>
#include <cstring>

#include "kernels/cpu/gemm/epilogue.h"
#include "kernels/cpu/support.h"
#include "runtime/base/experts.h"
#include "runtime/base/parallel.h"

namespace cairn::kernels::cpu {

// Which operands a product of experts has besides x, w and starts: grouped_linear or the gradient of its input.
struct Besides {
  int bias;    // -1: none
  int before;  // what has the rows of other experts, where the weights are a part of all
};
inline constexpr Besides kOfForward{3, 4}, kOfInput{-1, 3};

// The rows of other experts than the weights' in y: those of `before`, where y may lie, or zero.
inline void carry_rows(const Call& call, const Besides& besides, const experts::Grouped& z) {
  const experts::Rows own = z.own(input<const int32_t>(call, 2));
  const TensorDesc& y = call.out[0].desc;
  const int64_t row = y.shape.last() * dtype_bytes(y.dtype);
  char* to = output<char>(call, 0);
  const char* from = input<const char>(call, static_cast<size_t>(besides.before));
  if (from == to) return;
  for (const experts::Rows& other : {experts::Rows{0, own.begin}, experts::Rows{own.end, z.rows}})
    parallel_for(std::max<int64_t>(0, other.end - other.begin), 64, [&](int64_t b, int64_t e, int) {
      const int64_t at = (other.begin + b) * row, bytes = (e - b) * row;
      from != nullptr ? std::memcpy(to + at, from + at, static_cast<size_t>(bytes))
                      : std::memset(to + at, 0, static_cast<size_t>(bytes));
    });
}

// Calls body(e, rows, b0, b1, share) for blocks [b0, b1) of expert e, of `blocks` each. Shares are contiguous and cost
// alike, however uneven the experts are: a block of an expert costs its rows and `more`, which stands for what is done
// with its weights; one without rows costs `without_rows`, and is left out if that is 0.
template <class Body>
void for_experts(const int32_t* starts, const experts::Grouped& z, int64_t blocks, int64_t more,
                 int64_t without_rows, const Body& body) {
  const auto cost = [&](experts::Rows rows) {
    return rows.begin < rows.end ? rows.end - rows.begin + more : without_rows;
  };
  int64_t total = 0;
  for (int64_t e = 0; e < z.experts; ++e)
    total += blocks * cost(experts::rows_of(starts, z.first + e, z.rows));
  const int64_t shares = thread_count();
  parallel_for(shares, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t share = begin; share < end; ++share) {
      const int64_t first = total * share / shares, last = total * (share + 1) / shares;
      int64_t at = 0;  // what the experts before cost
      for (int64_t e = 0; e < z.experts; ++e) {
        const experts::Rows rows = experts::rows_of(starts, z.first + e, z.rows);
        const int64_t each = cost(rows);
        if (each == 0) continue;
        const auto block_of = [&](int64_t where) {
          return std::clamp<int64_t>((where - at + each - 1) / each, 0, blocks);
        };
        if (const int64_t b0 = block_of(first), b1 = block_of(last); b0 < b1)
          body(e, rows, b0, b1, static_cast<int>(share));
        at += blocks * each;
      }
    }
  });
}

// db[e] (+)= sums of columns of x over the rows of expert e; zeros for experts that the weights have not.
inline void grouped_column_sums(DType type, const void* x, const Tensor& starts_of, const experts::Grouped& z,
                                float* db, bool add) {
  const auto* starts = starts_of.as<int32_t>();
  const int64_t all = starts_of.desc.shape[0] - 1;
  const auto* bytes = static_cast<const char*>(x);
  parallel_for(z.n, 64, [&](int64_t c0, int64_t c1, int) {
    for (int64_t e = 0; e < all; ++e) {
      const bool own = e >= z.first && e < z.first + z.experts;
      if (!own && add) continue;
      const experts::Rows rows = own ? experts::rows_of(starts, e, z.rows) : experts::Rows{0, 0};
      column_sums(type, bytes + (rows.begin * z.n + c0) * dtype_bytes(type), z.n,
                  std::max<int64_t>(0, rows.end - rows.begin), c1 - c0, db + e * z.n + c0, add);
    }
  });
}

}  // namespace cairn::kernels::cpu
