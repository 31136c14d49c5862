#include "runtime/plan/bound/crossing.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace cairn::plan {
namespace {

constexpr double kShares = 1 << 20;
constexpr double kHomeRounding = 4 / kShares;  // above the share that rounded_down() subtracts

enum Copy : uint8_t { kInBefore, kInBehind, kOutBefore, kOutBehind, kCopies };

// The copies and the cost of a value. Values for which these are equal share one variable.
struct Copies {
  uint8_t always = 0;   // bits of Copy: copies needed even with a place on the device
  uint8_t without = 0;  // bits of Copy: copies needed without one
  double seconds = 0;   // per byte, besides the copies
  bool later = false;   // fresh and not yet used at op `at`: takes no memory there
  bool operator==(const Copies&) const = default;
};

bool bit(uint8_t set, Copy copy) { return set >> copy & 1; }

// Costs that differ by rounding only become equal, and no higher than they are.
double rounded_down(double x) {
  int exponent = 0;
  const double share = std::frexp(x, &exponent);
  return std::ldexp(std::floor(share * kShares), exponent) / kShares;
}

// back_home: HomeReads::back_home. busy: op `at` uses the value, so it is on the device then.
Copies copies_of(const HomeReads::Value& value, int32_t at, bool back_home, bool& busy) {
  std::array<bool, kCopies> has{};
  busy = false;
  bool next = true;  // the next use after `at` is still to come
  for (const HomeReads::Use& use : value.uses) {
    if (use.op <= at && &use == value.uses.data()) has[kInBefore] = use.reads;
    if (use.op < at && use.changes) has[kOutBefore] = true;
    if (use.op == at) busy = true;
    if (use.op >= at && use.changes && back_home) has[kOutBehind] = true;
    if (use.op > at && next) {
      has[kInBehind] = use.reads;
      next = false;
    }
  }
  Copies copies;
  for (const Copy copy : {kInBefore, kInBehind, kOutBefore, kOutBehind}) {
    if (!has[copy]) continue;
    const bool saved = value.may_stay || copy == kInBehind || copy == kOutBefore;
    if (!saved)
      copies.always |= static_cast<uint8_t>(1 << copy);
    else if (!busy)
      copies.without |= static_cast<uint8_t>(1 << copy);
  }
  copies.later = value.fresh && value.may_stay && !value.uses.empty() && value.uses.front().op > at;
  if (value.may_stay && !busy && value.bytes > 0)
    copies.seconds = rounded_down(value.home_seconds / static_cast<double>(value.bytes));
  return copies;
}

}  // namespace

Crossing::Crossing(const Problem& p, int32_t at, double before, double after, double room, double last_room,
                   double largest, const HomeReads& homes, double late)
    : seconds_(std::max(before + after, std::numeric_limits<double>::min())), bytes_(std::max(1.0, largest)) {
  for (const HomeReads::Value& value : homes.values)
    bytes_ = std::max(bytes_, static_cast<double>(value.bytes));
  for (const HomeReads::Value& value : homes.values)
    if (!value.may_stay) home_ += value.home_seconds;
  room_ = room / bytes_;
  group_.assign(homes.values.size(), {-1, 0});
  program_.add_variable(1);  // the variable z of crossing.h
  program_.add_variable(1);  // the variable e of crossing.h
  Gone gone;
  for (size_t l = 0; l < p.links.size(); ++l)
    add_link(p.links[l], l, at, before, after, largest, homes, gone);
  for (const auto& [v, factor] : gone.here) more_.emplace_back(v, factor);
  program_.add_row(std::move(gone.here), -room_);
  if (!gone.at_the_end.empty())
    program_.add_row(std::move(gone.at_the_end), gone.bytes_at_the_end - last_room / bytes_);
  const double behind_home = late - (home_ + uncounted_) * (1 + kHomeRounding);
  if (!(behind_home > 0)) return;
  std::vector<std::pair<int32_t, double>> row = {{0, 1}};
  for (const auto& [v, seconds] : at_home_) row.emplace_back(v, seconds * (1 + kHomeRounding));
  program_.add_row(std::move(row), behind_home / seconds_);
}

