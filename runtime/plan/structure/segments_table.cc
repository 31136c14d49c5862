#include "runtime/plan/structure/segments_table.h"

#include <algorithm>
#include <limits>

#include "runtime/plan/structure/take_less.h"

namespace cairn::plan {
namespace {

constexpr int64_t kTableLevels = 512;          // levels into which the room is divided
constexpr int64_t kMaxTableWork = 60'000'000;  // entries times splits,
constexpr int32_t kMany = 128;                 // of so many groups and more:
constexpr int64_t kMaxWorkOfMany = 400'000'000;
constexpr int64_t kFiner = 8;  // units in which bytes held from forward on are counted
constexpr float kNoEntry = std::numeric_limits<float>::infinity();

}  // namespace

SegmentsTable::SegmentsTable(const Segments& segments, int64_t most)
    : segments_(segments), count_(segments.count()), most_(most) {
  const auto& groups = segments_.groups_;
  const auto n = static_cast<size_t>(count_);
  levels_ = static_cast<int32_t>(std::clamp<int64_t>(
      (count_ < kMany ? kMaxTableWork : kMaxWorkOfMany) * 6 / (int64_t{count_} * count_ * count_), 16,
      kTableLevels));
  fine_ = std::max<int64_t>(1, most / levels_ / kFiner);
  unit_ = fine_ * kFiner;
  levels_ = static_cast<int32_t>(most / unit_);
  fine_levels_ = levels_ * static_cast<int32_t>(kFiner);
  cost_.assign(at(0, count_ + 1), kNoEntry);
  split_.assign(cost_.size(), 0);
  sums_.assign(n + 1, 0);
  pass_.assign(n * (n + 1), 0);
  for (size_t g = 0; g < n; ++g) sums_[g + 1] = sums_[g] + groups[g].forward;
  for (int32_t s = 0; s < count_; ++s)
    for (int32_t t = s; t < count_; ++t) {
      int64_t* const row = &pass_[static_cast<size_t>(s) * (n + 1)];
      row[t + 1] = std::max(t > s ? row[t] : 0, (t > s ? segments_.crossing(s, t) : 0) + groups[t].pass);
    }
  for (int32_t span = 1; span <= count_; ++span)
    for (int32_t s = 0; s + span <= count_; ++s) fill(s, s + span);
  rest_.assign((n + 1) * static_cast<size_t>(fine_levels_ + 1), kNoEntry);
  first_.assign(rest_.size(), {});
  std::fill(rest_.end() - fine_levels_ - 1, rest_.end(), 0.0f);
  for (int32_t s = count_; s-- > 0;) pass_first(s);
}

std::vector<SegmentsTable::Pass> SegmentsTable::passes(int64_t room) const {
  std::vector<Pass> passes;
  auto m = static_cast<int32_t>(std::min<int64_t>(fine_levels_, room / fine_));
  for (int32_t s = 0; s < count_;) {
    const First f =
        first_[static_cast<size_t>(s) * static_cast<size_t>(fine_levels_ + 1) + static_cast<size_t>(m)];
    if (f.groups == 0) return {};
    const int32_t end = s + f.groups;
    if (f.option != kNoOption) {
      const Segments::Option& option = segments_.groups_[s].options[f.option];
      passes.push_back({s, end, 0, &option});
      m -= up(option.kept, fine_);
    } else {
      place(s, end, m / static_cast<int32_t>(kFiner), passes);
      if (end < count_) {
        passes.push_back({s, end, 0, nullptr});
        m -= up(segments_.crossing(s, end), fine_);
      }
    }
    s = end;
  }
  return passes;
}

void SegmentsTable::fill(int32_t s, int32_t t) {
  const auto& groups = segments_.groups_;
  float* best = &cost_[at(s, t)];
  uint8_t* split = &split_[at(s, t)];
  if (t == s + 1) {
    for (int32_t m = up(groups[s].peak, unit_); m <= levels_; ++m)
      best[m] = static_cast<float>(groups[s].again);
    return;
  }
  const int64_t beside = groups[t - 1].before;
  splits_.assign(static_cast<size_t>(levels_) + 1, 0);
  for (int32_t k = s + 1; k < t; ++k) {
    const int32_t out = up(segments_.crossing(s, k), unit_);
    const int64_t most =
        pass_[static_cast<size_t>(s) * static_cast<size_t>(count_ + 1) + static_cast<size_t>(k)] + beside;
    const auto pass = static_cast<float>(sums_[k] - sums_[s]);
    const int32_t least = std::max(out, up(most, unit_));
    if (least > levels_) continue;
    take_less(&cost_[at(k, t)] + (least - out), &cost_[at(s, k)] + least, pass, k - s, levels_ + 1 - least,
              best + least, splits_.data() + least);
  }
  std::transform(splits_.begin(), splits_.end(), split, [](int32_t k) { return static_cast<uint8_t>(k); });
}

void SegmentsTable::pass_first(int32_t s) {
  const size_t row = static_cast<size_t>(fine_levels_) + 1;
  float* const best = &rest_[static_cast<size_t>(s) * row];
  First* const first = &first_[static_cast<size_t>(s) * row];
  const auto offer = [&](int32_t end, int64_t kept, int64_t least, uint8_t option, auto seconds) {
    const int32_t out = up(kept, fine_);
    const float* const rest = &rest_[static_cast<size_t>(end) * row];
    for (int32_t m = std::max(out, up(least, fine_)); m <= fine_levels_; ++m) {
      const float sum = seconds(m) + rest[m - out];
      if (sum >= best[m]) continue;
      best[m] = sum;
      first[m] = {static_cast<uint8_t>(end - s), option};
    }
  };
  for (int32_t t = s + 1; t <= count_; ++t) {
    const float* const cost = &cost_[at(s, t)];
    offer(t, t < count_ ? segments_.crossing(s, t) : 0, 0, kNoOption,
          [&](int32_t m) { return cost[m / static_cast<int32_t>(kFiner)]; });
  }
  const Segments::Group& group = segments_.groups_[s];
  for (size_t k = 0; k < group.options.size(); ++k) {
    const auto seconds = static_cast<float>(group.options[k].seconds);
    offer(s + 1, group.options[k].kept, group.peak, static_cast<uint8_t>(k),
          [&](int32_t) { return seconds; });
  }
}

// Places the checkpoints inside s..t - 1, held from the program point at which group t - 1's backward begins.
void SegmentsTable::place(int32_t s, int32_t t, int32_t m, std::vector<Pass>& passes) const {
  while (t > s + 1) {
    const int32_t k = s + split_[at(s, t) + static_cast<size_t>(m)];
    passes.push_back({s, k, static_cast<int32_t>(back_begin(t)), nullptr});
    place(k, t, m - up(segments_.crossing(s, k), unit_), passes);
    t = k;
  }
}

}  // namespace cairn::plan
