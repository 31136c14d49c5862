// The good plans that searches have met. Offsets are assigned later: a plan's arena may be higher than its peak.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "runtime/plan/pricing/evaluate.h"

namespace cairn::plan {

struct Candidate {
  RetentionPoints retention_points;
  Pace pace;
  Cost cost;
};

// The first layer holds the plans that no other plan beats in both peak and seconds. The second layer holds those
// that only plans of the first layer beat, and so on. The other layers are needed where the arenas of the best plans
// do not fit.
class Archive {
 public:
  void add(const RetentionPoints& t, Pace pace, const Cost& cost) { add(0, t, pace, cost); }
  // False if a plan with such seconds and peak is beaten in every layer, so that add() would do nothing. Lower limits
  // of the two may be passed instead.
  bool wants(double seconds, int64_t peak) const {
    return std::any_of(layers_.begin(), layers_.end(), [&](const Layer& layer) {
      const auto at = layer.upper_bound(peak);
      return at == layer.begin() || std::prev(at)->second.cost.seconds > seconds;
    });
  }
  // Keeps a plan, even if others beat it.
  void pin(const RetentionPoints& t, Pace pace, const Cost& cost) { pinned_.push_back({t, pace, cost}); }
  // The fastest plan with a peak of at most so many bytes; nullptr if there is none.
  const Candidate* within(int64_t peak) const {
    const auto at = layers_[0].upper_bound(peak);
    return at == layers_[0].begin() ? nullptr : &std::prev(at)->second;
  }
  // The first layer, by rising peak, which is by falling seconds.
  const std::map<int64_t, Candidate>& plans() const { return layers_[0]; }
  bool empty() const { return layers_[0].empty(); }
  // The plans of all layers and the pinned ones, by rising seconds.
  std::vector<const Candidate*> by_seconds(int64_t max_peak) const {
    std::vector<const Candidate*> list;
    for (const Layer& layer : layers_)
      for (const auto& [peak, candidate] : layer)
        if (peak <= max_peak) list.push_back(&candidate);
    for (const Candidate& candidate : pinned_)
      if (candidate.cost.peak_bytes <= max_peak) list.push_back(&candidate);
    std::stable_sort(list.begin(), list.end(), [](const Candidate* a, const Candidate* b) {
      return a->cost.seconds != b->cost.seconds ? a->cost.seconds < b->cost.seconds
                                                : a->cost.peak_bytes < b->cost.peak_bytes;
    });
    return list;
  }

 private:
  static constexpr size_t kLayers = 4;
  using Layer = std::map<int64_t, Candidate>;

  void add(size_t number, const RetentionPoints& t, Pace pace, const Cost& cost) {
    for (; number < layers_.size(); ++number) {
      Layer& layer = layers_[number];
      auto at = layer.upper_bound(cost.peak_bytes);
      if (at != layer.begin()) {
        const Candidate& before = std::prev(at)->second;
        if (before.cost.peak_bytes == cost.peak_bytes && before.cost.seconds == cost.seconds &&
            before.cost.order == cost.order)
          return;
        if (before.cost.seconds <= cost.seconds) continue;  // beaten in this layer
        if (before.cost.peak_bytes == cost.peak_bytes) at = std::prev(at);
      }
      std::vector<Candidate> beaten;
      while (at != layer.end() && at->second.cost.seconds >= cost.seconds) {
        beaten.push_back(std::move(at->second));
        at = layer.erase(at);
      }
      layer.emplace(cost.peak_bytes, Candidate{t, pace, cost});
      for (const Candidate& c : beaten) add(number + 1, c.retention_points, c.pace, c.cost);
      return;
    }
  }

  std::array<Layer, kLayers> layers_;
  std::vector<Candidate> pinned_;
};

}  // namespace cairn::plan
