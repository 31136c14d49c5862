#include "runtime/device/cpu/copy.h"

#include <algorithm>

#include "runtime/base/checked.h"

namespace cairn::device::cpu {
namespace {

constexpr int64_t kChunk = int64_t{1} << 20;

char* at(const CpuBlock& block, int64_t offset) { return static_cast<char*>(block.address()) + offset; }

void disk(host::Splitter& splitter, const CpuBlock& to, const CpuBlock& from, std::span<const Part> parts,
          std::vector<host::Piece>& pieces) {
  const bool writes = to.tier() == Tier::kDisk;
  require(!writes || from.tier() != Tier::kDisk, Code::kUnsupported, "copies from disk to disk");
  pieces.clear();
  for (const Part& part : parts)
    pieces.push_back({writes ? at(from, part.from_offset) : at(to, part.to_offset),
                      writes ? part.to_offset : part.from_offset, part.bytes});
  writes ? to.disk().write(splitter, pieces) : from.disk().read(splitter, pieces);
}

// Copies over a throttled link; all parts reserve the link together, as one transfer.
void paced(host::Splitter& splitter, host::Throttle& link, const CpuBlock& to, const CpuBlock& from,
           std::span<const Part> parts, bool follows) {
  int64_t total = 0;
  for (const Part& part : parts) total += part.bytes;
  const host::Clock::time_point start = link.take(total, follows);
  int64_t arrived = 0;
  for (const Part& part : parts)
    for (int64_t done = 0; done < part.bytes;) {
      const int64_t chunk = std::min(kChunk, part.bytes - done);
      splitter.move(at(to, part.to_offset + done), at(from, part.from_offset + done), chunk);
      done += chunk;
      arrived += chunk;
      if (arrived == total || arrived % kChunk == 0) link.pace(start, arrived);
    }
}

}  // namespace

void copy(host::State& state, host::Splitter& splitter, const CpuBlock& to, const CpuBlock& from,
          std::span<const Part> parts, std::vector<host::Piece>& pieces, bool follows) {
  if (to.tier() == Tier::kDisk || from.tier() == Tier::kDisk) return disk(splitter, to, from, parts, pieces);
  host::Throttle& link = to.tier() == Tier::kHost ? state.out_link : state.in_link;
  if (to.tier() != from.tier() && link.on()) return paced(splitter, link, to, from, parts, follows);
  for (const Part& part : parts)
    splitter.move(at(to, part.to_offset), at(from, part.from_offset), part.bytes);
}

}  // namespace cairn::device::cpu
