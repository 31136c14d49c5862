#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "runtime/plan/json/node.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/text.h"

namespace cairn::plan {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 30;  // of a problem's text
constexpr size_t kMaxItems = size_t{1} << 24;  // of values, and of ops
constexpr size_t kMaxDepth = 64;               // of nested regions

using Numbers = std::unordered_map<std::string, int32_t>;

// A region's path makes its ancestors as well: "h0/attn" needs "h0".
int32_t region_of(Problem& p, Numbers& names, const std::string& path, const JsonNode& node) {
  if (path.empty()) return -1;
  if (const auto known = names.find(path); known != names.end()) return known->second;
  if (static_cast<size_t>(std::count(path.begin(), path.end(), '/')) >= kMaxDepth)
    node.bad("regions nest deeper than ", kMaxDepth);
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

void read_regions(Problem& p, Numbers& regions, const Numbers& tiers, const JsonNode& root) {
  if (!root.has("regions")) return;
  std::unordered_set<std::string> given;
  for (const JsonNode& node : root.at("regions").list(kMaxItems)) {
    const JsonNode name = node.at("name"), policy = node.at("policy");
    const int32_t r = region_of(p, regions, name.name(), name);
    if (r < 0) name.bad("the name is empty");
    if (!given.insert(name.name()).second) name.bad("the region '", name.name(), "' appears twice");
    const auto found = std::find(std::begin(kPolicyNames), std::end(kPolicyNames), policy.name());
    if (found == std::end(kPolicyNames))
      policy.bad("unknown policy '", policy.name(),
                 "'; known are PLANNER_DECIDES, KEEP, RECOMPUTE and OFFLOAD");
    p.regions[r].policy = static_cast<Policy>(found - std::begin(kPolicyNames));
    if (!node.has("tier")) continue;
    const auto tier = tiers.find(node.at("tier").name());
    if (tier == tiers.end()) node.at("tier").bad("unknown tier '", node.at("tier").name(), "'");
    p.regions[r].offload_tier = tier->second;
  }
}

std::vector<int32_t> read_names(const Numbers& values, const JsonNode& node) {
  std::vector<int32_t> list;
  for (const JsonNode& item : node.list(kMaxItems)) {
    const auto found = values.find(item.name());
    if (found == values.end()) item.bad("unknown value '", item.name(), "'");
    list.push_back(found->second);
  }
  return list;
}

// Form 2 adds values that live in a tier. No op may change a value that says it is clean.
void read_homes(Problem& p, const Numbers& tiers, const JsonNode& root) {
  std::vector<bool> clean(p.values.size(), false);
  size_t i = 0;
  for (const JsonNode& node : root.at("values").list(kMaxItems)) {
    if (node.has("clean")) clean[i] = node.at("clean").flag();
    if (node.has("home")) {
      const auto tier = tiers.find(node.at("home").name());
      if (tier == tiers.end())
        node.at("home").bad("no link leads to the tier '", node.at("home").name(), "'");
      p.values[i].home = tier->second;
    }
    if (node.has("fresh")) p.values[i].fresh = node.at("fresh").flag();
    if (node.has("home_seconds")) p.values[i].home_seconds = node.at("home_seconds").number();
    ++i;
  }
  for (const Op& op : p.ops)
    for (const int32_t v : op.outputs)
      if (clean[static_cast<size_t>(v)])
        root.at("values").bad("'", p.values[v].name, "' is said to be clean, and '", op.name, "' changes it");
}

Problem read_problem(const JsonNode& root) {
  const std::string form = root.at("format").name();
  if (form != "cairn.problem/1" && form != "cairn.problem/2")
    fail(Code::kCorruptFile, "format: expected 'cairn.problem/1' or 'cairn.problem/2', found '", form, "'");
  Problem p;
  Numbers values, tiers, regions;
  for (const JsonNode& node : root.at("values").list(kMaxItems)) {
    p.values.push_back({node.at("name").name(), node.at("bytes").integer(), node.at("persistent").flag()});
    if (!values.emplace(p.values.back().name, static_cast<int32_t>(p.values.size()) - 1).second)
      node.at("name").bad("the name '", p.values.back().name, "' appears twice");
  }
  for (const JsonNode& node : root.at("links").list(1024)) {
    p.links.push_back({node.at("tier").name(), node.at("latency_seconds").number(),
                       node.at("out_bytes_per_second").number(), node.at("in_bytes_per_second").number(),
                       node.at("both_ways_factor").number(), node.at("capacity_bytes").integer()});
    if (node.has("busy_factor")) p.links.back().busy_factor = node.at("busy_factor").number();
    if (node.has("busy_rate_factor")) p.links.back().busy_rate_factor = node.at("busy_rate_factor").number();
    if (!tiers.emplace(p.links.back().tier, static_cast<int32_t>(p.links.size()) - 1).second)
      node.at("tier").bad("the tier '", p.links.back().tier, "' appears twice");
  }
  read_regions(p, regions, tiers, root);
  for (const JsonNode& node : root.at("ops").list(kMaxItems)) {
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
  const int64_t backward_begin = root.at("turnaround").integer();
  if (backward_begin > static_cast<int64_t>(p.ops.size()))
    root.at("turnaround").bad(backward_begin, " is beyond the last op");
  p.backward_begin = static_cast<int32_t>(backward_begin);
  p.budget_bytes = root.at("budget_bytes").integer();
  if (form == "cairn.problem/2") read_homes(p, tiers, root);
  return p;
}

}  // namespace

Problem problem_from_json(std::string_view text) {
  require(text.size() <= kMaxBytes, Code::kInvalidArgument, "problem: longer than ", kMaxBytes, " bytes");
  const JsonText json("problem", text);
  Problem p = read_problem(json.root());
  check(p);
  return p;
}

}  // namespace cairn::plan
