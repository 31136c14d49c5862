#include "runtime/plan/options.h"

#include <algorithm>
#include <bit>
#include <map>

#include "runtime/plan/stage_model.h"

namespace cairn::plan {
namespace {

constexpr int kMostCandidates = 12;  // 2^12 subsets, each priced in about a microsecond
constexpr int kFewCandidates = 7;    // with so few, any of them may go over the link

bool dominates(const Option& a, const Option& b) {
  return a.gives_out == b.gives_out && a.kept <= b.kept && a.peak <= b.peak && a.held <= b.held &&
         a.moved <= b.moved && a.seconds <= b.seconds && a.needs_in <= b.needs_in;
}

std::vector<Option> pareto(std::vector<Option> options, size_t most) {
  std::stable_sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.kept + a.peak < b.kept + b.peak;
  });
  std::vector<Option> kept;
  for (const Option& o : options)
    if (std::none_of(kept.begin(), kept.end(), [&](const Option& k) { return dominates(k, o); }))
      kept.push_back(o);
  // Too many: drops, again and again, what lies closest in bytes kept to one that is no slower.
  while (kept.size() > most) {
    size_t worst = 1;
    double least = 1e300;
    for (size_t i = 1; i < kept.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        if (kept[i].gives_out != kept[j].gives_out) continue;
        const auto more = [](int64_t a, int64_t b) {
          return static_cast<double>(std::max<int64_t>(0, a - b));
        };
        const double gained = more(kept[j].kept, kept[i].kept) + more(kept[j].peak, kept[i].peak) / 4 +
                              more(kept[j].held, kept[i].held) / 4 + more(kept[j].moved, kept[i].moved) / 2;
        if (gained < least) {
          least = gained;
          worst = i;
        }
      }
    if (least == 1e300) break;
    kept.erase(kept.begin() + static_cast<int64_t>(worst));
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [](const Option& a, const Option& b) { return a.peak < b.peak; });
  return kept;
}

// The candidates worth asking about: those that free the most bytes.
std::vector<int32_t> chosen(const StageModel& m) {
  std::vector<std::pair<int64_t, int32_t>> by_bytes;
  for (uint64_t rest = m.candidates; rest; rest &= rest - 1) {
    const int32_t op = std::countr_zero(rest);
    int64_t bytes = 0;
    for (uint64_t v = m.ops[op].outputs & (m.saved | m.out); v; v &= v - 1)
      bytes += m.bytes[std::countr_zero(v)];
    if (m.ops[op].outputs & m.out) bytes = INT64_MAX;
    by_bytes.emplace_back(-bytes, op);
  }
  std::sort(by_bytes.begin(), by_bytes.end());
  std::vector<int32_t> ops;
  for (const auto& [bytes, op] : by_bytes)
    if (ops.size() < kMostCandidates) ops.push_back(op);
  return ops;
}

std::vector<Option> enumerate(const StageModel& m, bool link, size_t most) {
  const std::vector<int32_t> ops = chosen(m);
  const auto count = static_cast<int>(ops.size());
  std::vector<Option> all;
  const auto add = [&](uint64_t again, uint64_t moves) {
    const Option once = m.price(again | m.forced, moves | m.forced_moves, false);
    all.push_back(once);
    if (once.gives_out) all.push_back(m.price(again | m.forced, moves | m.forced_moves, true));
  };
  for (uint64_t subset = 0; subset < uint64_t{1} << count; ++subset) {
    uint64_t again = 0;
    for (uint64_t s = subset; s; s &= s - 1) again |= uint64_t{1} << ops[std::countr_zero(s)];
    add(again, 0);
    if (!link) continue;
    const uint64_t rest = ~subset & ((uint64_t{1} << count) - 1);
    if (count <= kFewCandidates) {
      for (uint64_t moved = rest; moved; moved = (moved - 1) & rest) {
        uint64_t moves = 0;
        for (uint64_t s = moved; s; s &= s - 1) moves |= uint64_t{1} << ops[std::countr_zero(s)];
        add(again, moves);
      }
    } else {
      for (uint64_t a = rest; a; a &= a - 1) add(again, uint64_t{1} << ops[std::countr_zero(a)]);
    }
    // Keeps the list short while it grows.
    if (all.size() > 4096) all = pareto(std::move(all), 4 * most);
  }
  return pareto(std::move(all), most);
}

}  // namespace

OptionSets::OptionSets(const Problem& p, const Index& index, const Gaps& gaps, const Rules& rules,
                       const Stages& stages, int32_t link, size_t most)
    : p_(p), index_(index), gaps_(gaps), rules_(rules), stages_(stages), link_(link) {
  std::map<std::vector<int64_t>, int32_t> known;
  for (size_t s = 0; s < stages.all.size(); ++s) {
    StageModel model;
    if (!model.build(p, index, gaps, rules, stages, s)) {
      whole_ = true;
      Option stays;
      stays.kept = stays.peak = model.fixed;
      for (int32_t b = stages.all[s].back_begin; b < stages.all[s].back_end; ++b)
        stays.peak = std::max(stays.peak, model.fixed + stages.backward_live[b]);
      set_of_.push_back(static_cast<int32_t>(sets_.size()));
      sets_.push_back({stays});
      continue;
    }
    const auto [at, fresh] = known.emplace(model.key(), static_cast<int32_t>(sets_.size()));
    if (fresh) sets_.push_back(enumerate(model, link >= 0, most));
    set_of_.push_back(at->second);
  }
}

size_t OptionSets::largest() const {
  size_t most = 1;
  for (const auto& set : sets_) most = std::max(most, set.size());
  return most;
}

void OptionSets::apply(size_t number, const Option& o, Thresholds& t) const {
  const Stage& stage = stages_.all[number];
  for (int32_t i = stage.begin; i < stage.end; ++i) {
    const int32_t local = i - stage.begin;
    const bool again = local < 64 && o.again >> local & 1, moves = local < 64 && o.moves >> local & 1;
    int64_t total = 0;
    for (int32_t v : index_.outputs[i]) total += p_.values[v].bytes;
    for (int32_t v : index_.outputs[i]) {
      const int32_t tail = gaps_.first[v + 1] - 1;
      const int32_t gap = rules_.across[v] >= 0 ? rules_.across[v] : tail;
      const bool there = rules_.across[v] >= 0 || v == stage.out;
      if (!rules_.free[gap]) continue;
      if (again && there)
        t[gap] = o.twice && v != stage.out ? stage.back_begin : p_.turnaround;
      else if (moves && rules_.across[v] >= 0 && link_ >= 0 && 64 * p_.values[v].bytes >= total)
        t[gap] = over_link(link_);
      else if (v == stage.out)
        t[gap] = kKeepIt;
      else if (o.twice && !there)
        t[gap] = stage.back_begin;
    }
  }
}

}  // namespace cairn::plan
