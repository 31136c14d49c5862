#include "runtime/plan/structure/recursion.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "runtime/plan/structure/stage_model.h"
#include "runtime/plan/structure/take_less.h"

namespace cairn::plan {
namespace {

constexpr int32_t kMaxGroups = 256;
constexpr int64_t kMaxLevels = 1024;      // levels into which the room is divided
constexpr int64_t kMaxWork = 60'000'000;  // limit of entries times splits
constexpr float kNoWay = std::numeric_limits<float>::infinity();

// Consecutive stages treated as one: forward seconds, bytes of the value that leaves the group, and what its own
// backward takes once its `in` is there.
struct Group {
  size_t begin = 0, end = 0;
  double forward = 0, again = 0;
  int64_t out = 0, peak = 0;
};

// The cheapest ways at the levels of a row; of equal ones, the first that was offered.
struct Row {
  float* cost;
  int32_t* way;

  // At levels first to last: considers a way over the entry of `later` that is `out` levels lower.
  void take_less(float seconds, const float* later, int32_t out, const float* earlier, int32_t first,
                 int32_t last, int32_t this_way) const {
    if (first <= last)
      plan::take_less(later + (first - out), earlier + first, seconds, this_way, last - first + 1,
                      cost + first, way + first);
  }
};

class Recursion {
 public:
  Recursion(const Problem& p, const Index& index, const Intervals& intervals, const Rules& rules,
            const Stages& stages, int64_t room, const OptionSets* sets)
      : p_(p),
        index_(index),
        intervals_(intervals),
        rules_(rules),
        stages_(stages),
        sets_(sets),
        room_(room) {
    make_groups();
  }

  bool solve(RetentionPoints& t) {
    const auto n = static_cast<int32_t>(groups_.size());
    if (n == 0 || room_ <= 0 || !possible_) return false;
    const int64_t most =
        std::clamp<int64_t>(kMaxWork * 6 / (static_cast<int64_t>(n) * n * n), 16, kMaxLevels);
    unit_ = common_unit();
    if (room_ / unit_ > most) unit_ = (room_ + most - 1) / most;
    levels_ = static_cast<int32_t>(room_ / unit_);
    cost_.assign(static_cast<size_t>(n) * (n + 1) / 2 * (levels_ + 1), kNoWay);
    split_.assign(cost_.size(), 0);
    ranges_.assign(static_cast<size_t>(n) * (n + 1) / 2, {});
    splits_.assign(static_cast<size_t>(levels_) + 1, 0);
    outs_.clear();
    for (const Group& g : groups_) outs_.push_back(up(g.out));
    sums_.assign(n + 1, 0);
    for (int32_t i = 0; i < n; ++i) sums_[i + 1] = sums_[i] + groups_[i].forward;
    need_.assign(static_cast<size_t>(n) * n, 0);
    for (int32_t s = 0; s < n; ++s)
      for (int32_t i = s + 1; i < n; ++i)
        need_[static_cast<size_t>(s) * n + i] =
            std::max(need_[static_cast<size_t>(s) * n + i - 1], groups_[i - 1].out + groups_[i].out);
    for (int32_t span = 0; span < n; ++span)
      for (int32_t s = 0; s + span < n; ++s) fill(s, s + span);
    // The first pass through the groups is no recompute, so its checkpoints cost nothing. From the last group to the
    // first.
    std::vector<float> best(static_cast<size_t>(n + 1) * (levels_ + 1), kNoWay);
    std::fill(best.begin() + static_cast<std::ptrdiff_t>(at1(n, 0)), best.end(), 0.0f);
    std::vector<int32_t> from(best.size(), -1);  // a segment's last group, or n and the number of an option
    for (int32_t s = n; s-- > 0;) {
      const Row row{&best[at1(s, 0)], &from[at1(s, 0)]};
      for (int32_t k = s; k < n; ++k) {  // s..k is one segment, k + 1 begins with a checkpoint
        const int32_t out = k + 1 == n ? 0 : outs_[k];
        row.take_less(0, &best[at1(k + 1, 0)], out, &cost_[at(s, k, 0)],
                      std::max(out, ranges_[at2(s, k)].first), levels_, k);
      }
      const auto list = options(s);
      for (size_t o = 0; o < list.size(); ++o) {
        if (list[o].gives_out) continue;
        const int32_t kept = up(list[o].kept);
        row.take_less(static_cast<float>(list[o].seconds), &best[at1(s + 1, 0)], kept, &best[at1(n, 0)],
                      std::max(kept, up(list[o].peak)), levels_, n + static_cast<int32_t>(o));
      }
    }
    if (best[at1(0, levels_)] == kNoWay) return false;
    for (const Group& g : groups_) inside(g, t);
    int32_t m = levels_;
    for (int32_t s = 0; s < n;) {
      const int32_t way = from[at1(s, m)];
      if (way >= n) {
        const Option& o = options(s)[static_cast<size_t>(way - n)];
        leave_alone(groups_[s], t);
        sets_->apply(groups_[s].begin, o, t);
        m -= up(o.kept);
        s += 1;
        continue;
      }
      place(s, way, m, t);
      if (way + 1 < n) {
        hold(way, 0, t);
        m -= outs_[way];
      }
      s = way + 1;
    }
    return true;
  }

