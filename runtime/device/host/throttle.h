// Stands in for a link of a stated rate: copies of one direction share it and sleep until their bytes would
// have arrived. Sleeps, never spins.
#pragma once
#include <chrono>
#include <cstdint>
#include <mutex>

namespace cairn::device::host {

using Clock = std::chrono::steady_clock;

class Throttle {
 public:
  explicit Throttle(double bytes_per_second) : rate_(bytes_per_second) {}
  bool on() const { return rate_ > 0; }
  // Reserves the link for `bytes`, after all earlier reservations, and returns when they start to move. follows: the copy
  // was ready before the link was free, so the time that waking up took does not count as the link's.
  Clock::time_point take(int64_t bytes, bool follows = false);
  // Sleeps until `bytes` of a transfer begun at `start` have arrived.
  void pace(Clock::time_point start, int64_t bytes) const;

 private:
  Clock::duration time_of(int64_t bytes) const;

  const double rate_;
  std::mutex mutex_;
  Clock::time_point free_at_{};
};

}  // namespace cairn::device::host
