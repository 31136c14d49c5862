#include "runtime/step/optimizer.h"

#include <cmath>

namespace cairn::step {
namespace {
constexpr int kHypers = 8;
const TensorDesc kHyperDesc{DType::kF64, {kHypers}};
const TensorDesc kScalar{DType::kF64, Shape{}};
}  // namespace

const kernels::Kernel* Updater::kernel(std::string_view op, std::vector<TensorDesc> in,
                                       std::vector<TensorDesc> out) {
  const std::string key = cat(op, to_string(in[0]));
  for (const auto& [known, kernel] : kernels_)
    if (known == key) return kernel.get();
  static const Attrs kNoAttrs;
  kernels::Signature signature;
  signature.op = op;
  signature.in = in;
  signature.out = out;
  signature.attrs = &kNoAttrs;
  signature.threads = session_.plan().threads;
  kernels_.emplace_back(key, kernels::select(session_.device().kernels(), signature));
  workspace_bytes_ = std::max(workspace_bytes_, kernels_.back().second->workspace_bytes());
  return kernels_.back().second.get();
}

Updater::Updater(engine::Session& session) : session_(session) {
  const graph::JointGraph& joint = *session.plan().joint;
  for (const graph::ParameterSlot& slot : joint.parameters) {
    if (slot.gradient < 0 || slot.moments.size() != 2) continue;
    const TensorDesc desc = joint.values[slot.value].desc;
    Parameter p;
    p.slot = &slot;
    p.squares = kernel("sum_squares", {joint.values[slot.gradient].desc}, {kScalar});
    p.adamw = kernel("adamw", {desc, kHyperDesc}, {desc, desc, desc});
    p.decay = joint.forward->values()[slot.source].parameter.decay;
    parameters_.push_back(p);
  }
  session_.workspace(workspace_bytes_);
}

double Updater::gradient_norm() {
  const graph::JointGraph& joint = *session_.plan().joint;
  const Tensor norm = session_.tensor(joint.norm);
  bool first = true;
  for (const Parameter& p : parameters_) {
    session_.launch(*p.squares, {session_.tensor(p.slot->gradient)}, {norm}, first ? 0u : 1u);
    first = false;
  }
  double sum = 0;
  session_.read(joint.norm, &sum, sizeof sum);
  return std::sqrt(sum);
}

void Updater::apply(const Options& o, double rate, uint64_t t, double factor) {
  const graph::JointGraph& joint = *session_.plan().joint;
  double hyper[2][kHypers];
  for (int decay = 0; decay < 2; ++decay) {
    double* h = hyper[decay];
    h[0] = rate;
    h[1] = o.beta1;
    h[2] = o.beta2;
    h[3] = o.eps;
    h[4] = decay ? o.weight_decay : 0.0;
    h[5] = 1.0 - std::pow(o.beta1, static_cast<double>(t));
    h[6] = 1.0 - std::pow(o.beta2, static_cast<double>(t));
    h[7] = factor;
  }
  session_.write(joint.hyper, hyper, sizeof hyper);
  Tensor rows = session_.tensor(joint.hyper);
  rows.desc = kHyperDesc;
  for (const Parameter& p : parameters_) {
    Tensor row = rows;
    row.data = rows.as<double>() + (p.decay ? kHypers : 0);
    session_.launch(*p.adamw, {session_.tensor(p.slot->gradient), row},
                    {session_.tensor(p.slot->value), session_.tensor(p.slot->moments[0]),
                     session_.tensor(p.slot->moments[1])},
                    0);
  }
  session_.synchronize();
  session_.parameters_changed();
}

}  // namespace cairn::step