void Crossing::add_link(const Link& link, size_t number, int32_t at, double before, double after,
                        double largest, const HomeReads& homes, Gone& gone) {
  struct Group {
    Copies copies;
    double bytes = 0;
    std::vector<size_t> members = {};
  };
  std::vector<Group> groups;
  std::array<double, kCopies> fixed{};
  for (size_t i = 0; i < homes.values.size(); ++i) {
    const HomeReads::Value& value = homes.values[i];
    if (value.link != static_cast<int32_t>(number)) continue;
    bool busy = false;
    const Copies copies = copies_of(value, at, homes.back_home, busy);
    const double bytes = static_cast<double>(value.bytes) / bytes_;
    for (const Copy copy : {kInBefore, kInBehind, kOutBefore, kOutBehind})
      if (bit(copies.always, copy)) fixed[copy] += bytes;
    if (value.may_stay && copies.seconds == 0) uncounted_ += value.home_seconds;
    if (copies.without == 0 && copies.seconds == 0) continue;
    auto same = std::find_if(groups.begin(), groups.end(),
                             [&](const Group& group) { return group.copies == copies; });
    if (same == groups.end()) same = groups.insert(same, {copies});
    same->bytes += bytes;
    same->members.push_back(i);
  }
  // Per kind of copy: its bytes are `fixed` and these variables.
  std::array<std::vector<std::pair<int32_t, double>>, kCopies> sums;
  const int32_t away = program_.add_variable(0, static_cast<double>(link.capacity_bytes) / bytes_);
  more_.emplace_back(away, 1);
  sums[kOutBefore].emplace_back(away, 1);
  sums[kInBehind].emplace_back(away, 1);
  for (const Group& group : groups) {
    const int32_t v = program_.add_variable(group.copies.seconds * bytes_ / seconds_, group.bytes);
    (group.copies.later ? gone.at_the_end : gone.here).emplace_back(v, 1);
    if (group.copies.seconds > 0) at_home_.emplace_back(v, group.copies.seconds * bytes_ / seconds_);
    if (group.copies.later)
      gone.bytes_at_the_end += group.bytes;
    else
      room_ -= group.bytes;
    for (const size_t i : group.members) group_[i] = {v, group.bytes};
    for (const Copy copy : {kInBefore, kInBehind, kOutBefore, kOutBehind})
      if (bit(group.copies.without, copy)) sums[copy].emplace_back(v, 1);
  }
  const double slower = std::clamp(1 / link.both_ways_factor - 1, 0.0, 1.0);
  const double unit = bytes_ / seconds_;
  const double out = unit / link.out_bytes_per_second, in = unit / link.in_bytes_per_second;
  const double latency = largest > 0 ? unit * link.latency_seconds / largest : 0;
  struct Window {
    Copy out, in;
    int32_t added;
    double seconds;
  };
  for (const Window& w :
       {Window{kOutBefore, kInBefore, 0, before}, Window{kOutBehind, kInBehind, 1, after}}) {
    const auto add = [&](double of_out, double of_in) {
      std::vector<std::pair<int32_t, double>> row = {{w.added, 1}};
      for (const auto& [v, factor] : sums[w.out]) row.emplace_back(v, -factor * of_out);
      for (const auto& [v, factor] : sums[w.in]) row.emplace_back(v, -factor * of_in);
      program_.add_row(std::move(row), of_out * fixed[w.out] + of_in * fixed[w.in] - w.seconds / seconds_);
    };
    add(out, slower * in);
    add(slower * out, in);
    if (latency == 0) continue;
    add(out + latency, 0);
    add(0, in + latency);
  }
}

Crossing::Answer Crossing::least(const std::vector<Cut>& lines) const {
  LinearProgram program = program_;
  for (const Cut& line : lines) {
    if (line.price == 0) continue;
    const double price = line.price * bytes_ / seconds_;
    std::vector<std::pair<int32_t, double>> row = {{1, 1}};
    for (const auto& [v, sign] : more_) row.emplace_back(v, sign * price);
    program.add_row(std::move(row), line.flow / seconds_ - price * room_);
  }
  const LinearProgram::Answer found = program.solve();
  Answer answer{home_ + std::max(0.0, found.bound) * seconds_, room_, {}, found.work};
  for (const auto& [v, bytes] : group_)
    answer.here.push_back(v < 0 ? -1 : bytes > 0 ? 1 - found.x[static_cast<size_t>(v)] / bytes : 1);
  for (const auto& [v, sign] : more_) answer.available += sign * found.x[static_cast<size_t>(v)];
  answer.available *= bytes_;
  return answer;
}

}  // namespace cairn::plan
