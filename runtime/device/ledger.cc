#include "runtime/device/ledger.h"

#include <algorithm>
#include <iterator>

namespace cairn::device {
namespace {

size_t index(Tier tier) { return static_cast<size_t>(tier); }
std::string_view name(Tier tier) { return kTierNames[index(tier)]; }

}  // namespace

void Ledger::reserve(Tier tier, int64_t bytes) {
  std::lock_guard lock(mutex_);
  TierCount& c = counts_[index(tier)];
  c.reserved_bytes += bytes;
  c.peak_reserved_bytes = std::max(c.peak_reserved_bytes, c.reserved_bytes);
}

void Ledger::release(Tier tier, int64_t bytes) {
  std::lock_guard lock(mutex_);
  counts_[index(tier)].reserved_bytes -= bytes;
}

void Ledger::pin(Tier tier, int64_t bytes) {
  std::lock_guard lock(mutex_);
  counts_[index(tier)].pinned_bytes += bytes;
}

void Ledger::stage(Tier tier, int64_t bytes) {
  std::lock_guard lock(mutex_);
  counts_[index(tier)].staging_bytes += bytes;
}

void Ledger::make_room(size_t spares) {
  if (spare_.capacity() < spares) spare_.reserve(std::max(spares, 2 * spare_.capacity()));
}

void Ledger::prepare(size_t ranges) {
  std::lock_guard lock(mutex_);
  Ranges made;
  for (size_t i = spare_.size(); i < ranges; ++i) made.emplace(static_cast<int64_t>(i), 0);
  make_room(live_ + spare_.size() + made.size());
  while (!made.empty()) spare_.push_back(made.extract(made.begin()));
}

void Ledger::begin_range(Tier tier, int64_t offset, int64_t bytes) {
  std::lock_guard lock(mutex_);
  auto& ranges = ranges_[index(tier)];
  const int64_t end = offset + bytes;
  require(offset >= 0 && bytes > 0, Code::kInternal, name(tier), " range [", offset, ", ", end,
          ") is not a range");
  const auto after = ranges.lower_bound(offset);
  require(after == ranges.end() || after->first >= end, Code::kInternal, name(tier), " range [", offset, ", ",
          end, ") overlaps the live one at ", after == ranges.end() ? 0 : after->first);
  if (after != ranges.begin()) {
    const auto before = std::prev(after);
    require(before->first + before->second <= offset, Code::kInternal, name(tier), " range [", offset, ", ",
            end, ") overlaps the live one [", before->first, ", ", before->first + before->second, ")");
  }
  if (spare_.empty()) {
    make_room(live_ + 1);
    ranges.emplace_hint(after, offset, bytes);
  } else {
    Ranges::node_type node = std::move(spare_.back());
    spare_.pop_back();
    node.key() = offset;
    node.mapped() = bytes;
    ranges.insert(after, std::move(node));
  }
  ++live_;
  TierCount& c = counts_[index(tier)];
  c.live_bytes += bytes;
  c.peak_live_bytes = std::max(c.peak_live_bytes, c.live_bytes);
  c.peak_height_bytes = std::max(c.peak_height_bytes, end);
}

void Ledger::end_range(Tier tier, int64_t offset) {
  std::lock_guard lock(mutex_);
  auto& ranges = ranges_[index(tier)];
  const auto found = ranges.find(offset);
  require(found != ranges.end(), Code::kInternal, name(tier), " range at ", offset, " ends but is not live");
  counts_[index(tier)].live_bytes -= found->second;
  spare_.push_back(ranges.extract(found));
  --live_;
}

void Ledger::reset_peaks() {
  std::lock_guard lock(mutex_);
  for (size_t t = 0; t < counts_.size(); ++t) {
    TierCount& c = counts_[t];
    c.peak_reserved_bytes = c.reserved_bytes;
    c.peak_live_bytes = c.live_bytes;
    c.peak_height_bytes = ranges_[t].empty() ? 0 : ranges_[t].rbegin()->first + ranges_[t].rbegin()->second;
  }
}

void Ledger::raise_peaks(Tier tier, const TierCount& peaks) {
  std::lock_guard lock(mutex_);
  TierCount& c = counts_[index(tier)];
  c.peak_reserved_bytes = std::max(c.peak_reserved_bytes, peaks.peak_reserved_bytes);
  c.peak_live_bytes = std::max(c.peak_live_bytes, peaks.peak_live_bytes);
  c.peak_height_bytes = std::max(c.peak_height_bytes, peaks.peak_height_bytes);
}

TierCount Ledger::count(Tier tier) const {
  std::lock_guard lock(mutex_);
  return counts_[index(tier)];
}

}  // namespace cairn::device
