// Softmax over rows, and the row step of cross-entropy.
#pragma once
#include <cstdint>

namespace cairn::kernels::cpu {

// y = softmax(x), n elements; half: both bfloat16.
void softmax_row(bool half, const void* x, void* y, int64_t n);
// dx = y (dy - sum(dy y))
void softmax_grad_row(bool half, const void* dy, const void* y, void* dx, int64_t n);
// log(sum(exp(x))) - x[target] over n logits. When d is given: d = weight * (softmax(x) - onehot(target)),
// which may stand in x's place if the types agree.
double cross_entropy_row(bool half_x, bool half_d, const void* x, int64_t n, int64_t target, float weight,
                         void* d);

}  // namespace cairn::kernels::cpu
