#include "runtime/plan/schedule.h"

namespace cairn::plan {

Resolved resolve(const Problem& p, const Index& index, Choices choices) {
  const auto values = static_cast<int32_t>(p.values.size());
  Resolved r{std::move(choices), std::vector<uint8_t>(p.ops.size(), 0), std::vector<int32_t>(values, 0)};
  std::vector<int32_t> open;  // ops to run again whose inputs are still to be looked at
  const auto run_again = [&](int32_t op) {
    if (r.rerun[op]) return;
    r.rerun[op] = 1;
    open.push_back(op);
  };
  for (int32_t v = 0; v < values; ++v) {
    const int32_t maker = index.maker[v];
    Choice& choice = r.choices[v];
    if (p.values[v].persistent || maker < 0 || maker >= p.turnaround) choice = kKeepIt;
    if (choice == kRemake && !p.ops[maker].recomputable) choice = kKeepIt;
    for (int32_t reader : index.readers[v]) r.later_uses[v] += reader >= p.turnaround;
    if (choice == kRemake && r.later_uses[v] > 0) run_again(maker);
  }
  while (!open.empty()) {
    const int32_t op = open.back();
    open.pop_back();
    for (int32_t u : index.inputs[op]) {
      ++r.later_uses[u];
      if (r.choices[u] == kRemake) run_again(index.maker[u]);
    }
    // Running the op again makes its other outputs as well: fetching them would be waste.
    for (int32_t w : index.outputs[op])
      if (r.choices[w] >= 0) r.choices[w] = kRemake;
  }
  for (int32_t v = 0; v < values; ++v)
    if (r.choices[v] >= 0 && r.later_uses[v] == 0) r.choices[v] = kKeepIt;
  return r;
}

}  // namespace cairn::plan
