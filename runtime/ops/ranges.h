// What the numbers of optimizers, schedules and steppers may be. Tables name a range by its letter.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace cairn::ops {

enum RangeTrait : uint32_t {
  RANGE_ABOVE = 1u << 0,    // `least` itself is out of range
  RANGE_BELOW = 1u << 1,    // `most` itself is out of range
  RANGE_INTEGER = 1u << 2,  // integers alone
  RANGE_OR_ZERO = 1u << 3,  // 0, too, which stands for a default
  RANGE_LIST = 1u << 4,     // several such numbers, ascending
  RANGE_SWITCH = 1u << 5,   // no or yes
};

struct Range {
  char letter;
  double least, most;
  uint32_t traits;
  std::string_view words;  // after "it must be"

  bool is(RangeTrait t) const { return traits & t; }
  bool holds(double value) const;
};

std::span<const Range> ranges();
// kInternal: a table names a letter that no range has.
const Range& range(char letter);

}  // namespace cairn::ops
