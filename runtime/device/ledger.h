// The one account of bytes. Blocks (arenas) are counted when a device allocates them; what lives inside an
// arena is counted by the engine as the program runs. Planned and measured peaks are compared on these
// numbers.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/base/error.h"

namespace cairn::device {

struct TierCount {
  int64_t reserved_bytes = 0;  // blocks held now
  int64_t peak_reserved_bytes = 0;
  int64_t live_bytes = 0;  // ranges in use inside blocks now
  int64_t peak_live_bytes = 0;
  int64_t peak_height_bytes = 0;  // highest end of any range: what an arena must hold
  int64_t pinned_bytes = 0;       // locked in memory, of the blocks held and (host) of staging
  int64_t staging_bytes = 0;      // other memory, through which copies of this tier go
};

// Thread-safe.
class Ledger {
 public:
  void reserve(Tier tier, int64_t bytes);  // a block was taken
  void release(Tier tier, int64_t bytes);
  void pin(Tier tier, int64_t bytes);    // negative: no longer
  void stage(Tier tier, int64_t bytes);  // negative: given back
  // From now on that many more ranges can begin without an allocation.
  void prepare(size_t ranges);
  // A range of the tier's arena comes to life / ends. kInternal if it overlaps a live range or was not live.
  void begin_range(Tier tier, int64_t offset, int64_t bytes);
  void end_range(Tier tier, int64_t offset);
  void reset_peaks();  // peaks start again from what is held now
  // To at least these: of ranges that come and go without being told here.
  void raise_peaks(Tier tier, const TierCount& peaks);
  TierCount count(Tier tier) const;

 private:
  mutable std::mutex mutex_;
  std::array<TierCount, kTierCount> counts_{};
  using Ranges = std::map<int64_t, int64_t>;
  std::array<Ranges, kTierCount> ranges_;
  void make_room(size_t spares);

  std::vector<Ranges::node_type> spare_;  // nodes of ranges that ended; room for those of all that live
  size_t live_ = 0;
};

}  // namespace cairn::device
