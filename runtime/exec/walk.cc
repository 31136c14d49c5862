#include <algorithm>

#include "runtime/exec/loaded.h"

namespace cairn::engine {
namespace {

bool belongs(Micro micro, const RunKey& key) {
  return micro == Micro::kAny || (micro == Micro::kFirst) == (key.micro == 0);
}

// The instructions of the part that the key names.
std::pair<size_t, size_t> instructions(const Program& program, const RunKey& key) {
  if (!key.part || program.parts.empty()) return {0, program.code.size()};
  const auto part = static_cast<size_t>(*key.part);
  return {program.parts[part], program.parts[part + 1]};
}

}  // namespace

Store::Store(std::vector<std::shared_ptr<const CompiledPlan>> given, std::shared_ptr<device::Device> on)
    : device(std::move(on)), plans(given.size()) {
  for (size_t i = 0; i < given.size(); ++i) plans[i].plan = std::move(given[i]);
  primary = plans[0].plan->layout == nullptr ? 0 : plans[0].plan->layout->primary;
  taken_before = device->taken_bytes();
  take_memory();
  for (LoadedPlan& loaded : plans) load(loaded);
  note_unwritten(*this);
  for (const LoadedPlan& loaded : plans) {
    const graph::JointGraph& joint = *loaded.plan->joint;
    averages = averages || joint.averages();
    for (const graph::ParameterSlot& slot : joint.parameters)
      if (joint.values[static_cast<size_t>(slot.value)].desc.dtype != DType::kF32 && halves == nullptr)
        halves = std::make_unique<Halves>();
  }
  resolve();
  start();
}

// The queues finish first: their work reads `cancelled`.
Store::~Store() {
  for (auto& queue : queues) queue.reset();
}

bool Store::has(device::Lane lane) const {
  if (lane <= device::Lane::kCopyIn) return true;
  return std::any_of(plans.begin(), plans.end(), [&](const LoadedPlan& loaded) {
    return lane == device::Lane::kHost ? !loaded.plan->host_kernels.empty() : loaded.plan->streams_on_host();
  });
}

void Store::load(LoadedPlan& loaded) {
  const CompiledPlan& plan = *loaded.plan;
  loaded.commits.assign(plan.kernels.size(), false);
  const std::vector<int32_t>& used = plan.op_kernel[graph::kMicroBatch];
  for (size_t i = 0; i < used.size(); ++i)
    if (plan.joint->ops()[i].code == ops::OpCode::k_update)
      loaded.commits[static_cast<size_t>(used[i])] = true;
  for (const Launch& launch : plan.program().launches)
    if (launch.of_update) loaded.commits[static_cast<size_t>(launch.kernel)] = true;
  using Cancel = GuardedKernel::Cancel;
  const bool fused = plan.joint->grad_scale >= 0;
  const int host_threads = device->info().host_threads;
  if (!plan.host_kernels.empty() && host_team == nullptr)
    host_team = std::make_unique<ThreadTeam>(host_threads);
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const bool on_host = plan.host_kernels.contains(static_cast<int32_t>(k));
    loaded.on_team.push_back(
        on_host ? std::make_unique<TeamKernel>(*plan.kernels[k], *host_team, host_threads) : nullptr);
    const kernels::Kernel& kernel = on_host ? *loaded.on_team[k] : *plan.kernels[k];
    const Cancel cancel = fused               ? Cancel::kSkipsUntilCommit
                          : loaded.commits[k] ? Cancel::kNever
                                              : Cancel::kSkips;
    std::mutex* const lock = plan.kernel_locks ? &plan.kernel_locks[k] : nullptr;
    loaded.kernels.push_back(
        std::make_unique<GuardedKernel>(kernel, lock, loaded.commits[k], cancel,
                                        GuardedKernel::Flags{cancelled, skipped, added, committed, fate}));
    loaded.finishing.push_back(std::make_unique<FinishingKernel>(kernel, lock, finished));
  }
}

void Store::start() {
  const std::shared_ptr<device::Group> made = device->create_group();
  decltype(queues) lanes;  // if one cannot be made, the old ones are kept
  size_t parts = 1;
  for (LoadedPlan& of : plans)
    of.each_program([&](const LoadedProgram& loaded) {
      if (loaded.program == nullptr) return;
      for (const CopyJob& job : loaded.program->copies)
        parts = std::max(parts, static_cast<size_t>(job.count));
    });
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    if (!has(static_cast<device::Lane>(lane))) continue;
    lanes[lane] = device->create_queue(static_cast<device::Lane>(lane), made);
    lanes[lane]->skip_copies_while(&skipped);
    lanes[lane]->reserve(works(static_cast<device::Lane>(lane)), parts);
  }
  for (LoadedPlan& of : plans) of.each_program([](LoadedProgram& loaded) { loaded.variants = {}; });
  queues = std::move(lanes);
  group = made;
  records_on = device.get();
  must_start = false;
}

