#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "runtime/base/error.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/text.h"

namespace cairn::plan {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kMostBytes = size_t{1} << 30;  // of text
constexpr size_t kMostItems = size_t{1} << 24;  // values, ops
constexpr size_t kMostName = 4096;
constexpr size_t kMostDepth = 64;  // of regions

// A JSON value and the way to it, for messages: "ops[3].inputs[1]".
struct Node {
  dom::element element;
  std::string place;

  template <class... Parts>
  [[noreturn]] void bad(const Parts&... parts) const {
    fail(Code::kInvalidArgument, place.empty() ? "problem" : place, ": ", parts...);
  }
  Node at(std::string_view key) const {
    Node child{{}, place.empty() ? std::string(key) : cat(place, ".", key)};
    if (object().at_key(key).get(child.element)) fail(Code::kInvalidArgument, child.place, " is missing");
    return child;
  }
  bool has(std::string_view key) const { return !object().at_key(key).error(); }
  dom::object object() const {
    dom::object o;
    if (element.get_object().get(o)) bad("not an object");
    return o;
  }
  std::vector<Node> list(size_t most) const {
    dom::array array;
    if (element.get_array().get(array)) bad("not a list");
    std::vector<Node> nodes;
    for (dom::element item : array) {
      if (nodes.size() == most) bad("more than ", most, " items");
      nodes.push_back({item, cat(place, "[", nodes.size(), "]")});
    }
    return nodes;
  }
  std::string name() const {
    std::string_view s;
    if (element.get_string().get(s)) bad("not a string");
    if (s.size() > kMostName) bad("longer than ", kMostName, " bytes");
    return std::string(s);
  }
  int64_t integer() const {
    if (!element.is_int64()) bad("not a 64-bit integer without point or exponent");
    const int64_t x = element.get_int64().value();
    if (x < 0) bad("must not be negative: ", x);
    return x;
  }
  double number() const {
    double x;
    if (!element.is_number() || element.get_double().get(x)) bad("not a number");
    if (!std::isfinite(x) || x < 0) bad("must be finite and not negative: ", x);
    return x;
  }
  bool flag() const {
    bool x;
    if (element.get_bool().get(x)) bad("not true or false");
    return x;
  }
};

void refuse_duplicate_keys(const Node& node) {
  if (node.element.is_array()) {
    size_t i = 0;
    for (dom::element item : dom::array(node.element))
      if (item.is_object() || item.is_array())
        refuse_duplicate_keys({item, cat(node.place, "[", i++, "]")});
      else
        ++i;
    return;
  }
  if (!node.element.is_object()) return;
  std::vector<std::string_view> keys;
  for (auto [key, item] : dom::object(node.element)) {
    keys.push_back(key);
    if (item.is_object() || item.is_array())
      refuse_duplicate_keys({item, node.place.empty() ? std::string(key) : cat(node.place, ".", key)});
  }
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end()) node.bad("the key '", *twice, "' appears twice");
}

using Names = std::unordered_map<std::string, int32_t>;

// A region's path makes its ancestors as well: "h0/attn" needs "h0".
int32_t region_of(Problem& p, Names& names, const std::string& path, const Node& node) {
  if (path.empty()) return -1;
  if (const auto known = names.find(path); known != names.end()) return known->second;
  if (static_cast<size_t>(std::count(path.begin(), path.end(), '/')) >= kMostDepth)
    node.bad("regions nest deeper than ", kMostDepth);
  int32_t parent = -1;
  for (size_t end = path.find('/');; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (part.empty() || part.back() == '/') node.bad("a part of the path '", path, "' is empty");
    const auto [slot, fresh] = names.emplace(part, static_cast<int32_t>(p.regions.size()));
    if (fresh) p.regions.push_back({part, parent});
    parent = slot->second;
    if (end == std::string::npos) return parent;
  }
}

