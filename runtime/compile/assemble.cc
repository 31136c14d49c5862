// Turns the plan of a micro-batch into its program. Events tie every copy to the compute queue at both ends: the copy
// starts after the compute work before it, and compute work after the plan's wait starts after the copy's end. So all
// reuse of bytes, on every tier, is ordered through the compute queue (capi/docs/memory.md has the argument).
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/base/checked.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/update/room.h"

namespace cairn::engine {
namespace {

using device::Lane;

// Small copies that start together are one submission: starting them one by one would take as long as the copies.
constexpr int64_t kSmallCopy = 256 << 10, kBatch = 1 << 20;

class Assembler : ProgramWriter {
 public:
  explicit Assembler(const CompiledPlan& plan)
      : plan_(plan),
        joint_(*plan.joint),
        to_add_(*this, {plan.add_ring, plan.add_ring_bytes}, Lane::kCopyOut, Tier::kHost) {
    const size_t count = plan.problem.values.size();
    place_.assign(count, -1);
    for (size_t v = 0; v < count; ++v)
      if (plan.problem.values[v].persistent) place_[v] = plan.plan.value_offsets[v];
    copy_event_.assign(count, -1);
    updated_by_.assign(count, -1);
    used_.assign(count, false);
    stored_.assign(count, -1);
    for (size_t v = 0; v < plan.problem_value.size(); ++v)
      if (plan.problem_value[v] >= 0)
        stored_[static_cast<size_t>(plan.problem_value[v])] = static_cast<int32_t>(v);
    updated_.assign(count, false);
    squares_of_.assign(count, -1);
    each_beside_backward([&](const graph::JointOp& update) {
      squares_of_[at(plan.problem_value[at(update.in[update_op::kGrad])])] = update.in[update_op::kTotal];
    });
    for (const graph::JointOp& op : joint_.ops()) {
      if (!op.deferred) continue;
      const int32_t gradient = plan.problem_value[at(op.in[update_op::kGrad])];
      if (gradient >= 0) updated_[at(gradient)] = true;
    }
  }

  Program micro_batch() {
    using plan::StepKind;
    if (plan_.defers_updates()) host_updates();
    for (const plan::Step& step : plan_.plan.steps) switch (step.kind) {
        case StepKind::kRun:
          send_batches();
          if (joint_.in_parts())
            begin_part(plan_.part_of(step.index), device_ranges_.empty() && tier_ranges_.empty());
          run(step);
          break;
        case StepKind::kFree:
          free_device(step.index);
          break;
        case StepKind::kOut:
          copy_out(step);
          break;
        case StepKind::kIn:
          copy_in(step);
          break;
        case StepKind::kWaitOut:
        case StepKind::kWaitIn:
          send_batches();
          wait(Lane::kCompute, copy_event_[at(step.index)]);
          break;
        case StepKind::kDrop:
          drop({step.tier, step.index});
          break;
      }
    send_batches();
    // Its queues get it at once: it waits for events of the program before it, and submitting takes hardly any time.
    if (plan_.updates_beside_backward()) append_updates(plan_.beside_backward, false, copy_event_);
    if (!squares_.empty()) {
      order(Lane::kHost, Lane::kCopyIn);
      ProgramWriter::copy(Lane::kCopyIn, squares_);
    }
    // The next micro-batch finds only persistent values.
    for (size_t v = 0; v < place_.size(); ++v)
      if (!persistent(static_cast<int32_t>(v)) && place_[v] >= 0) free_device(static_cast<int32_t>(v));
    while (!tier_ranges_.empty()) drop(tier_ranges_.begin()->first);
    if (joint_.in_parts()) begin_part(graph::kParts, true);
    return take();
  }

 private:
  bool persistent(int32_t value) const { return plan_.problem.values[at(value)].persistent; }
  bool at_home(int32_t value) const { return plan_.problem.values[at(value)].at_home(); }
  int64_t bytes(int32_t value) const { return plan_.problem.values[at(value)].bytes; }
  graph::Role role(int32_t value) const { return joint_.values[at(stored_[at(value)])].role; }

