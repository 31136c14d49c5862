// How long pieces of a stream's work take, by pairs of events around them; the pairs are used again.
#pragma once
#include <deque>
#include <vector>

#include "runtime/device/cuda/event.h"

namespace cairn::device::cuda {

class Stopwatch {
 public:
  Stopwatch(std::shared_ptr<State> state, size_t kinds) : state_(std::move(state)), seconds_(kinds, 0) {}

  // Around work that is submitted between the two calls. `external`: while the stream is recorded.
  void begin(cudaStream_t stream, bool external) {
    if (used_ == pairs_.size()) pairs_.emplace_back(state_);
    mark(pairs_[used_].begin, stream, external);
  }
  void end(cudaStream_t stream, bool external, size_t kind) {
    mark(pairs_[used_].end, stream, external);
    pairs_[used_++].kind = kind;
  }
  // The stream is done: adds up the seconds. Pairs of events that belong to a recording are kept with it (keep()).
  void settle() {
    for (size_t i = 0; i < used_; ++i) add(pairs_[i]);
    used_ = 0;
  }
  double take(size_t kind) { return std::exchange(seconds_[kind], 0.0); }

  struct Pair {
    explicit Pair(const std::shared_ptr<State>& state) : begin(state, true), end(state, true) {}
    CudaEvent begin, end;
    size_t kind = 0;
  };
  // The pairs begun since the last settle() become a recording's own; those of earlier work hold times that
  // no run of it may add.
  std::deque<Pair> keep() {
    while (pairs_.size() > used_) pairs_.pop_back();
    used_ = 0;
    return std::exchange(pairs_, {});
  }
  void add(const Pair& pair) { add(pair.kind, seconds_of(pair)); }
  void add(size_t kind, double seconds) { seconds_[kind] += seconds; }
  static double seconds_of(const Pair& pair) {
    float milliseconds = 0;
    const bool known = cudaEventElapsedTime(&milliseconds, pair.begin.get(), pair.end.get()) == cudaSuccess;
    return known ? static_cast<double>(milliseconds) * 1e-3 : 0.0;
  }

 private:
  void mark(CudaEvent& event, cudaStream_t stream, bool external) {
    state_->must(cudaEventRecordWithFlags(event.get(), stream,
                                          external ? cudaEventRecordExternal : cudaEventRecordDefault),
                 "cudaEventRecord");
  }

  const std::shared_ptr<State> state_;
  std::deque<Pair> pairs_;
  size_t used_ = 0;
  std::vector<double> seconds_;  // by kind
};

}  // namespace cairn::device::cuda
