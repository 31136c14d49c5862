#include "runtime/compile/update/host_program.h"

#include "runtime/base/checked.h"
#include "runtime/compile/update/host_updates.h"
#include "runtime/compile/update/room.h"

namespace cairn::engine {
namespace {

using device::Lane;
using graph::JointOp;

class HostProgram : ProgramWriter {
 public:
  HostProgram(const Placed& plan, KernelMaker& maker, const std::vector<Piece>& pieces, bool deferred)
      : plan_(plan),
        joint_(*plan.joint),
        deferred_(deferred),
        maker_(maker),
        ring_(*this, {plan.host_ring, plan.host_ring_bytes}, Lane::kHostIn, Tier::kHost) {
    for (const Piece& piece : pieces) {
      if (plan.defers(update(piece.parts.at(0).op)) != deferred) continue;
      pieces_.push_back(&piece);
      for (const Part& part : piece.parts) streams_.insert(part.op);
    }
  }

  Program program() {
    if (!scaled_) hypers();  // else the micro-batch copies them when the scale of gradients is known
    if (!deferred_ && !pieces_.empty())
      order(Lane::kHostOut, Lane::kHostIn);  // deferred updates use the same ring
    size_t next = 0;
    for (const int32_t op : host_update_order(plan_, deferred_)) {
      if (!streams_.contains(op)) {
        behind_copies(Lane::kHost, op);
        launch_part({op, 0, elements(op)}, 0);
        settle(op, {}, record(Lane::kHost));
        continue;
      }
      while (!done_.contains(op)) piece(*pieces_[next++]);
    }
    return take();
  }

  // CompiledPlan::host_done, of deferred updates.
  std::map<int32_t, int32_t> finished() const { return finished_; }

 private:
  const JointOp& update(int32_t op) const { return joint_.ops(graph::kUpdate)[at(op)]; }
  const TensorDesc& desc(int32_t value) const { return joint_.values[at(value)].desc; }
  int64_t elements(int32_t op) const { return desc(update(op).out[update_op::kParameter]).shape.elements(); }
  bool on_disk(int32_t value) const { return plan_.where(value, Point::kHostUpdate).tier == Tier::kDisk; }

  void hypers() {
    std::vector<CopyJob> jobs;
    for (const auto& [value, offset] : plan_.host_copies) {
      jobs.push_back({Tier::kHost, Tier::kDevice, offset, plan_.where(value, Point::kBetween).offset,
                      desc(value).bytes(), plan_.problem_value[at(value)]});
    }
    copy(Lane::kCopyOut, jobs);
    order(Lane::kCopyOut, Lane::kHost);
  }

  void piece(const Piece& piece) {
    const int64_t here = ring_.take(piece.bytes + piece.beside);
    for (const Part& part : piece.parts)
      if (part.begin == 0) behind_copies(Lane::kHostIn, part.op);
    const int32_t read = move(Lane::kHostIn, piece, here);
    wait(Lane::kHost, read);
    for (const Part& part : piece.parts) launch_part(part, here);
    const int32_t updated = record(Lane::kHost);
    wait(Lane::kHostOut, updated);
    const int32_t written = move(Lane::kHostOut, piece, here);
    ring_.done(here, written);
    for (const Part& part : piece.parts)
      if (part.begin + part.count == elements(part.op)) {
        settle(part.op, {read, written}, updated);
        done_.insert(part.op);
      }
  }

  // Waits for the run's copies of what the update uses.
  void behind_copies(Lane lane, int32_t op) {
    if (deferred_) return;
    for (const int32_t v : copied_by_host_update(plan_, update(op))) wait_for_copy(lane, v);
    wait_for_copy(lane, plan_.problem_value[at(update(op).in[update_op::kTotal])]);
  }

