#include "runtime/device/cuda/recording.h"

namespace cairn::device::cuda {
namespace {

CudaQueue& compute_of(const CudaGroup& group) {
  CudaQueue* const compute = group.queues[static_cast<size_t>(Lane::kCompute)];
  require(compute != nullptr, Code::kWrongState, "a group without a compute queue is recorded");
  return *compute;
}

// All work submitted to `to` from here on comes after all submitted to `from` so far.
void order(const State& state, const std::shared_ptr<State>& shared, CudaQueue& from, CudaQueue& to) {
  CudaEvent point(shared);
  state.must(cudaEventRecordWithFlags(point.get(), from.stream(), cudaEventRecordDefault), "a recording");
  state.must(cudaStreamWaitEvent(to.stream(), point.get(), 0), "a recording");
}

class CudaRecording : public Recording {
 public:
  CudaRecording(std::shared_ptr<CudaGroup> group, cudaGraph_t graph) : group_(std::move(group)) {
    for (size_t lane = 0; lane < kLanes; ++lane)
      if (group_->queues[lane] != nullptr) lanes_[lane] = group_->queues[lane]->take_recorded();
    group_->state->must(cudaGraphInstantiate(&executable_, graph, 0), "cudaGraphInstantiate");
  }
  ~CudaRecording() override { cudaGraphExecDestroy(executable_); }

  void run(const RandomKey& key) override {
    if (group_->poisoned()) return;
    group_->state->enter();
    group_->key.set(key);
    const cudaError_t status = cudaGraphLaunch(executable_, compute_of(*group_).stream());
    if (status != cudaSuccess) return group_->poison.keep(group_->state->note(status, "cudaGraphLaunch"));
    for (size_t lane = 0; lane < kLanes; ++lane)
      if (group_->queues[lane] != nullptr) group_->queues[lane]->ran(lanes_[lane]);
  }

 private:
  const std::shared_ptr<CudaGroup> group_;
  cudaGraphExec_t executable_ = nullptr;
  std::array<RecordedLane, kLanes> lanes_;
};

}  // namespace

void begin_recording(CudaGroup& group) {
  const State& state = *group.state;
  state.enter();
  CudaQueue& compute = compute_of(group);
  state.must(cudaStreamBeginCapture(compute.stream(), cudaStreamCaptureModeRelaxed),
             "cudaStreamBeginCapture");
  group.recording = ++group.recordings;
  try {
    state.must(group.key.submit_copy(compute.stream()), "a recording");
    for (CudaQueue* queue : group.queues)
      if (queue != nullptr && queue != &compute) order(state, group.state, compute, *queue);
  } catch (const Error& error) {  // end_recording() says it
    group.poison.keep(error);
  }
}

std::unique_ptr<Recording> end_recording(const std::shared_ptr<CudaGroup>& group) {
  const State& state = *group->state;
  CudaQueue& compute = compute_of(*group);
  require(group->is_recording(), Code::kWrongState, "no recording is under way");
  cudaGraph_t graph = nullptr;
  cudaError_t status = cudaSuccess;
  try {
    for (CudaQueue* queue : group->queues)
      if (queue != nullptr && queue != &compute) order(state, group->state, *queue, compute);
  } catch (const Error& error) {
    group->poison.keep(error);
  }
  status = cudaStreamEndCapture(compute.stream(), &graph);
  group->recording = 0;
  const auto drop = [](cudaGraph_t* g) {
    if (*g != nullptr) cudaGraphDestroy(*g);
  };
  const std::unique_ptr<cudaGraph_t, decltype(drop)> owned(&graph, drop);
  group->poison.raise();
  state.must(status, "cudaStreamEndCapture");
  return std::make_unique<CudaRecording>(group, graph);
}

}  // namespace cairn::device::cuda
