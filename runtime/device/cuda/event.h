// Points in streams, and pairs of them that measure time.
#pragma once
#include "runtime/device/cuda/state.h"

namespace cairn::device::cuda {

class CudaEvent : public Event {
 public:
  CudaEvent(std::shared_ptr<State> state, bool timed = false) : state_(std::move(state)) {
    state_->enter();
    state_->must(cudaEventCreateWithFlags(&event_, timed ? cudaEventDefault : cudaEventDisableTiming),
                 "an event");
  }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  cudaEvent_t get() const { return event_; }

  bool recorded = false;
  uint64_t recording = 0;  // in which recording of its group it was recorded last; 0: in none

 private:
  const std::shared_ptr<State> state_;
  cudaEvent_t event_ = nullptr;
};

}  // namespace cairn::device::cuda
