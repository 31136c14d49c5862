// Numbers of a tensor that come in parts, encoded as all of them say.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/formats/codecs.h"

namespace cairn::formats {

class Encoder {
 public:
  // row: how many values a row of the tensor has.
  Encoder(DType type, int64_t row) : codec_(codec(type)), row_(row) {}

  // Whether all parts have to be measured before any is encoded. Parts begin where a block does.
  bool measures() const { return codec_.scope != Scope::kBlock; }
  void measure(int64_t first, std::span<const float> part);
  // False: a number is none that the format can store.
  bool encode(int64_t first, std::span<const float> part, void* to) const;

 private:
  const Codec& codec_;
  int64_t row_;
  std::vector<Known> known_;  // by row, or one
};

}  // namespace cairn::formats
