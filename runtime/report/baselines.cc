#include "runtime/report/baselines.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/base/error.h"
#include "runtime/plan/layout/layout.h"
#include "runtime/plan/search/stages.h"
#include "runtime/plan/sequence/evaluate.h"

namespace cairn::plan {
namespace {

// The region just below `root` (-1: outermost) on the way to `region`; -1: not inside.
int32_t below(const Problem& p, int32_t region, int32_t root) {
  while (region > root && p.regions[region].parent != root) region = p.regions[region].parent;
  return region > root ? region : -1;
}

class Pricer {
 public:
  Pricer(const Problem& p, const Index& index)
      : p_(p), index_(index), intervals_(p, index), evaluate_(p, index, intervals_) {}

  // `group` per op: what only ops of its group read is made again in backward. Empty: nothing is.
  Baseline operator()(std::string name, std::string words, const std::vector<int32_t>& group) {
    RetentionPoints t = intervals_.keep_all(p_);
    for (int32_t i = 0; !group.empty() && i < p_.backward_begin; ++i) {
      if (group[i] < 0 || !p_.ops[i].recomputable) continue;
      for (int32_t v : index_.outputs[i]) {
        const auto readers = index_.readers[v];
        const bool inside = std::all_of(readers.begin(), readers.end(),
                                        [&](int32_t reader) { return group[reader] == group[i]; });
        const int32_t interval = intervals_.across(p_, index_, v);
        if (inside && interval >= 0) t[interval] = p_.backward_begin;
      }
    }
    Sequence sequence;
    Schedule schedule = evaluate_.schedule(t, {}, sequence);
    Plan plan;
    plan.steps = std::move(schedule.steps);
    plan.tier_peak_bytes = std::move(schedule.tier_peak_bytes);
    assign_offsets(p_, index_, plan, schedule.peak_bytes);
    return {std::move(name), std::move(words), schedule.peak_bytes, plan.arena_bytes, schedule.seconds};
  }

 private:
  const Problem& p_;
  const Index& index_;
  Intervals intervals_;
  Evaluator evaluate_;
};

}  // namespace

Layers::Layers(const Problem& p, const Index& index) : of_op(p.ops.size(), -1) {
  if (p.backward_begin == 0) return;
  const auto number = [&](int32_t root) {
    std::map<int32_t, int32_t> numbers;
    for (int32_t i = 0; i < p.backward_begin; ++i)
      if (const int32_t region = below(p, p.ops[i].region, root); region >= 0)
        numbers.emplace(region, static_cast<int32_t>(numbers.size()));
    return numbers;
  };
  int32_t root = -1;
  std::map<int32_t, int32_t> numbers = number(root);
  while (numbers.size() == 1) {  // one around everything: its parts, if it has some
    const int32_t inner = numbers.begin()->first;
    std::map<int32_t, int32_t> parts = number(inner);
    if (parts.empty()) break;
    root = inner;
    numbers = std::move(parts);
  }
  if (numbers.empty()) {
    const Stages stages(p, index);
    for (size_t i = 0; i < p.ops.size(); ++i)
      of_op[i] = i < static_cast<size_t>(p.backward_begin) ? stages.of_op[i] : stages.of_backward[i];
    count = static_cast<int32_t>(stages.all.size());
    return;
  }
  count = static_cast<int32_t>(numbers.size());
  for (size_t i = 0; i < p.ops.size(); ++i)
    if (const auto at = numbers.find(below(p, p.ops[i].region, root)); at != numbers.end())
      of_op[i] = at->second;
}

std::vector<Baseline> baselines(const Problem& p) {
  check(p);
  const Index index(p);
  const Layers layers(p, index);
  const int32_t size =
      std::max(1, static_cast<int32_t>(std::lround(std::sqrt(static_cast<double>(layers.count)))));
  std::vector<int32_t> groups = layers.of_op;
  for (int32_t& group : groups)
    if (group >= 0) group /= size;
  Pricer price(p, index);
  return {
      price("keep_all", "everything kept", {}),
      price("per_layer", cat("every layer checkpointed (", layers.count, " layers)"), layers.of_op),
      price("sqrt_n", cat("groups of ", size, " checkpointed (\xe2\x88\x9an of ", layers.count, " layers)"),
            groups)};
}

}  // namespace cairn::plan
