// The optimizer's update of every parameter. programs.h says how values of a tier stream through the arena.
#include <algorithm>
#include <deque>

#include "runtime/base/checked.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/residency/gradients.h"
#include "runtime/compile/residency/homes.h"
#include "runtime/compile/residency/host_adds.h"
#include "runtime/compile/update/host_program.h"
#include "runtime/compile/update/programs.h"
#include "runtime/compile/update/writer.h"

namespace cairn::engine {
namespace {

class UpdateProgram : UpdateWriter {
 public:
  UpdateProgram(const Placed& plan, KernelMaker& maker, const Room& room, std::vector<Piece> pieces)
      : UpdateWriter(plan, maker, room), pieces_(std::move(pieces)) {}

  Program program() {
    if (!joint_.ops(graph::kUpdate).empty()) begin_gradients();
    order(Lane::kCompute, Lane::kCopyIn);
    Slots masters(*this, room_.masters), ring(*this, room_.ring);
    int64_t streamed = 0, moved = 0;
    for (const Piece& piece : pieces_) streamed += piece.bytes + piece.beside;
    for (size_t i = 0; i < joint_.ops(graph::kUpdate).size(); ++i)
      if (const JointOp& op = joint_.ops(graph::kUpdate)[i]; !plan_.on_host(op) && !streamed_from(plan_, op))
        resident_.push_back(i);
    const auto all = static_cast<double>(resident_.size());
    size_t ran = 0;
    for (const Piece& piece : pieces_) {
      fetch_whole(piece, masters);
      const int64_t bytes = piece.bytes + piece.beside, offset = bytes > 0 ? ring.take(bytes) : 0;
      if (piece.bytes > 0)
        copy(Lane::kCopyIn, {Tier::kDevice, piece.tier, offset, piece.tier_offset, piece.bytes, -1});
      for (const Part& part : piece.parts) beside(Lane::kCopyIn, part, offset);
      const int32_t fetched = record(Lane::kCopyIn);
      // Updates that need no copy run while compute would wait for this one.
      moved += bytes;
      const double share = streamed > 0 ? static_cast<double>(moved) / static_cast<double>(streamed) : 1;
      while (static_cast<double>(ran) < share * all) resident(resident_[ran++]);
      launch_updates();
      wait(Lane::kCompute, fetched);
      for (const Part& part : piece.parts) streamed_part(part, offset);
      launch_updates();
      evict(piece, offset, ring, masters);
    }
    while (ran < resident_.size()) resident(resident_[ran++]);
    launch_updates();
    masters.end();
    ring.end();
    return take();
  }

 private:
  // An update of a tensor or a part of it, and the weights to pack after it.
  struct Update {
    int32_t op;           // index into the update phase
    const JointOp* what;  // that op; for a part that is rounded at random, a copy that knows the part
    std::vector<Operand> in, out;         // by operand of the op; offset -1: left out
    std::vector<int32_t> packed_weights;  // indices into the ops of the repacking phase
  };

  Operand part_of(int32_t value, int64_t begin, int64_t count) const {
    Operand whole = operand(value);
    whole.offset += begin * dtype_bytes(whole.desc.dtype);
    whole.desc.shape = Shape{count};
    return whole;
  }

  // Fetches what the updates that begin with this piece need in one piece.
  void fetch_whole(const Piece& piece, Slots& masters) {
    std::vector<int32_t> fetched, values;
    for (const Part& part : piece.parts) {
      if (part.begin > 0) continue;
      const WholeValues whole = whole_values(plan_, joint_.ops(graph::kUpdate)[at(part.op)]);
      fetched.insert(fetched.end(), whole.fetched.begin(), whole.fetched.end());
      values.insert(values.end(), whole.fetched.begin(), whole.fetched.end());
      values.insert(values.end(), whole.made.begin(), whole.made.end());
    }
    if (values.empty()) return;
    place(masters, values);
    move(Lane::kCopyIn, fetched);
  }

  // Copies the part's elements of a weight and a gradient.
  void beside(Lane lane, const Part& part, int64_t offset) {
    const JointOp& op = joint_.ops(graph::kUpdate)[at(part.op)];
    const auto elements = [&](int32_t value, int64_t here) {
      if (here < 0) return;
      const Where place = plan_.where(value, Point::kDeviceUpdate);
      const int64_t size = dtype_bytes(joint_.values[at(value)].desc.dtype);
      const int64_t far = place.offset + part.begin * size;
      const bool in = lane == Lane::kCopyIn;
      copy(lane, {in ? Tier::kDevice : place.tier, in ? place.tier : Tier::kDevice, in ? offset + here : far,
                  in ? far : offset + here, part.count * size, -1});
    };
    elements(op.out[update_op::kParameter], part.weight);
    if (lane == Lane::kCopyIn) elements(op.in[update_op::kGrad], part.gradient);
  }

