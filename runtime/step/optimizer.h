// The kernels of one update: gradient norm with its finiteness check, then AdamW fused with division by the
// weight, clipping and the update. Internal to runtime/step.
#pragma once
#include <memory>
#include <vector>

#include "runtime/engine/session.h"
#include "runtime/step/stepper.h"

namespace cairn::step {

class Updater {
 public:
  explicit Updater(engine::Session& session);

  // Square root of the sum of squares of all gradients (sums, not yet divided). Not finite if any gradient is
  // not.
  double gradient_norm();
  // One AdamW update with gradients multiplied by `factor`; t counts from 1.
  void apply(const Options& options, double rate, uint64_t t, double factor);

 private:
  struct Parameter {
    const graph::ParameterSlot* slot;
    const kernels::Kernel* squares;
    const kernels::Kernel* adamw;
    bool decay;
  };
  const kernels::Kernel* kernel(std::string_view op, std::vector<TensorDesc> in, std::vector<TensorDesc> out);

  engine::Session& session_;
  std::vector<Parameter> parameters_;
  std::vector<std::pair<std::string, std::unique_ptr<kernels::Kernel>>> kernels_;  // by op and shapes
  int64_t workspace_bytes_ = 0;
};

}  // namespace cairn::step
