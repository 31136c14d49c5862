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
// which may stand in x's place if the types agree.
double cross_entropy_row(DType type_x, DType type_d, const void* x, int64_t n, int64_t target, float weight,
                         void* d);

}  // namespace cairn::kernels::cpu