  // Updates on the host are submitted first, in the order in which their weights are needed.
  void host_updates() {
    if (plan_.host_updated.empty()) return;  // deferred updates on the device are ops of the graph
    const int32_t events = append_updates(plan_.host_program, true, {});
    for (const auto& [value, event] : plan_.host_done)
      if (const int32_t stored = plan_.problem_value[at(value)]; stored >= 0)
        updated_by_[at(stored)] = events + event;
    if (plan_.updates_beside_backward()) return;
    // The device's own updates stream through the arena at the same time, and forward ops need its bytes.
    append_updates(plan_.beside_host_updates, true, {});
    order(Lane::kCopyIn, Lane::kCompute);
    order(Lane::kCopyOut, Lane::kCompute);
  }

  template <class Visit>
  void each_beside_backward(const Visit& visit) const {
    if (!plan_.updates_beside_backward()) return;
    for (const graph::JointOp& update : joint_.ops(graph::kUpdate))
      if (plan_.on_host(update)) visit(update);
  }
  // The copy of a number that an update on the host reads.
  CopyJob host_copy(int32_t scalar) const {
    const int32_t stored = plan_.problem_value[at(scalar)];
    return {Tier::kHost,
            Tier::kDevice,
            plan_.where(scalar, Point::kHostUpdate).offset,
            place_[at(stored)],
            joint_.values[at(scalar)].desc.bytes(),
            stored};
  }
  // Copies the numbers that all updates read once the scale, the last of them, is known. The host's queue does it, as
  // it is idle until then. Updates on the device may change the scale later.
  void host_copies() {
    std::set<int32_t> shared;
    each_beside_backward([&](const graph::JointOp& update) {
      shared.insert({update.in[update_op::kHyper], update.out[update_op::kGradScale]});
    });
    if (shared.empty()) return;
    std::vector<CopyJob> jobs;
    for (const int32_t scalar : shared) jobs.push_back(host_copy(scalar));
    order(Lane::kCompute, Lane::kHost);
    ProgramWriter::copy(Lane::kHost, jobs);
    scale_copied_ = record(Lane::kHost);
  }

  // Which part of a run needs a fetched value. Both need weights. Deferred updates alone change weights, use
  // optimizer state, and read a gradient before backward overwrites it.
  CopyJob::Serves serves_in(int32_t value) const {
    if (!joint_.updates_deferred || !at_home(value)) return CopyJob::Serves::kRest;
    if (role(value) == graph::Role::kParameter) return CopyJob::Serves::kBoth;
    const bool rest = role(value) == graph::Role::kGradient && (used_[at(value)] || !updated_[at(value)]);
    return rest ? CopyJob::Serves::kRest : CopyJob::Serves::kUpdates;
  }
  CopyJob::Serves serves_out(int32_t value) const {
    const bool rest = !joint_.updates_deferred || !at_home(value) || role(value) == graph::Role::kGradient;
    return rest ? CopyJob::Serves::kRest : CopyJob::Serves::kUpdates;
  }

  void place(int32_t value, int64_t offset) {
    place_[at(value)] = offset;
    device_ranges_[value] = begin(Tier::kDevice, offset, bytes(value));
  }
  void free_device(int32_t value) {
    const auto found = device_ranges_.find(value);
    require(found != device_ranges_.end(), Code::kInternal, "the plan frees '",
            plan_.problem.values[at(value)].name, "', which is not on the device");
    end(found->second);
    device_ranges_.erase(found);
    place_[at(value)] = -1;
  }

