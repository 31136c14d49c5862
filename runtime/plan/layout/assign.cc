// Turns the steps' allocations into blocks, lays them out and writes the offsets back into the steps.
#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/plan/layout/layout.h"

namespace cairn::plan {
namespace {

// Blocks of one arena and where their offsets go, in the order of the steps that take them.
struct Arena {
  std::vector<Block> blocks;
  std::vector<int32_t> open;  // per value: its present block, or -1

  int32_t begin(int32_t step, int64_t bytes, int32_t steps) {
    blocks.push_back({step, steps, bytes});
    return static_cast<int32_t>(blocks.size()) - 1;
  }
};

template <typename LayOut>
void assign_device(const Problem& p, const Index& index, LayOut lay_out_blocks, Plan& plan) {
  const auto steps = static_cast<int32_t>(plan.steps.size());
  Arena arena{{}, std::vector<int32_t>(p.values.size(), -1)};
  std::vector<std::pair<int32_t, int32_t>>
      slots;  // (step, output position; -1: the step's own offset) per block
  struct Again {
    int32_t step, output, block;
  };
  std::vector<Again> again;  // outputs written in place
  for (int32_t s = 0; s < steps; ++s) {
    Step& step = plan.steps[s];
    if (step.kind == StepKind::kFree) {
      arena.blocks[arena.open[step.index]].end = s;
      arena.open[step.index] = -1;
    } else if (step.kind == StepKind::kIn) {
      arena.open[step.index] = arena.begin(s, p.values[step.index].bytes, steps);
      slots.emplace_back(s, -1);
    } else if (step.kind == StepKind::kRun) {
      const Op& op = p.ops[step.index];
      step.offsets.assign(op.outputs.size(), -1);
      for (int32_t k = 0; k < static_cast<int32_t>(op.outputs.size()); ++k) {
        const int32_t v = op.outputs[k];
        if (p.values[v].persistent) continue;
        if (arena.open[v] >= 0) {
          again.push_back({s, k, arena.open[v]});
          continue;
        }
        arena.open[v] = arena.begin(s, p.values[v].bytes, steps);
        slots.emplace_back(s, k);
      }
      step.offset = index.persistent_bytes;
      if (op.workspace_bytes > 0) {
        arena.blocks[arena.begin(s, op.workspace_bytes, steps)].end = s + 1;
        slots.emplace_back(s, -1);
      }
    }
  }
  const Layout layout = lay_out_blocks(arena.blocks);
  plan.arena_bytes = checked_add(index.persistent_bytes, layout.height);
  const auto put = [&](int32_t s, int32_t k, size_t b) {
    const int64_t offset = index.persistent_bytes + layout.offsets[b];
    (k < 0 ? plan.steps[s].offset : plan.steps[s].offsets[k]) = offset;
    if (arena.blocks[b].bytes > 0 && layout.offsets[b] + arena.blocks[b].bytes == layout.height &&
        plan.peak_step < 0)
      plan.peak_step = s;
  };
  plan.peak_step = -1;
  for (size_t b = 0; b < slots.size(); ++b) put(slots[b].first, slots[b].second, b);
  for (const Again& a : again) put(a.step, a.output, a.block);
}

// Values that live in the tier fill its arena from 0. Copies of other values lie above.
void assign_tier(const Problem& p, int32_t tier, Plan& plan) {
  int64_t homes = 0;
  for (size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].home == tier && p.values[v].at_home()) {
      plan.home_offsets[v] = homes;
      homes += p.values[v].bytes;
    }
  const auto steps = static_cast<int32_t>(plan.steps.size());
  Arena arena{{}, std::vector<int32_t>(p.values.size(), -1)};
  std::vector<std::pair<int32_t, int32_t>> uses;  // where the tier offset is used: (step, block)
  for (int32_t s = 0; s < steps; ++s) {
    const Step& step = plan.steps[s];
    if (step.tier != tier || step.kind == StepKind::kWaitOut || step.kind == StepKind::kWaitIn) continue;
    if (plan.home_offsets[step.index] >= 0) {
      plan.steps[s].tier_offset = plan.home_offsets[step.index];
      continue;
    }
    if (step.kind == StepKind::kOut)
      arena.open[step.index] = arena.begin(s, p.values[step.index].bytes, steps);
    uses.emplace_back(s, arena.open[step.index]);
    if (step.kind == StepKind::kDrop) arena.blocks[arena.open[step.index]].end = s;
  }
  const Layout layout = lay_out(arena.blocks, natural_alignment(p));
  for (const auto& [s, b] : uses) plan.steps[s].tier_offset = homes + layout.offsets[b];
  plan.tier_arena_bytes[tier] = homes + layout.height;
}

template <typename LayOut>
void assign(const Problem& p, const Index& index, Plan& plan, LayOut lay_out_blocks) {
  int64_t next = 0;
  plan.value_offsets.assign(p.values.size(), -1);
  plan.home_offsets.assign(p.values.size(), -1);
  for (size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].persistent) {
      plan.value_offsets[v] = next;
      next += p.values[v].bytes;
    }
  assign_device(p, index, lay_out_blocks, plan);
  plan.tier_arena_bytes.assign(p.links.size(), 0);
  for (int32_t t = 0; t < static_cast<int32_t>(p.links.size()); ++t) assign_tier(p, t, plan);
}

}  // namespace

void assign_offsets(const Problem& p, const Index& index, Plan& plan, int64_t capacity, int64_t effort) {
  const int64_t above = capacity == 0 ? 0 : std::max<int64_t>(1, capacity - index.persistent_bytes);
  assign(p, index, plan, [&](const std::vector<Block>& blocks) {
    return above > 0 ? lay_out(blocks, natural_alignment(p), above, effort)
                     : lay_out(blocks, natural_alignment(p));
  });
}

}  // namespace cairn::plan