  // Reads or writes everything that the piece has on the disk in one submission. Returns the event at its end.
  int32_t move(Lane lane, const Piece& piece, int64_t here) {
    const bool in = lane == Lane::kHostIn;
    std::vector<CopyJob> jobs;
    const auto add = [&](int64_t far, int64_t near, int64_t bytes) {
      if (bytes > 0)
        jobs.push_back(in ? CopyJob{Tier::kHost, Tier::kDisk, near, far, bytes, -1}
                          : CopyJob{Tier::kDisk, Tier::kHost, far, near, bytes, -1});
    };
    add(piece.tier_offset, here, piece.bytes);
    for (const Part& part : piece.parts) {
      const JointOp& op = update(part.op);
      const auto beside = [&](int32_t value, int64_t offset) {
        if (offset < 0) return;
        const Format& format = stored_format(joint_, value);
        add(plan_.where(value, Point::kHostUpdate).offset + format.bytes(part.begin), here + offset,
            format.bytes(part.count));
      };
      beside(op.out[update_op::kParameter], part.weight);
      if (in) beside(op.in[update_op::kGrad], part.gradient);
      if (!in && part.packed >= 0) beside(made_on_host(plan_, op).at(1), part.packed);
    }
    if (!jobs.empty()) copy(lane, jobs);
    return record(lane);
  }

  // Notes from which event on copies may move what the update used: a gradient once it is read, a weight once it is
  // written.
  struct Moved {
    int32_t read = -1, written = -1;
  };
  void settle(int32_t op, const Moved& moved, int32_t updated) {
    if (!deferred_) return;
    const int32_t gradient = update(op).in[update_op::kGrad];
    finished_[gradient] = on_disk(gradient) ? moved.read : updated;
    if (scaled_) finished_[update(op).in[update_op::kTotal]] = updated;
    for (const int32_t v : made_on_host(plan_, update(op)))
      finished_[v] = on_disk(v) ? moved.written : updated;
  }

  // here: the offset of the part's piece in the ring.
  void launch_part(const Part& part, int64_t here) {
    const JointOp& op = update(part.op);
    const ops::OpRow& row = ops::row(op.code);
    const bool whole = part.count == elements(part.op);
    // ring: the offset in the piece; -1: the value is on the host tier, and used in place.
    const auto operand = [&](int32_t value, int64_t ring) {
      const Format& format = stored_format(joint_, value);
      Operand found{
          desc(value),
          ring >= 0 ? here + ring : plan_.where(value, Point::kHostUpdate).offset + format.bytes(part.begin),
          Tier::kHost};
      if (!whole) {
        found.desc.shape = Shape{part.count};
        if (found.desc.packed_bytes > 0) found.desc.packed_bytes = format.bytes(part.count);
      }
      return found;
    };
    std::vector<Operand> in(row.inputs.size()), out(row.outputs.size());
    const auto copy_of = [&](int32_t scalar) {
      return Operand{desc(scalar), plan_.where(scalar, Point::kHostUpdate).offset, Tier::kHost};
    };
    in[update_op::kGrad] = operand(op.in[update_op::kGrad], part.gradient);
    in[update_op::kHyper] = copy_of(op.in[update_op::kHyper]);
    if (scaled_) {
      in[update_op::kTotal] = copy_of(op.in[update_op::kTotal]);
      out[update_op::kGradScale] = copy_of(op.out[update_op::kGradScale]);
    }
    out[update_op::kParameter] = operand(op.out[update_op::kParameter], part.weight);
    const std::span<const int32_t> states = states_of(op);
    for (size_t k = 0; k < states.size(); ++k)
      out[update_op::kFirstState + k] = operand(states[k], part.states ? part.offsets[k] : -1);
    if (const std::vector<int32_t> made = made_on_host(plan_, op); made.size() > 1)
      out[update_op::kPacked] = operand(made[1], part.packed);
    launch(op, part.op, kernel_of(op, in, out), in, out, -1, 0, Lane::kHost);
  }

  int32_t kernel_of(const JointOp& op, const std::vector<Operand>& in, const std::vector<Operand>& out) {
    return maker_.make_on_host(op, Operands(in, out));
  }

  const Placed& plan_;
  const graph::JointGraph& joint_;
  const bool deferred_;
  const bool scaled_ =
      plan_.updates_beside_backward();  // updates read the scale of gradients and sums of squares
  KernelMaker& maker_;
  std::vector<const Piece*> pieces_;
  Slots ring_;
  std::map<int32_t, int32_t> finished_;
  std::set<int32_t> streams_,
      done_;  // updates that stream; those of which all pieces are written
};

}  // namespace

HostPrograms host_programs(const Placed& plan, KernelMaker& maker, const std::vector<Piece>& pieces) {
  HostProgram deferred(plan, maker, pieces, true);
  HostPrograms programs{deferred.program(), {}, deferred.finished()};
  if (plan.updates_beside_backward())
    programs.beside_backward = HostProgram(plan, maker, pieces, false).program();
  return programs;
}

}  // namespace cairn::engine