  void run(const plan::Step& step) {
    const plan::Op& op = plan_.problem.ops[at(step.index)];
    size_t next = 0;
    for (const int32_t v : op.outputs) {
      const int64_t offset = next < step.offsets.size() ? step.offsets[next++] : -1;
      if (persistent(v)) continue;
      if (place_[at(v)] < 0) {
        place(v, offset);
      } else {
        require(place_[at(v)] == offset, Code::kInternal, "the plan moves '",
                plan_.problem.values[at(v)].name, "'");
      }
    }
    for (const auto* list : {&op.inputs, &op.outputs})
      for (const int32_t v : *list) used_[at(v)] = true;
    if (plan_.problem_op[at(step.index)].empty() &&
        op.workspace_bytes > 0)  // the op that stands for norm and update
      end(begin(Tier::kDevice, step.offset, op.workspace_bytes));
    if (const Tiles* const tiles = plan_.tiles_of(step.index)) return run_tiles(*tiles, op, step.offset);
    for (const int32_t joint_op : plan_.problem_op[at(step.index)]) {
      const graph::JointOp& made = joint_.ops()[at(joint_op)];
      const ops::OpRow& row = ops::row(made.code);
      if (made.code == ops::OpCode::k_update && scale_copied_ >= 0)
        wait(Lane::kCompute, std::exchange(scale_copied_, -1));
      launch(writes_over(made), joint_op, plan_.op_kernel[graph::kMicroBatch][at(joint_op)],
             operands(made.in, row.inputs.size()), operands(made.out, row.outputs.size()), step.offset,
             op.workspace_bytes, Lane::kCompute, when(made));
      if (made.code == ops::OpCode::k_grad_scale) host_copies();
    }
  }

  void run_tiles(const Tiles& tiles, const plan::Op& op, int64_t workspace) {
    const int32_t range = begin(Tier::kDevice, workspace, op.workspace_bytes);
    const auto of_tile = [&](const std::vector<TileOperand>& list) {
      std::vector<Operand> made(list.size());
      for (size_t i = 0; i < list.size(); ++i) {
        const TileOperand& of = list[i];
        if (of.value < 0) continue;
        made[i] = of.interior ? Operand{of.desc, workspace} : operands({of.value}, 1)[0];
        made[i].desc = of.desc;
        made[i].offset += of.offset;
      }
      return made;
    };
    for (const TileLaunch& tile : tiles.launches) {
      graph::JointOp made = writes_over(joint_.ops()[at(tile.joint_op)]);
      made.accumulates |= tile.continues;
      made.first_writer &= ~tile.continues;
      launch(made, tile.joint_op, tile.kernel, of_tile(tile.in), of_tile(tile.out),
             workspace + tiles.scratch_offset, tiles.scratch_bytes, Lane::kCompute, Micro::kAny, true);
    }
    end(range);
  }

  // The op as every micro-batch runs it. It overwrites a gradient that the host sums, instead of adding to it.
  graph::JointOp writes_over(const graph::JointOp& op) const {
    graph::JointOp over = op;
    for (size_t k = 0; k < op.out.size(); ++k)
      if (op.out[k] >= 0 && plan_.host_added.contains(op.out[k])) over.accumulates &= ~(1u << k);
    return over;
  }

  // In later micro-batches the host makes the squares of what it summed.
  Micro when(const graph::JointOp& op) const {
    return op.code == ops::OpCode::k_sum_squares && plan_.host_added.contains(op.in[0]) ? Micro::kFirst
                                                                                        : Micro::kAny;
  }

  std::vector<Operand> operands(const std::vector<int32_t>& ids, size_t slots) const {
    std::vector<Operand> list(std::max(slots, ids.size()));
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0) continue;
      const int32_t value = plan_.problem_value[at(joint_.storage(ids[i]))];
      if (value < 0) {
        const Where place = plan_.where(ids[i], Point::kMicroBatch);
        require(place.in_place(), Code::kInternal, "an op of the micro-batch uses '",
                joint_.values[at(ids[i])].name, "', which it does not reach");
        list[i] = {joint_.values[at(ids[i])].desc, place.offset, place.tier};
        continue;
      }
      list[i] = {joint_.values[at(ids[i])].desc, place_[at(value)]};
      require(list[i].offset >= 0, Code::kInternal, "the plan runs an op while '",
              plan_.problem.values[at(value)].name, "' is not on the device");
    }
    return list;
  }

