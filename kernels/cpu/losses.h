// Targets of a cross-entropy, shared by the plain and the fused loss, and how many of them are hit.
#pragma once
#include <cstdint>

#include "runtime/base/kernel.h"

namespace cairn::kernels::cpu {

struct Targets {
  const int32_t* targets;
  const float* weights;  // may be null: all 1
  int64_t classes;
  int64_t ignore_index;
  float scale = 1;                       // of gradients
  const float* class_weights = nullptr;  // may be null: all 1
  float smoothing = 0;                   // the share of a target that all classes have alike
};

struct LossRow {
  enum Kind { kValid, kIgnored, kInvalid } kind;
  int64_t target;
  float weight;
};

LossRow classify(const Targets&, int64_t row);
// The scale of gradients that operand i of a call gives; 1 where it is left out.
float gradient_scale(const Call& call, size_t i);
// Weighted loss of one row of logits x; d, when given: its gradient (zeros for a row without a valid target).
// An invalid target gives NaN.
double cross_entropy_step(const Targets&, int64_t row, DType type_x, DType type_d, const void* x, void* d);
// For accuracy: kNone if the row does not count, kHit if the target's logit is among the `top` largest of x.
enum class Hit : char { kNone, kMissed, kHit };
Hit hit_step(const Targets&, int64_t row, DType type, const void* x, int64_t top = 1);
// Counts the hits and the rows that count among `rows` rows. hits or count may be null.
void sum_hits(const Hit* of, int64_t rows, double* hits, double* count);
// Adds up rows in order.
void sum_losses(const Targets&, int64_t rows, const double* losses, double* loss, double* weight);

}  // namespace cairn::kernels::cpu