 private:
  // The lowest level of room with a way, and the one above which more room changes nothing.
  struct Range {
    int32_t first = 0, same = 0;
  };
  // Of a group that is a single stage, which may keep something.
  std::span<const Option> options(int32_t group) const {
    const Group& g = groups_[group];
    if (!sets_ || g.end != g.begin + 1) return {};
    return sets_->of(g.begin);
  }
  // Leaves the group's values as the policies have them.
  void leave_alone(const Group& g, RetentionPoints& t) const {
    for (int32_t op = stages_.all[g.begin].begin; op < stages_.all[g.begin].end; ++op)
      for (int32_t v : index_.outputs[op])
        for (int32_t interval = intervals_.first[v]; interval < intervals_.first[v + 1]; ++interval)
          t[interval] = rules_.base[interval];
  }

  size_t at1(int32_t s, int32_t m) const { return static_cast<size_t>(s) * (levels_ + 1) + m; }
  // The index of (s, t) with s <= t.
  size_t at2(int32_t s, int32_t t) const { return static_cast<size_t>(t) * (t + 1) / 2 + s; }
  size_t at(int32_t s, int32_t t, int32_t m) const { return at2(s, t) * (levels_ + 1) + m; }
  int32_t up(int64_t bytes) const { return static_cast<int32_t>((bytes + unit_ - 1) / unit_); }

  int64_t live_at(int32_t op) const {
    return op < static_cast<int32_t>(stages_.backward_before.size()) ? stages_.backward_before[op] : 0;
  }

  int64_t common_unit() const {
    int64_t unit = 0;
    for (const Group& g : groups_) unit = std::gcd(std::gcd(unit, g.out), g.peak);
    return std::max<int64_t>(1, unit);
  }

  void make_groups() {
    const size_t stages = stages_.all.size(), per = (stages + kMaxGroups - 1) / kMaxGroups;
    for (size_t s = 0; s < stages; s += per) {
      Group g;
      g.begin = s;
      g.end = std::min(stages, s + per);
      int64_t inner = 0;
      for (size_t i = g.begin; i < g.end; ++i) {
        const Stage& stage = stages_.all[i];
        StageModel model;
        int64_t peak = 0;
        if (model.build(p_, index_, intervals_, rules_, stages_, i)) {
          uint64_t all = model.candidates | model.forced;
          if (stage.out >= 0) {
            for (size_t o = 0; o < model.ops.size(); ++o)
              if (model.ops[o].outputs & model.out) all &= ~(uint64_t{1} << o);
          }
          const Option o = model.price(all, model.forced_moves, false);
          peak = o.peak;
          g.again += o.seconds;
        } else {
          peak = model.fixed;
          for (int32_t b = stage.back_begin; b < stage.back_end; ++b)
            peak = std::max(peak, model.fixed + stages_.backward_live[b]);
        }
        g.peak = std::max(g.peak, inner + peak);
        double forward = 0;
        for (int32_t op = stage.begin; op < stage.end; ++op) forward += p_.ops[op].seconds;
        g.forward += forward;
        if (i + 1 < g.end) {
          g.again += forward;
          if (stage.out >= 0) inner += p_.values[stage.out].bytes;
        }
        if (i + 1 == g.end && stage.out >= 0) g.out = p_.values[stage.out].bytes;
        if (i + 1 < stages && (stage.out < 0 || !free_to_go(stage.out)))
          possible_ = possible_ && stage.out >= 0;
      }
      groups_.push_back(g);
    }
  }

  bool free_to_go(int32_t v) const { return rules_.remade[gap_of(v)]; }
  int32_t gap_of(int32_t v) const {
    return rules_.across[v] >= 0 ? rules_.across[v] : intervals_.first[v + 1] - 1;
  }