void read_regions(Problem& p, Names& regions, const Names& tiers, const Node& root) {
  if (!root.has("regions")) return;
  for (const Node& node : root.at("regions").list(kMostItems)) {
    const Node name = node.at("name"), policy = node.at("policy");
    const int32_t r = region_of(p, regions, name.name(), name);
    if (r < 0) name.bad("the name is empty");
    const auto found = std::find(std::begin(kPolicyNames), std::end(kPolicyNames), policy.name());
    if (found == std::end(kPolicyNames)) policy.bad("unknown policy '", policy.name(), "'");
    p.regions[r].policy = static_cast<Policy>(found - std::begin(kPolicyNames));
    if (!node.has("tier")) continue;
    const auto tier = tiers.find(node.at("tier").name());
    if (tier == tiers.end()) node.at("tier").bad("unknown tier '", node.at("tier").name(), "'");
    p.regions[r].offload_tier = tier->second;
  }
}

std::vector<int32_t> read_names(const Names& values, const Node& node) {
  std::vector<int32_t> list;
  for (const Node& item : node.list(kMostItems)) {
    const auto found = values.find(item.name());
    if (found == values.end()) item.bad("unknown value '", item.name(), "'");
    list.push_back(found->second);
  }
  return list;
}

Problem read_problem(const Node& root) {
  if (root.at("format").name() != "cairn.problem/1")
    fail(Code::kCorruptFile, "format: expected 'cairn.problem/1', found '", root.at("format").name(), "'");
  Problem p;
  Names values, tiers, regions;
  for (const Node& node : root.at("values").list(kMostItems)) {
    p.values.push_back({node.at("name").name(), node.at("bytes").integer(), node.at("persistent").flag()});
    if (!values.emplace(p.values.back().name, static_cast<int32_t>(p.values.size()) - 1).second)
      node.at("name").bad("the name '", p.values.back().name, "' appears twice");
  }
  for (const Node& node : root.at("links").list(1024)) {
    p.links.push_back({node.at("tier").name(), node.at("latency_seconds").number(),
                       node.at("out_bytes_per_second").number(), node.at("in_bytes_per_second").number(),
                       node.at("both_ways_factor").number(), node.at("capacity_bytes").integer()});
    if (!tiers.emplace(p.links.back().tier, static_cast<int32_t>(p.links.size()) - 1).second)
      node.at("tier").bad("the tier '", p.links.back().tier, "' appears twice");
  }
  read_regions(p, regions, tiers, root);
  for (const Node& node : root.at("ops").list(kMostItems)) {
    Op op;
    op.name = node.at("name").name();
    op.seconds = node.at("seconds").number();
    op.workspace_bytes = node.at("workspace_bytes").integer();
    op.inputs = read_names(values, node.at("inputs"));
    op.outputs = read_names(values, node.at("outputs"));
    op.recomputable = node.at("recomputable").flag();
    if (node.has("region")) op.region = region_of(p, regions, node.at("region").name(), node.at("region"));
    p.ops.push_back(std::move(op));
  }
  const int64_t turnaround = root.at("turnaround").integer();
  if (turnaround > static_cast<int64_t>(p.ops.size()))
    root.at("turnaround").bad(turnaround, " is beyond the last op");
  p.turnaround = static_cast<int32_t>(turnaround);
  p.budget_bytes = root.at("budget_bytes").integer();
  return p;
}

}  // namespace

Problem problem_from_json(std::string_view text) {
  require(text.size() <= kMostBytes, Code::kInvalidArgument, "problem: longer than ", kMostBytes, " bytes");
  dom::parser parser;
  dom::element element;
  const simdjson::padded_string padded(text);
  const auto error = parser.parse(padded).get(element);
  require(!error, Code::kCorruptFile, "problem: not JSON: ", simdjson::error_message(error));
  const Node root{element, ""};
  require(element.is_object(), Code::kCorruptFile, "problem: not an object");
  refuse_duplicate_keys(root);
  Problem p = read_problem(root);
  check(p);
  return p;
}

}  // namespace cairn::plan
