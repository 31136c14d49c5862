// Softmax over rows, and the row step of cross-entropy.
#pragma once
#include <cstdint>

#include "runtime/base/tensor.h"

namespace cairn::kernels::cpu {

// y = softmax(x), n elements, both of one type.
void softmax_row(DType type, const void* x, void* y, int64_t n);
// dx = y (dy - sum(dy y))
void softmax_grad_row(DType type, const void* dy, const void* y, void* dx, int64_t n);
// log(sum(exp(x))) - x[target] over n logits. When d is given: d = weight * (softmax(x) - onehot(target)),
// which may stand in x's place if the types agree. Of the target, all n have the share `smoothing` alike.
double cross_entropy_row(DType type_x, DType type_d, const void* x, int64_t n, int64_t target, float weight,
                         float smoothing, void* d);

// The same of rows that come in parts, of which elements [first, first + n) are this one.
// The largest, or `than`, if that is larger.
float largest_of(DType type, const void* x, int64_t n, float than);
// Terms of a block of a row's sum that is not full yet: one for each lane of a vector.
inline constexpr int64_t kOpenTerms = 64;
// Parts begin at multiples of this.
int64_t lanes_of_exponentials();
// sum + the exponentials of x - max, by whole blocks: `open` has the terms of the block in which the part before ended,
// and gets those of the one in which this one does, unless it is the last of the row.
double sum_exponentials(DType type, const void* x, int64_t first, int64_t n, bool last, float max, double sum,
                        float* open);
// In x's place: weight * (softmax(x) - onehot(target)), where the target's logit is `at`; target -1: it is in
// another part.
void cross_entropy_part(DType type, void* x, int64_t n, float max, double sum, int64_t target, float at,
                        float weight);

}  // namespace cairn::kernels::cpu
