// What each parameter is stored as.
#include <fnmatch.h>

#include <algorithm>

#include "runtime/formats/codecs.h"
#include "runtime/graph/joint_builder.h"

namespace cairn::graph {
namespace {

// Vectors and integers stay as they are declared: they are few bytes, and norms need all of theirs.
bool takes_format(const Value& value) {
  return value.kind == ValueKind::kParameter && value.desc.dtype == DType::kF32 && value.desc.shape.rank >= 2;
}

bool matches(const FormatRule& rule, const Value& value) {
  return value.kind == ValueKind::kParameter && fnmatch(rule.pattern.c_str(), value.name.c_str(), 0) == 0;
}

// Of a parameter that is not trained, and only of one.
bool only_frozen(DType type) {
  const Format& row = format(type);
  return !row.trains && row.read != Read::kByUpdates && formats::codec(type);
}

// "f32, bf16 or split": the formats of parameters that are trained, or of those that are not.
std::string listed(bool trains) {
  std::vector<std::string_view> names;
  for (const DType type : kDTypes)
    if (trains ? format(type).trains : only_frozen(type)) names.push_back(format(type).name);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += cat(i == 0 ? "" : i + 1 < names.size() ? ", " : " or ", names[i]);
  return text;
}

bool is_fixed(const Graph& graph, const Value& value) { return value.parameter.frozen || !graph.trains(); }

DType format_of(const FormatRule& rule) {
  const auto found =
      std::ranges::find_if(kDTypes, [&](DType type) { return dtype_name(type) == rule.format; });
  const bool known = found != std::end(kDTypes);
  require(known && (format(*found).trains || only_frozen(*found)), Code::kInvalidArgument,
          "the format rule '", rule.pattern, '=', rule.format,
          "': ", known ? "this is no format of parameters" : "there is no such format",
          "; parameters are stored as ", listed(true), ", frozen ones as ", listed(false), " as well");
  return *found;
}

void check(DType chosen, AmpMode amp) {
  require(amp == AmpMode::kBf16 || chosen == DType::kF32 || !format(chosen).trains, Code::kInvalidArgument,
          "parameters stored as ", dtype_name(chosen),
          " go with amp bf16, whose ops read them as they lie; with amp off or fp16 they are f32");
}

// One that is not for parameters that are trained, for one parameter.
void check(const Graph& graph, const Value& value, DType chosen) {
  const Format& row = format(chosen);
  require(is_fixed(graph, value), Code::kInvalidArgument, "parameter '", value.name,
          "' is trained, and one that is stored as ", row.name,
          " cannot be; freeze it, or store it as one of ", listed(true));
  require(value.desc.shape.last() % row.row == 0, Code::kInvalidArgument, "parameter '", value.name, "' is ",
          to_string(value.desc), ", and ", row.name, " stores ", row.row,
          " values of a row together: ", value.desc.shape.last(), " is no multiple of ", row.row,
          "; leave it out by a later rule '", value.name, "=f32'");
}

std::string some_names(std::span<const Graph* const> graphs) {
  constexpr size_t kShown = 6;
  std::vector<std::string> names;
  for (const Graph* graph : graphs)
    for (const Value& value : graph->values())
      if (takes_format(value) && std::ranges::find(names, value.name) == names.end())
        names.push_back(value.name);
  std::string text;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) text += cat(i == 0 ? "" : ", ", names[i]);
  return names.size() > kShown ? cat(text, " and ", names.size() - kShown, " more") : text;
}

}  // namespace

void choose_formats(JointBuilder& builder, const JointOptions& options) {
  require(format(options.parameters).trains, Code::kInvalidArgument, "parameters are stored as ",
          listed(true), ", not as ", dtype_name(options.parameters));
  check(options.parameters, options.amp);
  std::vector<DType> by_rule;
  for (const FormatRule& rule : options.formats) by_rule.push_back(format_of(rule));
  for (const Value& value : builder.forward.values()) {
    DType chosen = value.desc.dtype;
    if (takes_format(value)) {
      chosen = options.parameters;
      for (size_t i = 0; i < by_rule.size(); ++i)
        if (matches(options.formats[i], value) && (format(by_rule[i]).trains || !of_adapter(value.name)))
          chosen = by_rule[i];
      // A cast reads a frozen one of 16 bits where ops do not as it lies.
      if (chosen != DType::kBF16 || chosen == options.parameters || !is_fixed(builder.forward, value))
        check(chosen, options.amp);
      if (only_frozen(chosen)) check(builder.forward, value, chosen);
    }
    builder.formats.push_back(chosen);
  }
}

void check_format_rules(std::span<const Graph* const> graphs, std::span<const FormatRule> rules) {
  for (const FormatRule& rule : rules) {
    format_of(rule);
    bool any = false, takes = false;
    for (const Graph* graph : graphs)
      for (const Value& value : graph->values()) {
        any = any || matches(rule, value);
        takes = takes || (matches(rule, value) && takes_format(value));
      }
    require(takes, Code::kInvalidArgument, "the format rule '", rule.pattern, '=', rule.format, "' matches ",
            any ? "only vectors, which have the format that they are declared in" : "no parameter",
            "; there are ", some_names(graphs));
  }
}

}  // namespace cairn::graph
