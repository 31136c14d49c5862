#include "runtime/exec/session.h"

#include "runtime/base/os/clock.h"
#include "runtime/exec/fallback.h"
#include "runtime/exec/loaded.h"

namespace cairn::engine {
namespace {

const std::atomic<bool> kNever{false};

std::shared_ptr<Store> make_store(std::vector<std::shared_ptr<const CompiledPlan>> plans,
                                  std::shared_ptr<device::Device> device) {
  require(!plans.empty() && plans[0] != nullptr && device != nullptr, Code::kInvalidArgument,
          "a session needs a plan and a device");
  const device::DeviceInfo& info = device->info();
  for (size_t i = 0; i < plans.size(); ++i) {
    const CompiledPlan& plan = *plans[i];
    require(plan.device == info.name && plan.threads == info.threads, Code::kInvalidArgument,
            "the plan is for '", plan.device, "' with ", plan.threads, " threads, not for '", info.name,
            "' with ", info.threads);
    const bool together = plan.layout == plans[0]->layout && plan.index_in_set == i &&
                          plans.size() == (plan.layout == nullptr ? 1 : plan.layout->plans);
    require(together, Code::kInvalidArgument,
            "sessions on one store need all plans that were made together, in their order");
  }
  return std::make_shared<Store>(std::move(plans), std::move(device));
}

}  // namespace

Session::Session(std::shared_ptr<const CompiledPlan> plan, std::shared_ptr<device::Device> device)
    : store_(make_store({std::move(plan)}, std::move(device))) {}

Session::Session(std::shared_ptr<Store> store, size_t index) : store_(std::move(store)), index_(index) {}

Session::~Session() = default;

std::vector<std::shared_ptr<Session>> Session::open(std::vector<std::shared_ptr<const CompiledPlan>> plans,
                                                    std::shared_ptr<device::Device> device) {
  const size_t count = plans.size();
  const auto store = make_store(std::move(plans), std::move(device));
  std::vector<std::shared_ptr<Session>> sessions;
  for (size_t i = 0; i < count; ++i) sessions.push_back(std::shared_ptr<Session>(new Session(store, i)));
  return sessions;
}

LoadedPlan& Session::mine() const { return store_->plans[index_]; }
const CompiledPlan& Session::plan() const { return *mine().plan; }
device::Device& Session::device() const { return *store_->device; }
std::shared_ptr<device::Device> Session::device_ptr() const { return store_->device; }
int64_t Session::taken_before() const { return store_->taken_before; }
void Session::cancel() { store_->cancelled.store(true, std::memory_order_relaxed); }
bool Session::take_cancel() { return store_->cancelled.exchange(false); }

void Session::parameters_changed() {
  store_->packed_weights_changed();
  store_->fetched_packed_stale = true;
}

RunReport Session::run(const RunKey& key) {
  ready();
  require_written(*store_, mine());
  if (store_->stopped) throw *store_->stopped;
  require(key.micro == 0 || !plan().overwrites_gradients, Code::kWrongState,
          "the plan is for one micro-batch per update, which writes over gradients, and this is number ",
          key.micro + 1, " of its step; plan with micro_steps for more");
  if (take_cancel()) fail(Code::kCancelled, "cancelled before the run began");
  begin_averages();
  Store& l = *store_;
  const double began = now();
  bool complete = false;
  RunReport report;
  if (l.update_pending && index_ != l.primary) make_deferred_updates();
  const bool adds =
      plan().joint->has_optimizer();  // the run adds to gradients, whose norm is asked for later
  if (adds) l.squares_known = false;
  try {
    complete = attempt(key);
  } catch (...) {
    l.drain();
    survive_refusal(l.updated(), kBatchIsLost);
    const std::optional<Error> lost = disk_failure(plan());
    if (!lost) keep_poison();
    leave_disk(*lost, key);
    report.fell_back = true;
  }
  if (report.fell_back) try {
      complete = attempt(key);
    } catch (...) {
      l.drain();
      survive_refusal(l.updated(), kBatchIsLost);
      keep_poison();
    }
  if (l.tracing) l.collect_spans(mine(), began);
  if (!complete || l.skipped.load()) {
    take_cancel();
    fail(Code::kCancelled, "cancelled: the gradients of this step are undefined");
  }
  l.fetched_packed_stale = false;
  mine().packed_stale = false;
  if (adds) l.squares_known = plan().joint->squares_in_backward;
  if (l.committed.load()) {
    l.packed_weights_changed();
    // Updates on the host packed their weights, and then no other packed weight lives in a tier.
    l.fetched_packed_stale = !plan().updates_beside_backward();
  }
  if (plan().updates_beside_backward()) leave_updates();
  const bool fell_back = report.fell_back;
  report = report_since(began);
  report.fell_back = fell_back;
  report.submit_seconds = l.submit_seconds;
  return report;
}

bool Session::attempt(const RunKey& key) {
  Store& l = *store_;
  l.skipped.store(false);
  l.added.store(false);
  l.committed.store(false);
  l.finished.store(false);
  LoadedPlan &primary = l.plans[l.primary], &own = mine();
  l.pass = Pass::kWithoutUpdates;
  if (l.fetched_packed_stale && !primary.plan->fetched_repack.copies.empty()) {
    if (!l.submit(primary, primary.fetched_repack, key, l.cancelled)) return false;
    l.each_queue([](device::Queue& queue) { queue.synchronize(); });
  }
  // The primary plan packs the weights that plans share.
  if (&primary != &own && primary.packed_stale) {
    l.each_queue([](device::Queue& queue) { queue.trace(false); });
    if (!submit(primary, graph::When::kWeightsDirty, key, l.cancelled)) return false;
    l.each_queue([](device::Queue& queue) { queue.synchronize(); });
    primary.packed_stale = false;
  }
  l.make_room_for_spans(own);
  l.each_queue([&](device::Queue& queue) {
    queue.take_stall_seconds();
    queue.take_traffic();
    queue.trace(l.tracing);
  });
  const double began = now();
  bool complete = !own.packed_stale || submit(own, graph::When::kWeightsDirty, key, l.cancelled);
  // No cancel stops deferred updates and the copies of what they change.
  const bool updates = complete && l.update_pending;
  if (updates) l.pass = Pass::kWhole;
  l.each_queue([&](device::Queue& queue) { queue.skip_copies_while(updates ? nullptr : &l.skipped); });
  complete = complete && submit(own, graph::When::kMicroBatch, key, updates ? kNever : l.cancelled);
  l.submit_seconds = now() - began;
  l.each_queue([](device::Queue& queue) { queue.synchronize(); });
  l.pass = Pass::kWithoutUpdates;
  if (updates) l.update_pending = false;
  return complete;
}

void Session::leave_disk(const Error& why, const RunKey& key) {
  Store& l = *store_;
  const auto io_error = [&](const auto&... more) {
    return Error(Code::kIo, cat(why.what(), "; ", more...), *why.fault());
  };
  const bool offloaded = plan().resident_bytes(Tier::kDisk) > 0, committed = l.updated();
  if (offloaded || committed) {
    l.stopped = io_error(
        offloaded
            ? "what lived on the disk tier (weights, gradients, optimizer state) is lost since the last "
              "checkpoint; "
            : "",
        committed
            ? "parameters were updated in the midst of the micro-batch, some or all: restore a checkpoint"
            : "parameters on the device are as before");
    l.start();
    throw *l.stopped;
  }
  try {
    std::vector<std::shared_ptr<const CompiledPlan>> rest;
    for (const LoadedPlan& loaded : l.plans) rest.push_back(without_tier(*loaded.plan, Tier::kDisk));
    l.change(std::move(rest), Tier::kDisk);
  } catch (const std::bad_alloc&) {  // the change was not completed
    l.stopped =
        Error::of_literal(Code::kIo,
                          "the disk tier failed, and there is no memory to go on without it. Parameters "
                          "and optimizer state are as before: save them and make the session again");
    l.must_start = true;
    throw *l.stopped;
  } catch (const Error& error) {
    l.stopped = io_error("the session cannot go on without the disk tier: ", error.what(),
                         ". Parameters and optimizer state are as before");
    l.start();
    throw *l.stopped;
  }
  // A step's first micro-batch overwrites all gradients. A later one adds to gradients that cannot be restored here.
  const bool adds = key.micro > 0 || key.part == graph::Part::kMicroBatch;  // to those of the loss
  if (!may_repeat(plan()) || (adds && l.added.load()))
    throw io_error(
        "micro-batch ", key.micro,
        " was under way, and gradients are lost with it: repeat the effective batch. Parameters and "
        "optimizer state are as before, and the session goes on without the disk tier");
}

bool Session::submit(LoadedPlan& of, graph::When when, const RunKey& key, const std::atomic<bool>& stop) {
  for (size_t phase = 0; phase < of.programs.size(); ++phase)
    if (of.plan->joint->phases[phase].when == when && !store_->submit(of, of.programs[phase], key, stop))
      return false;
  return true;
}

double Session::gradient_squares() {
  const graph::JointGraph& joint = *plan().joint;
  require(joint.has_optimizer(), Code::kWrongState,
          "the plan was made without an optimizer: there is no norm to compute");
  const bool known = joint.squares_in_backward && store_->squares_known;
  if (!known) finish(graph::When::kStep, {});
  double sum = 0, part = 0;
  if (!known && joint.grad_scale < 0) {
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

RunReport Session::update(const RunKey& key) {
  require(plan().joint->has_optimizer(), Code::kWrongState,
          "the plan was made without an optimizer: there is nothing to update");
  begin_averages();
  const double began = now();
  const bool beside_backward = store_->plans[store_->primary].plan->updates_beside_backward();
  if (store_->update_pending && !beside_backward) make_deferred_updates();
  finish(graph::When::kStepIfFinite, key);
  if (!beside_backward) leave_updates();
  // The update packed its weights for its own plan. Where runs update weights as well, the next run packs first.
  const LoadedPlan& primary = store_->plans[store_->primary];
  for (LoadedPlan& loaded : store_->plans)
    if (&loaded != &primary || primary.plan->joint->grad_scale >= 0) loaded.packed_stale = true;
  return report_since(began);
}

template <class SubmitAll>
void Session::submit_whole(const SubmitAll& submit_all) const {
  ready();
  Store& l = *store_;
  if (l.stopped) throw *l.stopped;
  l.finished.store(false);
  l.committed.store(false);
  l.each_queue([](device::Queue& queue) {
    queue.skip_copies_while(nullptr);
    queue.trace(false);
    queue.take_stall_seconds();
    queue.take_traffic();
  });
  try {
    submit_all();
    l.each_queue([](device::Queue& queue) { queue.synchronize(); });
  } catch (...) {
    l.drain();
    const bool updated = l.finished.load() || l.committed.load();
    survive_refusal(updated, kAllIsAsBefore);
    lose_disk(updated ? "parameters were updated, some or all: restore a checkpoint"
                      : "parameters are as before");
  }
  l.each_queue([&](device::Queue& queue) { queue.skip_copies_while(&l.skipped); });
}

void Session::finish(graph::When when, const RunKey& key) {
  store_->pass = Pass::kWithoutUpdates;
  submit_whole([&] { submit(store_->plans[store_->primary], when, key, kNever); });
}

void Session::leave_updates() const {
  store_->update_pending = store_->plans[store_->primary].plan->defers_updates();
  if (store_->update_pending && store_->shows_addresses) make_deferred_updates();
}

void Session::make_deferred_updates() const {
  Store& l = *store_;
  LoadedPlan& primary = l.plans[l.primary];
  l.pass = Pass::kUpdatesAlone;
  submit_whole([&] { l.submit(primary, primary.programs[graph::kMicroBatch], {}, kNever); });
  l.pass = Pass::kWithoutUpdates;
  l.update_pending = false;
  l.packed_weights_changed();
  l.fetched_packed_stale = true;
}

void Session::pack() {
  Store& l = *store_;
  LoadedPlan &primary = l.plans[l.primary], &own = mine();
  const bool in_tier = l.fetched_packed_stale && !primary.plan->fetched_repack.copies.empty();
  if (!own.packed_stale || l.update_pending || in_tier || l.stopped) return;
  submit_whole([&] {
    if (primary.packed_stale) submit(primary, graph::When::kWeightsDirty, {}, kNever);
    if (&primary != &own) submit(own, graph::When::kWeightsDirty, {}, kNever);
  });
  primary.packed_stale = own.packed_stale = false;
}

RunReport Session::report_since(double began) {
  Store& l = *store_;
  RunReport report;
  report.seconds = now() - began;
  report.stall_seconds = l.queue(device::Lane::kCompute).take_stall_seconds();
  report.out = l.queue(device::Lane::kCopyOut).take_traffic();
  report.in = l.queue(device::Lane::kCopyIn).take_traffic();
  const auto add = [&](device::Lane lane, auto& to) {  // the host's own
    if (!l.has(lane)) return;
    const auto traffic = l.queue(lane).take_traffic();
    for (size_t tier = 0; tier < kTierCount; ++tier) to[tier] += traffic[tier];
  };
  add(device::Lane::kHostOut, report.out);
  add(device::Lane::kHostIn, report.in);
  return report;
}

device::TierCount Session::count(Tier tier) const {
  device::TierCount count = store_->ledger.count(tier);
  if (const auto& block = store_->blocks[static_cast<size_t>(tier)]; block != nullptr) {
    count.pinned_bytes = block->pinned_bytes();
    count.staging_bytes = block->staging_bytes();
  }
  return count;
}
void Session::reset_peaks() { store_->ledger.reset_peaks(); }
void Session::trace(bool on) {
  store_->tracing = on;
  if (on) store_->packed_weights_changed();
}
const std::vector<Span>& Session::spans() const { return mine().spans; }

}  // namespace cairn::engine
