// Kernels for the ops of a joint graph, made once and shared by ops of the same signature.
#pragma once
#include <span>
#include <string>
#include <unordered_map>

#include "runtime/compile/program.h"

namespace cairn::engine {

// An op's operands as its kernel sees them: padded to the row, with presence bits.
struct Operands {
  Operands() = default;
  Operands(const graph::JointGraph& joint, const graph::JointOp& op);
  // Of a launch: those without an offset are not there.
  Operands(const std::vector<Operand>& in, const std::vector<Operand>& out);
  std::vector<TensorDesc> in, out;
  uint32_t in_present = 0, out_present = 0;
};

// What its kernel is made from. Lives as long as op and operands.
kernels::Signature signature_of(const graph::JointOp& op, const Operands& operands, int threads);

struct BatchedOp {
  const graph::JointOp* op;
  Operands operands;
};

class KernelMaker {
 public:
  KernelMaker(CompiledPlan& plan, device::Device& device) : plan_(plan), device_(device) {}
  // Index into plan.kernels. kUnsupported names op, dtypes and shapes.
  int32_t make(const graph::JointOp& op);
  // The same op on other operands: part of a tensor.
  int32_t make(const graph::JointOp& op, const Operands& operands);
  // For the host's lane: the processor's kernel, which has to be there (update/host_updates.h).
  int32_t make_on_host(const graph::JointOp& op, const Operands& operands);
  // One kernel for all of them (Registry::batch). -1: the backend has none for these.
  int32_t make_batch(std::span<const BatchedOp> ops);

 private:
  kernels::Signature signature(const graph::JointOp& op, const Operands& operands) const;

  CompiledPlan& plan_;
  device::Device& device_;
  std::unordered_map<std::string, int32_t> made_;
};

}  // namespace cairn::engine
