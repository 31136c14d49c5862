#include "runtime/device/host/throttle.h"

#include <algorithm>
#include <thread>

namespace cairn::device::host {
namespace {
constexpr std::chrono::microseconds kWakeUp{200};  // at most, on a busy machine
}

Clock::duration Throttle::time_of(int64_t bytes) const {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(static_cast<double>(bytes) / rate_));
}

Clock::time_point Throttle::take(int64_t bytes, bool follows) {
  const Clock::time_point now = Clock::now();
  if (!on()) return now;
  std::lock_guard lock(mutex_);
  const Clock::time_point start = std::max(follows ? now - kWakeUp : now, free_at_);
  free_at_ = start + time_of(bytes);
  return start;
}

void Throttle::pace(Clock::time_point start, int64_t bytes) const {
  if (on()) std::this_thread::sleep_until(start + time_of(bytes));
}

}  // namespace cairn::device::host
