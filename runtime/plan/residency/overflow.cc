#include "runtime/plan/residency/overflow.h"

#include <algorithm>

#include "runtime/base/checked.h"

namespace cairn::plan {

void reserve_overflow(const Problem& p, const Plan& with, const std::vector<int32_t>& from,
                      int64_t budget_bytes, std::vector<int64_t>& reserved_bytes) {
  struct Block {
    int32_t since = -1;  // the step of its fetch or run; -1: not on the device
    int64_t end = 0;     // end of its bytes in the arena
  };
  std::vector<Block> blocks(p.values.size());
  std::vector<int64_t> over(reserved_bytes.size(), 0);
  const auto note = [&](int32_t first, int32_t last, int64_t end) {
    for (int32_t s = first; s <= last && end > budget_bytes; ++s)
      over[at(s)] = std::max(over[at(s)], end - budget_bytes);
  };
  for (size_t i = 0; i < with.steps.size(); ++i) {
    const Step& step = with.steps[i];
    const int32_t s = from[i];
    const auto begins = [&](int32_t v, int64_t offset) {
      blocks[at(v)] = {s, offset + p.values[at(v)].bytes};
    };
    if (step.kind == StepKind::kIn) {
      begins(step.index, step.offset);
    } else if (step.kind == StepKind::kFree) {
      note(blocks[at(step.index)].since, s, blocks[at(step.index)].end);
      blocks[at(step.index)].since = -1;
    } else if (step.kind == StepKind::kRun) {
      const Op& op = p.ops[at(step.index)];
      note(s, s, step.offset + op.workspace_bytes);
      for (size_t k = 0; k < step.offsets.size(); ++k)
        if (step.offsets[k] >= 0 && blocks[at(op.outputs[k])].since < 0)
          begins(op.outputs[k], step.offsets[k]);
    }
  }
  for (const Block& block : blocks)
    if (block.since >= 0) note(block.since, static_cast<int32_t>(over.size()) - 1, block.end);
  for (size_t s = 0; s < over.size(); ++s) reserved_bytes[s] += over[s];
}

}  // namespace cairn::plan