  void resident(size_t i) {
    const JointOp& op = joint_.ops(graph::kUpdate)[i];
    updates_.push_back({static_cast<int32_t>(i), &op, operands(op.in, op_row().inputs.size()),
                        operands(op.out, op_row().outputs.size()),
                        packed_behind(op.out[update_op::kParameter])});
  }
  static const ops::OpRow& op_row() { return ops::row(ops::OpCode::k_update); }
  std::vector<Operand> operands(const std::vector<int32_t>& values, size_t slots) const {
    std::vector<Operand> list(slots);
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] >= 0 && !state_streams(values[i])) list[i] = operand(values[i]);
    return list;
  }
  bool state_streams(int32_t value) const { return streamed(value) && !here_.contains(value); }

  // Collects an update of a part. The states lie in the piece or in a tier that kernels reach; of the other tensors
  // it takes the same elements.
  void streamed_part(const Part& part, int64_t offset) {
    const JointOp& op = joint_.ops(graph::kUpdate)[at(part.op)];
    const int32_t weight = op.out[update_op::kParameter];
    const int64_t elements = joint_.values[at(weight)].desc.shape.elements();
    Update update{
        part.op, &op, operands(op.in, op_row().inputs.size()), operands(op.out, op_row().outputs.size()), {}};
    const std::span<const int32_t> states = states_of(op);
    for (size_t k = 0; k < states.size() && streamed(states[k]); ++k)
      update.out[update_op::kFirstState + k] = {joint_.values[at(states[k])].desc, offset + part.offsets[k]};
    const auto elements_of = [&](int32_t value, int64_t here) {
      if (here < 0) return part_of(value, part.begin, part.count);
      Operand operand{joint_.values[at(value)].desc, offset + here};
      if (part.count < elements) operand.desc.shape = Shape{part.count};
      return operand;
    };
    if (part.gradient >= 0) update.in[update_op::kGrad] = elements_of(op.in[update_op::kGrad], part.gradient);
    if (part.weight >= 0) update.out[update_op::kParameter] = elements_of(weight, part.weight);
    if (part.count < elements) {
      update.in[update_op::kGrad] = elements_of(op.in[update_op::kGrad], part.gradient);
      update.out[update_op::kParameter] = elements_of(weight, part.weight);
      for (size_t k = 0; k < states.size(); ++k) {
        Operand& state = update.out[update_op::kFirstState + k];
        if (!streamed(states[k])) state.offset += stored(states[k]).bytes(part.begin);
        state.desc.shape = Shape{part.count};
      }
      if (op.attrs.has("rng")) {
        part_ops_.push_back(op);
        part_ops_.back().attrs.set("first", part.begin);
        update.what = &part_ops_.back();
      }
    }
    if (part.begin + part.count == elements) update.packed_weights = packed_behind(weight);
    updates_.push_back(std::move(update));
  }

  const Format& stored(int32_t value) const { return format(joint_.values[at(value)].desc.dtype); }

  // The packed forms to make after an update. With fused updates, the next run packs the weights on the device first.
  std::vector<int32_t> packed_behind(int32_t weight) const {
    return joint_.grad_scale >= 0 && packing_bytes(plan_, weight) == 0 ? std::vector<int32_t>()
                                                                       : derived_weights_of(joint_, weight);
  }

  // Launches the collected updates: as one that also packs weights, as one that does not, or one by one. Updates that
  // are not elementwise are launches of their own.
  void launch_updates() {
    std::vector<Update> updates = std::exchange(updates_, {});
    const auto wholes = std::stable_partition(updates.begin(), updates.end(), [&](const Update& update) {
      return ops::optimizer(joint_.ops(graph::kUpdate)[at(update.op)].attrs.word("optimizer"))
          .is(ops::UPDATE_ELEMENTWISE);
    });
    const std::vector<Update> alone(wholes, updates.end());
    updates.erase(wholes, updates.end());
    if (!updates.empty() && !launch_batch(updates, true) && !launch_batch(updates, false))
      launch_each(updates);
    launch_each(alone);
  }
  void launch_each(const std::vector<Update>& updates) {
    for (const Update& update : updates) {
      const JointOp& op = joint_.ops(graph::kUpdate)[at(update.op)];
      const int32_t kernel = is_whole(update) ? plan_.op_kernel[graph::kUpdate][at(update.op)]
                                              : maker_.make(*update.what, operands_of(update, -1));
      launch(op, update.op, kernel, update.in, update.out);
      for (const int32_t i : update.packed_weights) pack(i);
    }
  }

  // A batch packs complete weights only. Of a weight in parts, an op of its own packs it after the last part.
  bool launch_batch(const std::vector<Update>& updates, bool with_packed) {
    std::vector<BatchedOp> ops;
    std::vector<Operand> in, out;
    std::vector<int32_t> left;  // packed weights that no batch makes
    for (const Update& update : updates) {
      auto packed_weights = update.packed_weights.begin();
      const bool packs_it = with_packed && is_whole(update) && packed_weights != update.packed_weights.end();
      const int32_t own = packs_it ? joint_.ops(graph::kRepack)[at(*packed_weights++)].out[0] : -1;
      ops.push_back({update.what, operands_of(update, own)});
      in.insert(in.end(), update.in.begin(), update.in.end());
      out.insert(out.end(), update.out.begin(), update.out.end());
      if (own >= 0) out[out.size() - update.out.size() + update_op::kPacked] = operand(own);
      left.insert(left.end(), packed_weights, update.packed_weights.end());
    }
    const int32_t kernel = maker_.make_batch(ops);
    if (kernel < 0 || workspace_of(kernel) > room_.workspace_bytes) return false;
    launch(*ops[0].op, updates[0].op, kernel, in, out);
    for (const int32_t i : left) pack(i);
    return true;
  }

