#include "runtime/plan/pricing/retention_pricer.h"

#include <algorithm>
#include <bit>

namespace cairn::plan {
namespace {

constexpr size_t kBlock = 8;  // retention points compared at once
// Up to so many pairs of value and op, intervals are looked up in a table.
constexpr size_t kMaxTable = 1 << 16;

}  // namespace

RetentionPricer::RetentionPricer(const Problem& p, const Index& index, const Intervals& intervals)
    : index_(index),
      intervals_(intervals),
      t_(intervals.keep_all(p)),  // no input is ever missing
      active_((p.ops.size() + 63) / 64, 0),
      active_count_(p.ops.size(), 0),
      place_(p.ops.size(), 0),
      seen_op_(p.ops.size(), 0),
      change_(p.ops.size() + 1, 0) {
  const auto count = static_cast<int32_t>(p.ops.size());
  std::vector<int64_t> begins(p.ops.size() + 1, 0), ends(p.ops.size() + 1, 0);
  for (const Intervals::Interval& i : intervals.all) {
    const int64_t bytes = p.values[i.value].bytes;
    all_.push_back({i.begin, i.end, bytes, {}, kNever});
    if (i.end != kNever) begins[i.begin] += bytes;
    if (i.end != kNever) ends[i.end] += bytes;
  }
  const auto use_of = [&](int32_t v) { return Use{v, -1, intervals.first[v], intervals.first[v + 1] - 1}; };
  if (p.values.size() * p.ops.size() <= kMaxTable) {
    std::vector<int32_t> table(p.values.size() * p.ops.size());
    for (int32_t v = 0; v < static_cast<int32_t>(p.values.size()); ++v)
      for (int32_t op = 0; op < count; ++op)
        table[static_cast<size_t>(v) * p.ops.size() + static_cast<size_t>(op)] = interval_at(use_of(v), op);
    table_ = std::move(table);
  }
  int64_t crossing = index.persistent_bytes;
  double sum = 0;
  for (int32_t op = 0; op < count; ++op) {
    Op row{};
    row.inputs = static_cast<int32_t>(uses_.size());
    for (const int32_t v : index.inputs[op]) uses_.push_back(use_of(v));
    for (auto k = static_cast<size_t>(row.inputs); k < uses_.size(); ++k)
      uses_[k].ends = interval_at(uses_[k], op);
    row.outputs = static_cast<int32_t>(uses_.size());
    for (const int32_t v : index.outputs[op]) uses_.push_back(use_of(v));
    row.end = static_cast<int32_t>(uses_.size());
    row.recomputable = p.ops[op].recomputable;
    row.seconds = p.ops[op].seconds;
    row.workspace = p.ops[op].workspace_bytes;
    row.crossing = crossing;
    row.live = crossing + row.workspace;
    for (const int32_t v : index.outputs[op]) row.live += p.values[v].bytes;
    crossing += begins[op] - ends[op];
    sums_.push_back(sum);
    sum += row.seconds;
    ops_.push_back(row);
  }
  sums_.push_back(sum);
  collected_.resize(uses_.size());
}

// The interval that is open before the runs for `anchor`.
inline int32_t RetentionPricer::interval_at(const Use& use, int32_t anchor) const {
  constexpr int32_t kSmall = 8;
  if (!table_.empty())
    return table_[static_cast<size_t>(use.value) * place_.size() + static_cast<size_t>(anchor)];
  if (use.last - use.first < kSmall) {
    int32_t g = use.first;
    while (g < use.last && all_[g + 1].begin < anchor) ++g;
    return g;
  }
  const auto at = std::lower_bound(all_.begin() + use.first, all_.begin() + use.last + 1, anchor,
                                   [](const Interval& interval, int32_t op) { return interval.begin < op; });
  return std::max(use.first, static_cast<int32_t>(at - all_.begin()) - 1);
}

void RetentionPricer::activate_op(int32_t op, int32_t count) {
  active_count_[op] += count;
  const uint64_t bit = uint64_t{1} << (op % 64);
  uint64_t& word = active_[static_cast<size_t>(op) / 64];
  word = active_count_[op] > 0 ? word | bit : word & ~bit;
}

// An op is active if something may have to be made or fetched before it. These are the ends of intervals in which a
// value is not kept, and the ops named by early retention points. count: 1, or -1 for a point that is given up.
void RetentionPricer::activate(int32_t g, int32_t point, int32_t count) {
  const Interval& interval = all_[g];
  if (point >= 0 && held_from(point) <= interval.begin) return;
  if (interval.end != kNever) activate_op(interval.end, count);
  const int32_t end = std::min(interval.end, static_cast<int32_t>(ops_.size()));
  if (!is_early(point) || held_from(point) >= end) return;
  const std::pair entry{held_from(point), g};
  activate_op(entry.first, count);
  const auto at = std::lower_bound(early_.begin(), early_.end(), entry);
  if (count > 0)
    early_.insert(at, entry);
  else
    early_.erase(at);
}

// Takes over the retention points. Returns the first op for which they may change anything.
int32_t RetentionPricer::take(const RetentionPoints& t) {
  int32_t first = finished_;
  const auto look = [&](size_t at) {
    const auto g = static_cast<int32_t>(at);
    const Interval& interval = all_[at];
    first = std::min(first, interval.first_query);
    for (const int32_t point : {t_[at], t[at]})
      if (is_early(point)) first = std::min(first, held_from(point));
    if (interval.end != kNever && (t[at] < 0 || held_from(t[at]) > interval.begin))
      first = std::min(first, interval.end);
    activate(g, t_[at], -1);
    activate(g, t[at], 1);
    t_[at] = t[at];
  };
  const size_t count = t.size();
  size_t g = 0;
  for (; g + kBlock <= count; g += kBlock) {
    int32_t differ = 0;
    for (size_t k = 0; k < kBlock; ++k) differ |= t[g + k] ^ t_[g + k];
    if (differ == 0) continue;
    for (size_t k = 0; k < kBlock; ++k)
      if (t[g + k] != t_[g + k]) look(g + k);
  }
  for (; g < count; ++g)
    if (t[g] != t_[g]) look(g);
  return first;
}

void RetentionPricer::mark(int32_t anchor) {
  marks_.push_back({anchor, extra_, again_, copies_, groups_.size(), group_ops_.size(), trace_.size(),
                    changes_.size(), uses_undone_.size(), queries_.size()});
}

// Returns to the state before the first active op from `anchor` on.
void RetentionPricer::back_to(int32_t anchor) {
  if (marks_.empty() || marks_.back().anchor < anchor) return;
  const auto at = std::lower_bound(marks_.begin(), marks_.end(), anchor,
                                   [](const Mark& mark, int32_t op) { return mark.anchor < op; });
  extra_ = at->extra;
  again_ = at->again;
  copies_ = at->copies;
  placed_ = std::min(placed_, at->anchor);
  groups_.resize(at->groups);
  group_ops_.resize(at->group_ops);
  trace_.resize(at->trace);
  for (; changes_.size() > at->changes; changes_.pop_back())
    change_[changes_.back().first] -= changes_.back().second;
  for (; uses_undone_.size() > at->uses; uses_undone_.pop_back())
    all_[uses_undone_.back().first].used = uses_undone_.back().second;
  for (; queries_.size() > at->queries; queries_.pop_back()) all_[queries_.back()].first_query = kNever;
  marks_.erase(at, marks_.end());
}

// Where the value has been since its last use in the interval.
inline RetentionPricer::Residence RetentionPricer::residence(int32_t interval, int32_t anchor) {
  Interval& asked = all_[interval];
  if (asked.first_query == kNever) {
    asked.first_query = anchor;
    queries_.push_back(interval);
  }
  const int32_t point = t_[interval], begin = asked.begin;
  const int32_t last = std::max(asked.used.anchor, begin);
  if (point < 0) return last == begin ? Residence::kOffloaded : Residence::kKept;
  return last < held_from(point) ? Residence::kDropped : Residence::kKept;
}

inline void RetentionPricer::change(int32_t item, int64_t bytes) {
  change_[item] += bytes;
  changes_.emplace_back(item, bytes);
}

inline void RetentionPricer::want(int32_t value) {
  const int32_t maker = index_.maker[value];
  if (seen_op_[maker] == group_) return;
  seen_op_[maker] = group_;
  made_.push_back(maker);
  open_.push_back(maker);
}

// Adds to the ops to run again those whose outputs they need, and so on; then orders them. False if one may not run
// again.
bool RetentionPricer::collect(int32_t anchor) {
  while (!open_.empty()) {
    const Op& op = ops_[open_.back()];
    open_.pop_back();
    if (!op.recomputable) return false;
    for (int32_t k = op.inputs; k < op.end; ++k) {
      collected_[k] = interval_at(uses_[k], anchor);
      if (k < op.outputs && residence(collected_[k], anchor) == Residence::kDropped) want(uses_[k].value);
    }
  }
  std::sort(made_.begin(), made_.end());
  for (const int32_t op : made_) again_ += ops_[op].seconds;
  return true;
}

// Counts a use by an op that runs again for `anchor`.
inline void RetentionPricer::use_again(int32_t use, int32_t g, int32_t anchor, int32_t item, bool output) {
  Interval& interval = all_[g];
  const int64_t bytes = interval.bytes;
  Used& used = interval.used;
  const int32_t last = used.anchor >= 0 ? used.item : place_[interval.begin];
  bool stays = used.anchor >= 0 && used.group == group_;
  if (!stays) {
    const Residence was = residence(g, anchor);
    stays = was == Residence::kKept;
    copies_ = copies_ || (was == Residence::kOffloaded && !output);
    if (!stays) trace_.push_back(~use);
    if (was == Residence::kOffloaded) trace_.push_back(t_[g]);
  }
  if (interval.end == kNever) {
    change(stays ? last + 1 : item, bytes);
    change(item + 1, -bytes);
  } else if (!stays) {
    change(last + 1, -bytes);
    change(item, bytes);
  }
  uses_undone_.emplace_back(g, used);
  used = {anchor, item, group_};
}

// Counts the use that an interval ends with, by the op that reads the value. True if the value is fetched over a link
// for it.
inline bool RetentionPricer::use_at_end(int32_t use, int32_t anchor, int32_t item) {
  const int32_t g = uses_[use].ends;
  const Used& used = all_[g].used;
  if (t_[g] >= 0 || (used.anchor >= 0 && used.group == group_) ||
      residence(g, anchor) != Residence::kOffloaded)
    return false;
  trace_.push_back(~use);
  trace_.push_back(t_[g]);
  copies_ = true;
  const int64_t bytes = all_[g].bytes;
  change((used.anchor >= 0 ? used.item : place_[all_[g].begin]) + 1, -bytes);
  change(item, bytes);
  return true;
}

// The ops to run again for `anchor`. False if one may not.
bool RetentionPricer::make_group(int32_t anchor) {
  ++group_;
  made_.clear();
  open_.clear();
  const Op& op = ops_[anchor];
  for (int32_t k = op.inputs; k < op.outputs; ++k)
    if (residence(uses_[k].ends, anchor) == Residence::kDropped) want(uses_[k].value);
  if (!early_.empty())
    for (auto at = std::lower_bound(early_.begin(), early_.end(), std::pair{anchor, 0});
         at != early_.end() && at->first == anchor; ++at)
      if (residence(at->second, anchor) == Residence::kDropped) want(intervals_.all[at->second].value);
  return made_.empty() || collect(anchor);
}

// False where the sequence has to end; the price says why.
bool RetentionPricer::look_at(int32_t anchor, const Sequencer::Limits& limits, Price& price) {
  for (; placed_ < anchor; ++placed_) place_[placed_] = placed_ + extra_;
  if (anchor + extra_ > limits.items) {
    price.work = limits.items;
    return false;
  }
  mark(anchor);
  if (!make_group(anchor)) return false;
  const auto again = static_cast<int32_t>(made_.size());
  if (int64_t{anchor} + extra_ + again + 1 > limits.items || index_.total_seconds + again_ > limits.seconds) {
    price.work = anchor + extra_;
    return false;
  }
  const size_t traced = trace_.size();
  trace_.push_back(anchor);
  trace_.push_back(again);
  if (again > 0) {
    const size_t needed = ops_.size() + static_cast<size_t>(extra_ + again) + 1;
    if (change_.size() < needed) change_.resize(needed, 0);
    const auto begin = static_cast<int32_t>(group_ops_.size());
    groups_.push_back({anchor, begin, begin + again});
    group_ops_.insert(group_ops_.end(), made_.begin(), made_.end());
    trace_.insert(trace_.end(), made_.begin(), made_.end());
    for (int32_t i = 0; i < again; ++i) {
      const Op& op = ops_[made_[i]];
      for (int32_t k = op.inputs; k < op.end; ++k)
        use_again(k, collected_[k], anchor, anchor + extra_ + i, k >= op.outputs);
    }
    extra_ += again;
  }
  bool fetched = false;
  const Op& op = ops_[anchor];
  for (int32_t k = op.inputs; k < op.outputs; ++k)
    if (use_at_end(k, anchor, anchor + extra_)) fetched = true;
  if (again == 0 && !fetched) trace_.resize(traced);
  return true;
}

// Whether the part that was looked at keeps to the limits; the limits may have changed since.
bool RetentionPricer::within(const Sequencer::Limits& limits) const {
  if (marks_.empty()) return true;
  return int64_t{marks_.back().anchor} + extra_ + 1 <= limits.items &&
         index_.total_seconds + again_ <= limits.seconds;
}

RetentionPricer::Price RetentionPricer::operator()(const RetentionPoints& t,
                                                   const Sequencer::Limits& limits) {
  Price price;
  if (index_.total_seconds > limits.seconds) return price;
  int32_t first = take(t);
  back_to(first);
  if (!within(limits)) {
    first = 0;
    back_to(first);
  }
  const auto count = static_cast<int32_t>(ops_.size());
  if (first == kNever && int64_t{count} + extra_ <= limits.items) return price_;
  first = std::min(first, count);
  placed_ = std::min(placed_, first);
  for (size_t word = static_cast<size_t>(first) / 64; word < active_.size(); ++word) {
    uint64_t rest = active_[word];
    if (word == static_cast<size_t>(first) / 64) rest &= ~uint64_t{0} << (first % 64);
    for (; rest != 0; rest &= rest - 1) {
      const auto anchor = static_cast<int32_t>(word * 64) + std::countr_zero(rest);
      finished_ = anchor;
      if (!look_at(anchor, limits, price)) return price;
    }
  }
  for (; placed_ < count; ++placed_) place_[placed_] = placed_ + extra_;
  finished_ = count;
  if (int64_t{count} + extra_ > limits.items) {
    price.work = limits.items;
    return price;
  }
  price.valid = true;
  price.copies = copies_;
  add_up(price);
  finished_ = kNever;
  price_ = price;
  return price;
}

void RetentionPricer::add_up(Price& price) {
  items_ = static_cast<int64_t>(ops_.size()) + extra_;
  price.work = items_;
  live_.resize(static_cast<size_t>(items_));
  const auto count = static_cast<int32_t>(ops_.size());
  int64_t alive = 0, peak = index_.persistent_bytes;
  int32_t item = 0, op = 0;
  double seconds = 0;
  const auto plain = [&](int32_t end) {
    for (; op < end; ++op, ++item) {
      alive += change_[item];
      live_[item] = ops_[op].live + alive;
      peak = std::max(peak, live_[item]);
    }
  };
  if (!groups_.empty()) seconds = sums_[groups_.front().anchor];
  for (const Group& group : groups_) {
    const int32_t before = op;
    plain(group.anchor);
    if (&group != &groups_.front())
      for (int32_t i = before; i < group.anchor; ++i) seconds += ops_[i].seconds;
    const int64_t crossing = ops_[group.anchor].crossing;
    for (int32_t k = group.begin; k < group.end; ++k, ++item) {
      const Op& made = ops_[group_ops_[k]];
      alive += change_[item];
      live_[item] = crossing + made.workspace + alive;
      peak = std::max(peak, live_[item]);
      seconds += made.seconds;
    }
  }
  if (groups_.empty())
    seconds = sums_.back();
  else
    for (int32_t i = op; i < count; ++i) seconds += ops_[i].seconds;
  plain(count);
  price.seconds = seconds;
  price.peak_bytes = peak;
}

double RetentionPricer::excess(int64_t budget) const {
  double sum = 0;
  for (const int64_t bytes : live())
    if (bytes > budget) sum += static_cast<double>(bytes - budget);
  return sum;
}

}  // namespace cairn::plan
