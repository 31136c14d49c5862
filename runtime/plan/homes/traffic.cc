#include "runtime/plan/homes/traffic.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "runtime/plan/homes/residence.h"

namespace cairn::plan {
namespace {

struct Bytes {
  double in = 0, out = 0;
  double across = 0;  // used in forward and read in backward
};

std::vector<Bytes> bytes_by_link(const Problem& p) {
  const size_t count = p.values.size();
  std::vector<uint8_t> reads(count, 0), changes(count, 0), before(count, 0), across(count, 0);
  const auto all_uses = home_uses(p);
  for (size_t op = 0; op < all_uses.size(); ++op)
    for (const HomeUse& use : all_uses[op]) {
      const auto v = static_cast<size_t>(use.value);
      // What is written over first need not come in.
      if (use.reads && !changes[v]) reads[v] = 1;
      if (use.changes) changes[v] = 1;
      if (static_cast<int32_t>(op) < p.backward_begin)
        before[v] = 1;
      else if (use.reads && before[v])
        across[v] = 1;
    }
  std::vector<Bytes> links(p.links.size());
  for (size_t v = 0; v < count; ++v) {
    if (!p.values[v].at_home()) continue;
    Bytes& link = links[static_cast<size_t>(p.values[v].home)];
    const auto bytes = static_cast<double>(p.values[v].bytes);
    if (reads[v]) link.in += bytes;
    if (changes[v]) link.out += bytes;
    if (across[v]) link.across += bytes;
  }
  return links;
}

// Two directions that are busy for so long each alone. Together each has a share of its rate: with more than half, they are
// best run side by side until the shorter one is done.
double together(double a, double b, double both_ways_factor) {
  return std::max(a, b) + std::min(a, b) * std::clamp(1 / both_ways_factor - 1, 0.0, 1.0);
}

}  // namespace

double least_link_seconds(const Problem& p, int64_t budget_bytes, bool may_stay) {
  const double room =
      budget_bytes > 0 ? static_cast<double>(budget_bytes) : std::numeric_limits<double>::infinity();
  const double stays = may_stay ? room : 0;
  const std::vector<Bytes> links = bytes_by_link(p);
  double most = 0;
  for (size_t l = 0; l < links.size(); ++l) {
    const double in = std::max(0.0, links[l].in - stays) + std::max(0.0, links[l].across - room);
    const double out = std::max(0.0, links[l].out - stays);
    most = std::max(most, together(out / p.links[l].out_bytes_per_second, in / p.links[l].in_bytes_per_second,
                                   p.links[l].both_ways_factor));
  }
  return most;
}

}  // namespace cairn::plan
