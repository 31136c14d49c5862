#include "runtime/plan/index.h"

#include <algorithm>

namespace cairn::plan {

Index::Index(const Problem& p) {
  const auto values = static_cast<int32_t>(p.values.size()), ops = static_cast<int32_t>(p.ops.size());
  maker.assign(values, -1);
  last_forward.assign(values, -1);
  first_backward.assign(values, -1);
  persistent_bytes = p.persistent_bytes();
  std::vector<int32_t> holder(p.regions.size(), -1);
  for (size_t r = 0; r < p.regions.size(); ++r) {
    const Region& region = p.regions[r];
    if (region.policy != Policy::kPlannerDecides)
      holder[r] = static_cast<int32_t>(r);
    else if (region.parent >= 0)
      holder[r] = holder[region.parent];
  }
  for (const Op& op : p.ops) scope.push_back(op.region >= 0 ? holder[op.region] : -1);
  std::vector<std::vector<int32_t>> read(values);
  std::vector<int32_t> seen(values, -1);
  for (int32_t i = 0; i < ops; ++i) {
    const Op& op = p.ops[i];
    for (int32_t v : op.inputs) {
      if (seen[v] == i) continue;
      seen[v] = i;
      read[v].push_back(i);
      if (!p.values[v].persistent) inputs.push(v);
      if (i < p.backward_begin) last_forward[v] = i;
      if (i >= p.backward_begin && first_backward[v] < 0) first_backward[v] = i;
    }
    for (int32_t v : op.outputs) {
      maker[v] = i;
      if (i < p.backward_begin) last_forward[v] = std::max(last_forward[v], i);
      if (!p.values[v].persistent) outputs.push(v);
    }
    inputs.end_row();
    outputs.end_row();
    total_seconds += op.seconds;
    if (i < p.backward_begin) forward_seconds += op.seconds;
  }
  for (const auto& row : read) {
    for (int32_t i : row) readers.push(i);
    readers.end_row();
  }
}

int64_t least_bytes(const Problem& p, const Index& index) {
  int64_t most = 0;
  for (size_t i = 0; i < p.ops.size(); ++i) {
    int64_t used = p.ops[i].workspace_bytes;
    const auto inputs = index.inputs[static_cast<int64_t>(i)],
               outputs = index.outputs[static_cast<int64_t>(i)];
    for (const int32_t v : inputs) used += p.values[v].bytes;
    // A value that may live in a tier may be changed in place: it is among inputs and outputs, and its bytes count
    // once.
    for (const int32_t v : outputs)
      if (std::find(inputs.begin(), inputs.end(), v) == inputs.end()) used += p.values[v].bytes;
    most = std::max(most, used);
  }
  return index.persistent_bytes + most;
}

}  // namespace cairn::plan
