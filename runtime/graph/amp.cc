// AMP rules: which ops have another class than their row's.
#include <fnmatch.h>

#include <set>

#include "runtime/graph/joint.h"

namespace cairn::graph {
namespace {

using ops::Amp;

bool matches(const std::string& pattern, const std::string& name) {
  return pattern.empty() || fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool lies_within(const Graph& graph, const Op& op, const std::string& pattern) {
  if (pattern.empty()) return true;
  for (RegionId r = op.region; r >= 0; r = graph.regions()[static_cast<size_t>(r)].parent)
    if (matches(pattern, graph.regions()[static_cast<size_t>(r)].name)) return true;
  return false;
}

bool matches(const Graph& graph, const Op& op, const AmpRule& rule) {
  return matches(rule.op, std::string(op_name(graph, op))) && lies_within(graph, op, rule.region);
}

Amp own_class(const Op& op) { return ops::row(op.code).amp; }
bool changeable(const Op& op) { return own_class(op) != Amp::ASIS; }

// Nothing: "default".
std::optional<Amp> class_of(const AmpRule& rule) {
  if (rule.amp_class == kAmpDefault) return {};
  std::string known;
  for (const ops::AmpRow& row : ops::amp_classes()) {
    if (!row.by_rule) continue;
    if (row.name == rule.amp_class) return row.amp_class;
    known += cat(row.name, ", ");
  }
  fail(Code::kInvalidArgument, "the AMP rule ", to_string(rule),
       " gives no class that a rule can give: ", known, kAmpDefault);
}

// The first few of them, for messages.
std::string some(const std::set<std::string>& names) {
  constexpr size_t kShown = 24;
  std::string text;
  size_t count = 0;
  for (const std::string& name : names)
    if (count++ < kShown) text += cat(text.empty() ? "" : ", ", name);
  return count > kShown ? cat(text, " and ", count - kShown, " more") : text;
}

// Why a rule matches no op.
[[noreturn]] void fail_unmatched(std::span<const Graph* const> graphs, const AmpRule& rule) {
  std::set<std::string> inside, regions;
  for (const Graph* graph : graphs) {
    for (const Region& region : graph->regions()) regions.insert(region.name);
    for (const Op& op : graph->ops())
      if (lies_within(*graph, op, rule.region)) inside.emplace(op_name(*graph, op));
  }
  if (!inside.empty())
    fail(Code::kInvalidArgument, "the AMP rule ", to_string(rule), " matches no op; ",
         rule.region.empty() ? "the graph has: " : "in that region there are: ", some(inside));
  fail(Code::kInvalidArgument, "the AMP rule ", to_string(rule), " matches no region with an op in it; ",
       regions.empty() ? "the graph has no regions" : cat("there are: ", some(regions)));
}

}  // namespace

std::string_view op_name(const Graph& graph, const Op& op) {
  if (op.code != ops::OpCode::k_custom) return ops::name(op.code);
  return graph.customs()[static_cast<size_t>(op.attrs.integer("custom"))].name;
}

std::string to_string(const AmpRule& rule) {
  std::string text = "{";
  if (!rule.op.empty()) text += cat("op '", rule.op, "', ");
  if (!rule.region.empty()) text += cat("region '", rule.region, "', ");
  return cat(text, "class '", rule.amp_class, "'}");
}

std::vector<AmpChoice> amp_choices(const Graph& graph, std::span<const AmpRule> rules) {
  std::vector<AmpChoice> choices;
  for (const Op& op : graph.ops()) {
    AmpChoice choice{own_class(op)};
    for (size_t r = 0; r < rules.size() && changeable(op); ++r) {
      if (!matches(graph, op, rules[r])) continue;
      const std::optional<Amp> given = class_of(rules[r]);
      choice = {given.value_or(own_class(op)), given ? static_cast<int32_t>(r) : -1};
    }
    choices.push_back(choice);
  }
  return choices;
}

void check_amp_rules(std::span<const Graph* const> graphs, std::span<const AmpRule> rules) {
  for (const AmpRule& rule : rules) {
    class_of(rule);
    require(!rule.op.empty() || !rule.region.empty(), Code::kInvalidArgument, "the AMP rule ",
            to_string(rule), " names neither an op nor a region; the op '*' stands for all");
    std::set<std::string> fixed;
    bool found = false;
    for (const Graph* graph : graphs)
      for (const Op& op : graph->ops()) {
        if (!matches(*graph, op, rule)) continue;
        if (changeable(op))
          found = true;
        else
          fixed.emplace(op_name(*graph, op));
      }
    if (found) continue;
    if (fixed.empty()) fail_unmatched(graphs, rule);
    fail(Code::kInvalidArgument, "the AMP rule ", to_string(rule), " matches nothing but ", some(fixed),
         ", whose types follow from attributes or integers; no class changes that: leave the rule out");
  }
}

}  // namespace cairn::graph
