// Which policy holds for each region of a graph: the plan's rows for patterns of regions, the graph's own policies,
// and the plan's policy for the rest.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "runtime/compile/options.h"

namespace cairn::engine {

struct RegionRule {
  // Where it comes from: the plan's policy for the rest, the graph, or a row of the plan's options.
  enum class By { kPlan, kGraph, kRow };
  Policy policy = Policy::kPlannerDecides;
  std::optional<Tier> tier;  // with kOffload; nothing: the first tier of the plan
  By by = By::kPlan;
};

// The rule of each region of the graph. The last row of the options that matches a region gives its explicit policy,
// or else the graph does. The innermost explicit policy around an op holds for the op, so the plan's policy is only
// for regions outside of all explicit ones. kInvalidArgument: the graph names a tier that nothing can be offloaded
// to.
std::vector<RegionRule> region_rules(const graph::Graph& graph, const PlanOptions& options);

// The rows of the options, with patterns of complete paths. A pattern that matches no region of any graph is taken
// for the end of a path, so that it still holds when regions are put around the one that it names. kInvalidArgument:
// a row whose pattern is empty, too long or not UTF-8, whose policy is kPlannerDecides, or which has a tier without
// kOffload or one that is not in options.tiers, if those are given. kNotFound: a row that matches no region of any
// graph; names the pattern and the nearest regions.
std::vector<RegionPolicy> resolved_region_policies(std::span<const graph::Graph* const> graphs,
                                                   const PlanOptions& options);

}  // namespace cairn::engine
