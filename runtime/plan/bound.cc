#include "runtime/plan/bound.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace cairn::plan {
namespace {

constexpr double kRounding = 1e-9;  // allowance for the searches' and the sums' floating-point error

// Least recompute seconds as a function of the bytes that need no recompute: a fractional knapsack over ops.
class Knapsack {
 public:
  void add(double seconds, int64_t bytes, bool recomputable) {
    total_ += static_cast<double>(bytes);
    if (recomputable) items_.push_back({seconds, static_cast<double>(bytes)});
  }
  void sort() {
    std::sort(items_.begin(), items_.end(),
              [](const Item& a, const Item& b) { return a.seconds * b.bytes < b.seconds * a.bytes; });
    for (const Item& item : items_) {
      freed_.push_back(freed_.back() + item.bytes);
      spent_.push_back(spent_.back() + item.seconds);
    }
  }
  double operator()(double available) const {
    const double excess = total_ - available;
    if (excess <= 0) return 0;
    const auto i =
        static_cast<size_t>(std::lower_bound(freed_.begin(), freed_.end(), excess) - freed_.begin());
    if (i == freed_.size()) return spent_.back();  // the rest cannot be recomputed: nothing is claimed for it
    return spent_[i - 1] + items_[i - 1].seconds / items_[i - 1].bytes * (excess - freed_[i - 1]);
  }

 private:
  struct Item {
    double seconds, bytes;
  };
  std::vector<Item> items_;
  std::vector<double> freed_ = {0}, spent_ = {0};
  double total_ = 0;
};

struct Tier {
  double capacity, out, in;
};

}  // namespace

double lower_bound_seconds(const Problem& p, const Index& index, int64_t budget_bytes) {
  const int32_t at = p.turnaround;
  if (budget_bytes == 0 || at <= 0 || at >= static_cast<int32_t>(p.ops.size())) return index.total_seconds;
  // What the device has left at the start of the first backward op, beside that op's own bytes.
  std::unordered_set<int32_t> busy(index.inputs[at].begin(), index.inputs[at].end());
  busy.insert(index.outputs[at].begin(), index.outputs[at].end());
  int64_t room = budget_bytes - index.persistent_bytes - p.ops[at].workspace_bytes;
  for (int32_t v : busy) room -= p.values[v].bytes;
  Knapsack cost;
  int64_t largest = 0;
  for (int32_t i = 0; i < at; ++i) {
    int64_t needed = 0;
    for (int32_t v : index.outputs[i]) {
      const auto readers = index.readers[v];
      if (busy.count(v) || readers.empty() || readers.back() <= at) continue;
      needed += p.values[v].bytes;
      largest = std::max(largest, p.values[v].bytes);
    }
    if (needed > 0) cost.add(p.ops[i].seconds, needed, p.ops[i].recomputable);
  }
  cost.sort();
  // A latency per copy is at least this much per byte of the largest value.
  std::vector<Tier> tiers;
  const auto rate = [&](double bytes_per_second, double latency) {
    return largest == 0 ? bytes_per_second
                        : 1 / (1 / bytes_per_second + latency / static_cast<double>(largest));
  };
  for (const Link& link : p.links)
    tiers.push_back({static_cast<double>(link.capacity_bytes),
                     rate(link.out_bytes_per_second, link.latency_seconds),
                     rate(link.in_bytes_per_second, link.latency_seconds)});
  const double before = index.forward_seconds, after = index.total_seconds - before;
  const auto available = [&](double stall, double extra) {
    double sum = static_cast<double>(room);
    for (const Tier& t : tiers)
      sum += std::min({t.capacity, t.out * (before + stall), t.in * (after + extra)});
    return sum;
  };
  // Least seconds added behind the turnaround, if `stall` are added before it: the root of a falling
  // function.
  const auto extra_after = [&](double stall) {
    double low = 0, high = cost(available(stall, 0));
    for (int round = 0; round < (tiers.empty() ? 0 : 64); ++round) {
      const double middle = (low + high) / 2;
      (cost(available(stall, middle)) > middle ? low : high) = middle;
    }
    return high;
  };
  // stall + extra_after(stall) is convex: the projection of a linear program.
  double low = 0, high = tiers.empty() ? 0 : extra_after(0);
  for (int round = 0; round < 100 && high > low; ++round) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    (a + extra_after(a) <= b + extra_after(b) ? high : low) =
        a + extra_after(a) <= b + extra_after(b) ? b : a;
  }
  double added = extra_after(0);
  for (double stall : {low, high}) added = std::min(added, stall + extra_after(stall));
  return index.total_seconds + added * (1 - kRounding);
}

}  // namespace cairn::plan
