// Lanes: work on one lane runs in order; lanes run side by side and meet at events.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace cairn {

// kHost: kernels of the host's processors, for a device that has processors of its own.
// kHostIn, kHostOut: copies from the disk to the host's memory and back, for those kernels.
enum class Lane : uint8_t { kCompute = 0, kCopyOut = 1, kCopyIn = 2, kHost = 3, kHostIn = 4, kHostOut = 5 };

struct LaneRow {
  std::string_view name;
  const char* thread_name;  // at most 15 characters, as the system shows it
  bool computes;            // kernels run on it; the others move bytes
};
// By Lane.
inline constexpr LaneRow kLanes[] = {
    {"compute", "cairn/compute", true},  {"copy-out", "cairn/copy-out", false},
    {"copy-in", "cairn/copy-in", false}, {"host", "cairn/host", true},
    {"host-in", "cairn/host-in", false}, {"host-out", "cairn/host-out", false},
};
inline constexpr size_t kLaneCount = std::size(kLanes);
inline constexpr const LaneRow& row(Lane lane) { return kLanes[static_cast<size_t>(lane)]; }

}  // namespace cairn
