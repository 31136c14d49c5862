#include "runtime/plan/residency/outlook.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace cairn::plan {
namespace {

// Share of the seconds by which plans that searches find deviate from a convex curve.
constexpr double kUneven = 5e-4;
constexpr double kCarries = 4;  // a line through two tries is used up to so many times their distance

}  // namespace

void Outlook::add(size_t bytes, double without, double seconds) {
  if (!std::isfinite(seconds)) return;
  const auto [at, fresh] = tried_.emplace(bytes, Seconds{without, seconds});
  if (fresh) return;
  at->second.without = std::min(at->second.without, without);
  at->second.with = std::min(at->second.with, seconds);
}

double Outlook::least(size_t bytes) const {
  double least = -std::numeric_limits<double>::infinity();
  if (tried_.contains(bytes)) return least;
  const auto above = tried_.upper_bound(bytes);
  if (above != tried_.begin() && above != tried_.end())
    least = std::min(above->second.without, std::prev(above)->second.without);
  // Two tries close together say little about the slope further on: then the line goes through a more distant one.
  const auto line = [&](auto next, auto end) {
    if (next == end) return;
    const auto x = [](size_t n) { return static_cast<double>(n); };
    for (auto far = std::next(next); far != end; ++far) {
      const double beyond = (x(next->first) - x(bytes)) / (x(far->first) - x(next->first));
      if (beyond > kCarries) continue;
      const double with = next->second.with, slope = with - far->second.with;
      least = std::max(least, with + slope * beyond - kUneven * with * (1 + 2 * beyond));
      return;
    }
  };
  line(above, tried_.end());
  line(std::make_reverse_iterator(above), tried_.rend());
  return least;
}

}  // namespace cairn::plan
