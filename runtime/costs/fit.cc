#include "runtime/costs/fit.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"

namespace cairn::costs {
namespace {

// Interpolates linearly between two samples, as NumPy's default does.
double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const size_t low = static_cast<size_t>(at), high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

}  // namespace

Spread spread(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return {quantile(samples, 0.5), quantile(samples, 0.75) - quantile(samples, 0.25)};
}

Line fit(std::span<const Transfer> samples) {
  double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
  bool sizes_differ = false;
  for (const Transfer& s : samples) {
    require(std::isfinite(s.bytes) && std::isfinite(s.seconds) && s.bytes > 0 && s.seconds > 0,
            Code::kInvalidArgument, "a transfer of ", s.bytes, " bytes in ", s.seconds, " seconds");
    sizes_differ = sizes_differ || s.bytes != samples.front().bytes;
    const double weight = 1 / (s.seconds * s.seconds);
    w += weight;
    wx += weight * s.bytes;
    wy += weight * s.seconds;
    wxx += weight * s.bytes * s.bytes;
    wxy += weight * s.bytes * s.seconds;
  }
  require(sizes_differ, Code::kInvalidArgument, "a line needs transfers of two sizes");
  const double slope = (w * wxy - wx * wy) / (w * wxx - wx * wx);
  const double latency = (wy - slope * wx) / w;
  if (slope > 0 && latency >= 0) return {latency, 1 / slope};
  return {0, wxx / wxy};
}

}  // namespace cairn::costs
