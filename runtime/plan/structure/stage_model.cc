#include "runtime/plan/structure/stage_model.h"

#include <algorithm>
#include <array>
#include <bit>

#include "runtime/base/checked.h"

namespace cairn::plan {
namespace {

uint64_t bit(int32_t i) { return uint64_t{1} << i; }

template <class F>
void each(uint64_t mask, F&& f) {
  for (; mask; mask &= mask - 1) f(std::countr_zero(mask));
}

}  // namespace

bool StageModel::build(const Problem& p, const Index& index, const Intervals& intervals, const Rules& rules,
                       const Stages& stages, size_t number, bool link) {
  const Stage& stage = stages.all[number];
  std::vector<int32_t> values;
  for (int32_t i = stage.begin; i < stage.end; ++i)
    for (int32_t v : index.outputs[i]) values.push_back(v);
  const bool small = stage.end - stage.begin <= kMax && static_cast<int32_t>(values.size()) <= kMax &&
                     stage.back_end - stage.back_begin <= 4 * kMax;
  for (int32_t v : values)
    if (rules.across[v] >= 0) fixed += p.values[v].bytes;
  if (!small) return false;
  const auto local = [&](int32_t v) {
    const auto at = std::find(values.begin(), values.end(), v);
    return at == values.end() ? -1 : static_cast<int32_t>(at - values.begin());
  };
  const auto mask = [&](std::span<const int32_t> list, bool& reads_in) {
    uint64_t m = 0;
    reads_in = false;
    for (int32_t v : list) {
      if (v == stage.in) reads_in = true;
      if (const int32_t l = local(v); l >= 0) m |= bit(l);
    }
    return m;
  };
  const int32_t next_back =
      number + 1 < stages.all.size() ? stages.all[number + 1].back_begin : stage.back_begin;
  int64_t total = 0;
  for (int32_t v : values) total += p.values[v].bytes;
  page = std::max<int64_t>(kPageBytes, total / 64);
  for (int32_t i = stage.begin; i < stage.end; ++i) {
    LocalOp op{p.ops[i].seconds, p.ops[i].workspace_bytes, 0, 0, false};
    op.inputs = mask(index.inputs[i], op.reads_in);
    bool ignored = false;
    op.outputs = mask(index.outputs[i], ignored);
    const bool once = !p.ops[i].recomputable;
    bool candidate = !once, any = false, sends = once && link;
    for (int32_t v : index.outputs[i]) {
      const int32_t l = local(v);
      bytes.push_back(p.values[v].bytes);
      maker.push_back(i - stage.begin);
      last_read.push_back(std::min(index.last_forward[v], stage.end) - stage.begin);
      if (v == stage.out) out = bit(l);
      if (rules.across[v] >= 0) saved |= bit(l);
      // Read while another stage's backward runs: the value has to be there from the beginning of backward on.
      bool elsewhere = false;
      for (int32_t r : index.readers[v])
        elsewhere |= r >= p.backward_begin && r < (v == stage.out ? next_back : stage.back_begin);
      if (index.last_forward[v] >= stage.end && v != stage.out) elsewhere = true;
      const int32_t interval = rules.across[v] >= 0 ? rules.across[v] : intervals.first[v + 1] - 1;
      const int32_t base = rules.base[interval];
      const bool there = rules.across[v] >= 0 || v == stage.out;
      if (rules.across[v] >= 0 && base > 0) forced |= bit(i - stage.begin);
      if (base < 0) forced_moves |= bit(i - stage.begin);
      const bool sent =
          once && link && rules.across[v] >= 0 && !elsewhere && rules.sent[interval] && base == 0;
      if ((once && !sent) || (there && (elsewhere || !rules.free[interval]) && base == 0)) {
        stuck |= bit(l);
        candidate = candidate && !there;
      }
      sends = sends && (!there || sent);
      any = any || there;
    }
    if (sends && any) {
      candidate = true;
      this->once |= bit(i - stage.begin);
    }
    if (candidate && any && !((forced | forced_moves) & bit(i - stage.begin)))
      candidates |= bit(i - stage.begin);
    ops.push_back(op);
  }
  for (int32_t b = stage.back_begin; b < stage.back_end; ++b) {
    Backward back{0, false, stages.backward_before[b], stages.backward_live[b]};
    back.reads = mask(index.inputs[b], back.reads_in);
    backward.push_back(back);
  }
  return true;
}

std::vector<int64_t> StageModel::key() const {
  std::vector<int64_t> key = {static_cast<int64_t>(ops.size()), static_cast<int64_t>(bytes.size())};
  const auto add = [&](uint64_t x) { key.push_back(static_cast<int64_t>(x)); };
  for (const LocalOp& op : ops) {
    add(std::bit_cast<uint64_t>(op.seconds));
    key.push_back(op.workspace);
    add(op.inputs);
    add(op.outputs);
    add(op.reads_in);
  }
  key.insert(key.end(), bytes.begin(), bytes.end());
  key.insert(key.end(), last_read.begin(), last_read.end());
  for (const Backward& b : backward) {
    add(b.reads);
    add(b.reads_in);
    key.push_back(b.before);
    key.push_back(b.live);
  }
  for (uint64_t m : {saved, stuck, out, candidates, once, forced, forced_moves}) add(m);
  return key;
}

// Simulates the run before (if `out` is given up), then the backward ops. A recomputed value is kept until its last
// use.
Option StageModel::price(uint64_t again, uint64_t moves, bool twice) const {
  Option option;
  option.again = again;
  option.moves = moves;
  option.twice = twice;
  uint64_t gone = 0, away = 0;
  each(again, [&](int32_t op) { gone |= ops[op].outputs; });
  gone &= ~stuck;
  each(moves & ~again, [&](int32_t op) { away |= ops[op].outputs & saved & ~stuck; });
  each(away, [&](int32_t v) {
    if (bytes[v] < page) away &= ~bit(v);
  });
  const uint64_t kept = (saved | stuck | out) & ~gone & ~away;
  option.gives_out = (out & gone) != 0;
  each(away, [&](int32_t v) { option.moved += bytes[v]; });

  constexpr int32_t kItems = 3 * kMax + 4 * kMax + 8;
  std::array<int64_t, kItems> change, extra;
  std::array<int32_t, 64> open, last;
  int32_t items = 0;
  uint64_t on = kept, ever = 0;
  open.fill(-1);
  last.fill(-1);
  change.fill(0);
  each(kept, [&](int32_t v) { open[v] = 0; });
  const auto use = [&](uint64_t used) {
    each(used, [&](int32_t v) {
      if (open[v] < 0) open[v] = items;
      last[v] = items;
    });
    ever |= used;
  };
  const auto close = [&](int32_t v) {
    if (last[v] >= open[v] && open[v] >= 0) {
      change[open[v]] += bytes[v];
      change[last[v] + 1] -= bytes[v];
    }
    open[v] = last[v] = -1;
  };
  bool reads_in = false;
  const auto make = [&](uint64_t wanted, int64_t live) {
    uint64_t group = 0, missing = wanted & ~on & ~away;
    while (missing) {
      const int32_t op = maker[std::countr_zero(missing)];
      group |= bit(op);
      missing = (missing & ~ops[op].outputs) | (ops[op].inputs & ~on & ~away);
      each(group, [&](int32_t o) { missing &= ~ops[o].outputs; });
    }
    each(group, [&](int32_t o) {
      const LocalOp& op = ops[o];
      extra[items] = op.workspace + live;
      use(op.inputs | op.outputs);
      ++items;
      on |= op.inputs | op.outputs;
      option.seconds += op.seconds;
      reads_in |= op.reads_in;
    });
  };
  int32_t before = 0;
  if (option.gives_out) {
    const int64_t live = backward.empty() ? 0 : backward.front().before;
    make(out, live);
    option.needs_in = reads_in;
    before = items;
    if (twice) {
      // Only `out` is held. The others are recomputed once more when they are needed.
      each(on & ~kept & ~out, [&](int32_t v) { close(v); });
      on = kept | (on & out);
    }
  }
  for (const Backward& b : backward) {
    make(b.reads, b.before);
    extra[items] = b.live;
    use(b.reads);
    on |= b.reads;
    ++items;
  }
  // Held between the run before and the stage's own backward: values used on both sides, and `out`.
  each(ever, [&](int32_t v) {
    if (before > 0 && !(kept & bit(v)) && open[v] >= 0 && open[v] < before &&
        (last[v] >= before || (out & bit(v))))
      option.held += bytes[v];
    if ((kept & bit(v)) && last[v] < before) last[v] = before - 1;  // kept for the next stage's backward
    close(v);
  });
  each(kept, [&](int32_t v) { option.kept += bytes[v]; });
  int64_t alive = 0;
  for (int32_t i = 0; i < items; ++i) {
    alive += change[i];
    option.peak = std::max(option.peak, alive + extra[i]);
  }
  // Forward: kept values accumulate, the others are freed after their last reader.
  int64_t there = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    each(ops[i].outputs, [&](int32_t v) { there += bytes[v]; });
    option.peak = std::max(option.peak, there + ops[i].workspace);
    for (size_t v = 0; v < bytes.size(); ++v)
      if (!(kept >> v & 1) && std::max(last_read[v], maker[v]) == static_cast<int32_t>(i)) there -= bytes[v];
  }
  return option;
}

}  // namespace cairn::plan
