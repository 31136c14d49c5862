#include "runtime/plan/residency/traffic.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "runtime/plan/residency/residence.h"

namespace cairn::plan {
namespace {

constexpr double kLeastShare = 0.5;

struct Bytes {
  double in = 0, out = 0;
  // Of these bytes, those of values that may be kept on the device instead.
  double in_or_stay = 0, out_or_stay = 0;
  double across = 0;  // used in forward and read in backward
};

std::vector<Bytes> bytes_by_link(const Problem& p, const std::vector<bool>& may_stay) {
  const size_t count = p.values.size();
  std::vector<uint8_t> reads(count, 0), changes(count, 0), before(count, 0), across(count, 0);
  const auto all_uses = home_uses(p);
  for (size_t op = 0; op < all_uses.size(); ++op)
    for (const HomeUse& use : all_uses[op]) {
      const auto v = static_cast<size_t>(use.value);
      // A value that is written over first need not come in.
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
    const double stays = !may_stay.empty() && may_stay[v] ? bytes : 0;
    if (reads[v]) link.in += bytes, link.in_or_stay += stays;
    if (changes[v]) link.out += bytes, link.out_or_stay += stays;
    if (across[v]) link.across += bytes;
  }
  return links;
}

}  // namespace

double seconds_of_both(double a, double b, double both_ways_factor) {
  return std::max(a, b) + std::min(a, b) * std::clamp(1 / both_ways_factor - 1, 0.0, 1.0);
}

double least_link_seconds(const Problem& p, int64_t budget_bytes, const std::vector<bool>& may_stay) {
  const double room =
      budget_bytes > 0 ? static_cast<double>(budget_bytes) : std::numeric_limits<double>::infinity();
  const std::vector<Bytes> links = bytes_by_link(p, may_stay);
  double most = 0;
  for (size_t l = 0; l < links.size(); ++l) {
    const double in =
        links[l].in - std::min(links[l].in_or_stay, room) + std::max(0.0, links[l].across - room);
    const double out = links[l].out - std::min(links[l].out_or_stay, room);
    most = std::max(most, seconds_of_both(out / p.links[l].out_bytes_per_second,
                                          in / p.links[l].in_bytes_per_second, p.links[l].both_ways_factor));
  }
  return most;
}

std::vector<Link> links_beside_homes(const Problem& resolved, const Index& index, std::vector<Link> links) {
  // By link and part of the step, forward and the rest: each value once per part.
  std::vector<std::array<Bytes, 2>> moved(links.size());
  std::vector<std::array<uint8_t, 2>> here(resolved.values.size(), {0, 0}), sent = here;
  const auto all_uses = home_uses(resolved);
  for (size_t op = 0; op < all_uses.size(); ++op) {
    const size_t part = static_cast<int32_t>(op) >= resolved.backward_begin;
    for (const HomeUse& use : all_uses[op]) {
      const auto v = static_cast<size_t>(use.value);
      const auto bytes = static_cast<double>(resolved.values[v].bytes);
      Bytes& sum = moved[static_cast<size_t>(resolved.values[v].home)][part];
      if (use.reads && !here[v][part]) sum.in += bytes;
      if (use.changes && !sent[v][part]) sum.out += bytes;
      here[v][part] = 1;
      sent[v][part] |= use.changes;
    }
  }
  // The share of a part in which a direction is free, where it already takes `own` seconds and the other direction
  // `other`.
  const auto spare = [](double seconds, double own, double other, double slower) {
    const double whole = std::max({seconds, own + slower * other, other + slower * own});
    double free = whole - slower * other - own;
    if (slower > 0) free = std::min(free, (whole - other) / slower - own);
    return seconds > 0 ? std::clamp(free / seconds, kLeastShare, 1.0) : 1.0;
  };
  for (size_t l = 0; l < links.size(); ++l) {
    Link& link = links[l];
    const double slower = std::clamp(1 / link.both_ways_factor - 1, 0.0, 1.0);
    const double out = link.out_bytes_per_second, in = link.in_bytes_per_second;
    link.out_bytes_per_second *=
        spare(index.forward_seconds, moved[l][0].out / out, moved[l][0].in / in, slower);
    link.in_bytes_per_second *= spare(index.total_seconds - index.forward_seconds, moved[l][1].in / in,
                                      moved[l][1].out / out, slower);
  }
  return links;
}

}  // namespace cairn::plan
