// Which policy holds for each region of a graph: the plan's rows for patterns of regions, the graph's own policies, and
// the plan's policy for the rest.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "runtime/compile/program.h"

namespace cairn::engine {

struct RegionRule {
  // Who says so: nobody or the plan's policy for the rest; the graph; a row of the plan's options.
  enum class By { kPlan, kGraph, kRow };
  Policy policy = Policy::kPlannerDecides;
  std::optional<Tier> tier;  // with kOffload; nothing: the plan's first
  By by = By::kPlan;
};

// One per region of the graph. A region's explicit policy is that of the last row that matches it, else the graph's
// own. The innermost explicit policy around an op holds for it, so the plan's policy goes to regions that are not
// explicit and lie in none that is. kInvalidArgument: a tier of the graph's that is none to offload to.
std::vector<RegionRule> region_rules(const graph::Graph& graph, const PlanOptions& options);

// The rows of the options, each with a pattern that matches whole paths: one that matches none of any graph's stands for the
// ends of paths, so that it holds on when regions are put around what it names. kInvalidArgument: a row whose pattern is empty, too long or no UTF-8, with the policy kPlannerDecides, with a tier
// but not kOffload, or with one that options.tiers, where it names some, does not. kNotFound: a row that matches no
// region of any of the graphs; names the pattern and the nearest regions.
std::vector<RegionPolicy> resolved_region_policies(std::span<const graph::Graph* const> graphs,
                                                   const PlanOptions& options);

}  // namespace cairn::engine