  // Copies gather until the next compute work or wait. Nothing submitted before that could be late for it.
  struct Batch {
    Lane lane;
    std::vector<CopyJob> jobs;
    int64_t bytes = 0;
  };
  static Tier far(const CopyJob& job) { return job.to == Tier::kDevice ? job.from : job.to; }

  void copy(Batch& batch, const CopyJob& job) {
    const bool joins = !batch.jobs.empty() && far(batch.jobs[0]) == far(job) && job.bytes <= kSmallCopy &&
                       batch.bytes + job.bytes <= kBatch && batch.jobs[0].micro == job.micro &&
                       batch.jobs[0].serves == job.serves;
    if (!joins) send(batch);
    batch.jobs.push_back(job);
    batch.bytes += job.bytes;
    if (job.bytes > kSmallCopy) send(batch);
  }

  // Submits a batch as one piece of work with one event. Values that are neighbours on both sides are one copy.
  void send(Batch& batch) {
    if (batch.jobs.empty()) return;
    order(Lane::kCompute, batch.lane);
    for (const CopyJob& job : batch.jobs)
      if (int32_t& event = updated_by_[at(job.value)]; event >= 0) wait(batch.lane, std::exchange(event, -1));
    std::sort(batch.jobs.begin(), batch.jobs.end(), [](const CopyJob& a, const CopyJob& b) {
      return std::pair(a.to_offset, a.from_offset) < std::pair(b.to_offset, b.from_offset);
    });
    std::vector<CopyJob> merged;
    for (const CopyJob& job : batch.jobs) {
      if (!merged.empty()) {
        CopyJob& last = merged.back();
        const int64_t size = align_up(last.bytes, kAlignment);
        if (last.to_offset + size == job.to_offset && last.from_offset + size == job.from_offset) {
          last.bytes = size + job.bytes;
          continue;
        }
      }
      merged.push_back(job);
    }
    ProgramWriter::copy(batch.lane, merged);
    const int32_t done = record(batch.lane);
    for (const CopyJob& job : batch.jobs) copy_event_[at(job.value)] = done;
    batch.jobs.clear();
    batch.bytes = 0;
  }
  void send_batches() {
    send(out_);
    send(in_);
  }
  int64_t stored_bytes(int32_t value) const { return joint_.values[at(stored_[at(value)])].desc.bytes(); }

