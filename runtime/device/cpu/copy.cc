#include "runtime/device/cpu/copy.h"

#include <algorithm>

#include "runtime/base/checked.h"

namespace cairn::device::cpu {
namespace {

constexpr int64_t kChunk = int64_t{1} << 20;

void memory_to_memory(Splitter& splitter, Throttle* link, char* to, const char* from, int64_t bytes) {
  if (link == nullptr || !link->on()) return splitter.move(to, from, bytes);
  const Clock::time_point start = link->take(bytes);
  for (int64_t done = 0; done < bytes;) {
    const int64_t part = std::min(kChunk, bytes - done);
    splitter.move(to + done, from + done, part);
    done += part;
    link->pace(start, done);
  }
}

}  // namespace

void copy(State& state, Splitter& splitter, const CpuBlock& to, int64_t to_offset, const CpuBlock& from,
          int64_t from_offset, int64_t bytes) {
  const auto at = [](const CpuBlock& block, int64_t offset) {
    return static_cast<char*>(block.address()) + offset;
  };
  if (to.tier() == Tier::kDisk) {
    require(from.tier() != Tier::kDisk, Code::kUnsupported, "copies from disk to disk");
    to.file().write(at(from, from_offset), to_offset, bytes);
  } else if (from.tier() == Tier::kDisk) {
    from.file().read(at(to, to_offset), from_offset, bytes);
  } else {
    Throttle* const between = to.tier() == Tier::kHost ? &state.out_link : &state.in_link;
    Throttle* const link = to.tier() == from.tier() ? nullptr : between;
    memory_to_memory(splitter, link, at(to, to_offset), at(from, from_offset), bytes);
  }
}

}  // namespace cairn::device::cpu
