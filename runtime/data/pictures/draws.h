// Random numbers of one picture: the n-th is a pure function of (seed, purpose, epoch, item, n).
#pragma once
#include <cstdint>

#include "runtime/base/random.h"

namespace cairn::data {

enum class Purpose : uint32_t { kDrawing = 1, kNoise = 2, kAugment = 3, kMix = 4 };

class Draws {
 public:
  Draws(uint64_t seed, Purpose purpose, uint64_t epoch, uint64_t item)
      : key0_(static_cast<uint32_t>(seed)),
        key1_(static_cast<uint32_t>(seed >> 32)),
        counter_{0, static_cast<uint32_t>(epoch), static_cast<uint32_t>(item),
                 static_cast<uint32_t>(item >> 32) ^ static_cast<uint32_t>(purpose) << 24} {}

  PhiloxBlock block() {
    const PhiloxBlock made = philox(counter_, key0_, key1_);
    ++counter_[0];
    return made;
  }
  uint32_t bits() {
    if (used_ == 4) {
      last_ = block();
      used_ = 0;
    }
    return last_[used_++];
  }
  double unit() { return bits() * 0x1p-32; }  // in [0, 1)
  double between(double low, double high) { return low + (high - low) * unit(); }
  int below(int count) { return static_cast<int>(uint64_t{bits()} * static_cast<uint64_t>(count) >> 32); }

 private:
  uint32_t key0_, key1_;
  PhiloxBlock counter_, last_{};
  uint32_t used_ = 4;
};

}  // namespace cairn::data
