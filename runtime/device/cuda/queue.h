// One lane: a stream. Submitting enqueues and returns; errors of submitting are kept as the group's poison.
#pragma once
#include <deque>
#include <vector>

#include "runtime/base/cuda/stream_context.h"
#include "runtime/device/cuda/group.h"
#include "runtime/device/cuda/stopwatch.h"
#include "runtime/device/host/splitter.h"

namespace cairn::device::cuda {

// Moves bytes between host memory and the disk, from within a stream.
struct DiskTask {
  CudaGroup* group;
  host::Disk* disk;
  host::Splitter* splitter;
  char* memory;
  int64_t offset, bytes;
  bool writes;
};

// A kernel of the host's processors, from within a stream.
struct HostTask {
  CudaGroup* group;
  const kernels::Kernel* kernel;
  kernels::Call call;
};

// Kinds of seconds: waits of the compute lane; copies, by the tier at the other end.
inline constexpr size_t kStall = 0, kCopies = 1, kKinds = kCopies + kTierCount;

// What one queue's part of a recording leaves to do at every run of it.
struct RecordedLane {
  std::deque<Stopwatch::Pair> timed;
  std::array<double, kKinds> seconds{};    // that these were apart in its last run
  const RecordedLane* measured = nullptr;  // of a recording without times: whose seconds are its
  std::deque<DiskTask> tasks;
  std::deque<HostTask> host_tasks;
  std::array<int64_t, kTierCount> bytes{};
};

class CudaQueue : public Queue {
 public:
  CudaQueue(std::shared_ptr<State> state, std::shared_ptr<CudaGroup> group, Lane lane);
  ~CudaQueue() override;  // finishes what was submitted
  void launch(const kernels::Kernel& kernel, const kernels::Call& call) override;
  void copy(Location to, Location from, int64_t bytes) override;
  void copy(std::span<const Copy> parts) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  void synchronize() override;
  double take_stall_seconds() override { return times_.take(kStall); }
  double take_busy_seconds() override;
  std::array<Traffic, kTierCount> take_traffic() override;
  void trace(bool on) override;
  std::vector<Busy> take_trace() override;
  void skip_copies_while(const std::atomic<bool>* flag) override { skip_copies_ = flag; }

  cudaStream_t stream() const { return stream_; }
  RecordedLane take_recorded();  // at the end of a recording
  void ran(RecordedLane&);       // as part of a recording's run; must live until synchronize()

 private:
  template <class Body>
  void guarded(const Body& body);
  template <class Body>
  void traced(const Body& body);
  void launch_on_host(const kernels::Kernel& kernel, const kernels::Call& call);
  void submit(const Copy& part);
  void submit_disk(const CudaBlock& disk, const Copy& part, bool writes);

  const std::shared_ptr<State> state_;
  const std::shared_ptr<CudaGroup> group_;
  const Lane lane_;
  cudaStream_t stream_ = nullptr;
  kernels::cuda::StreamContext call_lane_;
  Stopwatch times_;
  std::array<int64_t, kTierCount> moved_{}, recorded_bytes_{};
  std::deque<DiskTask> tasks_;  // under way, or of the recording under way
  std::deque<HostTask> host_tasks_;
  std::vector<RecordedLane*> ran_;
  const std::atomic<bool>* skip_copies_ = nullptr;
  host::Splitter splitter_{false};

  bool tracing_ = false;
  std::unique_ptr<CudaEvent> trace_begin_;
  double trace_began_ = 0;  // on the host's clock
  std::deque<Stopwatch::Pair> trace_;
};

}  // namespace cairn::device::cuda
