// Checks once, on input, everything that the planner relies on, and names the place in the message.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "runtime/base/checked.h"
#include "runtime/plan/problem.h"

namespace cairn::plan {
namespace {

constexpr Code kBad = Code::kInvalidArgument;

using Names = std::unordered_map<std::string_view, size_t>;

void add_name(Names& names, std::string_view kind, size_t i, std::string_view name) {
  require(!name.empty(), kBad, kind, "[", i, "]: the name is empty");
  const auto [other, fresh] = names.emplace(name, i);
  require(fresh, kBad, kind, "[", i, "]: the name '", name, "' is taken by ", kind, "[", other->second, "]");
}

void not_negative(double x, std::string_view kind, size_t i, std::string_view field) {
  require(std::isfinite(x) && x >= 0, kBad, kind, "[", i, "].", field,
          " must be finite and not negative: ", x);
}

void positive(double x, std::string_view kind, size_t i, std::string_view field) {
  require(std::isfinite(x) && x > 0, kBad, kind, "[", i, "].", field, " must be finite and above 0: ", x);
}

void bytes(int64_t x, std::string_view kind, size_t i, std::string_view field) {
  require(x >= 0, kBad, kind, "[", i, "].", field, " must not be negative: ", x);
}

// The search adds sizes and budgets. Half of what 64 bits hold leaves room for these sums.
constexpr int64_t kMostBytes = std::numeric_limits<int64_t>::max() / 2;

void check_values(const Problem& p) {
  Names names;
  int64_t sum = 0, persistent = 0;
  for (size_t i = 0; i < p.values.size(); ++i) {
    add_name(names, "values", i, p.values[i].name);
    bytes(p.values[i].bytes, "values", i, "bytes");
    require(!__builtin_add_overflow(sum, p.values[i].bytes, &sum), kBad, "values[", i, "] '",
            p.values[i].name, "': the sum of all values' bytes overflows 64 bits");
    if (p.values[i].persistent) persistent += p.values[i].bytes;
  }
  for (size_t i = 0; i < p.ops.size(); ++i) {
    bytes(p.ops[i].workspace_bytes, "ops", i, "workspace_bytes");
    int64_t all;
    require(!__builtin_add_overflow(sum, p.ops[i].workspace_bytes, &all), kBad, "ops[", i, "] '",
            p.ops[i].name, "': the workspace and all values overflow 64 bits");
    require(all - persistent <= kMostBytes, kBad, "ops[", i, "] '", p.ops[i].name,
            "': the workspace and all values that are not persistent have ", all - persistent,
            " bytes; at most ", kMostBytes, " are planned with");
  }
}

void check_links(const Problem& p) {
  Names names;
  double all_bytes = 0;
  for (const Value& v : p.values) all_bytes += static_cast<double>(v.bytes);
  for (size_t i = 0; i < p.links.size(); ++i) {
    const Link& link = p.links[i];
    add_name(names, "links", i, link.tier);
    require(link.tier != "device", kBad, "links[", i, "]: 'device' is not a tier of a link");
    not_negative(link.latency_seconds, "links", i, "latency_seconds");
    positive(link.out_bytes_per_second, "links", i, "out_bytes_per_second");
    positive(link.in_bytes_per_second, "links", i, "in_bytes_per_second");
    positive(link.both_ways_factor, "links", i, "both_ways_factor");
    require(link.both_ways_factor <= 1, kBad, "links[", i,
            "].both_ways_factor is above 1: ", link.both_ways_factor);
    for (const auto& [factor, key] :
         {std::pair{link.busy_factor, "busy_factor"}, std::pair{link.busy_rate_factor, "busy_rate_factor"}}) {
      positive(factor, "links", i, key);
      require(factor <= 1, kBad, "links[", i, "].", key, " is above 1: ", factor);
    }
    bytes(link.capacity_bytes, "links", i, "capacity_bytes");
    const double rate = std::min(link.out_bytes_per_second, link.in_bytes_per_second) *
                        link.both_ways_factor * link.busy_rate_factor;
    require(std::isfinite(all_bytes / rate + link.latency_seconds * static_cast<double>(p.values.size())),
            kBad, "links[", i, "]: copies of all values over it would never end");
  }
}

void check_regions(const Problem& p) {
  Names names;
  const auto links = static_cast<int32_t>(p.links.size());
  for (size_t i = 0; i < p.regions.size(); ++i) {
    const Region& r = p.regions[i];
    add_name(names, "regions", i, r.name);
    require(r.parent >= -1 && r.parent < static_cast<int32_t>(i), kBad, "regions[", i, "] '", r.name,
            "': the parent must come before it: ", r.parent);
    require(r.policy <= Policy::kOffload, kBad, "regions[", i, "] '", r.name, "': unknown policy");
    require(r.offload_tier >= -1 && r.offload_tier < links, kBad, "regions[", i, "] '", r.name,
            "': offload_tier ", r.offload_tier, " is none of ", links, " links");
    require(r.policy != Policy::kOffload || links > 0, kBad, "regions[", i, "] '", r.name,
            "': the policy is OFFLOAD, but there is no link to offload to");
  }
}

void check_ops(const Problem& p) {
  Names names;
  const auto values = static_cast<int32_t>(p.values.size());
  // Per value: the op that makes it, and the last op that changes it.
  std::vector<int32_t> maker(p.values.size(), -1), changer(p.values.size(), -1);
  for (size_t i = 0; i < p.ops.size(); ++i)
    for (size_t k = 0; k < p.ops[i].outputs.size(); ++k) {
      const int32_t v = p.ops[i].outputs[k];
      require(v >= 0 && v < values, kBad, "ops[", i, "].outputs[", k, "]: no value ", v);
      if (p.values[v].home >= 0) {
        require(!p.ops[i].recomputable, kBad, "ops[", i, "].outputs[", k, "]: '", p.ops[i].name,
                "' changes '", p.values[v].name, "', which lives in a tier, and so may not be recomputable");
        // Several ops may change the value one after the other, but each run has one place for it.
        require(changer[v] != static_cast<int32_t>(i), kBad, "ops[", i, "].outputs[", k, "]: '",
                p.ops[i].name, "' names '", p.values[v].name, "' twice");
        require(!p.values[v].fresh || changer[v] < 0, kBad, "ops[", i, "].outputs[", k, "]: '",
                p.values[v].name, "' is fresh, and changed twice, by ops[", changer[v], "] too");
        changer[v] = static_cast<int32_t>(i);
        continue;
      }
      require(maker[v] < 0, kBad, "ops[", i, "].outputs[", k, "]: value '", p.values[v].name,
              "' is made twice, by ops[", maker[v], "] too");
      maker[v] = static_cast<int32_t>(i);
    }
  double sum = 0;
  for (size_t i = 0; i < p.ops.size(); ++i) {
    const Op& op = p.ops[i];
    add_name(names, "ops", i, op.name);
    not_negative(op.seconds, "ops", i, "seconds");
    sum += op.seconds;
    require(op.region >= -1 && op.region < static_cast<int32_t>(p.regions.size()), kBad, "ops[", i,
            "].region: no region ", op.region);
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      const int32_t v = op.inputs[k];
      require(v >= 0 && v < values, kBad, "ops[", i, "].inputs[", k, "]: no value ", v);
      require(maker[v] < static_cast<int32_t>(i), kBad, "ops[", i, "].inputs[", k, "]: '", op.name,
              "' reads '", p.values[v].name, "' before ops[", maker[v], "] makes it");
      require(!p.values[v].fresh || (changer[v] >= 0 && changer[v] < static_cast<int32_t>(i)), kBad, "ops[",
              i, "].inputs[", k, "]: '", op.name, "' reads '", p.values[v].name,
              "', which is fresh, before an op writes it");
    }
  }
  require(std::isfinite(sum), kBad, "the sum of the ops' seconds is not finite");
  for (size_t i = 0; i < p.values.size(); ++i)
    require(p.values[i].persistent || p.values[i].home >= 0 || maker[i] >= 0, kBad, "values[", i, "] '",
            p.values[i].name,
            "' is made by no op and not persistent, and lives in no tier (a 'home', which the form "
            "cairn.problem/2 has)");
}

void check_homes(const Problem& p) {
  std::vector<int64_t> bytes(p.links.size(), 0);
  for (size_t i = 0; i < p.values.size(); ++i) {
    const Value& v = p.values[i];
    require(v.home >= -1 && v.home < static_cast<int32_t>(p.links.size()), kBad, "values[", i, "] '", v.name,
            "': its 'home' ", v.home, " is none of ", p.links.size(), " links");
    require(v.home_seconds >= 0 && std::isfinite(v.home_seconds) && (v.home >= 0 || v.home_seconds == 0),
            kBad, "values[", i, "] '", v.name, "': home_seconds ", v.home_seconds,
            " is not a number of seconds of a value that lives in a tier");
    require(!v.fresh || v.home >= 0, kBad, "values[", i, "] '", v.name, "' is fresh, and lives in no tier");
    if (!v.at_home()) continue;
    const Link& link = p.links[v.home];
    bytes[v.home] += v.bytes;
    require(bytes[v.home] <= link.capacity_bytes, kBad, "values[", i, "] '", v.name, "': the tier '",
            link.tier, "' is full: of what lives there, ", bytes[v.home], " bytes and more, it holds ",
            link.capacity_bytes);
  }
}

}  // namespace

double Problem::op_seconds() const {
  double sum = 0;
  for (const Op& op : ops) sum += op.seconds;
  return sum;
}

int64_t Problem::persistent_bytes() const {
  int64_t sum = 0;
  for (const Value& v : values)
    if (v.persistent) sum = checked_add(sum, v.bytes);
  return sum;
}

void check(const Problem& p) {
  require(p.values.size() < (1u << 30) && p.ops.size() < (1u << 30), kBad,
          "the problem has too many values or ops");
  check_values(p);
  check_links(p);
  check_regions(p);
  check_homes(p);
  check_ops(p);
  require(p.backward_begin >= 0 && p.backward_begin <= static_cast<int32_t>(p.ops.size()), kBad,
          "turnaround ", p.backward_begin, " lies outside 0..", p.ops.size());
  require(p.budget_bytes >= 0, kBad, "budget_bytes must not be negative: ", p.budget_bytes);
}

}  // namespace cairn::plan
