#include "runtime/device/check/checker.h"

namespace cairn::device::check {

VectorClock& Checker::clock(size_t queue) { return clocks_[queue]; }

Epoch Checker::start(size_t queue) {
  VectorClock& mine = clock(queue);
  mine.join(host_);
  return {queue, mine.tick(queue)};
}

Region* Checker::add_region(Tier tier, int64_t bytes, const void* address) {
  auto region = std::make_unique<Region>(Region{tier, bytes, reinterpret_cast<uintptr_t>(address), {}});
  Region* const raw = region.get();
  if (address != nullptr) by_address_.emplace(raw->address, raw);
  regions_.emplace(raw, std::move(region));
  return raw;
}

void Checker::remove_region(Region* region, std::unique_ptr<Block> block) {
  if (const auto busy = region->history.pending(host_)) {
    held_.push_back(std::move(block));
    violation(cat("a ", kTierNames[static_cast<size_t>(region->tier)], " block of ", region->bytes,
                  " bytes is released while work may still use it (", busy->what,
                  "): synchronize with that queue first"));
  }
  if (region->address != 0) by_address_.erase(region->address);
  regions_.erase(region);
}

Region* Checker::find(const void* address, int64_t bytes) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  auto after = by_address_.upper_bound(at);
  if (after == by_address_.begin()) return nullptr;
  Region* const region = std::prev(after)->second;
  const int64_t offset = static_cast<int64_t>(at - region->address);
  return offset <= region->bytes - bytes ? region : nullptr;
}

bool Checker::access(Region& region, int64_t offset, int64_t bytes, bool write, const Access& access) {
  const auto race = region.history.access(offset, offset + bytes, write, access, clock(access.when.queue));
  if (race)
    violation(cat("race on bytes [", offset, ", ", offset + bytes, ") of the ",
                  kTierNames[static_cast<size_t>(region.tier)], " block: ", access.what,
                  write ? " writes" : " reads", " them, and no event orders it after ", race->what));
  return !race;
}

void Checker::synchronised(const VectorClock& reached) {
  host_.join(reached);
  for (auto& [raw, region] : regions_) region->history.forget(host_);
}

void Checker::violation(std::string message) {
  if (error_) return;
  error_.emplace(Code::kInternal, "device check: " + std::move(message));
  poisoned_.store(true);
}

void Checker::raise() const {
  if (error_) throw *error_;
}

}  // namespace cairn::device::check
