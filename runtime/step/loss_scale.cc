#include "runtime/step/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "runtime/graph/joint.h"
#include "runtime/step/settings.h"

namespace cairn::step {

namespace {
// Below it the factor that undoes the scale is more than float32 can hold.
constexpr double kLeast = 1e-30;
}  // namespace

void check(const LossScaleOptions& o) {
  check_setting("loss_scale", o.initial);
  check_setting("loss_scale_growth", o.growth);
  check_setting("loss_scale_backoff", o.backoff);
  check_setting("loss_scale_interval", o.interval);
}

double default_loss_scale(const graph::JointGraph& joint, uint32_t micro_steps) {
  double rows = 1;
  for (const graph::JointOp& op : joint.ops())
    if (!op.out.empty() && op.out[0] >= 0 && joint.storage(op.out[0]) == joint.storage(joint.loss) &&
        !op.in.empty() && op.in[0] >= 0)
      rows = static_cast<double>(joint.values[static_cast<size_t>(op.in[0])].desc.shape.rows());
  return std::exp2(16 - std::ceil(std::log2(rows * micro_steps)));
}

void LossScale::update(const LossScaleOptions& o, bool finite) {
  if (!finite) {
    scale = std::max(scale * o.backoff, kLeast);  // at 0 no step would be finite again, nor any scale grow
    finite_steps = 0;
    return;
  }
  if (++finite_steps < o.interval) return;
  finite_steps = 0;
  // In float32, as PyTorch does. A scale that would no longer be finite does not grow.
  if (std::isfinite(static_cast<float>(scale * o.growth))) scale *= o.growth;
}

}  // namespace cairn::step
