// Collects measured seconds and condenses them into a profile.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/costs/model.h"

namespace cairn::costs {

class Recorder {
 public:
  Recorder() = default;
  Recorder(const Recorder&) = delete;  // runs point into it
  Recorder& operator=(const Recorder&) = delete;

  // One sample. occurrence: which of the ops with this signature it was in its run, from 0. The same op in
  // another place meets other caches, so medians are taken per place and averaged over the places.
  void add(const Query& query, double modelled_seconds, size_t occurrence, double seconds);
  // Samples between the two are the ops of one run. Delays fall on other ops in each run, so medians of the
  // parts add up to less than the median of the runs. The ops are therefore all scaled by one factor, so that
  // they sum up to the median run.
  void begin_run() { runs_.emplace_back(), in_run_ = true; }
  void end_run() { in_run_ = false; }
  // Mean seconds between the ops of one run.
  void add_launch(double seconds) { launches_.push_back(seconds); }
  bool empty() const { return ops_.empty(); }
  // Puts what was collected into the profile; it replaces entries with the same signature. kLeast: the fastest
  // samples instead of medians, and no scaling: what the machine can do, measured in few runs while other work disturbs.
  enum class Estimate { kMedian, kLeast };
  void merge_into(Profile& profile, Estimate estimate = Estimate::kMedian) const;

 private:
  struct Samples {
    OpCost cost;  // median, spread and count not yet there
    std::vector<std::vector<double>> places;
    bool in_runs = false;
  };
  struct Run {
    double seconds = 0;
    std::vector<std::pair<const Samples*, size_t>> ops;  // and the place of each
  };
  double scale() const;

  std::map<std::string, Samples> ops_;
  std::vector<Run> runs_;
  bool in_run_ = false;
  std::vector<double> launches_;
};

}  // namespace cairn::costs
