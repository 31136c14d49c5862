// What a gradient rule sees. The rules are in gradients/, a file for each family of ops, and are named in
// ops.def; runtime/graph/autodiff.cc implements the emitter.
#pragma once
#include <span>
#include <vector>

#include "runtime/ops/ops.h"

namespace cairn::ops {

using Id = int32_t;              // a value of the joint graph
inline constexpr Id kNone = -1;  // an operand left out, or a gradient that nobody wants

class GradientEmitter {
 public:
  virtual ~GradientEmitter() = default;

  // The forward op.
  virtual Id in(int i) const = 0;  // kNone if left out
  virtual Id out(int i) const = 0;
  virtual const Attrs& attrs() const = 0;
  virtual const TensorDesc& desc(Id value) const = 0;

  // Gradient of the loss with respect to output i; kNone if it is zero.
  virtual Id grad_out(int i) const = 0;
  // Does input i need a gradient?
  virtual bool wants(int i) const = 0;

  // Adds a backward op; returns the ids of its outputs in row order. `wanted` bit i: output i is needed
  // (others become kNone). Output descs come from the op's shape rule.
  virtual std::vector<Id> emit(OpCode op, std::vector<Id> in, Attrs attrs = {}, uint32_t wanted = ~0u) = 0;

  // Hands in the gradient of input i (at most once per input and rule call). If the input is a parameter and
  // the op that made `grad` can accumulate into it (a '+' output), the output is redirected into the
  // parameter's gradient.
  virtual void give(int i, Id grad) = 0;
};

}  // namespace cairn::ops
