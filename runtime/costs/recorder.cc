#include "runtime/costs/recorder.h"

#include <algorithm>

#include "runtime/costs/fit.h"

namespace cairn::costs {

void Recorder::add(const Query& query, double modelled_seconds, size_t occurrence, double seconds) {
  Samples& samples = ops_[query.signature];
  samples.cost.op = query.op;
  samples.cost.dtype = dtype_name(query.dtype);
  samples.cost.modelled_seconds = modelled_seconds;
  if (samples.places.size() <= occurrence) samples.places.resize(occurrence + 1);
  samples.places[occurrence].push_back(std::max(seconds, 0.0));
  if (!in_run_) return;
  samples.in_runs = true;
  runs_.back().seconds += std::max(seconds, 0.0);
  runs_.back().ops.emplace_back(&samples, occurrence);
}

double Recorder::scale() const {
  std::map<const std::vector<double>*, double> medians;
  std::vector<double> factors;
  for (const Run& run : runs_) {
    double sum = 0;
    for (const auto& [samples, place] : run.ops) {
      const auto [known, fresh] = medians.emplace(&samples->places[place], 0);
      if (fresh) known->second = spread(*known->first).median;
      sum += known->second;
    }
    if (sum > 0) factors.push_back(run.seconds / sum);
  }
  return factors.empty() ? 1.0 : spread(std::move(factors)).median;
}

void Recorder::merge_into(Profile& profile, Estimate estimate) const {
  const bool least = estimate == Estimate::kLeast;
  const auto of = [&](const std::vector<double>& list) {
    return least ? *std::min_element(list.begin(), list.end()) : spread(list).median;
  };
  if (!launches_.empty()) profile.launch_seconds = of(launches_);
  const double factor = least ? 1.0 : scale();
  for (const auto& [signature, samples] : ops_) {
    OpCost cost = samples.cost;
    double places = 0;
    for (const std::vector<double>& list : samples.places) {
      if (list.empty()) continue;
      cost.median_seconds += of(list);
      cost.spread_seconds += spread(list).interquartile;
      cost.count += static_cast<int64_t>(list.size());
      places += 1;
    }
    cost.median_seconds *= (samples.in_runs ? factor : 1.0) / places;
    cost.spread_seconds /= places;
    profile.ops[signature] = cost;
  }
}

}  // namespace cairn::costs
