#include "runtime/device/cuda/recording.h"

#include <algorithm>

namespace cairn::device::cuda {
namespace {

CudaQueue& compute_of(const CudaGroup& group) {
  CudaQueue* const compute = group.queues[static_cast<size_t>(Lane::kCompute)];
  require(compute != nullptr, Code::kWrongState, "a group without a compute queue is recorded");
  return *compute;
}

// All work submitted to `to` from here on comes after all submitted to `from` so far.
void order(const std::shared_ptr<State>& state, CudaQueue& from, CudaQueue& to) {
  CudaEvent point(state);
  state->must(cudaEventRecordWithFlags(point.get(), from.stream(), cudaEventRecordDefault), "a recording");
  state->must(cudaStreamWaitEvent(to.stream(), point.get(), 0), "a recording");
}

class CudaRecording : public Recording {
 public:
  CudaRecording(std::shared_ptr<CudaGroup> group, std::array<RecordedLane, kLaneCount> lanes,
                cudaGraph_t graph)
      : group_(std::move(group)), lanes_(std::move(lanes)) {
    group_->state->must(cudaGraphInstantiate(&executable_, graph, 0), "cudaGraphInstantiate");
    if (const auto* measured = dynamic_cast<const CudaRecording*>(group_->measured))
      for (size_t lane = 0; lane < kLaneCount; ++lane) lanes_[lane].measured = &measured->lanes_[lane];
  }
  ~CudaRecording() override { cudaGraphExecDestroy(executable_); }

  bool measures() const override {
    return std::any_of(lanes_.begin(), lanes_.end(),
                       [](const RecordedLane& lane) { return !lane.timed.empty(); });
  }
  void run(const RandomKey& key) override {
    if (group_->poisoned()) return;
    group_->state->enter();
    cudaStream_t const stream = compute_of(*group_).stream();
    cudaError_t status = group_->key.submit(key, stream);
    if (status == cudaSuccess) status = cudaGraphLaunch(executable_, stream);
    if (status != cudaSuccess) return group_->poison.keep(group_->state->note(status, "cudaGraphLaunch"));
    for (size_t lane = 0; lane < kLaneCount; ++lane)
      if (group_->queues[lane] != nullptr) group_->queues[lane]->ran(lanes_[lane]);
  }

 private:
  const std::shared_ptr<CudaGroup> group_;
  std::array<RecordedLane, kLaneCount> lanes_;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace

void begin_recording(CudaGroup& group, const Recording* measured) {
  const State& state = *group.state;
  state.enter();
  CudaQueue& compute = compute_of(group);
  state.must(cudaStreamBeginCapture(compute.stream(), cudaStreamCaptureModeRelaxed),
             "cudaStreamBeginCapture");
  group.recording = ++group.recordings;
  group.measured = measured;
  try {
    for (CudaQueue* queue : group.queues)
      if (queue != nullptr && queue != &compute) order(group.state, compute, *queue);
  } catch (const Error& error) {  // end_recording() says it
    group.poison.keep(error);
  }
}

std::unique_ptr<Recording> end_recording(const std::shared_ptr<CudaGroup>& group) {
  const State& state = *group->state;
  CudaQueue& compute = compute_of(*group);
  require(group->is_recording(), Code::kWrongState, "no recording is under way");
  cudaGraph_t graph = nullptr;
  try {
    for (CudaQueue* queue : group->queues)
      if (queue != nullptr && queue != &compute) order(group->state, *queue, compute);
  } catch (const Error& error) {
    group->poison.keep(error);
  }
  const cudaError_t status = cudaStreamEndCapture(compute.stream(), &graph);
  group->recording = 0;
  // Taken out in any case: what a failed recording has left must not become part of the next one.
  std::array<RecordedLane, kLaneCount> lanes;
  for (size_t lane = 0; lane < kLaneCount; ++lane)
    if (group->queues[lane] != nullptr) lanes[lane] = group->queues[lane]->take_recorded();
  const auto drop = [](cudaGraph_t* g) {
    if (*g != nullptr) cudaGraphDestroy(*g);
  };
  const std::unique_ptr<cudaGraph_t, decltype(drop)> owned(&graph, drop);
  group->poison.raise();
  state.must(status, "cudaStreamEndCapture");
  return std::make_unique<CudaRecording>(group, std::move(lanes), graph);
}

}  // namespace cairn::device::cuda
