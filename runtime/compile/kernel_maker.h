// Makes the kernels of a joint graph's ops, one for all ops of the same signature.
#pragma once
#include <span>
#include <string>
#include <unordered_map>

#include "runtime/base/checked.h"
#include "runtime/compile/stages.h"

namespace cairn::engine {

// The operands of an op as its kernel sees them: as many as the row in ops.def has, with a bit for each that is
// there.
struct Operands {
  Operands() = default;
  Operands(const graph::JointGraph& joint, const graph::JointOp& op);
  // Of a launch: operands without an offset are left out.
  Operands(const std::vector<Operand>& in, const std::vector<Operand>& out);
  std::vector<TensorDesc> in, out;
  uint32_t in_present = 0, out_present = 0;
};

// What a kernel is made from. It refers to op and operands.
kernels::Signature signature_of(const graph::JointOp& op, const Operands& operands, int threads);

struct BatchedOp {
  const graph::JointOp* op;
  Operands operands;
};

// Adds kernels to those of a stage. The stage must outlive it.
class KernelMaker {
 public:
  KernelMaker(const Lowered& from, device::Device& device)
      : plan_(from), device_(device), kernels_(from.kernels), host_kernels_(from.host_kernels) {}
  // These return an index into kernels(). kUnsupported names op, dtypes and shapes.
  int32_t make(const graph::JointOp& op);
  // The same op on other operands, such as a part of a tensor.
  int32_t make(const graph::JointOp& op, const Operands& operands);
  // The processor's kernel, for the host's lane. It has to exist (update/host_updates.h).
  int32_t make_on_host(const graph::JointOp& op, const Operands& operands);
  // One kernel for all of them (Registry::batch). -1: the backend has none for these.
  int32_t make_batch(std::span<const BatchedOp> ops);

  const std::vector<std::shared_ptr<const kernels::Kernel>>& kernels() const { return kernels_; }
  const std::set<int32_t>& host_kernels() const { return host_kernels_; }
  int64_t workspace_bytes(int32_t kernel) const {
    return align_up(kernels_[at(kernel)]->workspace_bytes(), kAlignment);
  }

 private:
  kernels::Signature signature(const graph::JointOp& op, const Operands& operands) const;

  const Lowered& plan_;
  device::Device& device_;
  std::vector<std::shared_ptr<const kernels::Kernel>> kernels_;
  std::set<int32_t> host_kernels_;
  std::unordered_map<std::string, int32_t> made_;
};

}  // namespace cairn::engine
