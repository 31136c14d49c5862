#include "runtime/plan/choices.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "runtime/base/checked.h"
#include "runtime/plan/plan.h"

namespace cairn::plan {
namespace {

constexpr size_t kProbes = 7;  // per round, between two numbers of choices
constexpr int kRounds = 2;

// What so many of the cheapest choices free and cost.
struct Prefix {
  int64_t bytes = 0;
  double seconds = 0;
};

class Search {
 public:
  Search(const Problem& p, std::vector<Prefix> prefixes) : p_(p), prefixes_(std::move(prefixes)) {}

  size_t best() {
    const size_t all = prefixes_.size() - 1;
    probe({0});
    if (seconds_.at(0) <= once()) return 0;
    size_t low = 0, high = all;
    for (int round = 0; round < kRounds && high - low > 1; ++round) {
      probe(between(low, high));
      const auto least = min_probe();
      low = least == seconds_.begin() ? least->first : std::prev(least)->first;
      high = std::next(least) == seconds_.end() ? least->first : std::next(least)->first;
    }
    if (all == 1) probe({1});
    const auto least = min_probe();
    return least->second < std::numeric_limits<double>::infinity() ? least->first : all;
  }

 private:
  double once() const {
    double sum = 0;
    for (const Op& op : p_.ops) sum += op.seconds;
    return sum * (1 + 1e-12);
  }
  std::map<size_t, double>::const_iterator min_probe() const {
    return std::min_element(seconds_.begin(), seconds_.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
  }
  // Numbers of choices that split the bytes between two evenly, both ends included.
  std::vector<size_t> between(size_t low, size_t high) const {
    std::vector<size_t> numbers = {low, high};
    const int64_t first = prefixes_[low].bytes, span = prefixes_[high].bytes - first;
    for (size_t k = 1; k <= kProbes; ++k) {
      const auto wanted = first + static_cast<int64_t>(static_cast<double>(span) * static_cast<double>(k) /
                                                       static_cast<double>(kProbes + 1));
      const auto at = std::lower_bound(prefixes_.begin(), prefixes_.end(), wanted,
                                       [](const Prefix& prefix, int64_t b) { return prefix.bytes < b; });
      numbers.push_back(std::clamp(static_cast<size_t>(at - prefixes_.begin()), low, high));
    }
    return numbers;
  }
  void probe(const std::vector<size_t>& numbers) {
    std::vector<size_t> fresh;
    std::vector<int64_t> budgets;
    for (const size_t number : numbers)
      if (!seconds_.contains(number) && std::find(fresh.begin(), fresh.end(), number) == fresh.end()) {
        fresh.push_back(number);
        budgets.push_back(p_.budget_bytes + prefixes_[number].bytes);
      }
    const auto plans = solve_all(p_, budgets);
    for (size_t i = 0; i < fresh.size(); ++i)
      seconds_[fresh[i]] = plans[i] ? plans[i]->predicted_seconds + prefixes_[fresh[i]].seconds
                                    : std::numeric_limits<double>::infinity();
  }

  const Problem& p_;
  const std::vector<Prefix> prefixes_;  // by number of choices taken
  std::map<size_t, double> seconds_;    // of what was solved
};

}  // namespace

std::vector<bool> choose(const Problem& problem, const std::vector<Choice>& choices) {
  std::vector<bool> taken(choices.size(), false);
  if (choices.empty() || problem.budget_bytes <= 0) return taken;
  std::vector<size_t> order(choices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return choices[a].seconds * static_cast<double>(choices[b].bytes) <
           choices[b].seconds * static_cast<double>(choices[a].bytes);
  });
  std::vector<Prefix> prefixes(1);
  for (const size_t c : order)
    prefixes.push_back(
        {checked_add(prefixes.back().bytes, choices[c].bytes), prefixes.back().seconds + choices[c].seconds});
  const size_t count = Search(problem, std::move(prefixes)).best();
  for (size_t k = 0; k < count; ++k) taken[order[k]] = true;
  return taken;
}

}  // namespace cairn::plan
