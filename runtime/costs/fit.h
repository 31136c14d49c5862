// From samples to the few numbers of a profile.
#pragma once
#include <span>
#include <vector>

namespace cairn::costs {

struct Spread {
  double median = 0;
  double interquartile = 0;  // from the first to the third quartile: half of all samples lie within
};
Spread spread(std::vector<double> samples);  // zeros for none

struct Transfer {
  double bytes = 0, seconds = 0;
};
struct Line {
  double latency_seconds = 0;
  double bytes_per_second = 0;
};
// The line seconds = latency + bytes / rate that is nearest to the samples in relative terms (weighted least
// squares, weights 1 / seconds^2), so that small transfers count as much as large ones. Where the nearest
// line has a negative latency or rate, the latency is 0 and the rate the samples' weighted mean.
// kInvalidArgument: fewer than two sizes, or a sample that is not positive.
Line fit(std::span<const Transfer> samples);

}  // namespace cairn::costs
