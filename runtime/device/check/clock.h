// Vector clocks over queues: who has seen how much of whose work (Lamport 1978; Mattern 1989). The submitting
// host has a clock, too: it has seen what it synchronised with, and all work submitted later starts after
// that.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::device::check {

// An epoch: the `time`-th piece of work of queue `queue`.
struct Epoch {
  size_t queue = 0;
  uint64_t time = 0;
};

class VectorClock {
 public:
  uint64_t at(size_t queue) const { return queue < times_.size() ? times_[queue] : 0; }
  bool seen(const Epoch& m) const { return at(m.queue) >= m.time; }
  uint64_t tick(size_t queue) {
    grow(queue + 1);
    return ++times_[queue];
  }
  void join(const VectorClock& other) {
    grow(other.times_.size());
    for (size_t i = 0; i < other.times_.size(); ++i) times_[i] = std::max(times_[i], other.times_[i]);
  }
  size_t size() const { return times_.size(); }

 private:
  void grow(size_t size) {
    if (times_.size() < size) times_.resize(size, 0);
  }
  std::vector<uint64_t> times_;
};

}  // namespace cairn::device::check
