// Parameter groups: which parameters share an optimizer and its hyper-parameters.
#include <fnmatch.h>

#include <algorithm>

#include "runtime/graph/joint_builder.h"

namespace cairn::graph {
namespace {

bool name_matches(const std::string& pattern, const std::string& name) {
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

// The pattern of the group with the parameters that the optimizer of `group` does not take; "": it takes all.
std::string rest_of(const ParameterGroup& group) {
  const std::string_view other = group.optimizer->otherwise;
  return other.empty() ? "" : cat(group.pattern, '/', other);
}

bool is_rest(std::span<const ParameterGroup> groups, std::string_view pattern) {
  return std::any_of(groups.begin(), groups.end(), [&](const ParameterGroup& group) {
    return !pattern.empty() && rest_of(group) == pattern;
  });
}

// Adds a group for the parameters that each group's optimizer does not take, after all others. A group that was given with that
// pattern is already the one.
void add_rests(std::vector<ParameterGroup>& groups, std::span<const GroupOptions> given) {
  const std::vector<ParameterGroup> own = groups;
  for (const ParameterGroup& group : own) {
    const std::string rest = rest_of(group);
    // The rest of a rest would be nobody's.
    if (rest.empty() || (is_rest(own, group.pattern) && !group.pattern.empty())) continue;
    ParameterGroup made = group_of(group.optimizer->otherwise, rest);
    size_t g = 0;
    while (g < given.size() && given[g].pattern != rest) ++g;
    if (g == given.size()) {
      groups.push_back(std::move(made));
      continue;
    }
    require(given[g].optimizer.empty() || given[g].optimizer == made.optimizer->name, Code::kInvalidArgument,
            "the group '", rest, "' has what ", group.optimizer->name, " leaves over, which is ",
            made.optimizer->name, "'s, not ", given[g].optimizer,
            "'s; for another optimizer name the parameters");
    groups[g + 1] = std::move(made);
  }
}

// By value: is it the weight of a hidden layer, read by products alone? A product inside of a loss is an output
// layer, and so is the last one before a loss, with nothing but an activation, a bias, another shape between them.
std::vector<bool> hidden_weights(const Graph& graph) {
  std::vector<bool> hidden(graph.values().size()), other(graph.values().size()),
      behind_a_loss(graph.values().size());
  for (size_t i = graph.ops().size(); i-- > 0;) {
    const Op& op = graph.ops()[i];
    const ops::OpRow& row = ops::row(op.code);
    const bool last = row.is(ops::LOSS) || std::any_of(op.out.begin(), op.out.end(), [&](ValueId v) {
                        return v != kNone && behind_a_loss[v];
                      });
    bool product = false;
    std::vector<ValueId> read;  // of activations
    for (size_t k = 0; k < op.in.size(); ++k) {
      const ValueId v = op.in[k];
      if (v == kNone) continue;
      const bool weight = !row.inputs[k].pack.empty();
      product = product || weight;
      (weight && !last ? hidden : other)[v] = true;
      if (graph.values()[v].kind == ValueKind::kActivation) read.push_back(v);
    }
    const bool passes = row.tolerance <= ops::Tolerance::ELEMENTWISE && read.size() == 1;
    if (last && !product && !read.empty() && (row.is(ops::LOSS) || passes)) behind_a_loss[read[0]] = true;
  }
  for (size_t v = 0; v < hidden.size(); ++v) hidden[v] = hidden[v] && !other[v];
  return hidden;
}

// Parameters that their group's optimizer does not take go to the group of the rest. of: by value.
void move_rests(const Graph& graph, std::span<const ParameterGroup> groups, std::vector<int32_t>& of) {
  const std::vector<bool> hidden = hidden_weights(graph);
  for (size_t v = 0; v < graph.values().size(); ++v) {
    const Value& value = graph.values()[v];
    const ParameterGroup& own = groups[static_cast<size_t>(of[v])];
    if (value.kind != ValueKind::kParameter || !own.optimizer->is(ops::UPDATE_MATRICES)) continue;
    if (value.desc.shape.rank == 2 && hidden[v]) continue;
    of[v] = static_cast<int32_t>(&group_of_pattern(groups, rest_of(own)) - groups.data());
  }
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
  const std::string rest = rest_of(first);
  bool found = false;
  for (ParameterGroup& group : groups) {
    const int index = group.optimizer->hyper(setting.name);
    if (index < 0) continue;
    if (setting.group && *setting.group != group.pattern && (rest.empty() || rest != group.pattern)) continue;
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
  add_rests(groups, options.groups);
  // What is said of the rest of a group wins over what is said of all of it.
  for (const bool of_rests : {false, true})
    for (const HyperSetting& setting : options.hypers)
      if (of_rests == (setting.group && is_rest(groups, *setting.group))) apply(setting, groups);
  for (const ParameterGroup& group : groups) ops::check_hypers_together(*group.optimizer, group.hypers);
  return groups;
}

std::vector<int32_t> assign_groups(const Graph& graph, std::span<const ParameterGroup> groups,
                                   std::span<const GroupOptions> given) {
  std::vector<int32_t> of(graph.values().size(), 0);
  std::vector<bool> used(groups.size());
  for (size_t v = 0; v < graph.values().size(); ++v) {
    const Value& value = graph.values()[v];
    if (value.kind != ValueKind::kParameter) continue;
    for (size_t g = 1; g <= given.size(); ++g) {
      if (is_rest(groups, groups[g].pattern) || !name_matches(groups[g].pattern, value.name)) continue;
      require(of[v] == 0, Code::kInvalidArgument, "the groups '", groups[static_cast<size_t>(of[v])].pattern,
              "' and '", groups[g].pattern, "' both match the parameter '", value.name,
              "'; a parameter belongs to one group");
      of[v] = static_cast<int32_t>(g);
      used[g] = true;
    }
  }
  for (size_t g = 1; g <= given.size(); ++g)
    require(used[g] || is_rest(groups, groups[g].pattern), Code::kInvalidArgument, "the group '",
            groups[g].pattern, "' matches no parameter; there are ", some_names(graph));
  move_rests(graph, groups, of);
  for (size_t g = 1; g <= given.size(); ++g)
    require(given[g - 1].optimizer.empty() || is_rest(groups, groups[g].pattern) ||
                std::find(of.begin(), of.end(), static_cast<int32_t>(g)) != of.end(),
            Code::kInvalidArgument, "the group '", groups[g].pattern, "' asks for ",
            groups[g].optimizer->name,
            ", which takes none of its parameters: it takes matrices that products of hidden layers multiply "
            "by, no embedding's table and no output layer's; give the group another optimizer, such as ",
            groups[g].optimizer->otherwise);
  return of;
}

}  // namespace cairn::graph
