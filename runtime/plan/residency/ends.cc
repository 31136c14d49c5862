#include "runtime/plan/residency/ends.h"

#include <algorithm>

#include "runtime/plan/residency/residence.h"

namespace cairn::plan {
namespace {

constexpr double kCopyRounding = 1e-9;  // of the copies at the end: more than the error of their sums

double copy_seconds(const Link& link, int64_t bytes, double bytes_per_second) {
  return bytes > 0 ? link.latency_seconds + static_cast<double>(bytes) / bytes_per_second : 0;
}

}  // namespace

Ends::Ends(const Problem& p) {
  if (p.ops.empty()) return;
  if (find_tail(p) + find_earliest(p) == 0) return;
  Problem until = p;
  until.ops.resize(last_ + 1);
  until.backward_begin = std::min(until.backward_begin, static_cast<int32_t>(until.ops.size()));
  problem_ = without_homes(resolve_homes(until, std::vector<bool>(p.values.size(), true)));
  problem_->links = p.links;
  homes_ = home_reads(until);
  for (HomeReads::Value& value : homes_.values) value.home_seconds = 0;
  homes_.back_home = false;
  index_.emplace(*problem_);
}

// A value that this op, or one after it, changes last is copied back to its tier once that op has ended.
double Ends::find_tail(const Problem& p) {
  const auto uses = home_uses(p);
  std::vector<bool> seen(p.values.size(), false);
  std::vector<double> busy(p.links.size(), 0);
  double ops = 0, tail = 0;
  last_ = p.ops.size() - 1;
  for (size_t o = p.ops.size(); o-- > 0;) {
    for (const HomeUse& use : uses[o]) {
      const auto v = static_cast<size_t>(use.value);
      if (!use.changes || seen[v]) continue;
      seen[v] = true;
      const auto home = static_cast<size_t>(p.values[v].home);
      const Link& link = p.links[home];
      busy[home] += copy_seconds(link, p.values[v].bytes, link.out_bytes_per_second);
    }
    const double most = busy.empty() ? 0 : *std::max_element(busy.begin(), busy.end());
    if (most - ops > tail) {
      tail = most - ops;
      behind_ = most;
      last_ = o;
    }
    ops += p.ops[o].seconds;
  }
  return tail;
}

// By the start of an op, all that it and the ops before it read for the first time has been copied in.
double Ends::find_earliest(const Problem& p) {
  const auto uses = home_uses(p);
  std::vector<bool> seen(p.values.size(), false);
  std::vector<double> busy(p.links.size(), 0);
  double ops = 0, late = 0;
  for (size_t o = 0; o <= last_; ++o) {
    for (const HomeUse& use : uses[o]) {
      const auto v = static_cast<size_t>(use.value);
      const auto home = static_cast<size_t>(p.values[v].home);
      if (seen[v]) continue;
      seen[v] = true;
      if (use.reads)
        busy[home] += copy_seconds(p.links[home], p.values[v].bytes, p.links[home].in_bytes_per_second);
    }
    for (const double seconds : busy) late = std::max(late, seconds - ops);
    earliest_.push_back(ops + late);
    ops += p.ops[o].seconds;
  }
  return late;
}

double Ends::least_seconds(int64_t budget_bytes, const std::vector<double>& earliest, int threads) const {
  if (!problem_) return 0;
  std::vector<double> times = earliest_;
  for (size_t o = 0; o < std::min(times.size(), earliest.size()); ++o)
    times[o] = std::max(times[o], earliest[o]);
  return lower_bound_seconds_behind(*problem_, *index_, budget_bytes, homes_, times, threads) +
         behind_ * (1 - kCopyRounding);
}

}  // namespace cairn::plan
