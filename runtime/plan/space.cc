#include "runtime/plan/space.h"

#include <algorithm>
#include <queue>

#include "runtime/base/checked.h"

namespace cairn::plan {

Space::Space(const Problem& p, const Index& index)
    : p_(p),
      index_(index),
      policy_(p.values.size(), Policy::kPlannerDecides),
      free_(p.values.size(), 0),
      fixed_(p.values.size(), kKeepIt) {
  obey_policies();
  partition_by_region();
  order_cheap();
  order_offload();
}

// The innermost region with an explicit policy decides. Outputs of a RECOMPUTE region, which other forward
// ops read, are what it is recomputed for: they stay.
void Space::obey_policies() {
  const auto inside = [&](int32_t region, int32_t ancestor) {
    while (region > ancestor) region = p_.regions[region].parent;
    return region == ancestor;
  };
  std::vector<int64_t> room;
  for (const Link& link : p_.links) room.push_back(link.capacity_bytes);
  for (int32_t i = 0; i < p_.turnaround; ++i)
    for (int32_t v : index_.outputs[i]) {
      const int32_t scope = index_.scope[i];
      if (scope < 0) {
        free_[v] = 1;
        continue;
      }
      const Region& region = p_.regions[scope];
      policy_[v] = region.policy;
      if (region.policy == Policy::kRecompute && p_.ops[i].recomputable) {
        const auto readers = index_.readers[v];
        const bool output = std::any_of(readers.begin(), readers.end(), [&](int32_t reader) {
          return reader < p_.turnaround && !inside(p_.ops[reader].region, scope);
        });
        if (!output) fixed_[v] = kRemake;
      } else if (region.policy == Policy::kOffload && p_.values[v].bytes >= kPageBytes) {
        const int32_t tier = std::max(0, region.offload_tier);
        if (p_.values[v].bytes > room[tier] || !index_.saved(v, p_.turnaround)) continue;
        room[tier] -= p_.values[v].bytes;
        fixed_[v] = static_cast<Choice>(tier);
      }
    }
}

void Space::add_partition(const std::vector<int32_t>& unit_of_op, int32_t units) {
  Partition part{units, std::vector<int32_t>(p_.values.size(), -1),
                 std::vector<int32_t>(p_.values.size(), -1)};
  for (int32_t i = 0; i < p_.turnaround; ++i)
    for (int32_t v : index_.outputs[i]) {
      int32_t low = unit_of_op[i], high = low;
      for (int32_t reader : index_.readers[v]) {
        if (reader >= p_.turnaround) break;
        low = std::min(low, unit_of_op[reader]);
        high = std::max(high, unit_of_op[reader]);
      }
      part.low[v] = low;
      part.high[v] = high;
    }
  partitions_.push_back(std::move(part));
}

// One partition per nesting depth, and one with an op per unit for problems whose regions are few or none.
void Space::partition_by_region() {
  std::vector<int32_t> depth(p_.regions.size(), 1);
  int32_t deepest = 0;
  for (size_t r = 0; r < p_.regions.size(); ++r) {
    if (p_.regions[r].parent >= 0) depth[r] = depth[p_.regions[r].parent] + 1;
    deepest = std::max(deepest, depth[r]);
  }
  for (int32_t d = 1; d <= std::min(deepest, 8); ++d) {
    std::vector<int32_t> unit(p_.ops.size(), -1), unit_of_region(p_.regions.size(), -1);
    int32_t units = 0;
    for (int32_t i = 0; i < p_.turnaround; ++i) {
      int32_t region = p_.ops[i].region;
      while (region >= 0 && depth[region] > d) region = p_.regions[region].parent;
      if (region < 0) continue;
      if (unit_of_region[region] < 0) unit_of_region[region] = units++;
      unit[i] = unit_of_region[region];
    }
    add_partition(unit, units);
  }
  std::vector<int32_t> own(p_.ops.size(), -1);
  for (int32_t i = 0; i < p_.turnaround; ++i) own[i] = i;
  add_partition(own, p_.turnaround);
}

// Greedy: the op whose second run frees most bytes per second. What it frees are its outputs; what that costs
// are its inputs, as far as nothing else needs them later. Prices only rise as the list grows, so a heap with
// late updates finds the order in O(n log n).
void Space::order_cheap() {
  std::vector<uint8_t> needed(p_.values.size(), 0), gone(p_.values.size(), 0);
  for (size_t v = 0; v < p_.values.size(); ++v) needed[v] = index_.first_backward[v] >= 0;
  const Resolved base = resolve(p_, index_, fixed_);
  for (size_t v = 0; v < p_.values.size(); ++v) needed[v] |= base.later_uses[v] > 0;
  const auto gain = [&](int32_t op) {
    int64_t bytes = 0;
    for (int32_t v : index_.outputs[op])
      if (free_[v] && needed[v] && !gone[v]) bytes += p_.values[v].bytes;
    for (int32_t u : index_.inputs[op])
      if (!needed[u] && !gone[u]) bytes -= p_.values[u].bytes;
    return bytes;
  };
  using Entry = std::pair<double, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap;
  const auto push = [&](int32_t op) {
    const int64_t bytes = gain(op);
    if (bytes > 0) heap.emplace(p_.ops[op].seconds / static_cast<double>(bytes), op);
  };
  std::vector<uint8_t> listed(p_.ops.size(), 0);
  const auto worth = [&](int32_t op) { return op < p_.turnaround && p_.ops[op].recomputable && !listed[op]; };
  for (int32_t i = 0; i < p_.turnaround; ++i)
    if (worth(i)) push(i);
  while (!heap.empty()) {
    const auto [price, op] = heap.top();
    heap.pop();
    if (listed[op]) continue;
    const int64_t bytes = gain(op);
    if (bytes <= 0) continue;
    if (p_.ops[op].seconds / static_cast<double>(bytes) > price * (1 + 1e-12)) {
      push(op);
      continue;
    }
    listed[op] = 1;
    cheap_.push_back(op);
    for (int32_t v : index_.outputs[op])
      if (free_[v]) gone[v] = 1;
    for (int32_t u : index_.inputs[op]) {
      if (needed[u]) continue;
      needed[u] = 1;  // its maker now has something to free, and its other readers get it for nothing
      if (index_.maker[u] >= 0 && worth(index_.maker[u])) push(index_.maker[u]);
      for (int32_t reader : index_.readers[u])
        if (worth(reader)) push(reader);
    }
  }
}

// The earliest made first: their gap is the longest, so both copies hide best. Each goes to the first link
// with room; the part that can leave during forward comes from each link's rate.
void Space::order_offload() {
  if (p_.links.empty()) return;
  std::vector<int64_t> room;
  for (const Link& link : p_.links) room.push_back(link.capacity_bytes);
  std::vector<double> left(p_.links.size(), index_.forward_seconds);
  for (size_t v = 0; v < p_.values.size(); ++v)
    if (fixed_[v] >= 0) room[fixed_[v]] -= p_.values[v].bytes;
  std::vector<Offload> late;
  for (int32_t i = 0; i < p_.turnaround; ++i)
    for (int32_t v : index_.outputs[i]) {
      const int64_t bytes = p_.values[v].bytes;
      if (!free_[v] || bytes < kPageBytes || index_.first_backward[v] < 0) continue;
      Choice fits = kKeepIt, hides = kKeepIt;
      for (size_t t = p_.links.size(); t-- > 0;) {
        if (room[t] < bytes) continue;
        fits = static_cast<Choice>(t);
        if (p_.links[t].latency_seconds + static_cast<double>(bytes) / p_.links[t].out_bytes_per_second <=
            left[t])
          hides = fits;
      }
      if (fits < 0) continue;
      const Choice t = hides >= 0 ? hides : fits;
      room[t] -= bytes;
      left[t] -= p_.links[t].latency_seconds + static_cast<double>(bytes) / p_.links[t].out_bytes_per_second;
      (hides >= 0 ? offload_ : late).push_back({v, t});
    }
  hidden_ = static_cast<int32_t>(offload_.size());
  offload_.insert(offload_.end(), late.begin(), late.end());
}

Choices Space::choices(const Candidate& c) const {
  Choices choices = fixed_;
  for (int32_t k = 0; k < c.offload; ++k) choices[offload_[k].value] = offload_[k].link;
  for (int32_t k = 0; k < c.cheap; ++k)
    for (int32_t v : index_.outputs[cheap_[k]])
      if (free_[v]) choices[v] = kRemake;
  if (c.groups == 0) return choices;
  const Partition& part = partitions_[c.partition];
  for (size_t v = 0; v < choices.size(); ++v) {
    if (!free_[v] || part.low[v] < 0) continue;
    const int32_t group = part.low[v] / c.group;
    if (group < c.groups && part.high[v] / c.group == group) choices[v] = kRemake;
  }
  return choices;
}

namespace {

// 1..count, or `points` of them evenly spaced, the last included.
std::vector<int32_t> spread(int32_t count, int32_t points) {
  std::vector<int32_t> list;
  for (int32_t k = 1; k <= std::min(count, points); ++k)
    list.push_back(count <= points ? k : static_cast<int32_t>(static_cast<int64_t>(count) * k / points));
  return list;
}

}  // namespace

std::vector<Candidate> Space::grid() const {
  const bool large = p_.ops.size() > 1500;
  const int32_t points = large ? 8 : 24;
  // Recompute families: cheap ops alone, then beside the first groups of every partition.
  std::vector<Candidate> recompute(1);
  const bool any_free = std::any_of(free_.begin(), free_.end(), [](uint8_t f) { return f != 0; });
  for (int32_t n : spread(static_cast<int32_t>(cheap_.size()), 2 * points))
    recompute.emplace_back().cheap = n;
  std::vector<int32_t> beside = {0};
  for (int32_t n : spread(static_cast<int32_t>(cheap_.size()), 8)) beside.push_back(n);
  if (large) beside = {0, static_cast<int32_t>(cheap_.size() / 4), static_cast<int32_t>(cheap_.size() / 2)};
  for (int32_t part = 0; any_free && part < static_cast<int32_t>(partitions_.size()); ++part) {
    const int32_t units = partitions_[part].units;
    for (int32_t group = 1; group <= units; group *= 2) {
      if (large && units / group > 4096) continue;
      for (int32_t cheap : beside)
        for (int32_t k : spread((units + group - 1) / group, points))
          recompute.push_back({cheap, part, group, k, 0, {}});
    }
  }
  // Offload families: everything so far beside none, what hides, and more.
  std::vector<Candidate> all;
  std::vector<int32_t> amounts = {0};
  if (!offload_.empty()) {
    amounts.push_back(hidden_);
    for (int32_t k : spread(static_cast<int32_t>(offload_.size()), large ? 2 : 6)) amounts.push_back(k);
    std::sort(amounts.begin(), amounts.end());
    amounts.erase(std::unique(amounts.begin(), amounts.end()), amounts.end());
  }
  int64_t largest = 0;
  for (const Value& v : p_.values)
    if (!v.persistent) largest = std::max(largest, v.bytes);
  const bool fixed = std::any_of(fixed_.begin(), fixed_.end(), [](Choice c) { return c >= 0; });
  std::vector<Pace> paces = {{}};
  if (fixed || !offload_.empty()) paces = {{}, {4 * std::min(largest, INT64_MAX / 8)}, {0}};
  const size_t stride = large ? 4 : p_.ops.size() > 60 ? 3 : 1;
  for (int32_t amount : amounts)
    for (const Pace& pace : paces) {
      for (size_t k = 0; k<recompute.size(); k += amount> 0 ? stride : 1) {
        all.push_back(recompute[k]);
        all.back().offload = amount;
        all.back().pace = pace;
      }
      if (amount == 0 && !fixed) break;  // no copies, no pace
    }
  // Offloading alone, finer.
  for (int32_t amount : spread(static_cast<int32_t>(offload_.size()), 2 * points))
    for (const Pace& pace : paces) {
      all.push_back({});
      all.back().offload = amount;
      all.back().pace = pace;
    }
  return all;
}

}  // namespace cairn::plan
