// What the programs around a micro-batch are written with: operands of values that are on the device or have just come
// from a tier, launches in the one workspace, and copies of whole values.
#pragma once
#include <algorithm>
#include <map>
#include <vector>

#include "runtime/base/checked.h"
#include "runtime/compile/kernel_maker.h"
#include "runtime/compile/update/room.h"

namespace cairn::engine {

class UpdateWriter : public ProgramWriter {
 public:
  UpdateWriter(CompiledPlan& plan, KernelMaker& maker, const Room& room)
      : plan_(plan), joint_(*plan.joint), maker_(maker), room_(room) {}

 protected:
  using JointOp = graph::JointOp;
  using Lane = device::Lane;

  // Behind a micro-batch its gradients are alive, until the program ends.
  void begin_gradients() {
    for (const auto& [value, offset] : plan_.gradient_offsets)
      gradients_.push_back(begin(Tier::kDevice, offset, plan_.problem.values[at(value)].bytes));
  }
  Program take() {
    for (const int32_t range : gradients_) end(range);
    gradients_.clear();
    return ProgramWriter::take();
  }

  bool streamed(int32_t value) const { return plan_.streamed(value) != nullptr; }
  int64_t aligned(int32_t value) const { return align_up(joint_.values[at(value)].desc.bytes(), kAlignment); }
  int64_t workspace_of(int32_t kernel) const {
    return align_up(plan_.kernels[at(kernel)]->workspace_bytes(), kAlignment);
  }

  // Of a value on the device, of a master weight while it is there, or of one that is used where it lies in a tier.
  Operand operand(int32_t value) const {
    const auto here = here_.find(value);
    if (here != here_.end()) return {joint_.values[at(value)].desc, here->second};
    if (const OffloadedPlace* place = plan_.in_place(joint_.storage(value)))
      return {joint_.values[at(value)].desc, place->extents.at(0).tier_offset, place->tier};
    const int64_t offset = plan_.offset_between_steps(plan_.problem_value[at(joint_.storage(value))]);
    require(offset >= 0, Code::kInternal, "'", joint_.values[at(value)].name,
            "' is not on the device between micro-batches");
    return {joint_.values[at(value)].desc, offset};
  }
  void launch(const JointOp& op, int32_t index, int32_t kernel, std::span<const Operand> in,
              std::span<const Operand> out) {
    ProgramWriter::launch(op, index, kernel, in, out, room_.workspace, workspace_of(kernel));
  }
  void whole(const JointOp& op, size_t index, int32_t kernel) {
    std::vector<Operand> in, out;
    for (const int32_t v : op.in) in.push_back(operand(v));
    for (const int32_t v : op.out) out.push_back(operand(v));
    launch(op, static_cast<int32_t>(index), kernel, in, out);
  }
  void pack(int32_t index) {
    whole(joint_.ops(graph::kRepack)[at(index)], at(index), plan_.op_kernel[graph::kRepack][at(index)]);
  }

  // Side by side on the device. Returns where.
  int64_t place(Slots& slots, const std::vector<int32_t>& values) {
    int64_t bytes = 0;
    for (const int32_t v : values) bytes += aligned(v);
    const int64_t first = slots.take(bytes);
    int64_t offset = first;
    for (const int32_t v : values) {
      here_[v] = offset;
      offset += aligned(v);
    }
    return first;
  }
  // Neighbours in one copy.
  void move(Lane lane, const std::vector<int32_t>& weights) {
    std::vector<CopyJob> jobs;
    for (const int32_t weight : weights) {
      const OffloadedPlace& place = *plan_.away(weight);
      const int64_t far = place.extents.at(0).tier_offset, here = here_.at(weight), bytes = aligned(weight);
      if (!jobs.empty()) {
        CopyJob& last = jobs.back();
        const bool in = lane == Lane::kCopyIn;
        const int64_t end = (in ? last.from_offset : last.to_offset) + last.bytes;
        const int64_t here_end = (in ? last.to_offset : last.from_offset) + last.bytes;
        if ((in ? last.from : last.to) == place.tier && end == far && here_end == here) {
          last.bytes += bytes;
          continue;
        }
      }
      jobs.push_back(lane == Lane::kCopyIn ? CopyJob{Tier::kDevice, place.tier, here, far, bytes, -1}
                                           : CopyJob{place.tier, Tier::kDevice, far, here, bytes, -1});
    }
    for (const CopyJob& job : jobs) copy(lane, job);
  }
  void copy(Lane lane, const CopyJob& job) { ProgramWriter::copy(lane, {&job, 1}); }

  CompiledPlan& plan_;
  const graph::JointGraph& joint_;
  KernelMaker& maker_;
  const Room& room_;
  std::vector<int32_t> gradients_;   // ranges
  std::map<int32_t, int64_t> here_;  // a value that lives in a tier -> its device offset now
};

}  // namespace cairn::engine
