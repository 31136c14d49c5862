// Writes the programs that run between micro-batches: norm, update, packing. It finds operands on the device or in
// a tier, gives launches their workspace, and copies values in one piece.
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
  UpdateWriter(const Placed& plan, KernelMaker& maker, const Room& room)
      : plan_(plan), joint_(*plan.joint), maker_(maker), room_(room) {}

 protected:
  using JointOp = graph::JointOp;
  using Lane = device::Lane;

  // Gradients that end with the step are in use until the program ends.
  void begin_gradients() {
    for (const auto& [value, offset] : plan_.gradient_offsets)
      gradients_.push_back(begin(Tier::kDevice, offset, plan_.problem.values[at(value)].bytes));
  }
  Program take() {
    for (const int32_t range : gradients_) end(range);
    gradients_.clear();
    return ProgramWriter::take();
  }

  bool streamed(int32_t value) const { return plan_.streamed(value); }
  int64_t aligned(int32_t value) const { return align_up(joint_.values[at(value)].desc.bytes(), kAlignment); }
  int64_t workspace_of(int32_t kernel) const { return maker_.workspace_bytes(kernel); }

  // A value that was fetched, lives on the device, or is used in place in a tier.
  Operand operand(int32_t value) const {
    const auto here = here_.find(value);
    if (here != here_.end()) return {joint_.values[at(value)].desc, here->second};
    const Where place = plan_.where(value, Point::kDeviceUpdate);
    require(!place.streamed() && place.offset >= 0, Code::kInternal, "'", joint_.values[at(value)].name,
            "' is not on the device between micro-batches");
    return {joint_.values[at(value)].desc, place.offset, place.tier};
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

  // Neighbours in one slot on the device. Returns its offset.
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
  // To the device or back; values that are neighbours on both sides travel in one copy.
  void move(Lane lane, const std::vector<int32_t>& weights) {
    std::vector<CopyJob> jobs;
    for (const int32_t weight : weights) {
      const Where place = plan_.where(weight, Point::kDeviceUpdate);
      const int64_t far = place.offset, here = here_.at(weight), bytes = aligned(weight);
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

  const Placed& plan_;
  const graph::JointGraph& joint_;
  KernelMaker& maker_;
  const Room& room_;
  std::vector<int32_t> gradients_;   // ranges
  std::map<int32_t, int64_t> here_;  // a fetched value of a tier -> its device offset now
};

}  // namespace cairn::engine