size_t Store::works(device::Lane lane) const {
  size_t count = 1;  // one for reads and writes of values by the host
  for (const LoadedPlan& of : plans) {
    const auto add = [&](const LoadedProgram& loaded) {
      if (loaded.program == nullptr) return;
      count += static_cast<size_t>(std::count_if(loaded.program->code.begin(), loaded.program->code.end(),
                                                 [&](const Instruction& i) { return i.lane == lane; }));
    };
    std::for_each(of.programs.begin(), of.programs.end(), add);
    add(of.fetched_repack);
  }
  return count;
}

// Takes the memory for the spans of the next run, so that noting them during the run needs none.
void Store::make_room_for_spans(LoadedPlan& of) {
  size_t all = 0;
  for (size_t lane = 0; lane < kLaneCount; ++lane) {
    traced[lane].clear();
    if (!tracing || !has(static_cast<device::Lane>(lane))) continue;
    const size_t count = works(static_cast<device::Lane>(lane));
    traced[lane].reserve(count);
    all += count;
  }
  of.spans.reserve(all);
}

void Store::drain() {
  for (LoadedPlan& of : plans) of.each_program([&](LoadedProgram& loaded) { end_ranges(loaded); });
  each_queue([](device::Queue& queue) {
    try {
      queue.synchronize();
    } catch (const std::exception&) {  // all queues of the group repeat the first error
    }
  });
}

void Store::change(std::vector<std::shared_ptr<const CompiledPlan>> rest, Tier lost) {
  for (auto& queue : queues) queue.reset();
  auto& block = blocks[static_cast<size_t>(lost)];
  ledger.release(lost, block->bytes());
  block.reset();
  for (size_t i = 0; i < plans.size(); ++i) {
    plans[i].before = std::exchange(plans[i].plan, std::move(rest[i]));
    plans[i].spans.clear();  // they refer to instructions of the old plan
  }
  resolve();
  start();
}

void Store::take_memory() {
  std::array<int64_t, kTierCount> bytes{};
  for (const LoadedPlan& loaded : plans) {
    const CompiledPlan& plan = *loaded.plan;
    bytes[0] = std::max(bytes[0], plan.plan.arena_bytes);
    std::array<bool, kTierCount> seen{};
    for (size_t link = 0; link < plan.link_tier.size(); ++link) {
      const auto tier = static_cast<size_t>(plan.link_tier[link]);
      require(!std::exchange(seen[tier], true), Code::kInternal, "two links of the plan lead to the ",
              kTierNames[tier], " tier");
      bytes[tier] = std::max(bytes[tier], plan.offloaded_bytes[tier] + plan.plan.tier_arena_bytes[link]);
    }
  }
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    if (bytes[tier] <= 0) continue;
    blocks[tier] = device->allocate(static_cast<Tier>(tier), bytes[tier]);
    ledger.reserve(static_cast<Tier>(tier), bytes[tier]);
  }
  require(blocks[0] != nullptr, Code::kInvalidArgument, "the plan's arena is empty");
  const CompiledPlan& plan = *plans[primary].plan;
  for (size_t tier = 0; tier < kTierCount; ++tier)
    if (const int64_t lives = plan.resident_bytes(static_cast<Tier>(tier)); lives > 0)
      ledger.begin_range(static_cast<Tier>(tier), 0, lives);
  for (size_t v = 0; v < plan.problem.values.size(); ++v)
    if (plan.problem.values[v].persistent && plan.problem.values[v].bytes > 0)
      ledger.begin_range(Tier::kDevice, plan.plan.value_offsets[v], plan.problem.values[v].bytes);
  persistent_bytes = plan.persistent_bytes();
}

void Store::resolve() {
  size_t ranges = 1;  // one for reads and writes of offloaded values
  for (LoadedPlan& of : plans) {
    const CompiledPlan& plan = *of.plan;
    of.programs.resize(plan.programs.size());
    for (size_t phase = 0; phase < plan.programs.size(); ++phase) {
      const graph::When when = plan.joint->phases[phase].when;
      const bool finishes = when == graph::When::kStep || when == graph::When::kStepIfFinite;
      resolve(of, plan.programs[phase], finishes ? of.finishing : of.kernels, of.programs[phase]);
    }
    resolve(of, plan.fetched_repack, of.kernels, of.fetched_repack);
    of.each_program([&](const LoadedProgram& loaded) { ranges = std::max(ranges, 1 + loaded.live.size()); });
  }
  ledger.prepare(ranges);
}

