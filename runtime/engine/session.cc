#include "runtime/engine/session.h"

#include <chrono>
#include <cstring>

#include "runtime/engine/fallback.h"
#include "runtime/engine/loaded.h"

namespace cairn::engine {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Session::Session(std::shared_ptr<const CompiledPlan> plan, std::shared_ptr<device::Device> device)
    : plan_(std::move(plan)), device_(std::move(device)), loaded_(std::make_unique<Loaded>()) {
  require(plan_ != nullptr && device_ != nullptr, Code::kInvalidArgument,
          "a session needs a plan and a device");
  const device::DeviceInfo& info = device_->info();
  require(plan_->device == info.name && plan_->threads == info.threads, Code::kInvalidArgument,
          "the plan is for '", plan_->device, "' with ", plan_->threads, " threads, not for '", info.name,
          "' with ", info.threads);
  Loaded& l = *loaded_;
  l.take_memory(*plan_, *device_);
  for (size_t k = 0; k < plan_->kernels.size(); ++k)
    l.kernels.push_back(std::make_unique<GuardedKernel>(
        *plan_->kernels[k], plan_->kernel_locks ? &plan_->kernel_locks[k] : nullptr, cancelled_, l.skipped,
        l.added));
  l.resolve(plan_->program, *device_, l.main);
  l.resolve(plan_->prologue, *device_, l.prologue);
  l.start(*device_, cancelled_);
}

// The queues finish first: their work reads cancelled_.
Session::~Session() { loaded_.reset(); }

void Session::raise() const {
  if (loaded_->poison) throw *loaded_->poison;
}

bool Session::poisoned() const { return loaded_->poison.has_value() || device_->poisoned(); }

void Session::keep_poison() const {
  try {
    throw;
  } catch (const Error& error) {
    loaded_->poison = error;
  } catch (const std::exception& error) {
    loaded_->poison.emplace(Code::kInternal, cat("the run failed: ", error.what()));
  }
  loaded_->pending.clear();
  raise();
}

RunReport Session::run(const RunKey& key) {
  raise();
  if (loaded_->stopped) throw *loaded_->stopped;
  settle();
  if (take_cancel()) fail(Code::kCancelled, "cancelled before the run began");
  Loaded& l = *loaded_;
  const double began = now();
  bool complete = false;
  RunReport report;
  try {
    complete = attempt(key);
  } catch (...) {
    l.drain();
    const std::optional<Error> lost = disk_failure(*plan_);
    if (!lost) keep_poison();
    leave_disk(*lost, key);
    report.fell_back = true;
  }
  if (report.fell_back) try {
      complete = attempt(key);
    } catch (...) {
      l.drain();
      keep_poison();
    }
  if (l.tracing) l.collect_spans(began);
  if (!complete || l.skipped.load()) {
    take_cancel();
    fail(Code::kCancelled, "cancelled: the gradients of this step are undefined");
  }
  packs_stale_ = false;
  report.seconds = now() - began;
  report.stall_seconds = l.queue(device::Lane::kCompute).take_stall_seconds();
  report.out = l.queue(device::Lane::kCopyOut).take_traffic();
  report.in = l.queue(device::Lane::kCopyIn).take_traffic();
  return report;
}

bool Session::attempt(const RunKey& key) {
  Loaded& l = *loaded_;
  l.skipped.store(false);
  l.added.store(false);
  for (size_t lane = 0; lane < l.queues.size(); ++lane) {
    l.traced[lane].clear();
    l.queues[lane]->take_stall_seconds();
    l.queues[lane]->take_traffic();
    l.queues[lane]->trace(l.tracing);
  }
  const bool complete =
      (!packs_stale_ || l.walk(l.prologue, key, cancelled_)) && l.walk(l.main, key, cancelled_);
  for (const auto& queue : l.queues) queue->synchronize();
  return complete;
}

void Session::leave_disk(const Error& why, const RunKey& key) {
  Loaded& l = *loaded_;
  const auto io_error = [&](const auto&... more) {
    return Error(Code::kIo, cat(why.what(), "; ", more...), *why.fault());
  };
  std::shared_ptr<const CompiledPlan> rest;
  try {
    rest = without_tier(*plan_, Tier::kDisk);
    l.change(*rest, Tier::kDisk, *device_, cancelled_);
  } catch (const Error& error) {
    l.stopped = io_error("the session cannot go on without the disk tier: ", error.what(),
                         ". Parameters and optimizer state are as before");
    throw *l.stopped;
  }
  plan_before_ = std::exchange(plan_, std::move(rest));
  // A first micro-batch writes over all gradients; a later one adds to what cannot be made again here.
  if (!may_repeat(*plan_) || (key.micro > 0 && l.added.load()))
    throw io_error(
        "micro-batch ", key.micro,
        " was under way, and gradients are lost with it: repeat the effective batch. Parameters and "
        "optimizer state are as before, and the session goes on without the disk tier");
}

void Session::launch(const kernels::Kernel& kernel, std::vector<Tensor> in, std::vector<Tensor> out,
                     uint32_t accumulate) {
  raise();
  Loaded& l = *loaded_;
  const int64_t bytes = kernel.workspace_bytes();
  kernels::Call call;
  if (bytes > 0) {
    call.workspace = workspace(bytes);
    l.ledger.begin_range(Tier::kDevice, l.persistent_bytes, bytes);
    l.ledger.end_range(Tier::kDevice, l.persistent_bytes);
  }
  l.pending.push_back({std::move(in), std::move(out)});
  call.in = l.pending.back().in;
  call.out = l.pending.back().out;
  call.accumulate = accumulate;
  l.queue(device::Lane::kCompute).launch(kernel, call);
}

void Session::settle() const {
  if (loaded_->pending.empty()) return;
  try {
    loaded_->queue(device::Lane::kCompute).synchronize();
  } catch (...) {
    keep_poison();
  }
  loaded_->pending.clear();
}

void Session::synchronize() {
  raise();
  settle();
}

Tensor Session::tensor(int32_t value) const {
  const graph::JointGraph& joint = *plan_->joint;
  require(value >= 0 && value < static_cast<int32_t>(joint.values.size()), Code::kInvalidArgument,
          "no value ", value);
  const graph::JointValue& v = joint.values[static_cast<size_t>(value)];
  const int32_t stored = plan_->problem_value[static_cast<size_t>(joint.storage(value))];
  require(stored >= 0 && plan_->problem.values[static_cast<size_t>(stored)].persistent,
          Code::kInvalidArgument, "value '", v.name, "' does not persist: it lives inside a run only");
  return {v.desc, loaded_->arena() + plan_->plan.value_offsets[static_cast<size_t>(stored)]};
}

void* Session::address(int32_t value) const {
  raise();
  settle();
  return tensor(value).data;
}

void Session::write(int32_t value, const void* from, int64_t bytes) {
  const Tensor t = tensor(value);
  require(bytes == t.desc.bytes(), Code::kInvalidArgument, "value '",
          plan_->joint->values[static_cast<size_t>(value)].name, "' is ", to_string(t.desc), ", ",
          t.desc.bytes(), " bytes, but ", bytes, " are written");
  write_at(value, 0, from, bytes);
}

void Session::read(int32_t value, void* to, int64_t bytes) const {
  const Tensor t = tensor(value);
  require(bytes == t.desc.bytes(), Code::kInvalidArgument, "value '",
          plan_->joint->values[static_cast<size_t>(value)].name, "' is ", to_string(t.desc), ", ",
          t.desc.bytes(), " bytes, but ", bytes, " are read");
  read_at(value, 0, to, bytes);
}

namespace {

char* part(const Tensor& t, const std::string& name, int64_t offset, int64_t bytes) {
  require(offset >= 0 && bytes >= 0 && offset <= t.desc.bytes() - bytes, Code::kInvalidArgument, "value '",
          name, "' has ", t.desc.bytes(), " bytes; [", offset, ", ", offset + bytes, ") lies outside");
  return t.as<char>() + offset;
}

}  // namespace

void Session::write_at(int32_t value, int64_t offset, const void* from, int64_t bytes) {
  raise();
  settle();
  const Tensor t = tensor(value);
  const graph::JointValue& v = plan_->joint->values[static_cast<size_t>(value)];
  std::memcpy(part(t, v.name, offset, bytes), from, static_cast<size_t>(bytes));
  if (v.role == graph::Role::kParameter) packs_stale_ = true;
}

void Session::read_at(int32_t value, int64_t offset, void* to, int64_t bytes) const {
  raise();
  settle();
  const Tensor t = tensor(value);
  std::memcpy(to, part(t, plan_->joint->values[static_cast<size_t>(value)].name, offset, bytes),
              static_cast<size_t>(bytes));
}

void* Session::workspace(int64_t bytes) {
  const Loaded& l = *loaded_;
  require(bytes >= 0 && l.persistent_bytes + bytes <= l.blocks[0]->bytes(), Code::kInternal,
          "a workspace of ", bytes, " bytes does not fit behind the ", l.persistent_bytes,
          " persistent bytes of an arena of ", l.blocks[0]->bytes());
  return l.arena() + l.persistent_bytes;
}

device::TierCount Session::count(Tier tier) const {
  device::TierCount count = loaded_->ledger.count(tier);
  if (const auto& block = loaded_->blocks[static_cast<size_t>(tier)]; block != nullptr) {
    count.pinned_bytes = block->pinned_bytes();
    count.staging_bytes = block->staging_bytes();
  }
  return count;
}
void Session::reset_peaks() { loaded_->ledger.reset_peaks(); }
void Session::trace(bool on) { loaded_->tracing = on; }
const std::vector<Span>& Session::spans() const { return loaded_->spans; }

}  // namespace cairn::engine
