// The sum of squares of all gradients, which the update reads: in one launch where the backend has that.
#include <algorithm>

#include "runtime/engine/compile/homes/homes.h"
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
    if (!ops.empty()) begin_gradients();
    if (std::any_of(ops.begin(), ops.end(), [&](const JointOp& op) { return streamed(op.in[0]); }))
      return one_by_one();
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
  Program one_by_one() {
    const std::vector<JointOp>& ops = joint_.ops(graph::kGradientNorm);
    std::vector<int32_t> kernels;  // one each: what a batch adds up is not all on the device at once
    for (const JointOp& op : ops) kernels.push_back(maker_.make(op));  // of a whole one: no less workspace
    int64_t workspace = 0;
    for (const int32_t kernel : kernels) workspace = std::max(workspace, workspace_of(kernel));
    const int64_t first = room_.workspace + workspace;
    Slots slots(*this, {first, room_.end - first});
    order(Lane::kCompute, Lane::kCopyIn);
    for (size_t i = 0; i < ops.size(); ++i) {
      const int32_t gradient = ops[i].in[0];
      if (!streamed(gradient)) {
        whole(ops[i], i, kernels[i]);
        continue;
      }
      if (joint_.slices_of(gradient) != nullptr && plan_.squares_block > 0) {
        by_blocks(i, slots, room_.end - first);
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

  // The blocks of a sliced gradient are added up as sum_squares adds up those of a whole one, and then to the norm.
  // area: bytes of the slots.
  void by_blocks(size_t i, Slots& slots, int64_t area) {
    const JointOp& op = joint_.ops(graph::kGradientNorm)[i];
    const int32_t gradient = op.in[0];
    const bool first = op.first_writer != 0;
    const TensorDesc& whole = joint_.values[at(gradient)].desc;
    const OffloadedPlace& home = *plan_.away(gradient);
    const int64_t size = dtype_bytes(whole.dtype), all = whole.shape.elements(), block = plan_.squares_block,
                  most = std::clamp(area / 2, block * size, kPieceBytes) / (block * size) * block;
    JointOp begin = op, more = op;
    begin.first_writer = 1;
    more.first_writer = 0;
    const Operand sum = operand(first ? joint_.norm : joint_.slices_of(gradient)->squares);
    for (int64_t done = 0; done < all;) {
      const int64_t count = std::min(all - done, most);
      const int64_t offset = slots.take(align_up(count * size, kAlignment));
      copy(Lane::kCopyIn, {Tier::kDevice, home.tier, offset, home.extents.at(0).tier_offset + done * size,
                           count * size, -1});
      order(Lane::kCopyIn, Lane::kCompute);
      for (int64_t b = 0; b < count; b += block) {
        const Operand part{{whole.dtype, Shape{std::min(block, count - b)}, 0}, offset + b * size};
        const JointOp& squares = done + b == 0 ? begin : more;
        launch(squares, static_cast<int32_t>(i), kernel_of(squares, {part}, sum), {&part, 1}, {&sum, 1});
      }
      slots.done(offset, record(Lane::kCompute));
      done += count;
    }
    if (first) return;
    JointOp add;
    add.code = ops::OpCode::k_add;
    add.name = op.name;
    const Operand norm = operand(joint_.norm);
    const Operand terms[] = {norm, sum};
    launch(add, static_cast<int32_t>(i), kernel_of(add, {norm, sum}, norm), terms, {&norm, 1});
  }
  int32_t kernel_of(const JointOp& op, const std::vector<Operand>& in, const Operand& out) {
    Operands operands;
    for (const Operand& operand : in) operands.in.push_back(operand.desc);
    operands.out = {out.desc};
    operands.in_present = (1u << in.size()) - 1;
    operands.out_present = 1;
    return maker_.make(op, operands);
  }
};

}  // namespace

Program norm_program(CompiledPlan& plan, KernelMaker& maker, const Room& room) {
  return GradientNorm(plan, maker, room).program();
}

}  // namespace cairn::engine
