// Part of local search: a plan and its layout at once, for plans whose arenas are far above the budget. Each stretch of time has
// a ceiling of its own, as high as its blocks are: so places that are too full come down one by one, and a step costs what lies
// near the change. What stands above the budget costs in proportion to its bytes and its time.
#include <algorithm>
#include <cmath>

#include "runtime/plan/layout/packer.h"
#include "runtime/plan/local_search/local_search.h"

namespace cairn::plan {
namespace {

// Heats, in shares of a mean op's seconds, and what a block of mean size and lifetime costs above the budget, in such seconds. Where
// the budget falls, that rises until the plan fits, and falls then; seconds hardly count.
struct PackedCooling {
  double first_heat, last_heat, first_price, last_price;
};
constexpr PackedCooling kHottest = {1, .05, 5, 20}, kWarm = {.3, .05, 20, 20}, kFalls = {10, 1, 200, 20000};
constexpr int64_t kFloorAdaptations = 1000;  // of such a price
constexpr double kFloorRise = 1.05, kFloorFall = .98;
constexpr int64_t kFloorParts = 128;   // what fits has to become lower by such a part
constexpr int64_t kSettleWork = 6000;  // visits of neighbours, per try to place what a change needs
constexpr int64_t kSettleRuns = 1500;  // what that counts, in runs made
constexpr int64_t kTryShare = 8;       // a change that is priced only counts such a part of a sequence's runs
// Parts of the budget by which ceilings beside a change may become lower or higher.
constexpr int64_t kCeilingLower = 400, kCeilingHigher = 100;
constexpr int32_t kAroundFull = 5;  // ops around one that is too full
constexpr double kMovedCost = 2;    // of a block of mean size and lifetime, in a mean op's seconds
constexpr int32_t kBehind = 20;     // before one that something is made again for

double between(double first, double last, double done) { return first * std::pow(last / first, done); }

}  // namespace

class LocalSearch::Packed {
 public:
  Packed(LocalSearch& search, const Placed& from, int64_t budget)
      : l_(search),
        p_(search.p_),
        ops_(static_cast<int64_t>(p_.ops.size())),
        values_(static_cast<int32_t>(p_.values.size())),
        fixed_(search.index_.persistent_bytes),
        floor_((budget - fixed_) / natural_alignment(p_) * natural_alignment(p_)),
        packer_(ops_ * ops_, ops_, floor_),
        best_(from),
        c_(from.from) {
    c_.cost = l_.evaluate_(c_.retention_points, c_.pace, l_.sequence_);
    l_.first_stay_.assign(p_.values.size() + p_.ops.size(), -1);
    l_.list_blocks(l_.sequence_, blocks_, now_.stays);
    for (size_t k = 0; k < now_.stays.size(); ++k) {
      Stay& stay = now_.stays[k];
      stay.offset = from.offsets[k];
      now_.blocks.push_back(-1);
      mean_ += static_cast<double>(bytes_of(stay)) *
               (1 + static_cast<double>(stay.end - stay.begin) / static_cast<double>(ops_)) /
               static_cast<double>(now_.stays.size());
      if (bytes_of(stay) > 0) add(stay, now_.blocks[k]);
    }
    packer_.tighten(0, static_cast<int32_t>(ops_) - 1);
    packer_.commit();
    trace_ = l_.evaluate_.trace_of(c_.retention_points);
    note();
  }

  Placed anneal(int64_t work, const PackedCooling& c) {
    while (spent_ < work) {
      const double done = static_cast<double>(spent_) / static_cast<double>(work);
      set(between(c.first_heat, c.last_heat, done), between(c.first_price, c.last_price, done));
      step();
    }
    return best_;
  }

  // Whatever fits lowers the budget, as far as the target. Returns what pack_lower() does.
  std::vector<Placed> fall(int64_t target, int64_t work, int64_t parts) {
    std::vector<Placed> met;
    const int64_t adaptation = std::max<int64_t>(1, work / kFloorAdaptations);
    double price = kFalls.first_price;
    int64_t last = best_.height, adapted = 0;
    target_ = target;
    falls_ = true;
    for (lower_floor(); spent_ < work && best_.height > target; step()) {
      if (best_.height <= last - last / parts) last = met.emplace_back(best_).height;
      for (; adapted + adaptation <= spent_; adapted += adaptation, fell_ = false)
        price = std::clamp(fell_ ? price * kFloorFall : price * kFloorRise, kFalls.first_price,
                           kFalls.last_price);
      const double done = static_cast<double>(spent_) / static_cast<double>(work);
      set(between(kFalls.first_heat, kFalls.last_heat, done), price);
    }
    if (met.empty() || best_.height < last) met.push_back(best_);
    return met;
  }

