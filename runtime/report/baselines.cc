#include "runtime/report/baselines.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/structure/stages.h"

namespace cairn::plan {
namespace {

// The region just below `root` (-1: outermost) on the way to `region`; -1: not inside.
int32_t below(const Problem& p, int32_t region, int32_t root) {
  while (region > root && p.regions[region].parent != root) region = p.regions[region].parent;
  return region > root ? region : -1;
}

// What a problem takes whose layers, cut into groups, are regions with the policy RECOMPUTE, and that may take as much
// as it likes: the plan that a graph with such regions has. `group` per op, -1: none. Empty: everything is kept.
Plan plan_of(Problem p, const std::vector<int32_t>& group) {
  p.budget_bytes = 0;
  p.regions.clear();
  if (std::none_of(p.values.begin(), p.values.end(), [](const Value& v) { return v.home >= 0; }))
    p.links.clear();
  for (size_t i = 0; i < p.ops.size(); ++i) {
    p.ops[i].region = group.empty() ? -1 : group[i];
    while (p.ops[i].region >= static_cast<int32_t>(p.regions.size()))
      p.regions.push_back({cat("group ", p.regions.size()), -1, Policy::kRecompute, -1});
  }
  return solve(p);
}

// Of layers, groups of `size`; 0: everything is kept.
std::vector<int32_t> groups_of(const Layers& layers, int32_t size) {
  if (size == 0) return {};
  std::vector<int32_t> groups = layers.of_op;
  for (int32_t& group : groups)
    if (group >= 0) group /= size;
  return groups;
}

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

std::vector<Baseline> baselines(const Problem& p, const Problem* other) {
  // An op in place is one with the op before it. Where both forms take as much, it is without them.
  const bool other_first = other != nullptr && other->ops.size() > p.ops.size();
  std::vector<std::pair<const Problem*, Layers>> forms;
  for (const Problem* form : {other_first ? other : &p, other_first ? &p : other}) {
    if (form == nullptr) continue;
    check(*form);
    forms.emplace_back(form, Layers(*form, Index(*form)));
  }
  const int32_t count = forms[0].second.count;
  const int32_t size = std::max(1, static_cast<int32_t>(std::lround(std::sqrt(static_cast<double>(count)))));
  const auto price = [&](std::string name, std::string words, int32_t group) {
    std::optional<Plan> best;
    for (const auto& [form, layers] : forms) {
      Plan plan = plan_of(*form, groups_of(layers, group));
      if (!best || plan.arena_bytes < best->arena_bytes) best = std::move(plan);
    }
    return Baseline{std::move(name), std::move(words), best->device_peak_bytes, best->arena_bytes,
                    best->predicted_seconds};
  };
  return {
      price("keep_all", "everything kept", 0),
      price("per_layer", cat("every layer checkpointed (", count, " layers)"), 1),
      price("sqrt_n", cat("groups of ", size, " checkpointed (\xe2\x88\x9an of ", count, " layers)"), size)};
}

}  // namespace cairn::plan
