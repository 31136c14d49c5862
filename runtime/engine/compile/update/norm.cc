// The sum of squares of all gradients, which the update reads: in one launch where the backend has that.
#include <algorithm>

#include "runtime/engine/compile/update/programs.h"
#include "runtime/engine/compile/update/writer.h"

namespace cairn::engine {
namespace {

class GradientNorm : UpdateWriter {
 public:
  using UpdateWriter::UpdateWriter;

  Program program() {
    const std::vector<JointOp>& ops = joint_.ops(graph::kGradientNorm);
    const std::vector<int32_t>& kernels = plan_.op_kernel[graph::kGradientNorm];
    if (std::any_of(ops.begin(), ops.end(), [&](const JointOp& op) { return offloaded(op.in[0]); }))
      return streamed();
    if (kernels.size() < ops.size()) {
      std::vector<Operand> in, out;
      for (const JointOp& op : ops) {
        in.push_back(operand(op.in[0]));
        out.push_back(operand(op.out[0]));
        if (out.size() > 1) out.back().offset = -1;  // they add to the first one's
      }
      launch(ops[0], 0, kernels[0], in, out);
      return take();
    }
    for (size_t i = 0; i < ops.size(); ++i) whole(ops[i], i, kernels[i]);
    return take();
  }

 private:
  // Gradients that live in a tier come in one after the other.
  Program streamed() {
    const std::vector<JointOp>& ops = joint_.ops(graph::kGradientNorm);
    std::vector<int32_t> kernels;  // one each: what a batch adds up is not all on the device at once
    for (const JointOp& op : ops) kernels.push_back(maker_.make(op));
    int64_t workspace = 0;
    for (const int32_t kernel : kernels) workspace = std::max(workspace, workspace_of(kernel));
    const int64_t first = room_.workspace + workspace;
    Slots slots(*this, {first, room_.workspace + plan_.free_bytes() - first});
    order(Lane::kCompute, Lane::kCopyIn);
    for (size_t i = 0; i < ops.size(); ++i) {
      const int32_t gradient = ops[i].in[0];
      if (!offloaded(gradient)) {
        whole(ops[i], i, kernels[i]);
        continue;
      }
      const int64_t offset = place(slots, {gradient});
      move(Lane::kCopyIn, {gradient});
      order(Lane::kCopyIn, Lane::kCompute);
      whole(ops[i], i, kernels[i]);
      slots.done(offset, record(Lane::kCompute));
      here_.erase(gradient);
    }
    slots.end();
    return take();
  }
};

}  // namespace

Program norm_program(CompiledPlan& plan, KernelMaker& maker, const Room& room) {
  return GradientNorm(plan, maker, room).program();
}

}  // namespace cairn::engine
