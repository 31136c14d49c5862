// Softmax over rows, and the row step of cross-entropy.
#pragma once
#include <cstdint>

#include "runtime/base/tensor.h"

namespace cairn::kernels::cpu {

// y = softmax(x), n elements, both of one type.
void softmax_row(DType type, const void* x, void* y, int64_t n);
// dx = y (dy - sum(dy y))
void softmax_grad_row(DType type, const void* dy, const void* y, void* dx, int64_t n);
// log(sum(exp(x))) - x[target] over n logits. When d is given: d = weight * (softmax(x) - onehot(target)), which may
// overwrite x if the types agree. smoothing: the share of the target that is spread evenly over all n classes.
double cross_entropy_row(DType type_x, DType type_d, const void* x, int64_t n, int64_t target, float weight,
                         float smoothing, void* d);

// How many of n logits come before the target's, which are larger, or as large and in front of it: `most` at least, where there are
// so many, and where there is a NaN.
int64_t before_target(DType type, const void* x, int64_t n, int64_t target, int64_t most);

// The functions below are for rows that come in parts (a vocabulary in parts); this part is elements [first, first + n).
// The largest element, or `than` if that is larger.
float largest_of(DType type, const void* x, int64_t n, float than);
// A row is summed in blocks. Where a part ends inside of a block, the terms of that block, one for each lane of a vector, go to
// the next part, so that the sum has the bits of a row in one piece. So many terms at most:
inline constexpr int64_t kOpenTerms = 64;
// The number of elements of a block; parts begin at multiples of it.
int64_t lanes_of_exponentials();
// sum + the exponentials of x - max, by full blocks. `open` holds the terms of the block in which the previous part ended, and
// gets those of the block in which this part ends, unless it is the last part of the row.
double sum_exponentials(DType type, const void* x, int64_t first, int64_t n, bool last, float max, double sum,
                        float* open);
// Overwrites x with weight * (softmax(x) - onehot(target)). at: the target's logit; target -1: the target is in another part.
void cross_entropy_part(DType type, void* x, int64_t n, float max, double sum, int64_t target, float at,
                        float weight);

}  // namespace cairn::kernels::cpu
