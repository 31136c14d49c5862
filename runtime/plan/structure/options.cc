#include "runtime/plan/structure/options.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

#include "runtime/plan/structure/stage_model.h"

namespace cairn::plan {
namespace {

constexpr int kMaxCandidates = 12, kMinCandidates = 6;
constexpr int64_t kMaxPriced = 1'500'000;  // subsets in all, each priced in a few microseconds
constexpr int kSmallCandidates = 7;        // with so few, any of them may go over the link
constexpr double kNothing = std::numeric_limits<double>::infinity();

bool dominates(const Option& a, const Option& b) {
  return a.gives_out == b.gives_out && a.kept <= b.kept && a.peak <= b.peak && a.held <= b.held &&
         a.moved <= b.moved && a.seconds <= b.seconds && a.needs_in <= b.needs_in;
}

// The bytes that one option saves over another that is no slower.
double gain(const Option& a, const Option& over) {
  const auto less = [](int64_t x, int64_t y) { return static_cast<double>(std::max<int64_t>(0, y - x)); };
  return less(a.kept, over.kept) + less(a.peak, over.peak) / 4 + less(a.held, over.held) / 4 +
         less(a.moved, over.moved) / 2;
}

// options: by rising seconds. While there are more than `most`, drops the one that saves the fewest bytes over one
// that is no slower.
void drop_close(std::vector<Option>& options, size_t most) {
  struct Nearest {
    double gain = kNothing;
    size_t to = 0;
  };
  std::vector<Nearest> nearest(options.size());
  std::vector<uint8_t> gone(options.size(), 0);
  const auto look = [&](size_t i) {
    nearest[i] = {};
    for (size_t j = 0; j < i; ++j) {
      if (gone[j] || options[i].gives_out != options[j].gives_out) continue;
      if (const double g = gain(options[i], options[j]); g < nearest[i].gain) nearest[i] = {g, j};
    }
  };
  for (size_t i = 0; i < options.size(); ++i) look(i);
  for (size_t left = options.size(); left > most; --left) {
    size_t worst = 0;
    for (size_t i = 1; i < options.size(); ++i)
      if (!gone[i] && nearest[i].gain < nearest[worst].gain) worst = i;
    if (nearest[worst].gain == kNothing) break;
    gone[worst] = 1;
    nearest[worst] = {};
    for (size_t i = worst + 1; i < options.size(); ++i)
      if (!gone[i] && nearest[i].to == worst && nearest[i].gain < kNothing) look(i);
  }
  size_t next = 0;
  std::erase_if(options, [&](const Option&) { return gone[next++] != 0; });
}

std::vector<Option> pareto(std::vector<Option> options, size_t most) {
  std::stable_sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.kept + a.peak < b.kept + b.peak;
  });
  std::vector<Option> kept;
  for (const Option& o : options)
    if (std::none_of(kept.begin(), kept.end(), [&](const Option& k) { return dominates(k, o); }))
      kept.push_back(o);
  drop_close(kept, most);
  std::stable_sort(kept.begin(), kept.end(),
                   [](const Option& a, const Option& b) { return a.peak < b.peak; });
  return kept;
}

// The candidates worth considering: those that free the most bytes.
std::vector<int32_t> chosen(const StageModel& m, int most) {
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
    if (static_cast<int>(ops.size()) < most) ops.push_back(op);
  return ops;
}

std::vector<Option> enumerate(const StageModel& m, bool link, size_t most, int candidates) {
  const std::vector<int32_t> ops = chosen(m, candidates);
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
    if (again & m.once) continue;
    add(again, 0);
    if (!link) continue;
    const uint64_t rest = ~subset & ((uint64_t{1} << count) - 1);
    if (count <= kSmallCandidates) {
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

// How many candidates a stage may have, so that all stages together are priced in time.
int candidates_for(const std::vector<StageModel>& models, bool link) {
  for (int most = kMaxCandidates; most > kMinCandidates; --most) {
    int64_t priced = 0;
    for (const StageModel& m : models) {
      const int count = std::min(std::popcount(m.candidates), most);
      priced += (int64_t{1} << count) * (link ? 1 + count / 2 : 1);
    }
    if (priced <= kMaxPriced) return most;
  }
  return kMinCandidates;
}

}  // namespace

OptionSets::OptionSets(const Problem& p, const Index& index, const Intervals& intervals, const Rules& rules,
                       const Stages& stages, int32_t link, size_t most)
    : p_(p), index_(index), intervals_(intervals), rules_(rules), stages_(stages), link_(link) {
  std::map<std::vector<int64_t>, int32_t> known;
  std::vector<StageModel> models;  // one per group of equal stages
  std::vector<int32_t> set_of_model;
  for (size_t s = 0; s < stages.all.size(); ++s) {
    StageModel model;
    if (!model.build(p, index, intervals, rules, stages, s, link >= 0)) {
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
    set_of_.push_back(at->second);
    if (!fresh) continue;
    sets_.emplace_back();
    models.push_back(std::move(model));
    set_of_model.push_back(at->second);
  }
  const int candidates = candidates_for(models, link >= 0);
  for (size_t m = 0; m < models.size(); ++m)
    sets_[set_of_model[m]] = enumerate(models[m], link >= 0, most, candidates);
}

size_t OptionSets::largest() const {
  size_t most = 1;
  for (const auto& set : sets_) most = std::max(most, set.size());
  return most;
}

void OptionSets::apply(size_t number, const Option& o, RetentionPoints& t) const {
  const Stage& stage = stages_.all[number];
  for (int32_t i = stage.begin; i < stage.end; ++i) {
    const int32_t local = i - stage.begin;
    const bool again = local < 64 && o.again >> local & 1, moves = local < 64 && o.moves >> local & 1;
    int64_t total = 0;
    for (int32_t v : index_.outputs[i]) total += p_.values[v].bytes;
    // Smaller options are not worth a copy.
    const int64_t least_moved = total / 64 + (total % 64 != 0 ? 1 : 0);
    for (int32_t v : index_.outputs[i]) {
      const int32_t tail = intervals_.first[v + 1] - 1;
      const int32_t interval = rules_.across[v] >= 0 ? rules_.across[v] : tail;
      const bool there = rules_.across[v] >= 0 || v == stage.out;
      if (!rules_.free[interval]) continue;
      if (again && there)
        t[interval] = o.twice && v != stage.out ? stage.back_begin : p_.backward_begin;
      else if (moves && rules_.across[v] >= 0 && link_ >= 0 && p_.values[v].bytes >= least_moved)
        t[interval] = over_link(link_);
      else if (v == stage.out)
        t[interval] = kKeepIt;
      else if (o.twice && !there)
        t[interval] = stage.back_begin;
    }
  }
}

}  // namespace cairn::plan
