#include "runtime/device/cpu/queue.h"

#include "runtime/base/parallel.h"
#include "runtime/device/cpu/copy.h"

namespace cairn::device::cpu {
namespace {

constexpr size_t kReserved = 1024;
// An idle compute lane looks this often for more work before it sleeps: about 10 microseconds, less than a
// wake-up. Copy lanes sleep at once, they share the processors with the kernels.
constexpr int kComputeLooks = 400;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

double seconds(Clock::time_point t) { return std::chrono::duration<double>(t.time_since_epoch()).count(); }

template <class Kind, class Base>
Kind& own(Base& object, std::string_view what) {
  auto* mine = dynamic_cast<Kind*>(&object);
  require(mine != nullptr, Code::kInvalidArgument, "the ", what, " belongs to another device, not to 'cpu'");
  return *mine;
}

const CpuBlock& own_range(const Location& at, int64_t bytes) {
  require(at.block != nullptr, Code::kInvalidArgument, "a copy without a block");
  require(bytes > 0 && at.offset >= 0 && at.offset <= at.block->bytes() - bytes, Code::kInvalidArgument,
          "a copy of ", bytes, " bytes at ", at.offset, " leaves its block of ", at.block->bytes(), " bytes");
  return own<CpuBlock>(*at.block, "block");
}

}  // namespace

CpuQueue::CpuQueue(std::shared_ptr<State> state, Lane lane)
    : state_(std::move(state)), lane_(lane), splitter_(lane != Lane::kCompute && state_->info.threads > 1) {
  inbox_.reserve(kReserved);
  batch_.reserve(kReserved);
  thread_ = std::thread([this] { loop(); });
}

CpuQueue::~CpuQueue() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  filled_.notify_one();
  thread_.join();
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
  const CpuBlock& target = own_range(to, bytes);
  const CpuBlock& source = own_range(from, bytes);
  submit(CopyWork{&target, &source, to.offset, from.offset, bytes});
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
  state_->poison.raise();
}

void CpuQueue::trace(bool on) {
  tracing_.store(on);
  std::lock_guard lock(mutex_);
  trace_.clear();
}

std::vector<Queue::Busy> CpuQueue::take_trace() {
  std::lock_guard lock(mutex_);
  return std::exchange(trace_, {});
}

bool CpuQueue::take_batch() {
  batch_.clear();
  for (int look = 0; lane_ == Lane::kCompute && look < kComputeLooks; ++look) {
    if (inbox_filled_.load(std::memory_order_relaxed)) break;
    relax();
  }
  std::unique_lock lock(mutex_);
  while (inbox_.empty() && !ending_) {
    sleeping_ = true;
    filled_.wait(lock);
  }
  sleeping_ = false;
  inbox_filled_.store(false, std::memory_order_relaxed);
  inbox_.swap(batch_);
  return !batch_.empty();
}

void CpuQueue::loop() {
  if (lane_ == Lane::kCompute) set_thread_count(state_->info.threads);
  uint64_t done = 0;
  while (take_batch())
    for (const Work& work : batch_) {
      perform(work);
      timeline_->advance(++done);
    }
}

void CpuQueue::perform(const Work& work) {
  if (const auto* mark = std::get_if<Mark>(&work)) {
    if (mark->timeline->reached(mark->point)) return;
    const Clock::time_point begin = Clock::now();
    mark->timeline->wait(mark->point);
    add(stall_, begin, Clock::now());
  } else if (const auto* launch = std::get_if<LaunchWork>(&work)) {
    guarded([&] { launch->kernel->run(launch->call); });
  } else if (const auto* job = std::get_if<CopyWork>(&work)) {
    const std::atomic<bool>* const skip = skip_copies_.load();
    guarded([&] {
      if (skip != nullptr && skip->load(std::memory_order_relaxed)) return;
      cpu::copy(*state_, splitter_, *job->to, job->to_offset, *job->from, job->from_offset, job->bytes);
    });
  }
}

// Runs unless poisoned; whatever it throws becomes the poison.
template <class Body>
void CpuQueue::guarded(const Body& body) {
  const Clock::time_point begin = Clock::now();
  if (!state_->poison.set()) {
    try {
      body();
    } catch (const Error& error) {
      state_->poison.keep(error);
    } catch (const std::bad_alloc&) {
      state_->poison.keep(Error(Code::kOutOfMemory, "queued work ran out of memory"));
    } catch (const std::exception& error) {
      state_->poison.keep(Error(Code::kInternal, cat("queued work failed: ", error.what())));
    } catch (...) {
      state_->poison.keep(Error(Code::kInternal, "queued work failed"));
    }
  }
  const Clock::time_point end = Clock::now();
  add(busy_, begin, end);
  if (!tracing_.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex_);
  trace_.push_back({seconds(begin), seconds(end)});
}

void CpuQueue::add(std::atomic<int64_t>& total, Clock::time_point begin, Clock::time_point end) {
  total.fetch_add(std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count(),
                  std::memory_order_relaxed);
}

}  // namespace cairn::device::cpu