 private:
  // Stays in the order of the steps that take them, and their numbers in the packer: -1 if they take no room.
  struct Layout {
    std::vector<Stay> stays;
    std::vector<int32_t> blocks;
  };

  static bool same(const Stay& a, const Stay& b) {
    return a.value == b.value && a.begin == b.begin && a.end == b.end;
  }
  int64_t bytes_of(const Stay& s) const {
    return s.value < values_ ? p_.values[s.value].bytes : p_.ops[s.value - values_].workspace_bytes;
  }
  int32_t op_of(int64_t time) const { return static_cast<int32_t>(time / ops_); }
  size_t below(size_t n) { return l_.random() % n; }

  void add(const Stay& stay, int32_t& block) {
    block = packer_.add(stay.begin, stay.end, bytes_of(stay), stay.offset);
    if (stay_of_.size() <= static_cast<size_t>(block)) stay_of_.resize(static_cast<size_t>(block) + 1);
    stay_of_[block] = stay;
  }
  void touch(const Stay& stay) {
    first_ = std::min(first_, op_of(stay.begin));
    last_ = std::max(last_, op_of(stay.end));
  }

  void set(double heat, double price) {
    heat_ = heat / static_cast<double>(ops_);
    weight_ = price / static_cast<double>(ops_) / mean_;
  }

  // Gives the packer the stays of `then_`. What was there all the while stays where it is.
  void change_blocks() {
    const std::vector<Stay>& from = now_.stays;
    std::vector<Stay>& to = then_.stays;
    size_t head = 0, a = from.size(), b = to.size();
    while (head < a && head < b && same(from[head], to[head])) ++head;
    while (a > head && b > head && same(from[a - 1], to[b - 1])) --a, --b;
    then_.blocks.assign(to.size(), -1);
    std::copy_n(now_.blocks.begin(), head, then_.blocks.begin());
    std::copy(now_.blocks.begin() + static_cast<int64_t>(a), now_.blocks.end(),
              then_.blocks.begin() + static_cast<int64_t>(b));
    l_.next_stay_.resize(std::max(l_.next_stay_.size(), from.size()));
    for (size_t k = a; k-- > head;) {
      l_.next_stay_[k] = l_.first_stay_[from[k].value];
      l_.first_stay_[from[k].value] = static_cast<int32_t>(k);
    }
    stays_on_.assign(a - head, false);
    for (size_t k = head; k < b; ++k) {
      to[k].offset = -1;
      for (int32_t old = l_.first_stay_[to[k].value]; old >= 0; old = l_.next_stay_[old]) {
        if (same(from[old], to[k])) {
          then_.blocks[k] = now_.blocks[old];
          stays_on_[static_cast<size_t>(old) - head] = true;
        } else if (now_.blocks[old] >= 0 && from[old].begin <= to[k].begin && to[k].end <= from[old].end) {
          to[k].offset = packer_.offset(now_.blocks[old]);
        }
      }
    }
    first_ = static_cast<int32_t>(ops_) - 1;
    last_ = 0;
    for (size_t k = head; k < a; ++k) {
      l_.first_stay_[from[k].value] = -1;
      if (stays_on_[k - head] || now_.blocks[k] < 0) continue;
      touch(from[k]);
      packer_.remove(now_.blocks[k]);
    }
    for (size_t k = head; k < b; ++k)
      if (then_.blocks[k] < 0 && bytes_of(to[k]) > 0) {
        touch(to[k]);
        add(to[k], then_.blocks[k]);
      }
    first_ = std::min(first_, last_);
  }

  void take_back() {
    for (; !undo_.empty(); undo_.pop_back()) c_.retention_points[undo_.back().first] = undo_.back().second;
  }

  // Something that is there during the ops from begin to end leaves until one of them.
  void give_up(int32_t begin, int32_t end) {
    packer_.beside(begin * ops_, end * ops_ + ops_ - 1, found_);
    for (int tries = 0; tries < 8 && undo_.empty() && !found_.empty(); ++tries) {
      const Stay& stay = stay_of_[found_[below(found_.size())]];
      const int32_t from = std::max(op_of(stay.begin) + 1, begin), to = std::min(op_of(stay.end), end);
      if (stay.value >= values_ || from > to) continue;
      const int32_t here = from + static_cast<int32_t>(below(static_cast<size_t>(to - from + 1)));
      l_.give_up(c_, l_.intervals_.at(stay.value, here - 1), here, undo_);
    }
  }

