// The merges of a vocabulary of byte pairs.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/base/error.h"

namespace cairn::tokenizer {

class PairTable {
 public:
  struct Merge {
    uint32_t rank;  // UINT32_MAX: none
    int32_t id;
  };

  // False: the pair is there already. kCorruptFile: the pairs are made to collide.
  bool insert(int32_t left, int32_t right, Merge merge) {
    if (2 * used_ >= slots_.size()) grow();
    const uint64_t key = key_of(left, right);
    size_t at = hash(key) & mask_, steps = 0;
    for (; slots_[at].key != kFree; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return false;
      require(++steps < kMostSteps, Code::kCorruptFile, "merges that all have one hash are not read");
    }
    slots_[at] = {key, merge};
    ++used_;
    return true;
  }
  Merge find(int32_t left, int32_t right) const {
    if (used_ == 0) return {UINT32_MAX, -1};
    const uint64_t key = key_of(left, right);
    for (size_t at = hash(key) & mask_;; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return slots_[at].merge;
      if (slots_[at].key == kFree) return {UINT32_MAX, -1};
    }
  }

 private:
  static constexpr uint64_t kFree = UINT64_MAX;
  static constexpr size_t kMostSteps = 4096;
  struct Slot {
    uint64_t key = kFree;
    Merge merge{UINT32_MAX, -1};
  };
  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  static uint64_t hash(uint64_t key) {
    key *= 0x9E3779B97F4A7C15u;
    key ^= key >> 29;
    key *= 0xD6E8FEB86659FD93u;
    return key >> 32;
  }
  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 64 : old.size() * 2, Slot());
    mask_ = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.key == kFree) continue;
      size_t at = hash(slot.key) & mask_;
      while (slots_[at].key != kFree) at = (at + 1) & mask_;
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t mask_ = 0, used_ = 0;
};

}  // namespace cairn::tokenizer
