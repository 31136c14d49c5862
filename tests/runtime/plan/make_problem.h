// Problems for the planner's tests: a builder for hand-made ones and a generator of random ones.
#pragma once
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/plan/plan.h"

namespace cairn::plan {

// Names in, indices out. Ops are added in order; the first backward op sets the beginning of backward.
class Maker {
 public:
  Maker& value(const std::string& name, int64_t bytes, bool persistent = false) {
    index_[name] = static_cast<int32_t>(p.values.size());
    p.values.push_back({name, bytes, persistent});
    return *this;
  }
  Maker& op(const std::string& name, double seconds, const std::vector<std::string>& inputs,
            const std::vector<std::string>& outputs, int64_t workspace = 0, bool recomputable = true,
            int32_t region = -1) {
    Op made;
    made.name = name;
    made.seconds = seconds;
    made.workspace_bytes = workspace;
    for (const auto& in : inputs) made.inputs.push_back(find(in));
    for (const auto& out : outputs) made.outputs.push_back(find(out));
    made.recomputable = recomputable;
    made.region = region;
    p.ops.push_back(made);
    return *this;
  }
  Maker& backward_begin() {
    p.backward_begin = static_cast<int32_t>(p.ops.size());
    return *this;
  }
  Maker& region(const std::string& name, int32_t parent = -1, Policy policy = Policy::kPlannerDecides,
                int32_t tier = -1) {
    p.regions.push_back({name, parent, policy, tier});
    return *this;
  }
  Maker& link(const std::string& tier, double rate, int64_t capacity = int64_t{1} << 40, double latency = 0,
              double both = 1) {
    p.links.push_back({tier, latency, rate, rate, both, capacity});
    return *this;
  }
  int32_t find(const std::string& name) const { return index_.at(name); }
  Problem p;

