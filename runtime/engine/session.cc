#include "runtime/engine/session.h"

#include <chrono>

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
  taken_before_ = device_->taken_bytes();
  l.take_memory(*plan_, *device_);
  l.commits.assign(plan_->kernels.size(), false);
  for (size_t i = 0; i < plan_->op_kernel.size(); ++i)
    if (plan_->joint->ops[i].code == ops::OpCode::k_adamw_gated)
      l.commits[static_cast<size_t>(plan_->op_kernel[i])] = true;
  for (size_t k = 0; k < plan_->kernels.size(); ++k) {
    std::mutex* const lock = plan_->kernel_locks ? &plan_->kernel_locks[k] : nullptr;
    l.kernels.push_back(
        std::make_unique<GuardedKernel>(*plan_->kernels[k], lock, l.commits[k],
                                        GuardedKernel::Flags{cancelled_, l.skipped, l.added, l.committed}));
    l.finishing.push_back(std::make_unique<FinishingKernel>(*plan_->kernels[k], lock, l.finished));
  }
  l.resolve(*plan_, *device_);
  l.copy_stop = plan_->joint->gate >= 0 ? &l.skipped : &cancelled_;
  l.start(*device_);
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
  } catch (const std::bad_alloc&) {
    loaded_->poison =
        Error::of_literal(Code::kOutOfMemory,
                          "the run was ended: the system gave no memory to submit its work; make the "
                          "session anew and restore a checkpoint");
  } catch (const std::exception& error) {
    loaded_->poison.emplace(Code::kInternal, cat("the run failed: ", error.what()));
  }
  raise();
}

void Session::poison(std::string_view consequence) {
  try {
    throw;
  } catch (const Error& error) {
    loaded_->poison = error;  // which needs no memory
    loaded_->poison.emplace(error.code(), cat(error.what(), "; ", consequence));
  } catch (const std::exception&) {
    keep_poison();
  }
  throw *loaded_->poison;
}

RunReport Session::run(const RunKey& key) {
  raise();
  if (loaded_->stopped) throw *loaded_->stopped;
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
  masters_stale_ = false;
  packs_stale_ = l.committed.load();
  const bool fell_back = report.fell_back;
  report = report_since(began);
  report.fell_back = fell_back;
  report.submit_seconds = l.submit_seconds;
  return report;
}

bool Session::attempt(const RunKey& key) {
  Loaded& l = *loaded_;
  l.skipped.store(false);
  l.added.store(false);
  l.committed.store(false);
  if (masters_stale_ && !plan_->masters.copies.empty()) {
    if (!l.submit(l.masters, key, cancelled_)) return false;
    for (const auto& queue : l.queues) queue->synchronize();
  }
  for (size_t lane = 0; lane < l.queues.size(); ++lane) {
    l.traced[lane].clear();
    l.queues[lane]->take_stall_seconds();
    l.queues[lane]->take_traffic();
    l.queues[lane]->trace(l.tracing);
  }
  const double began = now();
  const bool complete =
      (!packs_stale_ || l.submit(l.prologue, key, cancelled_)) && l.submit(l.main, key, cancelled_);
  l.submit_seconds = now() - began;
  for (const auto& queue : l.queues) queue->synchronize();
  return complete;
}

void Session::leave_disk(const Error& why, const RunKey& key) {
  Loaded& l = *loaded_;
  const auto io_error = [&](const auto&... more) {
    return Error(Code::kIo, cat(why.what(), "; ", more...), *why.fault());
  };
  const bool homes = plan_->home_bytes[static_cast<size_t>(Tier::kDisk)] > 0, committed = l.committed.load();
  if (homes || committed) {
    l.stopped = io_error(
        homes ? "what lived on the disk tier (optimizer state, master weights) is lost since the last "
                "checkpoint; "
              : "",
        committed
            ? "parameters were updated in the midst of the micro-batch, some or all: restore a checkpoint"
            : "parameters on the device are as before");
    l.restart(*device_);
    throw *l.stopped;
  }
  std::shared_ptr<const CompiledPlan> rest;
  try {
    rest = without_tier(*plan_, Tier::kDisk);
    l.change(*rest, Tier::kDisk, *device_);
  } catch (const Error& error) {
    l.stopped = io_error("the session cannot go on without the disk tier: ", error.what(),
                         ". Parameters and optimizer state are as before");
    l.restart(*device_);
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

double Session::gradient_squares() {
  const graph::JointGraph& joint = *plan_->joint;
  require(joint.has_optimizer(), Code::kWrongState,
          "the plan was made without an optimizer: there is no norm to compute");
  finish(loaded_->norm);
  double sum = 0, part = 0;
  if (joint.gate < 0) {
    read(joint.norm, &sum, sizeof sum);
    return sum;
  }
  for (const graph::ParameterSlot& slot : joint.parameters) {
    if (slot.squares < 0) continue;
    read(slot.squares, &part, sizeof part);
    sum += part;
  }
  return sum;
}

RunReport Session::update() {
  require(plan_->joint->has_optimizer(), Code::kWrongState,
          "the plan was made without an optimizer: there is nothing to update");
  const double began = now();
  finish(loaded_->update);
  // It packed what it updated. Where the run updated weights, too, the prologue makes all packs.
  if (plan_->joint->gate >= 0) packs_stale_ = true;
  return report_since(began);
}

void Session::finish(LoadedProgram& program) {
  raise();
  Loaded& l = *loaded_;
  if (l.stopped) throw *l.stopped;
  l.finished.store(false);
  for (const auto& queue : l.queues) {
    queue->skip_copies_while(nullptr);
    queue->trace(false);
    queue->take_stall_seconds();
    queue->take_traffic();
  }
  static const std::atomic<bool> kNever{false};
  try {
    l.submit(program, {}, kNever);
    for (const auto& queue : l.queues) queue->synchronize();
  } catch (...) {
    l.drain();
    lose_disk(l.finished.load() ? "parameters were updated, some or all: restore a checkpoint"
                                : "parameters are as before");
  }
  for (const auto& queue : l.queues) queue->skip_copies_while(l.copy_stop);
}

void Session::lose_disk(std::string_view what) const {
  Loaded& l = *loaded_;
  const std::optional<Error> lost = disk_failure(*plan_);
  if (!lost) keep_poison();
  l.stopped.emplace(Code::kIo,
                    cat(lost->what(),
                        "; what lived on the disk tier (optimizer state, master weights) is lost since the "
                        "last checkpoint, and ",
                        what),
                    *lost->fault());
  l.restart(*device_);
  throw *l.stopped;
}

RunReport Session::report_since(double began) {
  Loaded& l = *loaded_;
  RunReport report;
  report.seconds = now() - began;
  report.stall_seconds = l.queue(device::Lane::kCompute).take_stall_seconds();
  report.out = l.queue(device::Lane::kCopyOut).take_traffic();
  report.in = l.queue(device::Lane::kCopyIn).take_traffic();
  return report;
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
void Session::trace(bool on) {
  loaded_->tracing = on;
  if (on) packs_stale_ = true;
}
const std::vector<Span>& Session::spans() const { return loaded_->spans; }

}  // namespace cairn::engine