  // Residents of a tier lie at its begin, copies of activations above them.
  int64_t above_offloaded(const plan::Step& step) const {
    return plan_.offloaded_bytes[static_cast<size_t>(plan_.link_tier[at(step.tier)])] + step.tier_offset;
  }
  void copy_out(const plan::Step& step) {
    const Tier tier = plan_.link_tier[at(step.tier)];
    const std::pair key(step.tier, step.index);
    const int64_t offset = above_offloaded(step);
    if (!at_home(step.index) && !tier_ranges_.contains(key))
      tier_ranges_[key] = begin(tier, offset, bytes(step.index));
    CopyJob job{tier,
                Tier::kDevice,
                offset,
                place_[at(step.index)],
                stored_bytes(step.index),
                step.index,
                1,
                Micro::kAny,
                serves_out(step.index)};
    if (const auto added = plan_.host_added.find(stored_[at(step.index)]); added != plan_.host_added.end())
      return send_to_add(job, added->second);
    copy(out_, job);
    if (const int32_t squares = squares_of_[at(step.index)]; squares >= 0) copy(out_, host_copy(squares));
  }
  // Sends a gradient that the host sums. The first micro-batch of a step writes it where it lives, later ones into
  // the ring.
  void send_to_add(CopyJob job, const HostAdd& by) {
    const int32_t gradient = stored_[at(job.value)];
    const TensorDesc& desc = joint_.values[at(gradient)].desc;
    require(added_.insert(gradient).second, Code::kInternal, "the plan sends '",
            joint_.values[at(gradient)].name, "' twice, and it would be added twice");
    const Operand sum{desc, job.to_offset, Tier::kHost};
    job.micro = Micro::kFirst;
    copy(out_, job);
    send(out_);
    job.micro = Micro::kLater;
    job.to_offset = to_add_.take(align_up(job.bytes, kPageBytes));
    copy(out_, job);
    send(out_);
    const Operand sent{desc, job.to_offset, Tier::kHost};
    wait(Lane::kHost, copy_event_[at(job.value)]);
    launch_on_host(gradient, by.add, true, sent, sum, -1, 0);
    to_add_.done(job.to_offset, record(Lane::kHost));
    if (by.squares < 0) return;
    const TensorDesc& number = joint_.values[at(by.squares_value)].desc;
    launch_on_host(gradient, by.squares, false, sum, {number, by.squares_place, Tier::kHost},
                   plan_.add_ring + plan_.add_ring_bytes,
                   align_up(plan_.kernels[at(by.squares)]->workspace_bytes(), kAlignment));
    const int32_t stored = plan_.problem_value[at(by.squares_value)];
    squares_.push_back({Tier::kDevice, Tier::kHost, place_[at(stored)], by.squares_place, number.bytes(),
                        stored, 1, Micro::kLater});
  }

  void copy_in(const plan::Step& step) {
    place(step.index, step.offset);
    // The first micro-batch of a step overwrites gradients before anything reads them, so it fetches none.
    const bool added_to = at_home(step.index) && !used_[at(step.index)] &&
                          role(step.index) == graph::Role::kGradient && !updated_[at(step.index)];
    copy(in_, {Tier::kDevice, plan_.link_tier[at(step.tier)], step.offset, above_offloaded(step),
               stored_bytes(step.index), step.index, 1, added_to ? Micro::kLater : Micro::kAny,
               serves_in(step.index)});
  }
  void drop(std::pair<int32_t, int32_t> key) {
    const auto found = tier_ranges_.find(key);
    require(found != tier_ranges_.end(), Code::kInternal, "the plan drops '",
            plan_.problem.values[at(key.second)].name, "' from a tier that does not hold it");
    end(found->second);
    tier_ranges_.erase(found);
  }

  const CompiledPlan& plan_;
  const graph::JointGraph& joint_;
  Batch out_{Lane::kCopyOut, {}}, in_{Lane::kCopyIn, {}};
  std::vector<int64_t> place_;       // per problem value: its present device offset; -1: not on the device
  std::vector<int32_t> copy_event_;  // problem value -> event at the end of its last copy
  std::vector<int32_t> stored_;      // problem value -> joint value
  std::vector<int32_t> updated_by_;  // the same -> event of its update on the host, until a copy has waited
  int32_t scale_copied_ = -1;        // event of host_copies(), until compute has waited for it
  Slots to_add_;                     // the ring for gradients that the host sums
  std::set<int32_t> added_;          // gradients that were sent there
  std::vector<CopyJob> squares_;     // copies of the squares of gradients that the host summed
  std::vector<int32_t> squares_of_;  // gradient that the host reads during backward -> the sum of its squares
  std::vector<bool> used_;           // problem value -> an earlier op used it
  std::vector<bool> updated_;        // problem value -> it is the gradient of a deferred update
  std::map<int32_t, int32_t> device_ranges_;                    // problem value -> range
  std::map<std::pair<int32_t, int32_t>, int32_t> tier_ranges_;  // (link, problem value) -> range
};

}  // namespace

Program micro_batch_program(const CompiledPlan& plan) { return Assembler(plan).micro_batch(); }

}  // namespace cairn::engine
