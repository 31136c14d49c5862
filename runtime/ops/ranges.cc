#include "runtime/ops/ranges.h"

#include <cmath>

#include "runtime/base/error.h"

namespace cairn::ops {
namespace {

constexpr double kMost = 1e38;                     // float32 holds it
constexpr double kReciprocal = 1e-30;              // below it float32 does not hold the reciprocal
constexpr double kMostInteger = 9007199254740992;  // 2^53: integers are exact up to it

constexpr Range kRanges[] = {
    {'u', 0, 1, RANGE_BELOW, "at least 0 and below 1"},
    {'s', 0, 1, 0, "from 0 to 1"},
    {'g', 0, 1, RANGE_ABOVE, "above 0, and at most 1"},
    {'n', 0, kMost, 0, "from 0 to 1e38"},
    {'m', -kMost, 0, 0, "from -1e38 to 0"},
    {'a', 1, kMost, 0, "from 1 to 1e38"},
    {'p', 0, kMost, RANGE_ABOVE, "above 0, and at most 1e38"},
    {'r', kReciprocal, kMost, 0, "from 1e-30 to 1e38"},
    {'b', 0, 1, RANGE_INTEGER | RANGE_SWITCH, "0 or 1"},
    {'c', 1, 99, RANGE_INTEGER, "a whole number from 1 to 99"},
    {'i', 1, 4294967295.0, RANGE_INTEGER, "a whole number from 1 to 4294967295"},
    {'w', 0, kMostInteger, RANGE_INTEGER, "a whole number from 0"},
    {'W', 1, kMostInteger, RANGE_INTEGER, "a whole number from 1"},
    {'l', 1, kMostInteger, RANGE_INTEGER | RANGE_LIST, "whole numbers from 1"},
    {'z', kReciprocal, 3e38, RANGE_OR_ZERO, "0, for the default, or from 1e-30 to 3e38"},
    {'o', 1, 1e6, 0, "from 1 to 1e6"},
    {'k', 1e-6, 1 - 1e-6, 0, "from 1e-6 to 0.999999"},
};

}  // namespace

bool Range::holds(double value) const {
  if (is(RANGE_OR_ZERO) && value == 0) return true;
  const bool above = is(RANGE_ABOVE) ? value > least : value >= least;
  const bool below = is(RANGE_BELOW) ? value < most : value <= most;
  return above && below && (!is(RANGE_INTEGER) || value == std::floor(value));
}

std::span<const Range> ranges() { return kRanges; }

const Range& range(char letter) {
  for (const Range& known : kRanges)
    if (known.letter == letter) return known;
  fail(Code::kInternal, "no range has the letter '", std::string_view(&letter, 1), "'");
}

}  // namespace cairn::ops
