// Factors of one AdamW step, rounded to float32 once.
#pragma once

namespace cairn::kernels::cpu {

struct AdamwFactors {
  float gradient;  // multiplies the gradient first: 1 / denominator, clip
  float one_minus_beta1, beta2, one_minus_beta2;
  float root_bias2;  // sqrt(1 - beta2^t)
  float eps;
  float decay;  // 1 - rate * weight_decay
  float step;   // rate / (1 - beta1^t)
};

}  // namespace cairn::kernels::cpu
