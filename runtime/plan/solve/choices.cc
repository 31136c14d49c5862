#include "runtime/plan/choices.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "runtime/base/checked.h"
#include "runtime/plan/bound/bound.h"

namespace cairn::plan {
namespace {

constexpr size_t kChoiceProbes = 7;  // numbers of choices tried between two others, per round
constexpr int kChoiceRounds = 2;
constexpr double kUnknown = std::numeric_limits<double>::infinity();
constexpr double kBoundRounding = 1e-9;  // relative error of bounds
constexpr int64_t kLeavingParts = 64;    // of the bytes that may leave: finer differences are ignored

// The bytes that the k cheapest choices free, and their seconds.
struct Prefix {
  int64_t bytes = 0;
  double seconds = 0;
};

class ChoiceSearch {
 public:
  ChoiceSearch(const Problem& p, std::vector<Prefix> prefixes, SolverCache& cache)
      : p_(p),
        index_(p),
        least_bytes_(least_bytes(p, index_)),
        prefixes_(std::move(prefixes)),
        cache_(cache) {}

  size_t best() {
    const size_t all = prefixes_.size() - 1;
    probe({0});
    if (seconds_.at(0) <= once()) return 0;
    size_t low = 0, high = all;
    for (int round = 0; round < kChoiceRounds && high - low > 1; ++round) {
      probe(between(low, high));
      const auto least = min_probe();
      low = least == seconds_.begin() ? least->first : std::prev(least)->first;
      high = std::next(least) == seconds_.end() ? least->first : std::next(least)->first;
    }
    if (all == 1) probe({1});
    const auto least = min_probe();
    return least->second < kUnknown ? least->first : all;
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
    for (size_t k = 1; k <= kChoiceProbes; ++k) {
      const auto wanted = first + static_cast<int64_t>(static_cast<double>(span) * static_cast<double>(k) /
                                                       static_cast<double>(kChoiceProbes + 1));
      const auto at = std::lower_bound(prefixes_.begin(), prefixes_.end(), wanted,
                                       [](const Prefix& prefix, int64_t b) { return prefix.bytes < b; });
      numbers.push_back(std::clamp(static_cast<size_t>(at - prefixes_.begin()), low, high));
    }
    return numbers;
  }
  // Solves those numbers that may be the best by their lower bounds and by plans for more memory, the most promising
  // ones first. The others count as infinitely slow.
  void probe(const std::vector<size_t>& numbers) {
    struct Probe {
      double least;
      size_t number;
    };
    std::vector<Probe> probes;
    for (const size_t number : numbers)
      if (seconds_.emplace(number, kUnknown).second && budget_with(number) >= least_bytes_)
        probes.push_back({bound(budget_with(number)) + prefixes_[number].seconds, number});
    std::stable_sort(probes.begin(), probes.end(),
                     [](const Probe& a, const Probe& b) { return a.least < b.least; });
    for (const Probe& probe : probes) {
      if (probe.least > min_probe()->second * (1 + kBoundRounding)) return;
      if (cannot_win(probe.number)) continue;
      if (const auto plan = cache_.solve_quickly(p_, budget_with(probe.number))) {
        planned_[probe.number] = plan->predicted_seconds;
        seconds_[probe.number] = plan->predicted_seconds + prefixes_[probe.number].seconds;
      }
    }
  }
  // With less memory no plan is faster than those for a higher number.
  bool cannot_win(size_t number) const {
    const auto more = planned_.upper_bound(number);
    if (more == planned_.end()) return false;
    const auto best = min_probe();
    const double least = more->second + prefixes_[number].seconds;
    return least > best->second || (least == best->second && number > best->first);
  }
  int64_t budget_with(size_t number) const { return p_.budget_bytes + prefixes_[number].bytes; }
  double bound(int64_t budget) const { return rough_bound_seconds(p_, index_, budget); }

  const Problem& p_;
  const Index index_;
  const int64_t least_bytes_;
  const std::vector<Prefix> prefixes_;  // one per number of choices taken
  SolverCache& cache_;
  std::map<size_t, double> seconds_;  // of the numbers looked at
  std::map<size_t, double> planned_;  // of the plans found, without the seconds of the choices
};

// If the bytes that leave lie between two numbers, memory is at most that of the higher number, and seconds are at
// least those of the lower one.
bool may_take_less(const Problem& p, const Index& index, const Leaving& leaving, double limit, int64_t low,
                   int64_t high) {
  const double takes = static_cast<double>(low) * leaving.seconds_per_byte - leaving.hidden;
  const double least = rough_bound_seconds(p, index, p.budget_bytes + high) + std::max(0.0, takes);
  if (least >= limit) return false;
  if (high - low <= leaving.bytes / kLeavingParts) return true;
  const int64_t middle = low + (high - low) / 2;
  return may_take_less(p, index, leaving, limit, low, middle) ||
         may_take_less(p, index, leaving, limit, middle, high);
}

}  // namespace

bool may_take_less(const Problem& problem, const Leaving& leaving, double limit) {
  return problem.budget_bytes <= 0 ||
         may_take_less(problem, Index(problem), leaving, limit, 0, leaving.bytes);
}

std::vector<bool> choose(const Problem& problem, const std::vector<Choice>& choices) {
  SolverCache cache;
  return choose(problem, choices, cache);
}

std::vector<bool> choose(const Problem& problem, const std::vector<Choice>& choices, SolverCache& cache) {
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
  const size_t count = ChoiceSearch(problem, std::move(prefixes), cache).best();
  for (size_t k = 0; k < count; ++k) taken[order[k]] = true;
  return taken;
}

}  // namespace cairn::plan
