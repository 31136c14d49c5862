#include "runtime/plan/structure/segments.h"

#include <algorithm>

#include "runtime/plan/bound/closure.h"
#include "runtime/plan/structure/segments_table.h"

namespace cairn::plan {
namespace {

constexpr int kPriceSteps = 12;  // at which options are looked for, each a third of the one before
constexpr double kCheaper = 3;
constexpr int32_t kGroupOps = 2;         // least number of ops per group, on average
constexpr int64_t kLeastRoom = 1 << 12;  // bytes of room of the smallest table
constexpr size_t kTables = 3;            // kept: searches for a room alternate between a few

}  // namespace

Segments::Segments(const Problem& p, const Index& index, const Intervals& intervals, const Rules& rules,
                   int32_t groups)
    : p_(p), index_(index), intervals_(intervals), rules_(rules) {
  const auto ops = static_cast<int32_t>(p.ops.size());
  if (p.backward_begin == 0 || p.backward_begin == ops) return;
  cut_forward(std::min(groups, std::max(1, p.backward_begin / kGroupOps)));
  look_at_backward();
  look_at_values();
  for (int32_t g = 0; g < count(); ++g) look_inside(g);
  add_options();
}

Segments::~Segments() = default;

int32_t Segments::interval_of(int32_t v) const {
  return rules_.across[v] >= 0 ? rules_.across[v] : intervals_.first[v + 1] - 1;
}

// Cuts each of so many equal spans where the fewest bytes cross.
void Segments::cut_forward(int32_t groups) {
  const int32_t end = p_.backward_begin;
  std::vector<int64_t> across(static_cast<size_t>(end) + 2, 0);
  for (int32_t i = 0; i < end; ++i)
    for (int32_t v : index_.outputs[i]) {
      across[i + 1] += p_.values[v].bytes;
      across[std::max(i, index_.last_forward[v]) + 1] -= p_.values[v].bytes;
    }
  for (int32_t c = 1; c <= end; ++c) across[c] += across[c - 1];
  group_of_.assign(end, 0);
  int32_t begin = 0;
  for (int32_t g = 1; g <= groups; ++g) {
    const auto middle = static_cast<int32_t>(int64_t{end} * g / groups);
    const int32_t half = end / groups / 2;
    int32_t cut = middle;
    for (int32_t c = std::max(begin + 1, middle - half); g < groups && c <= std::min(end - 1, middle + half);
         ++c)
      if (across[c] < across[cut] || cut <= begin) cut = c;
    if (cut <= begin) continue;
    Group group;
    group.begin = begin;
    group.end = begin = cut;
    for (int32_t i = group.begin; i < group.end; ++i) {
      group_of_[i] = count();
      group.forward += p_.ops[i].seconds;
    }
    groups_.push_back(std::move(group));
  }
}

void Segments::look_at_backward() {
  const auto ops = static_cast<int32_t>(p_.ops.size());
  stage_.assign(ops, -1);
  int32_t stage = -1;
  for (int32_t b = ops; b-- > p_.backward_begin;) {
    for (int32_t v : index_.inputs[b])
      if (index_.maker[v] < p_.backward_begin) stage = std::max(stage, group_of_[index_.maker[v]]);
    stage_[b] = stage;
  }
  int32_t b = p_.backward_begin;
  for (int32_t g = count(); g-- > 0;) {
    while (b < ops && stage_[b] > g) ++b;
    groups_[g].back_begin = b;
  }
  live_before_.assign(static_cast<size_t>(ops) + 1, 0);
  live_.assign(ops, 0);
  std::vector<int64_t> ending(ops, 0);
  int64_t alive = 0;
  for (b = p_.backward_begin; b < ops; ++b) {
    live_before_[b] = alive;
    for (int32_t v : index_.outputs[b]) {
      const auto readers = index_.readers[v];
      ending[readers.empty() ? b : readers.back()] += p_.values[v].bytes;
      alive += p_.values[v].bytes;
    }
    live_[b] = alive + p_.ops[b].workspace_bytes;
    alive -= ending[b];
  }
  live_before_[ops] = alive;
}

void Segments::look_at_values() {
  member_of_.assign(p_.values.size(), -1);
  for (int32_t i = 0; i < p_.backward_begin; ++i)
    for (int32_t v : index_.outputs[i]) {
      const bool saved = index_.saved(v, p_.backward_begin);
      if (!rules_.remade[interval_of(v)]) {
        if (saved) fixed_ += p_.values[v].bytes;
        continue;
      }
      Member m{v, group_of_[i], group_of_[std::max(i, index_.last_forward[v])], false};
      if (saved) {
        m.needed = std::max(m.needed, stage_[index_.first_backward[v]]);
        m.saved = index_.readers[v].back() >= groups_[m.made].back_begin;
      }
      member_of_[v] = static_cast<int32_t>(members_.size());
      members_.push_back(m);
    }
  crossing_.assign(groups_.size() * (groups_.size() + 1), 0);
  for (const Member& m : members_)
    for (int32_t k = m.made + 1; k <= m.needed; ++k) crossing(m.made, k) += p_.values[m.value].bytes;
  for (int32_t k = 1; k < count(); ++k)
    for (int32_t s = k - 1; s-- > 0;) crossing(s, k) += crossing(s + 1, k);
}

// The bytes that the group needs while it is passed through, and in its own backward once all that it reads is
// recomputed.
void Segments::look_inside(int32_t number) {
  Group& g = groups_[number];
  const auto length = static_cast<size_t>(g.end - g.begin);
  std::vector<uint8_t> needed(length, 0);
  std::vector<int64_t> passing(length + 1, 0), again(length + 1, 0);
  for (int32_t i = g.end; i-- > g.begin;) {
    const auto at = static_cast<size_t>(i - g.begin);
    for (int32_t v : index_.outputs[i]) {
      if (member_of_[v] < 0) continue;
      const Member& m = members_[member_of_[v]];
      const int64_t bytes = p_.values[v].bytes;
      const size_t until =
          m.needed > number ? length - 1 : static_cast<size_t>(std::max(i, index_.last_forward[v]) - g.begin);
      passing[at] += bytes;
      passing[until + 1] -= bytes;
      again[at] += bytes;
      again[(m.saved ? length - 1 : std::min(until, length - 1)) + 1] -= bytes;
      if (m.saved) needed[at] = 1;
    }
    if (!needed[at] || !p_.ops[i].recomputable) continue;
    g.again += p_.ops[i].seconds;
    for (int32_t v : index_.inputs[i])
      if (index_.maker[v] >= g.begin) needed[static_cast<size_t>(index_.maker[v] - g.begin)] = 1;
  }
  g.before = live_before_[g.back_begin];
  int64_t pass = 0, made = 0;
  for (size_t at = 0; at < length; ++at) {
    const int64_t workspace = p_.ops[g.begin + static_cast<int32_t>(at)].workspace_bytes;
    pass += passing[at];
    made += again[at];
    g.pass = std::max(g.pass, pass + workspace);
    if (needed[at]) g.peak = std::max(g.peak, g.before + made + workspace);
  }
  const int32_t back_end = number > 0 ? groups_[number - 1].back_begin : static_cast<int32_t>(p_.ops.size());
  std::vector<int64_t> ending(static_cast<size_t>(back_end - g.back_begin) + 1, 0);
  int64_t held = 0;
  for (int32_t i = g.begin; i < g.end; ++i)
    for (int32_t v : index_.outputs[i])
      if (member_of_[v] >= 0 && members_[member_of_[v]].saved) {
        held += p_.values[v].bytes;
        ending[static_cast<size_t>(std::min(index_.readers[v].back(), back_end) - g.back_begin)] +=
            p_.values[v].bytes;
      }
  for (int32_t b = g.back_begin; b < back_end; ++b) {
    g.peak = std::max(g.peak, live_[b] + held);
    held -= ending[static_cast<size_t>(b - g.back_begin)];
  }
}

// Which ops are worth recomputing at a price per byte is a minimum cut. With all that crosses groups kept, the cut
// falls into one for each group. So a few cuts give the options of all groups.
void Segments::add_options() {
  Closure closure(p_, index_, p_.backward_begin);
  for (int32_t k = 0; k < closure.ops(); ++k)
    for (int32_t v : index_.outputs[closure.op(k)])
      if (member_of_[v] >= 0 && members_[member_of_[v]].needed > members_[member_of_[v]].made)
        closure.fix(k, Closure::Decision::kStays);
  double price = closure.dearest();
  for (int round = 0; round <= kPriceSteps && price > 0; ++round, price /= kCheaper) {
    std::vector<Option> found(groups_.size());
    std::vector<uint8_t> dropped(static_cast<size_t>(p_.backward_begin), 0), helps(p_.values.size(), 0);
    if (round < kPriceSteps) {  // the last option keeps everything
      closure.cut(price);
      for (int32_t k = 0; k < closure.ops(); ++k) {
        const int32_t op = closure.op(k);
        if (!closure.remade(k) || !p_.ops[op].recomputable) continue;
        dropped[op] = 1;
        Option& o = found[static_cast<size_t>(group_of_[op])];
        o.dropped.push_back(op);
        o.seconds += p_.ops[op].seconds;
        for (int32_t v : index_.inputs[op]) helps[v] = 1;
      }
    }
    for (const Member& m : members_)
      if (!dropped[index_.maker[m.value]] && (m.saved || m.needed > m.made || helps[m.value]))
        found[static_cast<size_t>(m.made)].kept += p_.values[m.value].bytes;
    for (size_t g = 0; g < groups_.size(); ++g) {
      auto& options = groups_[g].options;
      if (options.empty() || options.back().kept != found[g].kept ||
          options.back().seconds != found[g].seconds)
        options.push_back(std::move(found[g]));
    }
  }
}

std::optional<RetentionPoints> Segments::plan(int64_t room) {
  room -= fixed_;
  if (groups_.empty() || room <= 0) return {};
  // One table serves many rooms. Which one depends on the room alone.
  int64_t most = kLeastRoom;
  while (most < room) most += most / 2;
  const auto known =
      std::find_if(tables_.begin(), tables_.end(), [&](const auto& table) { return table->most() == most; });
  if (known != tables_.end()) {
    std::rotate(tables_.begin(), known, known + 1);
  } else {
    if (tables_.size() == kTables) tables_.pop_back();
    tables_.insert(tables_.begin(), std::make_unique<SegmentsTable>(*this, most));
  }
  const auto passes = tables_.front()->passes(room);
  if (passes.empty()) return {};
  RetentionPoints t = rules_.base;
  // By default a value is recomputed when the backward of its group begins.
  for (const Member& m : members_) t[interval_of(m.value)] = groups_[m.made].back_begin;
  for (const auto& pass : passes) {
    if (pass.option) {
      std::vector<uint8_t> dropped(static_cast<size_t>(groups_[pass.first].end - groups_[pass.first].begin),
                                   0);
      for (int32_t op : pass.option->dropped)
        dropped[static_cast<size_t>(op - groups_[pass.first].begin)] = 1;
      for (const Member& m : members_)
        if (m.made == pass.first &&
            !dropped[static_cast<size_t>(index_.maker[m.value] - groups_[pass.first].begin)])
          t[interval_of(m.value)] = kKeepIt;
      continue;
    }
    for (const Member& m : members_)
      if (pass.first <= m.made && m.made < pass.cut && pass.cut <= m.needed)
        t[interval_of(m.value)] = std::min(t[interval_of(m.value)], pass.from);
  }
  return t;
}

}  // namespace cairn::plan
