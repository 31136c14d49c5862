// Which modules have adapters: rules, their patterns, and what they must not name.
#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "runtime/graph/adapters/builder.h"

namespace cairn::graph {
namespace {

constexpr int64_t kMostRank = 1 << 16;

bool matches(const ModulePattern& pattern, std::string_view module) {
  const std::string name(module);
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0 ||
         fnmatch(("*." + pattern).c_str(), name.c_str(), 0) == 0;
}

std::string key(std::string_view list, std::string_view pattern) { return cat(list, ' ', pattern); }

std::string shown(std::vector<std::string> names) {
  constexpr size_t kShown = 6;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) text += cat(i == 0 ? "" : ", ", names[i]);
  return names.size() > kShown ? cat(text, " and ", names.size() - kShown, " more") : text;
}

}  // namespace

void Graph::adapt(AdapterRule rule) {
  building();
  AdapterBuilder(*this).add(std::move(rule));
}

void AdapterBuilder::add(AdapterRule rule) {
  const auto number = [](bool valid, std::string_view what, double value, std::string_view wanted) {
    require(valid, Code::kInvalidArgument, "an adapter's ", what, " is ", value, "; wanted: ", wanted);
  };
  const auto rank = [&](int64_t r) {
    number(r >= 1 && r <= kMostRank, "rank", static_cast<double>(r), "1 to 65536");
  };
  const auto alpha = [&](double a, bool zero) {
    number(std::isfinite(a) && (a > 0 || (zero && a == 0)), "alpha", a,
           zero ? "a number above 0, or 0 for the rank" : "a number above 0");
  };
  require(rule.kind <= kLastAdapterKind, Code::kInvalidArgument, "an adapter of the unknown kind ",
          static_cast<int>(rule.kind));
  rank(rule.rank);
  alpha(rule.alpha, true);
  number(rule.dropout >= 0 && rule.dropout < 1, "dropout", rule.dropout, "0 or more, and below 1");
  for (const auto& [pattern, r] : rule.ranks) rank(r);
  for (const auto& [pattern, a] : rule.alphas) alpha(a, false);
  known_.rules.push_back(std::move(rule));
}

// Whether one of the patterns matches, which are then all known to be of use.
bool AdapterBuilder::any(const char* list, const std::vector<ModulePattern>& patterns,
                         std::string_view module) {
  const ModulePattern* found = nullptr;
  for (const ModulePattern& pattern : patterns) {
    if (!matches(pattern, module)) continue;
    require(found == nullptr, Code::kInvalidArgument, "the patterns '", found ? *found : pattern, "' and '",
            pattern, "' (", list, ") both match the module '", module, "'; one must");
    found = &pattern;
    known_.used.insert(key(list, pattern));
  }
  return found != nullptr;
}

const AdapterRule* AdapterBuilder::rule_for(const Row& row, std::string_view op, std::string_view module) {
  const AdapterRule* found = nullptr;
  for (const AdapterRule& rule : known_.rules) {
    const bool named = any("targets", rule.targets, module), trained = any("saved", rule.saved, module);
    if (any("except", rule.except, module)) continue;
    require(!(named && trained), Code::kInvalidArgument, "the module '", module,
            "' is to have an adapter and to be trained as it is; leave it out of one list");
    if (!named && (!rule.targets.empty() || !row.by_default || trained)) continue;
    require(found == nullptr, Code::kInvalidArgument, "two rules give the module '", module,
            "' an adapter; one must");
    found = &rule;
  }
  if (found == nullptr) return nullptr;
  require(row.make != nullptr, Code::kInvalidArgument, "'", module, "' is multiplied within ", op,
          ", which has no place for an adapter; leave it out of the targets, or train it as it is "
          "(modules_to_save)");
  const bool dense = found->kind == AdapterKind::kDora || found->kind == AdapterKind::kPissa;
  require(row.dense || !dense, Code::kInvalidArgument, "'", module, "' is a weight of ", op,
          ", and DoRA and PiSSA are for linear layers; leave it out of the targets, or take lora or rslora");
  return found;
}

void AdapterBuilder::refuse_reuse(std::string_view op, const std::vector<ValueId>& in) const {
  for (const ValueId v : in) {
    const auto first = known_.of.find(v);
    if (first == known_.of.end()) continue;
    fail(Code::kInvalidArgument, "'", module_of(g_.values_[v].name), "' has an adapter for ", first->second,
         " and is used by ", op,
         " as well: an adapter is for one use. Leave a tied or shared weight out of the targets, or train "
         "it as it is, which keeps it tied (modules_to_save)");
  }
}

// By its name, or that of a module or a folder of modules that it is in.
bool AdapterBuilder::saved(std::string_view parameter) {
  bool found = false;
  for (const AdapterRule& rule : known_.rules)
    for (const ModulePattern& pattern : rule.saved)
      for (size_t end = parameter.find('.'); !found; end = parameter.find('.', end + 1)) {
        if (matches(pattern, parameter.substr(0, end))) {
          known_.used.insert(key("saved", pattern));
          found = true;
        }
        if (end == std::string_view::npos) break;
      }
  return found;
}

void AdapterBuilder::check_patterns() const {
  const auto check = [&](std::string_view list, const ModulePattern& pattern) {
    require(known_.used.contains(key(list, pattern)), Code::kInvalidArgument, "the pattern '", pattern, "' (",
            list, ") of an adapter matches no module; there are ", shown(known_.modules));
  };
  for (const AdapterRule& rule : known_.rules) {
    for (const ModulePattern& pattern : rule.targets) check("targets", pattern);
    for (const ModulePattern& pattern : rule.saved) check("saved", pattern);
    for (const auto& [pattern, rank] : rule.ranks) check("ranks", pattern);
    for (const auto& [pattern, alpha] : rule.alphas) check("alphas", pattern);
  }
  require(!known_.of.empty(), Code::kInvalidArgument, "the adapters' rules match no module; there are ",
          shown(known_.modules));
}

void AdapterBuilder::finish(bool trains) {
  std::vector<ValueId> frozen;
  for (size_t v = 0; v < g_.values_.size(); ++v) {
    const auto id = static_cast<ValueId>(v);
    if (g_.values_[v].kind == ValueKind::kParameter && !known_.parameters.contains(id) &&
        !saved(g_.values_[v].name))
      frozen.push_back(id);
  }
  if (trains) check_patterns();
  for (const ValueId v : frozen) g_.values_[v].parameter.frozen = true;
}

}  // namespace cairn::graph