void Store::resolve(const LoadedPlan& of, const Program& program,
                    const std::vector<std::unique_ptr<kernels::Kernel>>& with, LoadedProgram& loaded) {
  const std::vector<bool>& commits = of.commits;
  loaded = {};
  loaded.program = &program;
  loaded.tensors.reserve(program.operands.size());
  for (const Operand& operand : program.operands) {
    Tensor tensor{operand.desc, nullptr};
    if (operand.offset >= 0) {
      const auto& block = blocks[static_cast<size_t>(operand.tier)];
      const int64_t alignment = operand.within ? dtype_bytes(operand.desc.dtype) : kAlignment;
      require(block != nullptr && block->address() != nullptr && operand.offset % alignment == 0 &&
                  operand.offset + operand.desc.bytes() <= block->bytes(),
              Code::kInternal, "an operand of ", operand.desc.bytes(), " bytes at ", operand.offset,
              " does not fit the ", kTierNames[static_cast<size_t>(operand.tier)], " tier's arena");
      tensor.data = static_cast<char*>(block->address()) + operand.offset;
    }
    loaded.tensors.push_back(tensor);
  }
  for (const Launch& launch : program.launches) {
    const auto& scratch = blocks[static_cast<size_t>(launch.workspace_tier)];
    require(
        launch.workspace_bytes == 0 || (scratch != nullptr && launch.workspace_offset >= 0 &&
                                        launch.workspace_offset % kAlignment == 0 &&
                                        launch.workspace_offset + launch.workspace_bytes <= scratch->bytes()),
        Code::kInternal, "a workspace of ", launch.workspace_bytes, " bytes at ", launch.workspace_offset,
        " does not fit the ", kTierNames[static_cast<size_t>(launch.workspace_tier)], " tier's arena");
    const Tensor* first = loaded.tensors.data() + launch.first_operand;
    kernels::Call call;
    call.in = {first, static_cast<size_t>(launch.inputs)};
    call.out = {first + launch.inputs, static_cast<size_t>(launch.outputs)};
    call.workspace = launch.workspace_bytes > 0
                         ? static_cast<char*>(scratch->address()) + launch.workspace_offset
                         : nullptr;
    call.in_place = launch.in_place;
    call.key.op = launch.random_op;
    const auto kernel = static_cast<size_t>(launch.kernel);
    // A cancel may skip the run's own updates, but not those of the previous run.
    const bool whole = launch.deferred && launch.of_update && of.plan->updates_beside_backward();
    loaded.launches.push_back({(whole ? of.finishing : with)[kernel].get(), call, launch.accumulates,
                               launch.first_writer, launch.micro, !whole && commits.at(kernel),
                               launch.deferred});
  }
  for (const CopyJob& job : program.copies) {
    device::Block* const to = blocks[static_cast<size_t>(job.to)].get();
    device::Block* const from = blocks[static_cast<size_t>(job.from)].get();
    require(to != nullptr && from != nullptr, Code::kInternal, "a copy to or from a tier without memory");
    loaded.copies.push_back({{to, job.to_offset}, {from, job.from_offset}, job.bytes});
  }
  for (int32_t e = 0; e < program.events; ++e) loaded.events.push_back(device->create_event());
  loaded.live.assign(program.ranges.size(), 0);
}

bool Store::submit(LoadedPlan& of, LoadedProgram& loaded, const RunKey& key, const std::atomic<bool>& stop) {
  const size_t part = key.part && !loaded.program->parts.empty() ? static_cast<size_t>(*key.part) : 0;
  LoadedProgram::Variant& variant = loaded.variants[3 * part + (pass == Pass::kWhole ? 2 : key.micro > 0)];
  if (records_on == nullptr || tracing || pass == Pass::kUpdatesAlone || loaded.program->code.empty())
    return walk(of, loaded, key, stop);
  if (variant.runs == 0) {
    ++variant.runs;
    return walk(of, loaded, key, stop);
  }
  const bool measured = variant.measures_next();
  std::unique_ptr<device::Recording>& recording = measured ? variant.measured : variant.plain;
  if (recording == nullptr) {
    if (!record(of, loaded, variant, measured, key, stop)) return false;
    if (recording == nullptr) return walk(of, loaded, key, stop);
  }
  if (stop.load(std::memory_order_relaxed)) return false;
  for (size_t t = 0; t < kTierCount; ++t) ledger.raise_peaks(static_cast<Tier>(t), variant.peaks[t]);
  if (variant.adds) added.store(true);
  if (variant.commits) committed.store(true);
  finished.store(true);
  ++variant.runs;
  recording->run({key.seed, key.step, key.micro, 0});
  return true;
}

