#include "runtime/device/cpu/queue.h"

#include <sys/prctl.h>

#include <algorithm>

#include "runtime/base/parallel.h"
#include "runtime/base/relax.h"
#include "runtime/device/own.h"

namespace cairn::device::cpu {
namespace {

constexpr size_t kReserved = 1024;
// An idle compute lane looks this often for more work before it sleeps: about 10 microseconds, less than a
// wake-up. Copy lanes sleep at once, they share the processors with the kernels.
constexpr int kComputeLooks = 400;

double seconds(host::Clock::time_point t) {
  return std::chrono::duration<double>(t.time_since_epoch()).count();
}

}  // namespace

CpuQueue::CpuQueue(std::shared_ptr<host::State> state, std::shared_ptr<host::HostGroup> group, Lane lane)
    : state_(std::move(state)),
      group_(std::move(group)),
      lane_(lane),
      splitter_(!row(lane).computes && state_->info.threads > 1) {
  inbox_.reserve(kReserved);
  hands_ = hands_for(kReserved, 1);
  thread_.start<&CpuQueue::loop>(row(lane).thread_name, this);
}

CpuQueue::~CpuQueue() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  filled_.notify_one();
  thread_.join();
}

CpuQueue::Hands CpuQueue::hands_for(size_t works, size_t parts) {
  Hands made;
  made.batch.reserve(works);
  made.parts.reserve(parts);
  made.pieces.reserve(parts);
  return made;
}

void CpuQueue::reserve(size_t works, size_t parts) {
  Hands made = hands_for(std::max(works, kReserved), std::max<size_t>(parts, 1));
  std::lock_guard lock(mutex_);
  inbox_.reserve(works);
  std::swap(larger_, made);
  laid_out_ = true;
}

void CpuQueue::submit(Work work) {
  bool wake;
  {
    std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(work));
    ++submitted_;
    inbox_filled_.store(true, std::memory_order_relaxed);
    wake = std::exchange(sleeping_, false);
  }
  if (wake) filled_.notify_one();
}

void CpuQueue::launch(const kernels::Kernel& kernel, const kernels::Call& call) {
  submit(LaunchWork{&kernel, call});
}

void CpuQueue::copy(Location to, Location from, int64_t bytes) {
  const CpuBlock& target = own_range<CpuBlock>(to, bytes);
  const CpuBlock& source = own_range<CpuBlock>(from, bytes);
  submit(CopyWork{&target, &source, {to.offset, from.offset, bytes}, {}});
}

void CpuQueue::copy(std::span<const Copy> parts) {
  check_parts<CpuBlock>(parts);
  submit(CopyWork{&own_range<CpuBlock>(parts[0].to, parts[0].bytes),
                  &own_range<CpuBlock>(parts[0].from, parts[0].bytes),
                  {},
                  parts});
}

void CpuQueue::record(Event& event) {
  uint64_t point;
  {
    std::lock_guard lock(mutex_);
    point = submitted_;
  }
  own<CpuEvent>(event, "event").set({timeline_, point});
}

void CpuQueue::wait(Event& event) {
  Mark mark = own<CpuEvent>(event, "event").mark();
  // Never recorded, or a point of this very queue: in order anyway.
  if (mark.timeline == nullptr || mark.timeline == timeline_) return;
  submit(std::move(mark));
}

void CpuQueue::synchronize() {
  uint64_t point;
  {
    std::lock_guard lock(mutex_);
    point = submitted_;
  }
  timeline_->wait(point);
  group_->poison.raise();
}

void CpuQueue::trace(bool on) {
  tracing_.store(on);
  std::lock_guard lock(mutex_);
  trace_.clear();
  if (on) trace_.reserve(inbox_.capacity());
}

std::vector<Queue::Busy> CpuQueue::take_trace() {
  std::lock_guard lock(mutex_);
  return std::exchange(trace_, {});
}

