// Writes a program instruction by instruction.
#pragma once
#include <span>
#include <utility>

#include "runtime/compile/stages.h"

namespace cairn::engine {

class ProgramWriter {
 public:
  void emit(Opcode opcode, device::Lane lane, int32_t a) { program_.code.push_back({opcode, lane, a}); }

  // Bytes of a tier come into use, or fall free, in program order.
  int32_t begin(Tier tier, int64_t offset, int64_t size) {
    const auto range = static_cast<int32_t>(program_.ranges.size());
    program_.ranges.push_back({tier, offset, size});
    emit(Opcode::kBegin, device::Lane::kCompute, range);
    return range;
  }
  void end(int32_t range) { emit(Opcode::kEnd, device::Lane::kCompute, range); }

  int32_t record(device::Lane lane) {
    const int32_t event = program_.events++;
    emit(Opcode::kRecord, lane, event);
    return event;
  }
  void wait(device::Lane lane, int32_t event) { emit(Opcode::kWait, lane, event); }
  // For programs that append_updates() appends: waits for the last copy of a problem value before them.
  void wait_for_copy(device::Lane lane, int32_t value) { emit(Opcode::kWait, lane, -1 - value); }
  // The queue `then` waits for all work submitted to `first` so far.
  void order(device::Lane first, device::Lane then) { wait(then, record(first)); }

  // kernel: index into CompiledPlan::kernels. The workspace is in use for this launch only, or, where `in_use`, already.
  void launch(const graph::JointOp& op, int32_t joint_op, int32_t kernel, std::span<const Operand> in,
              std::span<const Operand> out, int64_t workspace_offset, int64_t workspace_bytes,
              device::Lane lane = device::Lane::kCompute, Micro micro = Micro::kAny, bool in_use = false) {
    Launch launch = {};
    launch.micro = micro;
    launch.kernel = kernel;
    launch.first_operand = static_cast<int32_t>(program_.operands.size());
    launch.inputs = static_cast<int32_t>(in.size());
    launch.outputs = static_cast<int32_t>(out.size());
    program_.operands.insert(program_.operands.end(), in.begin(), in.end());
    program_.operands.insert(program_.operands.end(), out.begin(), out.end());
    launch.in_place = in_place(ops::row(op.code), in, out);
    launch.workspace_offset = workspace_bytes > 0 ? workspace_offset : -1;
    launch.workspace_bytes = workspace_bytes;
    launch.accumulates = op.accumulates;
    launch.first_writer = op.first_writer;
    launch.deferred = op.deferred || lane == device::Lane::kHost;
    launch.random_op = static_cast<uint32_t>(op.attrs.has("rng") ? op.attrs.integer("rng") : 0);
    launch.joint_op = joint_op;
    launch.of_update = lane == device::Lane::kHost;
    const int32_t range =
        workspace_bytes > 0 && !in_use ? begin(Tier::kDevice, workspace_offset, workspace_bytes) : -1;
    program_.launches.push_back(launch);
    emit(Opcode::kLaunch, lane, static_cast<int32_t>(program_.launches.size()) - 1);
    if (range >= 0) end(range);
  }
  // A launch by the host's processors in later micro-batches of a step. gradient: the joint value, for traces. The
  // workspace is on the host tier.
  void launch_on_host(int32_t gradient, int32_t kernel, bool adds, const Operand& in, const Operand& out,
                      int64_t workspace_offset, int64_t workspace_bytes) {
    Launch launch = {};
    launch.kernel = kernel;
    launch.first_operand = static_cast<int32_t>(program_.operands.size());
    launch.inputs = launch.outputs = 1;
    program_.operands.insert(program_.operands.end(), {in, out});
    launch.workspace_offset = workspace_bytes > 0 ? workspace_offset : -1;
    launch.workspace_bytes = workspace_bytes;
    launch.workspace_tier = Tier::kHost;
    launch.accumulates = adds ? 1 : 0;
    launch.micro = Micro::kLater;
    launch.joint_op = -1 - gradient;
    program_.launches.push_back(launch);
    emit(Opcode::kLaunch, device::Lane::kHost, static_cast<int32_t>(program_.launches.size()) - 1);
  }

  // One submission of copies between the same two tiers.
  void copy(device::Lane lane, std::span<const CopyJob> jobs) {
    const size_t first = program_.copies.size();
    program_.copies.insert(program_.copies.end(), jobs.begin(), jobs.end());
    program_.copies[first].count = static_cast<int32_t>(jobs.size());
    emit(Opcode::kCopy, lane, static_cast<int32_t>(first));
  }

  // Appends a program of updates. deferred: runs with nothing pending leave it out. copied: by problem value, the
  // event at the end of its last copy. Returns how much its events' numbers grow by.
  int32_t append_updates(const Program& updates, bool deferred, std::span<const int32_t> copied) {
    const auto moved = [](const auto& list) { return static_cast<int32_t>(list.size()); };
    const int32_t launches = moved(program_.launches), operands = moved(program_.operands),
                  copies = moved(program_.copies), ranges = moved(program_.ranges), events = program_.events;
    for (Launch launch : updates.launches) {
      launch.first_operand += operands;
      launch.deferred = deferred;
      launch.of_update = true;
      program_.launches.push_back(launch);
    }
    for (CopyJob job : updates.copies) {
      job.serves = deferred ? CopyJob::Serves::kUpdates : CopyJob::Serves::kRest;
      program_.copies.push_back(job);
    }
    program_.operands.insert(program_.operands.end(), updates.operands.begin(), updates.operands.end());
    program_.ranges.insert(program_.ranges.end(), updates.ranges.begin(), updates.ranges.end());
    program_.events += updates.events;
    for (Instruction instruction : updates.code) {
      switch (instruction.opcode) {
        case Opcode::kLaunch:
          instruction.a += launches;
          break;
        case Opcode::kCopy:
          instruction.a += copies;
          break;
        case Opcode::kRecord:
        case Opcode::kWait:
          instruction.a =
              instruction.a < 0 ? copied[static_cast<size_t>(-1 - instruction.a)] : instruction.a + events;
          break;
        case Opcode::kBegin:
        case Opcode::kEnd:
          instruction.a += ranges;
          break;
      }
      program_.code.push_back(instruction);
    }
    return events;
  }

  // The parts up to this one begin here, as far as they have not begun (Program::parts). clear: only persistent values live.
  void begin_part(size_t part, bool clear) {
    if (program_.parts.size() > part) return;
    require(clear, Code::kInternal, "the plan keeps a value from one part of the micro-batch to the next");
    program_.parts.resize(part + 1, static_cast<int32_t>(program_.code.size()));
  }
  Program take() { return std::exchange(program_, {}); }

 private:
  // A bit for each input that the first output overwrites.
  static uint32_t in_place(const ops::OpRow& row, std::span<const Operand> in, std::span<const Operand> out) {
    uint32_t bits = 0;
    for (size_t i = 0; i < row.inputs.size() && i < in.size() && !out.empty(); ++i)
      if (row.inputs[i].in_place && in[i].offset >= 0 && in[i].offset == out[0].offset) bits |= 1u << i;
    return bits;
  }

  Program program_;
};

}  // namespace cairn::engine
