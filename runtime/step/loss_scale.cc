#include "runtime/step/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/graph/joint.h"

namespace cairn::step {

namespace {
// Below it the factor that undoes the scale is more than float32 can hold.
constexpr double kLeast = 1e-30;
}  // namespace

void check(const LossScaleOptions& o) {
  const auto within = [](double v, double low, double high, const char* name) {
    require(v >= low && v <= high, Code::kInvalidArgument, name, " is ", v, "; it must be from ", low, " to ",
            high);
  };
  within(o.initial, 0, 3e38, "loss_scale");
  require(o.initial == 0 || o.initial >= kLeast, Code::kInvalidArgument, "loss_scale is ", o.initial,
          "; it must be 0, for the default, or at least ", kLeast);
  within(o.growth, 1, 1e6, "loss_scale_growth");
  within(o.backoff, 1e-6, 1 - 1e-6, "loss_scale_backoff");
  require(o.interval > 0, Code::kInvalidArgument, "loss_scale_interval is 0; it must be at least 1");
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