std::array<Traffic, kTierCount> CpuQueue::take_traffic() {
  std::array<Traffic, kTierCount> traffic;
  for (size_t t = 0; t < traffic.size(); ++t)
    traffic[t] = {moved_[t].bytes.exchange(0), take(moved_[t].busy)};
  return traffic;
}

bool CpuQueue::take_batch() {
  hands_.batch.clear();
  for (int look = 0; row(lane_).computes && look < kComputeLooks; ++look) {
    if (inbox_filled_.load(std::memory_order_relaxed)) break;
    relax();
  }
  std::unique_lock lock(mutex_);
  while (inbox_.empty() && !ending_) {
    sleeping_ = true;
    idle_ = true;
    filled_.wait(lock);
  }
  sleeping_ = false;
  inbox_filled_.store(false, std::memory_order_relaxed);
  if (std::exchange(laid_out_, false)) std::swap(hands_, larger_);
  inbox_.swap(hands_.batch);
  return !hands_.batch.empty();
}

void CpuQueue::loop() {
  if (row(lane_).computes) {
    set_thread_team(state_->team.get());
    set_thread_count(state_->info.threads);
  }
  // Copies of a stated rate end by the clock; the system's habit of rounding sleeps up by 50 microseconds is
  // no property of the link.
  if (!row(lane_).computes) prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  uint64_t done = 0;
  while (take_batch())
    for (const Work& work : hands_.batch) {
      perform(work);
      timeline_->advance(++done);
    }
}

void CpuQueue::perform(const Work& work) {
  if (const auto* mark = std::get_if<Mark>(&work)) {
    if (mark->timeline->reached(mark->point)) return;
    const host::Clock::time_point begin = host::Clock::now();
    idle_ = true;
    mark->timeline->wait(mark->point);
    add(stall_, begin, host::Clock::now());
  } else if (const auto* launch = std::get_if<LaunchWork>(&work)) {
    guarded([&] { launch->kernel->run(launch->call); });
  } else if (const auto* job = std::get_if<CopyWork>(&work)) {
    guarded([&] { perform(*job); });
  }
}

void CpuQueue::perform(const CopyWork& job) {
  const std::atomic<bool>* const skip = skip_copies_.load();
  if (skip != nullptr && skip->load(std::memory_order_relaxed)) return;
  std::vector<Part>& parts = hands_.parts;
  parts.clear();
  for (const Copy& part : job.many) parts.push_back({part.to.offset, part.from.offset, part.bytes});
  if (job.many.empty()) parts.push_back(job.one);
  const host::Clock::time_point begin = host::Clock::now();
  cpu::copy(*state_, splitter_, *job.to, *job.from, parts, hands_.pieces, !std::exchange(idle_, false));
  Moved& moved = moved_[static_cast<size_t>(std::max(job.to->tier(), job.from->tier()))];
  for (const Part& part : parts) moved.bytes.fetch_add(part.bytes, std::memory_order_relaxed);
  add(moved.busy, begin, host::Clock::now());
}

// Runs unless poisoned; whatever it throws becomes the poison.
template <class Body>
void CpuQueue::guarded(const Body& body) {
  const host::Clock::time_point begin = host::Clock::now();
  if (!group_->poison.set()) {
    try {
      body();
    } catch (...) {
      group_->poison.keep();
    }
  }
  const host::Clock::time_point end = host::Clock::now();
  add(busy_, begin, end);
  if (!tracing_.load(std::memory_order_relaxed)) return;
  try {
    std::lock_guard lock(mutex_);
    trace_.push_back({seconds(begin), seconds(end)});
  } catch (...) {  // spans are matched to ops by their number, so a trace must not miss one
    group_->poison.keep();
  }
}

void CpuQueue::add(std::atomic<int64_t>& total, host::Clock::time_point begin, host::Clock::time_point end) {
  total.fetch_add(std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count(),
                  std::memory_order_relaxed);
}

}  // namespace cairn::device::cpu