  // An interval near an op that is too full or that something is made again for; or any.
  int32_t some_interval() {
    const int32_t any = l_.free_intervals_[below(l_.free_intervals_.size())];
    const size_t places = made_again_.size() + full_.size();
    if (places == 0 || l_.chance(40)) return any;
    const size_t k = below(places);
    const int32_t op = k < full_.size() ? full_[k] : l_.sequence_.anchor[made_again_[k - full_.size()]];
    packer_.beside(std::max(0, op - kBehind) * ops_, op * ops_, found_);
    if (found_.empty()) return any;
    const Stay& stay = stay_of_[found_[below(found_.size())]];
    if (stay.value >= values_) return any;
    const int32_t g = l_.intervals_.at(stay.value, l_.chance(50) ? op : op_of(stay.end));
    return g >= 0 && l_.rules_.free[g] ? g : any;
  }

  // What the item makes again is held instead: what lies at the place where that costs least leaves meanwhile.
  void make_room(int32_t item) {
    const int32_t here = l_.sequence_.anchor[item], value = l_.index_.outputs[l_.sequence_.ops[item]][0];
    const int32_t held = l_.intervals_.at(value, here - 1);
    const int64_t bytes = p_.values[value].bytes;
    if (held < 0 || bytes > floor_) return;
    int64_t begin = l_.intervals_.all[held].begin * ops_, end = here * ops_ + ops_ - 1;
    packer_.beside(begin, end, found_);
    for (const int32_t b : found_)
      if (const Stay& stay = stay_of_[b]; stay.value == value) {
        begin = std::min(begin, stay.begin);
        end = std::max(end, stay.end);
      }
    const int32_t first = op_of(begin), last = op_of(end);
    packer_.beside(begin, end, found_);
    place_.beside.clear();
    for (const int32_t b : found_) {
      const Stay& stay = stay_of_[b];
      if (stay.value == value) continue;
      double cost = kMovedCost * static_cast<double>(bytes_of(stay)) / mean_ *
                    (1 + static_cast<double>(stay.end - stay.begin) / static_cast<double>(ops_));
      if (leaving(stay, first, last) >= 0)
        cost = std::min(cost, p_.ops[l_.index_.maker[stay.value]].seconds * static_cast<double>(ops_) /
                                  l_.index_.total_seconds);
      const int64_t offset = packer_.offset(b);
      place_.beside.push_back({offset, offset + bytes_of(stay), 1 + static_cast<int64_t>(1000 * cost), b});
    }
    const int64_t offset = place_.find(bytes, floor_ - bytes);
    for (const CheapestPlace::Beside& b : place_.beside) {
      if (b.begin >= offset + bytes || b.end <= offset) continue;
      if (const int32_t g = leaving(stay_of_[b.block], first, last); g >= 0)
        l_.set(c_, g, std::min(last + 1, l_.intervals_.all[g].end), undo_);
    }
  }

  // The interval in which the stay may end before the first of these ops and begin again behind the last one; or -1.
  int32_t leaving(const Stay& stay, int32_t first, int32_t last) const {
    if (stay.value >= values_ || op_of(stay.begin) >= first || op_of(stay.end) <= last) return -1;
    const int32_t g = l_.intervals_.at(stay.value, first - 1);
    const bool may = g >= 0 && l_.intervals_.all[g].end > last && l_.rules_.free[g] && l_.rules_.remade[g];
    return may ? g : -1;
  }

  void change_something() {
    if (!full_.empty() && l_.chance(50)) {
      const int32_t op = full_[below(full_.size())];
      give_up(op, op);
    } else if (!made_again_.empty() && l_.chance(60)) {
      const int32_t item = made_again_[below(made_again_.size())];
      l_.keep_again(c_, item, undo_);
      if (!undo_.empty() && l_.chance(50)) make_room(item);
    }
    if (undo_.empty() || l_.chance(30)) {
      const int32_t g = some_interval();
      l_.set(c_, g, l_.random_retention(g), undo_);
    }
  }

  double energy(double seconds) const {
    return seconds / l_.index_.total_seconds + weight_ * static_cast<double>(packer_.excess());
  }

  void step() {
    undo_.clear();
    change_something();
    const double drawn = static_cast<double>((l_.random() >> 11) + 1) * 0x1p-53;
    most_ = energy(c_.cost.seconds) - heat_ * std::log(drawn);
    const RetentionPricer::Price price =
        l_.evaluate_.price(c_.retention_points, most_ * l_.index_.total_seconds);
    spent_ += std::max(ops_, price.work) / kTryShare + 1;
    if (!price.valid || price.copies || price.seconds > most_ * l_.index_.total_seconds) {
      take_back();
    } else if (l_.evaluate_.priced().trace() == trace_) {  // nothing comes of the change
      if (!full_.empty() && l_.chance(5)) come_down();
    } else {
      follow(price.seconds);
    }
  }

