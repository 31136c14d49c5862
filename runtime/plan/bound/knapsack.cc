#include "runtime/plan/bound/knapsack.h"

#include <algorithm>
#include <limits>

namespace cairn::plan {
namespace {

constexpr size_t kMin = 32;  // with fewer states, merging makes the bound useless
constexpr double kFirstGain = 1e-4, kStepGrowth = 16, kSlack = 1e-12;
constexpr int kSteps = 6;

// The least seconds if they are below `limit`, else `limit`: a dynamic program over sums of the option sets so far.
// Where there are too many sums, two neighbours are replaced by one that is better than both. The result is still a
// bound.
double min_below(const std::vector<OptionSet>& option_sets, double bytes, double price, double limit,
                 size_t most) {
  std::vector<double> cheapest(option_sets.size()),
      fewest(option_sets.size() + 1, 0);  // fewest: least bytes of this set and all later ones
  double floor = 0;
  for (size_t m = option_sets.size(); m-- > 0;) {
    cheapest[m] = std::numeric_limits<double>::infinity();
    for (const Item& d : option_sets[m]) cheapest[m] = std::min(cheapest[m], d.seconds + price * d.bytes);
    fewest[m] = fewest[m + 1] + option_sets[m].front().bytes;
    floor += cheapest[m];
  }
  // For an answer below the limit, seconds + price * bytes exceeds the floor by less than this.
  const double spare = limit + price * bytes - floor + kSlack * floor;
  OptionSet sums = {{0, 0}}, next;
  double reached = 0;
  for (size_t m = 0; m < option_sets.size(); ++m) {
    reached += cheapest[m];
    next.clear();
    for (const Item& d : option_sets[m]) {
      const auto middle = static_cast<int64_t>(next.size());
      for (const Item& s : sums) {
        const Item sum = {s.bytes + d.bytes, s.seconds + d.seconds};
        if (sum.bytes + fewest[m + 1] <= bytes && sum.seconds + price * sum.bytes - reached < spare)
          next.push_back(sum);
      }
      std::inplace_merge(next.begin(), next.begin() + middle, next.end(),
                         [](const Item& a, const Item& b) { return a.bytes < b.bytes; });
    }
    sums.clear();
    for (const Item& d : next)
      if (sums.empty() || d.seconds < sums.back().seconds) {
        if (!sums.empty() && d.bytes == sums.back().bytes) sums.pop_back();
        sums.push_back(d);
      }
    while (sums.size() > most) {
      size_t kept = 0;
      for (size_t i = 0; i < sums.size(); i += 2)
        sums[kept++] = {sums[i].bytes, sums[std::min(i + 1, sums.size() - 1)].seconds};
      sums.resize(kept);
    }
  }
  return sums.empty() ? limit : std::min(limit, sums.back().seconds);
}

}  // namespace

void keep_best(OptionSet& option_set) {
  std::sort(option_set.begin(), option_set.end(), [](const Item& a, const Item& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.seconds < b.seconds;
  });
  size_t kept = 0;
  for (const Item& d : option_set)
    if (kept == 0 || d.seconds < option_set[kept - 1].seconds) option_set[kept++] = d;
  option_set.resize(kept);
}

double choose_least(const std::vector<OptionSet>& option_sets, double bytes, double price, double known,
                    int64_t work) {
  int64_t items = 0;
  for (const OptionSet& option_set : option_sets) items += static_cast<int64_t>(option_set.size());
  const auto most = static_cast<size_t>(work / kSteps / std::max<int64_t>(1, items));
  if (most < kMin || known <= 0) return known;
  double best = known, step = kFirstGain * known;
  for (int k = 0; k < kSteps; ++k, step *= kStepGrowth) {
    const double least = min_below(option_sets, bytes, price, known + step, most);
    best = std::max(best, least);
    if (least < known + step) break;
  }
  return best;
}

}  // namespace cairn::plan