bool Store::record(LoadedPlan& of, LoadedProgram& loaded, LoadedProgram::Variant& variant, bool measured,
                   const RunKey& key, const std::atomic<bool>& stop) {
  std::array<device::TierCount, kTierCount> before;
  for (size_t t = 0; t < kTierCount; ++t) before[t] = ledger.count(static_cast<Tier>(t));
  if (!records_on->begin_recording(group, measured ? nullptr : variant.measured.get())) {
    records_on = nullptr;
    return true;
  }
  ledger.reset_peaks();
  const bool added_before = added.exchange(false), committed_before = committed.exchange(false);
  const bool skipped_before = skipped.exchange(false);  // by the run before this update
  bool complete = false;
  try {
    complete = walk(of, loaded, key, stop);
  } catch (...) {
    try {
      records_on->end_recording(group);
    } catch (const Error&) {  // the error of the walk says more
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
  if (!complete || skipped.load())
    return false;  // it was cancelled on the way, and the recording is incomplete
  skipped.store(skipped_before);
  (measured ? variant.measured : variant.plain) = std::move(recording);
  return true;
}

bool Store::walk(LoadedPlan& of, LoadedProgram& loaded, const RunKey& key, const std::atomic<bool>& stop) {
  const Program& program = *loaded.program;
  const auto phase = static_cast<graph::PhaseIndex>(&loaded - of.programs.data());
  const bool traces = tracing && (phase == graph::kRepack || phase == graph::kMicroBatch);
  const auto note = [&](device::Lane lane, size_t i) {
    if (traces) [[unlikely]]
      traced[static_cast<size_t>(lane)].push_back(
          {phase, static_cast<int32_t>(i), ledger.count(Tier::kDevice).live_bytes});
  };
  bool under_way = false;
  const auto [first_instruction, end] = instructions(program, key);
  for (size_t i = first_instruction; i < end; ++i) {
    const Instruction& instruction = program.code[i];
    const auto a = static_cast<size_t>(instruction.a);
    switch (instruction.opcode) {
      case Opcode::kLaunch: {
        const auto& launch = loaded.launches[a];
        if (pass == (launch.deferred ? Pass::kWithoutUpdates : Pass::kUpdatesAlone)) break;
        if (!belongs(launch.micro, key)) break;
        // Once an update is submitted, its kernel decides whether the cancel came in time.
        under_way = under_way || launch.commits;
        if (stop.load(std::memory_order_relaxed) && !under_way) [[unlikely]] {
          end_ranges(loaded);
          return false;
        }
        kernels::Call call = launch.call;
        call.accumulate = key.micro == 0 ? launch.accumulates & ~launch.first_writer : launch.accumulates;
        call.key.seed = key.seed;
        call.key.step = key.step;
        call.key.micro = key.micro;
        note(instruction.lane, i);
        queue(instruction.lane).launch(*launch.kernel, call);
        break;
      }
      case Opcode::kCopy: {
        if (!belongs(program.copies[a].micro, key)) break;
        const CopyJob::Serves serves = program.copies[a].serves;
        if (pass == Pass::kUpdatesAlone && serves == CopyJob::Serves::kRest) break;
        if (pass == Pass::kWithoutUpdates && serves == CopyJob::Serves::kUpdates) break;
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

void Store::end_ranges(LoadedProgram& loaded) {
  for (size_t r = 0; r < loaded.live.size(); ++r)
    if (std::exchange(loaded.live[r], uint8_t{0}))
      ledger.end_range(loaded.program->ranges[r].tier, loaded.program->ranges[r].offset);
}

void Store::collect_spans(LoadedPlan& of, double run_began) {
  of.spans.clear();
  for (size_t lane = 0; lane < queues.size(); ++lane) {
    if (queues[lane] == nullptr) continue;
    const auto busy = queues[lane]->take_trace();
    for (size_t i = 0; i < busy.size() && i < traced[lane].size(); ++i)
      of.spans.push_back({static_cast<device::Lane>(lane), busy[i].begin - run_began, busy[i].end - run_began,
                          traced[lane][i].phase, traced[lane][i].instruction, traced[lane][i].live_bytes});
    traced[lane].clear();
  }
}

}  // namespace cairn::engine