  // The layout alone, near an op that is too full.
  void come_down() {
    const int32_t op = full_[below(full_.size())];
    first_ = std::max(0, op - kAroundFull);
    last_ = std::min(static_cast<int32_t>(ops_) - 1, op + kAroundFull);
    packer_.lower(first_, last_, floor_ / kCeilingLower);
    if (settle()) {
      packer_.tighten(first_, last_);
      packer_.commit();
      note();
    } else {
      packer_.roll_back();
    }
  }

  bool settle() {
    spent_ += kSettleRuns;
    return packer_.settle(first_, last_, kSettleWork);
  }

  // Goes on from the changed plan if its blocks find places that are low enough: under lower ceilings, the present ones or
  // higher ones.
  void follow(double seconds) {
    spent_ += ops_;
    const Cost cost = l_.evaluate_.after_price(c_.retention_points, c_.pace, l_.tried_);
    l_.list_blocks(l_.tried_, blocks_, then_.stays);
    change_blocks();
    const int64_t less = floor_ / kCeilingLower, more = floor_ / kCeilingHigher;
    bool placed = false;
    int64_t tried = -1;
    for (const int64_t down : {less, -less, -more}) {
      packer_.lower(first_, last_, down);
      if (packer_.excess() == tried || energy(seconds) > most_) continue;
      tried = packer_.excess();
      if ((placed = settle())) break;
    }
    if (placed) packer_.tighten(first_, last_);
    if (!placed || energy(seconds) > most_) {
      packer_.roll_back();
      take_back();
      return;
    }
    packer_.commit();
    c_.cost = cost;
    std::swap(now_, then_);
    std::swap(l_.sequence_, l_.tried_);
    trace_ = l_.evaluate_.priced().trace();
    note();
  }

  int64_t find_full() {  // returns the highest ceiling
    full_.clear();
    int64_t highest = floor_;
    for (int32_t op = 0; op < static_cast<int32_t>(ops_); ++op) {
      if (packer_.ceiling(op) == floor_) continue;
      full_.push_back(op);
      highest = std::max(highest, packer_.ceiling(op));
    }
    return highest;
  }

  void lower_floor() {
    const int64_t top = best_.height - fixed_, alignment = natural_alignment(p_);
    floor_ = std::max(target_ - fixed_, top - top / kFloorParts) / alignment * alignment;
    packer_.lower_floor(floor_);
    fell_ = true;
    find_full();
  }

  void note() {
    made_again_.clear();
    for (size_t item = 0; item < l_.sequence_.ops.size(); ++item)
      if (l_.sequence_.ops[item] != l_.sequence_.anchor[item])
        made_again_.push_back(static_cast<int32_t>(item));
    const int64_t highest = find_full();
    const bool fits = full_.empty(), did_fit = best_.height <= fixed_ + floor_;
    if (did_fit ? !fits || c_.cost.seconds >= best_.from.cost.seconds : fixed_ + highest >= best_.height)
      return;
    best_ = {c_, {}, fixed_};
    for (size_t k = 0; k < now_.stays.size(); ++k) {
      best_.offsets.push_back(now_.blocks[k] < 0 ? 0 : packer_.offset(now_.blocks[k]));
      best_.height = std::max(best_.height, fixed_ + best_.offsets.back() + bytes_of(now_.stays[k]));
    }
    if (falls_ && fits) lower_floor();
  }

  LocalSearch& l_;
  const Problem& p_;
  const int64_t ops_;
  const int32_t values_;
  const int64_t fixed_;
  int64_t floor_, target_ = 0;
  Packer packer_;
  CheapestPlace place_;
  Placed best_;
  Candidate c_;
  Layout now_, then_;
  std::vector<Block> blocks_;
  std::vector<Stay> stay_of_;        // per block of the packer
  std::vector<bool> stays_on_;       // of what may have changed
  std::vector<int32_t> made_again_;  // items that are no op's first run
  std::vector<int32_t> full_;        // ops whose ceilings are above the budget
  std::vector<int32_t> found_, trace_;
  Undo undo_;
  int32_t first_ = 0, last_ = 0;  // ops beside the change
  double mean_ = 0;               // bytes x ops of a block
  double heat_ = 0, weight_ = 0, most_ = 0;
  int64_t spent_ = 0;
  bool falls_ = false, fell_ = false;
};

Placed LocalSearch::anneal_packed(const Placed& from, int64_t budget, int64_t work, bool warm) {
  if (free_intervals_.empty() || budget <= index_.persistent_bytes) return from;
  return Packed(*this, from, budget).anneal(work, warm ? kWarm : kHottest);
}

std::vector<Placed> LocalSearch::pack_lower(const Placed& from, int64_t target, int64_t work, int64_t parts) {
  if (free_intervals_.empty() || from.height <= target) return {from};
  return Packed(*this, from, from.height).fall(target, work, parts);
}

}  // namespace cairn::plan
