#include "runtime/compile/regions/region_policies.h"

#include <algorithm>
#include <set>

#include "runtime/base/text/edits.h"
#include "runtime/base/text/name.h"
#include "runtime/base/text/utf8.h"
#include "runtime/compile/regions/region_pattern.h"

namespace cairn::engine {
namespace {

std::optional<Tier> tier_of(const graph::Region& region) {
  if (region.policy != Policy::kOffload || region.offload_tier.empty()) return {};
  const auto* name = std::find(std::begin(kTierNames), std::end(kTierNames), region.offload_tier);
  require(name != std::end(kTierNames), Code::kInvalidArgument, "region '", region.name, "': unknown tier '",
          region.offload_tier, "'; host and disk are");
  return static_cast<Tier>(name - std::begin(kTierNames));
}

constexpr size_t kShown = 6;          // a message names so many regions
constexpr size_t kLongestNear = 256;  // longer patterns and paths are not compared

// The regions whose paths are nearest to the pattern, nearest first; all of them in order where they are few.
std::string some_regions(const std::set<std::string>& paths, const std::string& pattern) {
  std::vector<std::pair<size_t, std::string_view>> near;
  for (const std::string& path : paths) {
    const bool compared = path.size() <= kLongestNear && pattern.size() <= kLongestNear;
    near.emplace_back(compared ? edits(pattern, path) : kLongestNear, path);
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (size_t i = 0; i < std::min(kShown, near.size()); ++i)
    text += cat(i > 0 ? ", " : "", "'", near[i].second, "'");
  return near.size() > kShown ? cat("the nearest of ", near.size(), " are ", text) : cat("there are ", text);
}

void check_row(const RegionPolicy& row, const std::vector<Tier>& open) {
  require(!row.pattern.empty(), Code::kInvalidArgument,
          "a region's policy has an empty pattern; wanted: the path of a region or a pattern of paths, as "
          "'h*/attn'");
  require(row.pattern.size() <= kMaxNameBytes, Code::kInvalidArgument, "a pattern of regions has ",
          row.pattern.size(), " bytes; no region's path has more than ", kMaxNameBytes);
  require(is_utf8(row.pattern), Code::kInvalidArgument,
          "a pattern of regions is not UTF-8; names of regions are, so it matches none: write it in UTF-8");
  require(row.policy != Policy::kPlannerDecides && row.policy <= Policy::kOffload, Code::kInvalidArgument,
          "the regions '", row.pattern, "' are given the policy ", static_cast<uint32_t>(row.policy),
          "; wanted: KEEP, RECOMPUTE or OFFLOAD. Regions that no row names are left to the planner");
  if (!row.tier) return;
  const std::string_view tier = kTierNames[static_cast<size_t>(*row.tier)];
  require(row.policy == Policy::kOffload, Code::kInvalidArgument, "the regions '", row.pattern,
          "': the tier ", tier, " goes with the policy OFFLOAD only; leave it out, or offload them");
  require(*row.tier != Tier::kDevice, Code::kInvalidArgument, "the regions '", row.pattern,
          "' cannot be offloaded to 'device'; wanted: host or disk");
  if (open.empty() || std::find(open.begin(), open.end(), *row.tier) != open.end()) return;
  std::string named;
  for (const Tier each : open) named += cat(named.empty() ? "" : ",", kTierNames[static_cast<size_t>(each)]);
  fail(Code::kInvalidArgument, "the regions '", row.pattern, "' are to be offloaded to the ", tier,
       " tier, which is not open: the tiers are ", named, "; add ", tier, " to them, or name no tiers");
}

}  // namespace

std::vector<RegionRule> region_rules(const graph::Graph& graph, const PlanOptions& options) {
  std::vector<RegionRule> rules;
  std::vector<bool> covered;  // region -> it, or a region around it, has an explicit policy
  for (const graph::Region& region : graph.regions()) {
    RegionRule rule{region.policy, tier_of(region), RegionRule::By::kGraph};
    for (const RegionPolicy& row : options.region_policies)
      if (matches_region(row.pattern, region.name)) rule = {row.policy, row.tier, RegionRule::By::kRow};
    const bool own = rule.policy != Policy::kPlannerDecides;
    covered.push_back(own || (region.parent >= 0 && covered[static_cast<size_t>(region.parent)]));
    if (!own) rule = {covered.back() ? Policy::kPlannerDecides : options.policy, {}, RegionRule::By::kPlan};
    rules.push_back(rule);
  }
  return rules;
}

std::vector<RegionPolicy> resolved_region_policies(std::span<const graph::Graph* const> graphs,
                                                   const PlanOptions& options) {
  std::set<std::string> paths;
  for (const graph::Graph* graph : graphs)
    for (const graph::Region& region : graph->regions()) paths.insert(region.name);
  const auto matches = [&](const std::string& pattern) {
    return std::any_of(paths.begin(), paths.end(),
                       [&](const std::string& path) { return matches_region(pattern, path); });
  };
  std::vector<RegionPolicy> rows = options.region_policies;
  for (RegionPolicy& row : rows) {
    check_row(row, options.tiers);
    if (matches(row.pattern)) continue;
    const std::string at_ends = "**/" + row.pattern;
    if (!matches(at_ends))
      fail(Code::kNotFound, "no region matches the pattern '", row.pattern, "'; ",
           paths.empty() ? "the graph has no regions"
                         : cat(some_regions(paths, row.pattern), "; '*' ends at a '/', '**/' does not"));
    row.pattern = at_ends;
  }
  return rows;
}

}  // namespace cairn::engine
