#include "runtime/step/optimizer.h"

#include <cmath>

namespace cairn::step {

void write_hyper(engine::Session& session, const Options& o, double rate, uint64_t t, double factor) {
  const graph::JointGraph& joint = *session.plan().joint;
  for (size_t decay = 0; decay < joint.hyper.size(); ++decay) {
    const double row[8] = {rate,
                           o.beta1,
                           o.beta2,
                           o.eps,
                           decay == 1 ? o.weight_decay : 0.0,
                           1.0 - std::pow(o.beta1, static_cast<double>(t)),
                           1.0 - std::pow(o.beta2, static_cast<double>(t)),
                           factor};
    session.write(joint.hyper[decay], row, sizeof row);
  }
}

}  // namespace cairn::step
