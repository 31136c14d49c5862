// Parameter groups: which parameters share an optimizer and its hyper-parameters.
#include <fnmatch.h>

#include "runtime/graph/joint_builder.h"

namespace cairn::graph {
namespace {

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// The first few of a model's parameters, for messages.
std::string some_names(const Graph& graph) {
  constexpr int kShown = 6;
  std::string text;
  int count = 0;
  for (const Value& value : graph.values()) {
    if (value.kind != ValueKind::kParameter) continue;
    if (count++ < kShown) text += cat(text.empty() ? "" : ", ", value.name);
  }
  return count > kShown ? cat(text, " and ", count - kShown, " more") : text;
}

ParameterGroup group_of(std::string_view optimizer, std::string pattern) {
  ParameterGroup group;
  group.pattern = std::move(pattern);
  group.optimizer = &ops::optimizer(optimizer);
  for (const ops::Hyper& hyper : group.optimizer->hypers) group.hypers.push_back(hyper.value);
  group.given.resize(group.hypers.size());
  return group;
}

}  // namespace

double ParameterGroup::hyper(std::string_view name) const {
  const int index = optimizer->hyper(name);
  if (index < 0) ops::check_hyper(*optimizer, name, 0);  // says what there is
  return hypers[static_cast<size_t>(index)];
}

const ParameterGroup& group_of_pattern(std::span<const ParameterGroup> groups, std::string_view pattern) {
  std::string patterns;
  for (const ParameterGroup& group : groups) {
    if (group.pattern == pattern) return group;
    patterns += cat(patterns.empty() ? "'" : ", '", group.pattern, '\'');
  }
  fail(Code::kInvalidArgument, "there is no parameter group '", pattern, "'; there are: ", patterns,
       " ('' has all parameters that no other group names)");
}

void apply(const HyperSetting& setting, std::vector<ParameterGroup>& groups) {
  const ParameterGroup& first = group_of_pattern(groups, setting.group.value_or(""));
  bool found = false;
  for (ParameterGroup& group : groups) {
    const int index = group.optimizer->hyper(setting.name);
    if (setting.group ? *setting.group != group.pattern : index < 0) continue;
    ops::check_hyper(*group.optimizer, setting.name, setting.value);
    group.hypers[static_cast<size_t>(index)] = setting.value;
    group.given[static_cast<size_t>(index)] = true;
    found = true;
  }
  if (!found) ops::check_hyper(*first.optimizer, setting.name, setting.value);  // says what there is
}

std::vector<ParameterGroup> make_groups(const OptimizerOptions& options) {
  std::vector<ParameterGroup> groups = {group_of(options.name, "")};
  for (const GroupOptions& given : options.groups) {
    require(!given.pattern.empty(), Code::kInvalidArgument,
            "a parameter group needs a pattern that names its parameters, such as '*.bias'");
    for (const ParameterGroup& other : groups)
      require(other.pattern != given.pattern, Code::kInvalidArgument, "the group '", given.pattern,
              "' is there twice");
    groups.push_back(group_of(given.optimizer.empty() ? options.name : given.optimizer, given.pattern));
  }
  for (const HyperSetting& setting : options.hypers) apply(setting, groups);
  for (const ParameterGroup& group : groups) ops::check_hypers_together(*group.optimizer, group.hypers);
  return groups;
}

std::vector<int32_t> assign_groups(const Graph& graph, std::span<const ParameterGroup> groups) {
  std::vector<int32_t> of(graph.values().size(), 0);
  std::vector<bool> used(groups.size());
  for (size_t v = 0; v < graph.values().size(); ++v) {
    const Value& value = graph.values()[v];
    if (value.kind != ValueKind::kParameter) continue;
    for (size_t g = 1; g < groups.size(); ++g) {
      if (!matches(groups[g].pattern, value.name)) continue;
      require(of[v] == 0, Code::kInvalidArgument, "the groups '", groups[static_cast<size_t>(of[v])].pattern,
              "' and '", groups[g].pattern, "' both match the parameter '", value.name,
              "'; a parameter belongs to one group");
      of[v] = static_cast<int32_t>(g);
      used[g] = true;
    }
  }
  for (size_t g = 1; g < groups.size(); ++g)
    require(used[g], Code::kInvalidArgument, "the group '", groups[g].pattern,
            "' matches no parameter; there are ", some_names(graph));
  return of;
}

}  // namespace cairn::graph