  // Computes the costs of s..t at all levels of room. They are infinite below some level and constant from some level
  // on. Only what lies between the two is computed.
  void fill(int32_t s, int32_t t) {
    float* best = &cost_[at(s, t, 0)];
    Range& range = ranges_[at2(s, t)];
    if (s == t) {
      const int32_t peak = up(groups_[s].peak);
      for (int32_t m = peak; m <= levels_; ++m) best[m] = static_cast<float>(groups_[s].again);
      range = {peak, peak};
      return;
    }
    range = {levels_ + 1, 0};
    const int64_t beside = live_at(stages_.all[groups_[t].end - 1].back_begin);
    const int64_t* need = &need_[static_cast<size_t>(s) * groups_.size()];
    int32_t needed = up(need[s] + beside);
    firsts_.resize(static_cast<size_t>(t) + 1);
    for (int32_t k = s + 1; k <= t; ++k) {
      if (need[k - 1] != need[std::max(s, k - 2)]) needed = up(need[k - 1] + beside);
      const int32_t out = outs_[k - 1];
      const Range &earlier = ranges_[at2(s, k - 1)], &later = ranges_[at2(k, t)];
      firsts_[k] = std::max({out, needed, earlier.first, later.first + out});
      range.first = std::min(range.first, firsts_[k]);
      if (firsts_[k] <= levels_)
        range.same = std::max({range.same, firsts_[k], earlier.same, later.same + out});
    }
    range.same = std::min(range.same, levels_);
    if (range.first > levels_) return;
    const Row row{best, splits_.data()};
    for (int32_t k = s + 1; k <= t; ++k)
      row.take_less(static_cast<float>(sums_[k] - sums_[s]), &cost_[at(k, t, 0)], outs_[k - 1],
                    &cost_[at(s, k - 1, 0)], firsts_[k], range.same, k - s);
    uint8_t* split = &split_[at(s, t, 0)];
    for (int32_t m = range.first; m <= range.same; ++m) split[m] = static_cast<uint8_t>(splits_[m]);
    std::fill(best + range.same + 1, best + levels_ + 1, best[range.same]);
    std::fill(split + range.same + 1, split + levels_ + 1, split[range.same]);
  }

  // Places the checkpoints inside s..t, held from the program point at which t's backward begins.
  void place(int32_t s, int32_t t, int32_t m, RetentionPoints& retention_points) const {
    while (s < t) {
      const int32_t k = s + split_[at(s, t, m)];
      hold(k - 1, stages_.all[groups_[t].end - 1].back_begin, retention_points);
      place(k, t, m - up(groups_[k - 1].out), retention_points);
      t = k - 1;
    }
  }

  void hold(int32_t group, int32_t from, RetentionPoints& t) const {
    set(stages_.all[groups_[group].end - 1].out, from, t);
  }

  void set(int32_t v, int32_t retention_point, RetentionPoints& t) const {
    if (v >= 0 && free_to_go(v)) t[gap_of(v)] = retention_point;
  }

  // All other values are made when the group's own backward begins. Before that, the group is only passed through.
  void inside(const Group& g, RetentionPoints& t) const {
    for (size_t i = g.begin; i < g.end; ++i) {
      const Stage& stage = stages_.all[i];
      const int32_t group_begin = stages_.all[g.end - 1].back_begin;
      for (int32_t op = stage.begin; op < stage.end; ++op)
        for (int32_t v : index_.outputs[op])
          if (v != stage.out) set(v, stage.back_begin, t);
      if (i + 1 < g.end) set(stage.out, group_begin, t);
      if (i + 1 == g.end) set(stage.out, stage.back_begin, t);
    }
  }

  const Problem& p_;
  const Index& index_;
  const Intervals& intervals_;
  const Rules& rules_;
  const Stages& stages_;
  const OptionSets* const sets_;
  int64_t room_, unit_ = 1;
  int32_t levels_ = 0;
  bool possible_ = true;
  std::vector<Group> groups_;
  std::vector<double> sums_;
  std::vector<int32_t> outs_;    // per group: levels of the value that leaves it
  std::vector<int32_t> firsts_;  // per split of the present s..t: the lowest level with a way
  std::vector<Range> ranges_;    // per pair s..t of groups
  std::vector<float> cost_;
  std::vector<uint8_t> split_;   // where the second part begins, counted from the first group
  std::vector<int32_t> splits_;  // split_ of the present s..t
  std::vector<int64_t> need_;    // per (first, last): most bytes of two values in a row that pass by
};

}  // namespace

bool recurse(const Problem& p, const Index& index, const Intervals& intervals, const Rules& rules,
             const Stages& stages, int64_t room, RetentionPoints& retention_points, const OptionSets* sets) {
  retention_points = rules.base;
  return Recursion(p, index, intervals, rules, stages, room, sets).solve(retention_points);
}

}  // namespace cairn::plan
