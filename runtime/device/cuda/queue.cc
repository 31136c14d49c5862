#include "runtime/device/cuda/queue.h"

#include <algorithm>

#include "runtime/base/os/clock.h"
#include "runtime/device/own.h"

namespace cairn::device::cuda {
namespace {

Tier lower_tier(const Copy& part) { return std::max(part.to.block->tier(), part.from.block->tier()); }

// A host function of the stream. No exception may leave it: an error poisons the group instead.
void run_disk_task(void* user) {
  const auto& task = *static_cast<DiskTask*>(user);
  if (task.group->poison.set()) return;
  const host::Piece piece{task.memory, task.offset, task.bytes};
  try {
    task.writes ? task.disk->write(*task.splitter, {&piece, 1})
                : task.disk->read(*task.splitter, {&piece, 1});
  } catch (const Error& error) {
    task.group->poison.keep(error);
  } catch (const std::exception& error) {
    task.group->poison.keep(Error(Code::kInternal, cat("a disk copy failed: ", error.what())));
  }
}

void run_host_task(void* user) {
  const auto& task = *static_cast<HostTask*>(user);
  if (task.group->poison.set()) return;
  try {
    task.kernel->run(task.call);
  } catch (...) {
    task.group->poison.keep();
  }
}

}  // namespace

CudaQueue::CudaQueue(std::shared_ptr<State> state, std::shared_ptr<CudaGroup> group, Lane lane)
    : state_(std::move(state)), group_(std::move(group)), lane_(lane), times_(state_, kKinds) {
  state_->enter();
  int least = 0, greatest = 0;
  state_->must(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream priorities");
  // Copies get a higher priority than kernels: they are short, and other lanes wait for them.
  state_->must(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                            lane == Lane::kCompute ? least : greatest),
               "a stream");
  call_lane_.stream = stream_;
  if (group_->queues[static_cast<size_t>(lane)] == nullptr) group_->queues[static_cast<size_t>(lane)] = this;
}

CudaQueue::~CudaQueue() {
  cudaSetDevice(state_->ordinal);
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
  if (CudaQueue*& listed = group_->queues[static_cast<size_t>(lane_)]; listed == this) listed = nullptr;
}

// Runs unless poisoned; whatever it throws becomes the poison.
template <class Body>
void CudaQueue::guarded(const Body& body) {
  if (group_->poisoned()) return;
  try {
    state_->enter();  // whichever thread submits
    body();
  } catch (const Error& error) {
    if (error.code() == Code::kDeviceLost)
      state_->lost.keep(error);  // a kernel's launch may be the first to know
    group_->poison.keep(error);
  } catch (const std::bad_alloc&) {
    group_->poison.keep(Error(Code::kOutOfMemory, "submitting work ran out of memory"));
  } catch (const std::exception& error) {
    group_->poison.keep(Error(Code::kInternal, cat("submitting work failed: ", error.what())));
  }
}

template <class Body>
void CudaQueue::traced(const Body& body) {
  if (!tracing_) return body();
  Stopwatch::Pair& pair = trace_.emplace_back(state_);
  state_->must(cudaEventRecordWithFlags(pair.begin.get(), stream_, cudaEventRecordDefault), "a trace");
  body();
  state_->must(cudaEventRecordWithFlags(pair.end.get(), stream_, cudaEventRecordDefault), "a trace");
}

void CudaQueue::launch(const kernels::Kernel& kernel, const kernels::Call& call) {
  if (lane_ == Lane::kHost) return launch_on_host(kernel, call);
  guarded([&] {
    call_lane_.key = group_->is_recording() ? group_->key.device() : nullptr;
    kernels::Call here = call;
    here.lane = &call_lane_;
    traced([&] { kernel.run(here); });
  });
}

void CudaQueue::launch_on_host(const kernels::Kernel& kernel, const kernels::Call& call) {
  guarded([&] {
    host_tasks_.push_back({group_.get(), &kernel, call});
    traced([&] {
      state_->must(cudaLaunchHostFunc(stream_, run_host_task, &host_tasks_.back()), "a kernel of the host");
    });
  });
}

void CudaQueue::copy(Location to, Location from, int64_t bytes) {
  const Copy part{to, from, bytes};
  copy({&part, 1});
}

void CudaQueue::copy(std::span<const Copy> parts) {
  check_parts<CudaBlock>(parts);
  if (skip_copies_ != nullptr && skip_copies_->load(std::memory_order_relaxed)) return;
  guarded([&] {
    const bool recording = group_->is_recording(), timed = group_->measures();
    const auto tier = static_cast<size_t>(lower_tier(parts[0]));
    traced([&] {
      if (timed) times_.begin(stream_, recording);
      for (const Copy& part : parts) {
        submit(part);
        (recording ? recorded_bytes_ : moved_)[tier] += part.bytes;
      }
      if (timed) times_.end(stream_, recording, kCopies + tier);
    });
  });
}

void CudaQueue::submit(const Copy& part) {
  const CudaBlock& to = own_range<CudaBlock>(part.to, part.bytes);
  const CudaBlock& from = own_range<CudaBlock>(part.from, part.bytes);
  if (to.tier() == Tier::kDisk) return submit_disk(to, part, true);
  if (from.tier() == Tier::kDisk) return submit_disk(from, part, false);
  const cudaMemcpyKind kind = to.tier() == from.tier()     ? cudaMemcpyDefault
                              : to.tier() == Tier::kDevice ? cudaMemcpyHostToDevice
                                                           : cudaMemcpyDeviceToHost;
  state_->must(cudaMemcpyAsync(static_cast<char*>(to.address()) + part.to.offset,
                               static_cast<const char*>(from.address()) + part.from.offset,
                               static_cast<size_t>(part.bytes), kind, stream_),
               "a copy");
}

// Of the device's memory through the slot of this direction, piece by piece; the disk's own ring takes what the slot holds.
void CudaQueue::submit_disk(const CudaBlock& block, const Copy& part, bool writes) {
  const Location& here = writes ? part.from : part.to;
  require(here.block->tier() != Tier::kDisk, Code::kUnsupported, "copies from disk to disk");
  DiskMemory& disk = block.disk();
  if (here.block->tier() == Tier::kHost) {
    tasks_.push_back({group_.get(), &disk.disk, &splitter_,
                      static_cast<char*>(here.block->address()) + here.offset,
                      writes ? part.to.offset : part.from.offset, part.bytes, writes});
    state_->must(cudaLaunchHostFunc(stream_, run_disk_task, &tasks_.back()), "a disk copy");
    return;
  }
  const HostMemory& slot = writes ? disk.out : disk.in;
  for (int64_t done = 0; done < part.bytes;) {
    const int64_t bytes = std::min(slot.bytes(), part.bytes - done);
    char* const device = static_cast<char*>(here.block->address()) + here.offset + done;
    const int64_t offset = (writes ? part.to.offset : part.from.offset) + done;
    tasks_.push_back({group_.get(), &disk.disk, &splitter_, slot.address(), offset, bytes, writes});
    const auto on_disk = [&] {
      state_->must(cudaLaunchHostFunc(stream_, run_disk_task, &tasks_.back()), "a disk copy");
    };
    if (!writes) on_disk();
    state_->must(cudaMemcpyAsync(writes ? slot.address() : device, writes ? device : slot.address(),
                                 static_cast<size_t>(bytes),
                                 writes ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice, stream_),
                 "a disk copy");
    if (writes) on_disk();
    done += bytes;
  }
}

void CudaQueue::record(Event& event) {
  auto& mine = own<CudaEvent>(event, "event");
  guarded([&] {
    state_->must(cudaEventRecordWithFlags(mine.get(), stream_, cudaEventRecordDefault), "an event");
    mine.recorded = true;
    mine.recording = group_->recording;
  });
}

void CudaQueue::wait(Event& event) {
  auto& mine = own<CudaEvent>(event, "event");
  // Never recorded; or before this recording, or in one: both are over, as runs end with synchronize().
  if (!mine.recorded || mine.recording != group_->recording) return;
  guarded([&] {
    const bool timed = lane_ == Lane::kCompute && group_->measures(), recording = group_->is_recording();
    if (timed) times_.begin(stream_, recording);
    state_->must(cudaStreamWaitEvent(stream_, mine.get(), 0), "waiting for an event");
    if (timed) times_.end(stream_, recording, kStall);
  });
}

void CudaQueue::synchronize() {
  require(!group_->is_recording(), Code::kWrongState, "a queue is waited for while it is recorded");
  cudaSetDevice(state_->ordinal);
  group_->gate.open();
  if (const cudaError_t status = cudaStreamSynchronize(stream_); status != cudaSuccess)
    group_->poison.keep(state_->note(status, cat("'", state_->info.name, "' failed in queued work")));
  times_.settle();
  for (RecordedLane* lane : ran_) {
    if (lane->measured == nullptr) lane->seconds = {};
    for (const Stopwatch::Pair& pair : lane->timed) lane->seconds[pair.kind] += Stopwatch::seconds_of(pair);
    const RecordedLane& known = lane->measured == nullptr ? *lane : *lane->measured;
    for (size_t kind = 0; kind < kKinds; ++kind) times_.add(kind, known.seconds[kind]);
  }
  ran_.clear();
  tasks_.clear();
  host_tasks_.clear();
  group_->poison.raise();
  state_->lost.raise();
}

double CudaQueue::take_busy_seconds() {
  double sum = 0;
  for (size_t tier = 0; tier < kTierCount; ++tier) sum += times_.take(kCopies + tier);
  return sum;
}

std::array<Traffic, kTierCount> CudaQueue::take_traffic() {
  std::array<Traffic, kTierCount> traffic;
  for (size_t tier = 0; tier < kTierCount; ++tier)
    traffic[tier] = {std::exchange(moved_[tier], 0), times_.take(kCopies + tier)};
  return traffic;
}

void CudaQueue::trace(bool on) {
  tracing_ = false;
  trace_.clear();
  if (!on) return;
  state_->enter();
  if (!trace_begin_) trace_begin_ = std::make_unique<CudaEvent>(state_, true);
  state_->must(cudaStreamSynchronize(stream_), "a trace");
  state_->must(cudaEventRecordWithFlags(trace_begin_->get(), stream_, cudaEventRecordDefault), "a trace");
  state_->must(cudaStreamSynchronize(stream_), "a trace");
  trace_began_ = now();
  tracing_ = true;
  group_->gate.close();
  state_->must(cudaLaunchHostFunc(stream_, &Gate::wait, &group_->gate), "a trace");
}

std::vector<Queue::Busy> CudaQueue::take_trace() {
  std::vector<Busy> spans;
  const auto since = [&](const CudaEvent& event) {
    float milliseconds = 0;
    state_->must(cudaEventElapsedTime(&milliseconds, trace_begin_->get(), event.get()), "a trace");
    return trace_began_ + static_cast<double>(milliseconds) * 1e-3;
  };
  for (const Stopwatch::Pair& pair : trace_) spans.push_back({since(pair.begin), since(pair.end)});
  trace_.clear();
  return spans;
}

RecordedLane CudaQueue::take_recorded() {
  return {.timed = times_.keep(),
          .tasks = std::exchange(tasks_, {}),
          .host_tasks = std::exchange(host_tasks_, {}),
          .bytes = std::exchange(recorded_bytes_, {})};
}

void CudaQueue::ran(RecordedLane& lane) {
  ran_.push_back(&lane);
  for (size_t tier = 0; tier < kTierCount; ++tier) moved_[tier] += lane.bytes[tier];
}

}  // namespace cairn::device::cuda
