#include "runtime/engine/loaded.h"

namespace cairn::engine {

void Session::Loaded::start(device::Device& device) {
  group = device.create_group();
  records_on = &device;
  for (LoadedProgram* loaded : {&prologue, &masters, &main, &norm, &update}) loaded->variants = {};
  for (size_t lane = 0; lane < queues.size(); ++lane) {
    queues[lane] = device.create_queue(static_cast<device::Lane>(lane), group);
    queues[lane]->skip_copies_while(copy_stop);
  }
}

void Session::Loaded::drain() {
  for (LoadedProgram* loaded : {&prologue, &masters, &main, &norm, &update}) end_ranges(*loaded);
  for (const auto& queue : queues) try {
      queue->synchronize();
    } catch (const Error&) {  // the same poison
    }
}

void Session::Loaded::restart(device::Device& device) {
  for (auto& queue : queues) queue.reset();
  start(device);
}

void Session::Loaded::change(const CompiledPlan& plan, Tier lost, device::Device& device) {
  for (auto& queue : queues) queue.reset();
  auto& block = blocks[static_cast<size_t>(lost)];
  ledger.release(lost, block->bytes());
  block.reset();
  spans.clear();  // they name instructions of the plan before
  resolve(plan, device);
  start(device);
}

void Session::Loaded::take_memory(const CompiledPlan& plan, device::Device& device) {
  const auto take = [&](Tier tier, int64_t bytes) {
    if (bytes <= 0) return;
    auto& block = blocks[static_cast<size_t>(tier)];
    require(block == nullptr, Code::kInternal, "two links of the plan lead to the ",
            kTierNames[static_cast<size_t>(tier)], " tier");
    block = device.allocate(tier, bytes);
    ledger.reserve(tier, bytes);
  };
  take(Tier::kDevice, plan.plan.arena_bytes);
  require(blocks[0] != nullptr, Code::kInvalidArgument, "the plan's arena is empty");
  for (size_t link = 0; link < plan.link_tier.size(); ++link) {
    const Tier tier = plan.link_tier[link];
    const int64_t homes = plan.home_bytes[static_cast<size_t>(tier)];
    take(tier, homes + plan.plan.tier_arena_bytes[link]);
    if (homes > 0) ledger.begin_range(tier, 0, homes);
  }
  for (size_t v = 0; v < plan.problem.values.size(); ++v)
    if (plan.problem.values[v].persistent && plan.problem.values[v].bytes > 0)
      ledger.begin_range(Tier::kDevice, plan.plan.value_offsets[v], plan.problem.values[v].bytes);
  persistent_bytes = plan.persistent_bytes();
}

void Session::Loaded::resolve(const CompiledPlan& plan, device::Device& device) {
  resolve(plan.program, kernels, device, main);
  resolve(plan.prologue, kernels, device, prologue);
  resolve(plan.masters, kernels, device, masters);
  resolve(plan.norm, finishing, device, norm);
  resolve(plan.update, finishing, device, update);
  size_t ranges = 1;  // one through which homes are read and written
  for (const LoadedProgram* loaded : {&prologue, &masters, &main, &norm, &update})
    ranges = std::max(ranges, 1 + loaded->live.size());
  ledger.prepare(ranges);
}

void Session::Loaded::resolve(const Program& program,
                              const std::vector<std::unique_ptr<kernels::Kernel>>& with,
                              device::Device& device, LoadedProgram& loaded) {
  loaded = {};
  loaded.program = &program;
  const int64_t arena_bytes = blocks[0]->bytes();
  loaded.tensors.reserve(program.operands.size());
  for (const Operand& operand : program.operands) {
    Tensor tensor{operand.desc, nullptr};
    if (operand.offset >= 0) {
      require(operand.offset % kAlignment == 0 && operand.offset + operand.desc.bytes() <= arena_bytes,
              Code::kInternal, "an operand of ", operand.desc.bytes(), " bytes at ", operand.offset,
              " does not fit the arena of ", arena_bytes);
      tensor.data = arena() + operand.offset;
    }
    loaded.tensors.push_back(tensor);
  }
  for (const Launch& launch : program.launches) {
    require(launch.workspace_bytes == 0 ||
                (launch.workspace_offset >= 0 && launch.workspace_offset % kAlignment == 0 &&
                 launch.workspace_offset + launch.workspace_bytes <= arena_bytes),
            Code::kInternal, "a workspace of ", launch.workspace_bytes, " bytes at ", launch.workspace_offset,
            " does not fit the arena of ", arena_bytes);
    const Tensor* first = loaded.tensors.data() + launch.first_operand;
    kernels::Call call;
    call.in = {first, static_cast<size_t>(launch.inputs)};
    call.out = {first + launch.inputs, static_cast<size_t>(launch.outputs)};
    call.workspace = launch.workspace_bytes > 0 ? arena() + launch.workspace_offset : nullptr;
    call.in_place = launch.in_place;
    call.key.op = launch.random_op;
    loaded.launches.push_back({with[static_cast<size_t>(launch.kernel)].get(), call, launch.accumulates,
                               launch.first_writer, commits.at(static_cast<size_t>(launch.kernel))});
  }
  for (const CopyJob& job : program.copies) {
    device::Block* const to = blocks[static_cast<size_t>(job.to)].get();
    device::Block* const from = blocks[static_cast<size_t>(job.from)].get();
    require(to != nullptr && from != nullptr, Code::kInternal, "a copy to or from a tier without memory");
    loaded.copies.push_back({{to, job.to_offset}, {from, job.from_offset}, job.bytes});
  }
  for (int32_t e = 0; e < program.events; ++e) loaded.events.push_back(device.create_event());
  loaded.live.assign(program.ranges.size(), 0);
}

bool Session::Loaded::submit(LoadedProgram& loaded, const RunKey& key, const std::atomic<bool>& cancelled) {
  LoadedProgram::Variant& variant = loaded.variants[key.micro > 0];
  if (records_on == nullptr || tracing || loaded.program->code.empty()) return walk(loaded, key, cancelled);
  if (variant.recording == nullptr) {
    if (variant.runs++ == 0) return walk(loaded, key, cancelled);
    if (!record(loaded, variant, key, cancelled)) return false;
    if (variant.recording == nullptr) return walk(loaded, key, cancelled);
  }
  if (cancelled.load(std::memory_order_relaxed)) return false;
  for (size_t t = 0; t < kTierCount; ++t) ledger.raise_peaks(static_cast<Tier>(t), variant.peaks[t]);
  if (variant.adds) added.store(true);
  if (variant.commits) committed.store(true);
  finished.store(true);
  variant.recording->run({key.seed, key.step, key.micro, 0});
  return true;
}

bool Session::Loaded::record(LoadedProgram& loaded, LoadedProgram::Variant& variant, const RunKey& key,
                             const std::atomic<bool>& cancelled) {
  std::array<device::TierCount, kTierCount> before;
  for (size_t t = 0; t < kTierCount; ++t) before[t] = ledger.count(static_cast<Tier>(t));
  if (!records_on->begin_recording(group)) {
    records_on = nullptr;
    return true;
  }
  ledger.reset_peaks();
  const bool added_before = added.exchange(false), committed_before = committed.exchange(false);
  const bool skipped_before = skipped.exchange(false);  // of a run before an update
  bool complete = false;
  try {
    complete = walk(loaded, key, cancelled);
  } catch (...) {
    try {
      records_on->end_recording(group);
    } catch (const Error&) {  // the walk's error says more
    }
    throw;
  }
  variant.adds = added.exchange(added_before);
  variant.commits = committed.exchange(committed_before);
  for (size_t t = 0; t < kTierCount; ++t) {
    variant.peaks[t] = ledger.count(static_cast<Tier>(t));
    ledger.raise_peaks(static_cast<Tier>(t), before[t]);
  }
  auto recording = records_on->end_recording(group);
  if (!complete || skipped.load()) return false;  // cancelled on the way: parts are missing
  skipped.store(skipped_before);
  variant.recording = std::move(recording);
  return true;
}

bool Session::Loaded::walk(LoadedProgram& loaded, const RunKey& key, const std::atomic<bool>& cancelled) {
  const Program& program = *loaded.program;
  const bool is_prologue = &loaded == &prologue, traces = tracing && (is_prologue || &loaded == &main);
  const auto note = [&](device::Lane lane, size_t i) {
    if (traces) [[unlikely]]
      traced[static_cast<size_t>(lane)].push_back(
          {is_prologue ? -1 - static_cast<int32_t>(i) : static_cast<int32_t>(i),
           ledger.count(Tier::kDevice).live_bytes});
  };
  bool under_way = false;
  for (size_t i = 0; i < program.code.size(); ++i) {
    const Instruction& instruction = program.code[i];
    const auto a = static_cast<size_t>(instruction.a);
    switch (instruction.opcode) {
      case Opcode::kLaunch: {
        const auto& launch = loaded.launches[a];
        // Once an update is submitted, its kernel decides whether the cancel came in time.
        under_way = under_way || launch.commits;
        if (cancelled.load(std::memory_order_relaxed) && !under_way) [[unlikely]] {
          end_ranges(loaded);
          return false;
        }
        kernels::Call call = launch.call;
        call.accumulate = key.micro == 0 ? launch.accumulates & ~launch.first_writer : launch.accumulates;
        call.key.seed = key.seed;
        call.key.step = key.step;
        call.key.micro = key.micro;
        note(device::Lane::kCompute, i);
        queue(device::Lane::kCompute).launch(*launch.kernel, call);
        break;
      }
      case Opcode::kCopy: {
        const auto count = static_cast<size_t>(program.copies[a].count);
        const device::Copy& first = loaded.copies[a];
        note(instruction.lane, i);
        if (count == 1) {
          queue(instruction.lane).copy(first.to, first.from, first.bytes);
        } else {
          queue(instruction.lane).copy(std::span(&first, count));
        }
        break;
      }
      case Opcode::kRecord:
        queue(instruction.lane).record(*loaded.events[a]);
        break;
      case Opcode::kWait:
        queue(instruction.lane).wait(*loaded.events[a]);
        break;
      case Opcode::kBegin:
        ledger.begin_range(program.ranges[a].tier, program.ranges[a].offset, program.ranges[a].bytes);
        loaded.live[a] = 1;
        break;
      case Opcode::kEnd:
        ledger.end_range(program.ranges[a].tier, program.ranges[a].offset);
        loaded.live[a] = 0;
        break;
    }
  }
  return true;
}

void Session::Loaded::end_ranges(LoadedProgram& loaded) {
  for (size_t r = 0; r < loaded.live.size(); ++r)
    if (std::exchange(loaded.live[r], uint8_t{0}))
      ledger.end_range(loaded.program->ranges[r].tier, loaded.program->ranges[r].offset);
}

void Session::Loaded::collect_spans(double run_began) {
  spans.clear();
  for (size_t lane = 0; lane < queues.size(); ++lane) {
    const auto busy = queues[lane]->take_trace();
    for (size_t i = 0; i < busy.size() && i < traced[lane].size(); ++i)
      spans.push_back({static_cast<device::Lane>(lane), busy[i].begin - run_began, busy[i].end - run_began,
                       traced[lane][i].instruction, traced[lane][i].live_bytes});
    traced[lane].clear();
  }
}

}  // namespace cairn::engine
