#include "runtime/plan/residency/residence.h"

#include <algorithm>

namespace cairn::plan {

namespace {

bool holds(const std::vector<int32_t>& list, size_t value) {
  return std::find(list.begin(), list.end(), static_cast<int32_t>(value)) != list.end();
}

}  // namespace

bool has_homes(const Problem& p) {
  return std::any_of(p.values.begin(), p.values.end(), [](const Value& v) { return v.home >= 0; });
}

Problem stay_fresh(const Problem& p, const std::vector<bool>& away) {
  Problem problem = p;
  for (size_t v = 0; v < p.values.size(); ++v) {
    Value& value = problem.values[v];
    if (!value.fresh || !value.persistent || away[v]) continue;
    value.persistent = value.fresh = false;
    value.home = -1;
    value.home_seconds = 0;
    Op& last = problem.ops.back();
    if (!holds(last.inputs, v) && !holds(last.outputs, v)) last.inputs.push_back(static_cast<int32_t>(v));
  }
  return problem;
}

Problem resolve_homes(const Problem& p, const std::vector<bool>& away) {
  Problem resolved = stay_fresh(p, away);
  for (size_t v = 0; v < p.values.size(); ++v) {
    Value& value = resolved.values[v];
    if (value.home < 0 || !value.persistent) continue;
    value.persistent = !away[v];
    if (value.persistent) {
      value.home = -1;
      value.home_seconds = 0;
    }
  }
  // A value that is kept on the device is changed in place.
  for (Op& op : resolved.ops)
    for (size_t k = op.outputs.size(); k-- > 0;) {
      const int32_t v = op.outputs[k];
      if (p.values[v].home < 0 || !resolved.values[v].persistent) continue;
      if (std::find(op.inputs.begin(), op.inputs.end(), v) == op.inputs.end()) op.inputs.push_back(v);
      op.outputs.erase(op.outputs.begin() + static_cast<std::ptrdiff_t>(k));
    }
  return resolved;
}

std::vector<std::vector<HomeUse>> home_uses(const Problem& p) {
  std::vector<std::vector<HomeUse>> uses(p.ops.size());
  for (size_t i = 0; i < p.ops.size(); ++i) {
    const auto use = [&](int32_t v) -> HomeUse* {
      if (!p.values[v].at_home()) return nullptr;
      auto found =
          std::find_if(uses[i].begin(), uses[i].end(), [&](const HomeUse& u) { return u.value == v; });
      if (found == uses[i].end()) found = uses[i].insert(found, {v, false, false});
      return &*found;
    };
    for (const int32_t v : p.ops[i].inputs)
      if (HomeUse* u = use(v)) u->reads = true;
    for (const int32_t v : p.ops[i].outputs)
      if (HomeUse* u = use(v)) u->changes = true;
  }
  return uses;
}

Problem without_homes(const Problem& resolved) {
  Problem p = resolved;
  const auto uses = home_uses(resolved);
  for (size_t i = 0; i < p.ops.size(); ++i) {
    Op& op = p.ops[i];
    for (const HomeUse& use : uses[i]) op.workspace_bytes += resolved.values[use.value].bytes;
    for (auto* list : {&op.inputs, &op.outputs})
      std::erase_if(*list, [&](int32_t v) { return resolved.values[v].at_home(); });
  }
  for (Value& value : p.values) {
    value.fresh = false;
    if (value.at_home()) {
      p.links[value.home].capacity_bytes -= value.bytes;
      value.bytes = 0;
      value.persistent = true;
    }
    value.home = -1;
    value.home_seconds = 0;
  }
  return p;
}

HomeReads home_reads(const Problem& p) {
  HomeReads reads;
  reads.after.assign(p.links.size(), std::vector<int64_t>(p.ops.size(), 0));
  if (!p.ops.empty()) reads.last_workspace_bytes = p.ops.back().workspace_bytes;
  std::vector<bool> read(p.values.size(), false);
  std::vector<int64_t> bytes(p.links.size(), 0);
  for (const Value& value : p.values)
    if (value.home >= 0) reads.largest_bytes = std::max(reads.largest_bytes, value.bytes);
  Problem away = p;
  for (Value& value : away.values) value.persistent = value.persistent && value.home < 0;
  std::vector<int32_t> number(p.values.size(), -1);
  const auto uses = home_uses(away);
  for (size_t i = 0; i < uses.size(); ++i)
    for (const HomeUse& use : uses[i]) {
      const auto v = static_cast<size_t>(use.value);
      if (number[v] < 0) {
        number[v] = static_cast<int32_t>(reads.values.size());
        reads.values.push_back({use.value,
                                p.values[v].bytes,
                                p.values[v].home,
                                p.values[v].persistent,
                                p.values[v].home_seconds,
                                {},
                                p.values[v].fresh});
      }
      reads.values[static_cast<size_t>(number[v])].uses.push_back(
          {static_cast<int32_t>(i), use.reads, use.changes});
    }
  for (size_t i = p.ops.size(); i-- > 0;) {
    // A value that the op itself uses is on the device then, and counted as its workspace.
    std::vector<int32_t> used = p.ops[i].inputs;
    used.insert(used.end(), p.ops[i].outputs.begin(), p.ops[i].outputs.end());
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    for (size_t link = 0; link < p.links.size(); ++link) reads.after[link][i] = bytes[link];
    for (const int32_t v : used)
      if (p.values[v].home >= 0 && read[v]) reads.after[p.values[v].home][i] -= p.values[v].bytes;
    // If an op writes over a value, the bytes before are not needed.
    for (const int32_t v : p.ops[i].outputs)
      if (p.values[v].home >= 0 && read[v]) {
        read[v] = false;
        bytes[p.values[v].home] -= p.values[v].bytes;
      }
    for (const int32_t v : p.ops[i].inputs)
      if (p.values[v].home >= 0 && !read[v]) {
        read[v] = true;
        bytes[p.values[v].home] += p.values[v].bytes;
      }
  }
  return reads;
}

}  // namespace cairn::plan
