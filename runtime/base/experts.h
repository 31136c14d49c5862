// What kernels of mixtures of experts work out alike in every backend.
#pragma once
#include "runtime/base/kernel.h"

namespace cairn::experts {

// Whether a logit is chosen before another one that stands before it: NaN is the largest, and of equal ones the first.
template <class T>
constexpr bool ahead(T logit, T before) {
  return logit > before || (logit != logit && before == before);
}

constexpr int64_t nearest(int64_t expert, int64_t experts) {
  return expert < 0 ? 0 : expert < experts ? expert : experts - 1;
}

struct Rows {
  int64_t begin, end;  // none: begin >= end
};

// The rows of expert e, of `rows` in all: none that does not exist, whatever `starts` says.
constexpr Rows rows_of(const int32_t* starts, int64_t e, int64_t rows) {
  const int64_t begin = starts[e], end = starts[e + 1];
  return {begin < 0 ? 0 : begin, end < rows ? end : rows};
}

// The sizes of a call of grouped_linear or one of its gradients. y[.., n] = x[.., k] w^T for each expert.
struct Grouped {
  int64_t rows, experts, n, k;
  int64_t first;    // the number of the weights' first expert
  bool transposed;  // w[E, K, N], else w[E, N, K]

  // w: the weights or their gradient.
  Grouped(const kernels::Signature& s, const TensorDesc& w)
      : rows(s.in[0].shape[0]),
        experts(w.shape[0]),
        n(w.shape[1]),
        k(w.shape[2]),
        first(s.attrs != nullptr ? s.attrs->integer("first") : 0),
        transposed(s.attrs != nullptr && s.attrs->integer("transposed") != 0) {
    if (transposed) std::swap(n, k);
  }
  // The rows of the weights' experts; others are there where the weights are a part of all.
  constexpr Rows own(const int32_t* starts) const {
    return {rows_of(starts, first, rows).begin, rows_of(starts, first + experts - 1, rows).end};
  }
  int64_t at(int64_t e, int64_t row, int64_t column) const {  // of w, element (row of n, column of k)
    return e * n * k + (transposed ? column * n + row : row * k + column);
  }
};

}  // namespace cairn::experts
