// The loss scale of float16 training: gradients of activations, which float16 holds only from 6e-8 to 65504,
// are multiplied by it on their way, and divided by it before the update. It falls when a step's gradients are
// not finite, and rises after a number of steps that were: the rule of torch.amp.GradScaler.
#pragma once
#include <cstdint>

namespace cairn::graph {
struct JointGraph;
}

namespace cairn::step {

// All positive; growth at least 1, backoff below 1. An initial scale of 0 stands for default_loss_scale().
struct LossScaleOptions {
  double initial = 0;
  double growth = 2, backoff = 0.5;
  uint32_t interval = 2000;  // finite steps in a row after which it grows
};
void check(const LossScaleOptions&);  // kInvalidArgument names the value and its range

// 2^16 over the rows of an effective batch, as a power of two: PyTorch's 2^16 is for the mean over the rows,
// and losses here are sums.
double default_loss_scale(const graph::JointGraph& joint, uint32_t micro_steps);

struct LossScale {
  double scale = 1;
  uint32_t finite_steps = 0;  // in a row, since it last changed

  void update(const LossScaleOptions& options, bool finite);
};

}  // namespace cairn::step