  bool is_whole(const Update& update) const {
    return update.out[0].desc == joint_.values[at(joint_.ops(graph::kUpdate)[at(update.op)].out[0])].desc;
  }
  // pack: the packed weight that the update writes; -1: none.
  Operands operands_of(const Update& update, int32_t pack) const {
    Operands operands(update.in, update.out);
    if (pack >= 0) {
      operands.out[update_op::kPacked] = joint_.values[at(pack)].desc;
      operands.out_present |= 1u << update_op::kPacked;
    }
    return operands;
  }

  // Sends the piece back, and with an update's last part what it had in one piece.
  void evict(const Piece& piece, int64_t offset, Slots& ring, Slots& masters) {
    std::vector<int32_t> leaving, gone_with;
    for (const Part& part : piece.parts) {
      const JointOp& op = joint_.ops(graph::kUpdate)[at(part.op)];
      const int32_t weight = op.out[update_op::kParameter];
      if (part.begin + part.count < joint_.values[at(weight)].desc.shape.elements()) continue;
      const WholeValues whole = whole_values(plan_, op);
      leaving.insert(leaving.end(), whole.leaving.begin(), whole.leaving.end());
      gone_with.insert(gone_with.end(), whole.fetched.begin(), whole.fetched.end());
      gone_with.insert(gone_with.end(), whole.made.begin(), whole.made.end());
    }
    order(Lane::kCompute, Lane::kCopyOut);
    if (piece.bytes > 0)
      copy(Lane::kCopyOut, {piece.tier, Tier::kDevice, piece.tier_offset, offset, piece.bytes, -1});
    for (const Part& part : piece.parts) beside(Lane::kCopyOut, part, offset);
    move(Lane::kCopyOut, leaving);
    const int32_t gone = record(Lane::kCopyOut);
    if (piece.bytes + piece.beside > 0) ring.done(offset, gone);
    if (gone_with.empty()) return;
    masters.done(here_.at(gone_with.front()), gone);  // all of them share one slot
    for (const int32_t v : gone_with) here_.erase(v);
  }

  std::vector<Piece> pieces_;
  std::vector<size_t> resident_;  // updates that stream nothing
  std::vector<Update> updates_;   // collected, to be launched together
  std::deque<JointOp> part_ops_;  // Update::what of parts
};

// The room for the largest kernel and the largest update.
Room room_of(const Placed& plan) {
  int64_t workspace = 0, whole = 0;
  for (const graph::PhaseIndex phase : {graph::kRepack, graph::kUpdate})
    for (const int32_t kernel : plan.op_kernel[phase])
      workspace = std::max(
          workspace, align_up(plan.kernels[static_cast<size_t>(kernel)]->workspace_bytes(), kAlignment));
  for (const graph::JointOp& op : plan.joint->ops(graph::kUpdate))
    whole = std::max(whole, whole_values(plan, op).bytes);
  return Room(plan, workspace, whole);
}

}  // namespace

Program update_program(const Placed& plan, KernelMaker& maker, const Room& room, std::vector<Piece> pieces) {
  return UpdateProgram(plan, maker, room, std::move(pieces)).program();
}

CompiledPlan assemble(Planned planned, device::Device& device) {
  Placed placed(std::move(planned));
  placed.gradient_offsets = gradient_offsets(placed);
  placed.overwrites_gradients = placed.overwrites_gradients || !placed.gradient_offsets.empty();
  const Room room = room_of(placed);
  auto [in_tiers, pieces] = place_offloaded(std::move(placed), room.max_piece(), room.master_bytes);
  CompiledPlan plan(std::move(in_tiers));
  KernelMaker maker(plan, device);
  plan.program(graph::kRepack) = repack_program(plan, maker, room);
  plan.fetched_repack = fetched_repack_program(plan, maker, room);
  plan.program(graph::kGradientNorm) = norm_program(plan, maker, room);
  plan.program(graph::kStatistics) = statistics_program(plan, maker, room);
  const bool deferred = !plan.host_updated.empty() && !plan.updates_beside_backward();
  (deferred ? plan.beside_host_updates : plan.program(graph::kUpdate)) =
      update_program(plan, maker, room, std::move(pieces.device));
  if (!plan.host_updated.empty()) {
    HostPrograms host = host_programs(plan, maker, pieces.host);
    plan.host_program = std::move(host.deferred);
    plan.beside_backward = std::move(host.beside_backward);
    plan.host_done = std::move(host.done);
  }
  plan.host_added = host_adds_with_kernels(plan, maker);
  plan.kernels = maker.kernels();
  plan.host_kernels = maker.host_kernels();
  plan.kernel_locks = std::make_unique<std::mutex[]>(plan.kernels.size());
  plan.program() = micro_batch_program(plan);
  return plan;
}

}  // namespace cairn::engine