 private:
  std::map<std::string, int32_t> index_;
};

// n layers a(i-1) -> a(i), each of 1 s forward and 2 s backward; backward of layer i reads a(i-1) and the
// gradient of a(i). Layer i is in region "r<i / per_region>".
inline Problem chain(int n, int64_t bytes = 6400, int per_region = 1,
                     Policy policy = Policy::kPlannerDecides) {
  Maker m;
  m.value("a0", 64, true);
  for (int i = 1; i <= n; ++i) m.value("a" + std::to_string(i), bytes);
  for (int i = n; i >= 1; --i) m.value("g" + std::to_string(i), bytes);
  m.value("g0", 64, true);
  for (int r = 0; r * per_region < n; ++r) m.region("r" + std::to_string(r), -1, policy);
  const auto a = [](int i) { return "a" + std::to_string(i); };
  const auto g = [](int i) { return "g" + std::to_string(i); };
  for (int i = 1; i <= n; ++i)
    m.op("f" + std::to_string(i), 1, {a(i - 1)}, {a(i)}, 0, true, (i - 1) / per_region);
  m.backward_begin().op("loss", 1, {a(n)}, {g(n)}, 0, false);
  for (int i = n; i >= 1; --i)
    m.op("b" + std::to_string(i), 2, {a(i - 1), g(i)}, {g(i - 1)}, 0, true, (i - 1) / per_region);
  return m.p;
}

struct RandomOptions {
  int max_ops = 12;
  bool links = true, regions = true;
};

// Branches, joins, several outputs, workspaces, ops that may not run twice, dead values, values of no bytes,
// duplicate inputs, nested regions with policies, links with little room.
inline Problem random_problem(uint32_t seed, const RandomOptions& options = {}) {
  std::mt19937 random(seed);
  const auto upto = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n + 1)); };
  const auto chance = [&](int percent) { return upto(99) < percent; };
  const int64_t unit = chance(50) ? 64 : chance(50) ? 4096 : 1;
  const auto bytes = [&] { return chance(6) ? 0 : unit * (1 + upto(20)); };
  Problem p;
  const auto add = [&](const std::string& name, int64_t size, bool persistent) {
    p.values.push_back({name, size, persistent});
    return static_cast<int32_t>(p.values.size()) - 1;
  };
  std::vector<int32_t> made = {add("in", bytes(), true), add("w", bytes(), true)};
  const int forward = 1 + upto(options.max_ops - 1);
  if (options.links)
    for (int t = upto(2); t-- > 0;)
      p.links.push_back(
          {t ? "disk" : "host", chance(50) ? 0.0 : 0.01, 1.0 * static_cast<double>(unit) * (1 + upto(40)),
           1.0 * static_cast<double>(unit) * (1 + upto(40)), chance(50) ? 1.0 : 0.6, unit * upto(200)});
  if (options.regions)
    for (int r = upto(4); r-- > 0;) {
      const auto count = static_cast<int>(p.regions.size());
      auto policy = static_cast<Policy>(chance(60) ? 0 : upto(p.links.empty() ? 2 : 3));
      const int tier = p.links.empty() || chance(40) ? -1 : upto(static_cast<int>(p.links.size()) - 1);
      p.regions.push_back(
          {"r" + std::to_string(count), count > 0 && chance(50) ? upto(count - 1) : -1, policy, tier});
    }
  const auto pick = [&](const std::vector<int32_t>& from) {
    return from[from.size() - 1 -
                std::min<size_t>(from.size() - 1, static_cast<size_t>(chance(60) ? upto(2) : upto(9)))];
  };
  for (int i = 0; i < forward; ++i) {
    Op op;
    op.name = "f" + std::to_string(i);
    op.seconds = chance(10) ? 0 : 0.1 * (1 + upto(9));
    op.workspace_bytes = chance(30) ? bytes() : 0;
    for (int k = 1 + upto(2); k-- > 0;) op.inputs.push_back(pick(made));
    op.recomputable = !chance(10);
    if (!p.regions.empty())  // in stretches, as regions are
      op.region =
          std::min(i * static_cast<int>(p.regions.size() + 1) / forward, static_cast<int>(p.regions.size())) -
          1;
    for (int k = chance(25) ? 2 : 1; k-- > 0;)
      op.outputs.push_back(add(op.name + (k ? ".b" : ".a"), bytes(), chance(4)));
    for (int32_t v : op.outputs) made.push_back(v);
    p.ops.push_back(op);
  }
  p.backward_begin = static_cast<int32_t>(p.ops.size());
  std::vector<int32_t> gradients;
  for (int i = forward; i-- > 0 && !chance(2);) {
    const Op& f = p.ops[i];
    Op op;
    op.name = "b" + std::to_string(i);
    op.seconds = f.seconds * 2;
    op.workspace_bytes = chance(20) ? bytes() : 0;
    for (int32_t v : f.inputs)
      if (chance(60)) op.inputs.push_back(v);
    for (int32_t v : f.outputs)
      if (chance(40)) op.inputs.push_back(v);
    if (!gradients.empty()) op.inputs.push_back(pick(gradients));
    op.region = f.region;
    op.recomputable = !chance(10);
    op.outputs.push_back(add(op.name + ".g", bytes(), chance(20)));
    gradients.push_back(op.outputs[0]);
    p.ops.push_back(op);
  }
  check(p);
  return p;
}

// The arena of doing nothing about memory, and the smallest budget solve() names.
inline int64_t keep_all_arena(Problem p) {
  p.budget_bytes = 0;
  return solve(p).arena_bytes;
}
inline int64_t smallest_budget(Problem p) {
  p.budget_bytes = std::max<int64_t>(1, p.persistent_bytes() / 2);
  try {
    return solve(p).arena_bytes;  // nothing but persistent bytes: fits in one byte less than nothing
  } catch (const Error& e) {
    return static_cast<int64_t>(e.fault()->smallest_budget_bytes);
  }
}

}  // namespace cairn::plan
