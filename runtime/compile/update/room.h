// How the programs between micro-batches use the free part of the arena: a workspace, values in one piece, a ring
// of pieces.
#pragma once
#include <algorithm>
#include <deque>

#include "runtime/base/checked.h"
#include "runtime/compile/program_writer.h"
#include "runtime/compile/update/streamed.h"

namespace cairn::engine {

struct Area {
  int64_t offset = 0, bytes = 0;
  bool overlaps(const Area& other) const {
    return offset < other.offset + other.bytes && other.offset < offset + bytes;
  }
};

// The free part of the arena, divided.
struct Room {
  int64_t workspace = 0, workspace_bytes = 0;
  int64_t end = 0;           // of the free part
  int64_t master_bytes = 0;  // the most that an update fetches in one piece (whole_values())
  Area masters, ring;

  // Where nothing streams, the workspace has all the room.
  Room(const Placed& plan, int64_t max_workspace, int64_t masters_bytes) : master_bytes(masters_bytes) {
    const Placed::FreeRange free = plan.free_range();
    workspace = free.offset;
    end = free.offset + free.bytes;
    workspace_bytes = !plan.streams() ? free.bytes : max_workspace;
    int64_t left = free.bytes - workspace_bytes;
    const int64_t least = least_ring_bytes(plan);
    require(left >= master_bytes + least, Code::kInternal, "an update needs ",
            workspace_bytes + master_bytes + least, " bytes; ", free.bytes, " are free");
    // With two slots, the next weight comes in while the first is packed.
    const int64_t slots = left - 2 * master_bytes >= std::max(kSlots * kPieceBytes, least) ? 2 : 1;
    masters = {workspace + workspace_bytes, slots * master_bytes};
    left -= masters.bytes;
    ring = {masters.offset + masters.bytes, left / kAlignment * kAlignment};
  }
  // Bytes of a piece: a third of the ring, in whole pages if that leaves any.
  int64_t max_piece() const {
    const int64_t most = std::min(kPieceBytes, ring.bytes / kSlots);
    return most >= kPageBytes ? most / kPageBytes * kPageBytes
                              : std::max<int64_t>(most / (2 * kAlignment), 1) * 2 * kAlignment;
  }
};

// A ring: ranges of an area in the arena or the host tier, used by one value after the other.
class Slots {
 public:
  // lane: the queue that brings values in. On the host tier the ledger counts the ring as one range.
  Slots(ProgramWriter& writer, Area whole, device::Lane lane = device::Lane::kCopyIn,
        Tier tier = Tier::kDevice)
      : writer_(writer), whole_(whole), lane_(lane), tier_(tier), next_(whole.offset) {}

  // The range for the next value. The lane waits until what lay there is no longer used.
  int64_t take(int64_t bytes) {
    if (next_ + bytes > whole_.offset + whole_.bytes) next_ = whole_.offset;
    const Area area{next_, bytes};
    next_ += bytes;
    for (auto it = used_.begin(); it != used_.end();) {
      if (!it->area.overlaps(area)) {
        ++it;
        continue;
      }
      writer_.wait(lane_, it->done);
      if (it->range >= 0) writer_.end(it->range);
      it = used_.erase(it);
    }
    const int32_t range = tier_ == Tier::kDevice ? writer_.begin(tier_, area.offset, bytes) : -1;
    used_.push_back({area, range, -1});
    return area.offset;
  }
  // After `event` nothing uses the range at `offset`.
  void done(int64_t offset, int32_t event) {
    for (Used& used : used_)
      if (used.area.offset == offset) used.done = event;
  }
  void end() {
    for (const Used& used : used_)
      if (used.range >= 0) writer_.end(used.range);
    used_.clear();
    next_ = whole_.offset;
  }

 private:
  struct Used {
    Area area;
    int32_t range, done;
  };
  ProgramWriter& writer_;
  const Area whole_;
  const device::Lane lane_;
  const Tier tier_;
  int64_t next_;
  std::deque<Used> used_;
};

}  // namespace cairn::engine
