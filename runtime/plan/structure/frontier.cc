#include "runtime/plan/structure/frontier.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <utility>

namespace cairn::plan {
namespace {

// The number of the plan for the stages before that a plan goes on from, and of what it does in the last one.
struct Trace {
  int32_t parent = -1, option = -1;
  bool operator==(const Trace&) const = default;
};

// A plan for the stages so far. run: bytes on the device while `out` of the last stage is recomputed and used.
struct Label {
  int64_t kept = 0, run = 0;
  double seconds = 0;
  double leaving = 0,
         coming = 0;  // bytes of copies not hidden by compute so far, per direction
  Trace trace;
};

constexpr int64_t kMinCells = 24, kMaxCells = 4096;  // cells of the table
constexpr int64_t kFineCells = 256;                  // more gain little: only if they are no larger than this
constexpr int64_t kFineWork = 2'000'000;
constexpr int kPriceRounds = 3;
constexpr double kCopyAhead = 4;
constexpr size_t kLong = 256, kNear = 64;  // numbers of stages
constexpr double kRegret = .1;             // share of a stage's forward seconds
constexpr int kClasses = 2;                // plans in the middle of a run do not compete with others
// In each cell the best plan survives at several prices per byte. With one price, plans would move to the side of the
// cell that it favours, and so would the full table.
constexpr std::array<double, 3> kPrices = {.5, 1, 2};
constexpr double kEmpty = std::numeric_limits<double>::infinity();  // the score of a slot without a plan
constexpr int kSlots = kClasses * static_cast<int>(kPrices.size());

// The table by cell, class and price, kept from one program to the next. Most programs fill few of its cells.
// Clearing all of them would take longer than the program.
struct Table {
  std::vector<Label> plans;
  std::vector<double> score;     // per slot; kEmpty: without a plan
  std::vector<uint64_t> filled;  // a bit per slot that holds a plan
  size_t held = 0;               // slots allocated in all three
  bool clean = true;             // holds no plan; false after a program that ended early

  void hold(size_t slots) {
    if (!clean) {
      std::fill(score.begin(), score.end(), kEmpty);
      std::fill(filled.begin(), filled.end(), 0);
    }
    clean = false;
    if (held >= slots) return;
    plans.resize(slots);
    score.resize(slots, kEmpty);
    filled.resize(slots / 64 + 1, 0);
    held = slots;
  }
};

// Tables that wait for their next program. They are not thread-local: registering a destructor for the end of a
// thread allocates memory, and a failure of that ends the process. A caller that finds the list in use makes a table
// of its own.
struct Waiting {
  std::mutex mutex;
  std::vector<std::unique_ptr<Table>> tables;
};
Waiting& waiting() {
  static Waiting list;
  return list;
}

class TableInUse {
 public:
  TableInUse() {
    Waiting& list = waiting();
    if (const std::unique_lock lock(list.mutex, std::try_to_lock); lock && !list.tables.empty()) {
      table_ = std::move(list.tables.back());
      list.tables.pop_back();
    }
    if (table_ == nullptr) table_ = std::make_unique<Table>();
  }
  ~TableInUse() {
    Waiting& list = waiting();
    const std::unique_lock lock(list.mutex, std::try_to_lock);
    if (lock) try {
        list.tables.push_back(std::move(table_));
      } catch (const std::bad_alloc&) {  // then the table is destroyed
      }
  }
  TableInUse(const TableInUse&) = delete;
  TableInUse& operator=(const TableInUse&) = delete;
  Table& operator*() const { return *table_; }

 private:
  std::unique_ptr<Table> table_;
};

class Frontier {
 public:
  Frontier(const Problem& p, const Stages& stages, const OptionSets& sets, int64_t room, int32_t link,
           Lag lag, int64_t max_work)
      : p_(p), stages_(stages), sets_(sets), room_(room), link_(link), lag_(lag), max_work_(max_work) {}

  // Tries prices around the one at which the stages, each by itself, would fill the room. For long chains the table
  // is too coarse to find the best mix by itself, but fine enough to make a mix fit.
  Chosen solve(double& known) {
    if (known > 0) {
      price_ = known;
      return solve_at_price();
    }
    Chosen best;
    const double start = price();
    double low = 0, high = 0;  // prices known to leave too little room, and enough
    price_ = start;
    for (int round = 0; round < kPriceRounds; ++round) {
      Chosen tried = solve_at_price();
      if (!tried.found) return best;
      const bool better = !best.found || tried.seconds < best.seconds;
      const bool spare = tried.kept < room_ - room_ / 100;
      (spare ? high : low) = price_;
      if (better) {
        best = std::move(tried);
        known = price_;
      }
      price_ = high == 0 ? price_ * 1.25 : low == 0 ? price_ * .8 : (low + high) / 2;
      if (start == 0 || (low > 0 && high > 0 && high - low < 1e-3 * start)) break;
    }
    return best;
  }

 private:
  Chosen solve_at_price() {
    std::vector<Label> plans = {Label{}};  // plans for the stages so far
    std::vector<Trace> traces;             // of all stages, one after the other
    std::vector<size_t> begins;            // per stage: where its traces begin
    worth_.assign(2 * sets_.count(), {});
    for (size_t k = 0; k < kPrices.size(); ++k) prices_[k] = kPrices[k] * price_;
    int64_t steps = 1;
    for (size_t s = 0; s < stages_.all.size(); ++s)
      steps += static_cast<int64_t>(worthwhile(s).size()) * kSlots;
    const int64_t most = std::clamp<int64_t>(kFineWork / steps, kFineCells, kMaxCells);
    cells_ = std::clamp<int64_t>(max_work_ / steps, kMinCells, most);
    scale_ = static_cast<double>(cells_) / (static_cast<double>(room_) + 1);
    table_.hold(static_cast<size_t>(cells_ * kSlots));
    for (size_t s = 0; s < stages_.all.size() && !plans.empty(); ++s) {
      advance(s, plans);
      take(plans);
      begins.push_back(traces.size());
      for (const Label& l : plans) traces.push_back(l.trace);
    }
    table_.clean = true;
    if (plans.empty()) return {};
    const Label* best = &plans[0];
    for (const Label& l : plans)
      if (finish(l) < finish(*best)) best = &l;
    Chosen chosen;
    chosen.found = true;
    chosen.seconds = finish(*best);
    chosen.kept = best->kept;
    chosen.options.resize(stages_.all.size());
    auto at = static_cast<size_t>(best - plans.data());
    for (size_t s = stages_.all.size(); s-- > 0;) {
      const Trace& trace = traces[begins[s] + at];
      chosen.options[s] = &sets_.of(s)[trace.option];
      at = static_cast<size_t>(trace.parent);
    }
    return chosen;
  }

  double finish(const Label& l) const {
    if (link_ < 0) return l.seconds;
    const Link& link = p_.links[link_];
    return l.seconds + l.leaving / link.out_bytes_per_second + l.coming / link.in_bytes_per_second;
  }

  // The seconds per byte at which the stages, each by itself, would keep as much as there is room for.
  double price() const {
    double low = 0, high = 0;
    for (size_t s = 0; s < stages_.all.size(); ++s)
      for (const Option& o : sets_.of(s))
        if (o.seconds > 0) high = std::max(high, o.seconds);
    std::vector<double> bytes(sets_.count());
    const auto kept = [&](double price) {
      for (size_t set = 0; set < sets_.count(); ++set) {
        double best = 1e300;
        bytes[set] = 0;
        for (const Option& o : sets_.at(set)) {
          const double cost = o.seconds + price * static_cast<double>(o.kept);
          if (o.moved > 0 || cost >= best) continue;
          best = cost;
          bytes[set] = static_cast<double>(o.kept);
        }
      }
      double sum = 0;
      for (size_t s = 0; s < stages_.all.size(); ++s) sum += bytes[sets_.number(s)];
      return sum;
    };
    for (int round = 0; round < 40; ++round) {
      const double middle = (low + high) / 2;
      (kept(middle) > static_cast<double>(room_) ? low : high) = middle;
      if (round == 0) high = std::max(high, 1e-15);
    }
    return high;
  }

  // One option of the stage: the part that does not depend on earlier choices.
  struct Choice {
    int64_t peak, kept, held;
    double seconds, moved;
    double fetched;  // bytes that can come back over the link during the stage's backward
    int32_t option;
    bool gives_out, needs_in;
  };
  struct Pass {
    double forward = 0, backward = 0;  // seconds of the stage
    double out_rate = 1, in_rate = 1;
    double sent = 0;                         // bytes that can leave during the stage's forward
    double max_leaving = 0, max_coming = 0;  // bytes by which copies may be late
  };

  Pass pass_of(size_t s) const {
    Pass pass;
    if (link_ < 0) return pass;
    const Stage& stage = stages_.all[s];
    for (int32_t i = stage.begin; i < stage.end; ++i) pass.forward += p_.ops[i].seconds;
    for (int32_t b = stage.back_begin; b < stage.back_end; ++b) pass.backward += p_.ops[b].seconds;
    pass.out_rate = p_.links[link_].out_bytes_per_second;
    pass.in_rate = p_.links[link_].in_bytes_per_second;
    pass.sent = pass.out_rate * pass.forward;
    pass.max_leaving = lag_.stages * pass.out_rate * pass.forward;
    pass.max_coming = lag_.stages * pass.in_rate * pass.backward;
    return pass;
  }

  // Offers each plan of `from` with each option of the stage to the table.
  void advance(size_t s, std::span<const Label> from) {
    const auto& options = sets_.of(s);
    const Pass pass = pass_of(s);
    const bool last = s + 1 == stages_.all.size();
    choices_.clear();
    for (const int32_t k : worthwhile(s)) {
      const Option& o = options[k];
      if (o.gives_out && last) continue;
      choices_.push_back({o.peak, o.kept, o.held, o.seconds, static_cast<double>(o.moved),
                          pass.in_rate * (pass.backward + o.seconds), k, o.gives_out, o.needs_in});
    }
    for (size_t i = 0; i < from.size(); ++i) {
      const Label& l = from[i];
      const int64_t here = l.kept + l.run;
      Label n;
      n.trace.parent = static_cast<int32_t>(i);
      for (const Choice& c : choices_) {
        if (here + c.peak > room_) break;  // choices are sorted by peak
        n.kept = l.kept + c.kept;
        n.run = c.gives_out ? c.held + (c.needs_in ? l.run : 0) : 0;
        if (n.kept + n.run > room_) continue;
        n.seconds = l.seconds + c.seconds;
        double late = 0;
        if (link_ >= 0) {
          n.leaving = std::max(0.0, l.leaving + c.moved - pass.sent);
          n.coming = std::max(0.0, l.coming - c.fetched) + c.moved;
          if (static_cast<double>(here + c.peak) + l.coming > static_cast<double>(room_)) continue;
          if (c.moved > 0 && (n.leaving > std::max(c.moved, pass.max_leaving) ||
                              n.coming > std::max(c.moved, pass.max_coming)))
            continue;
          if (n.leaving > 0 || n.coming > 0)
            late = (n.leaving / pass.out_rate + n.coming / pass.in_rate) * lag_.share;
        }
        n.trace.option = c.option;
        offer(n, n.seconds + late);
      }
    }
  }

  // Moves the plans out of the table, in its order; it is empty afterwards.
  void take(std::vector<Label>& plans) {
    plans.clear();
    const size_t words = static_cast<size_t>(cells_ * kSlots) / 64 + 1;
    for (size_t word = 0; word < words; ++word) {
      for (uint64_t rest = table_.filled[word]; rest != 0; rest &= rest - 1) {
        const size_t slot = word * 64 + static_cast<size_t>(std::countr_zero(rest));
        table_.score[slot] = kEmpty;
        const Label& l = table_.plans[slot];
        if (plans.empty() || plans.back().trace != l.trace) plans.push_back(l);
      }
      table_.filled[word] = 0;
    }
  }

  // In a long chain, far from the beginning of backward, only the bytes kept matter. Options that are expensive at
  // the present price are skipped.
  const std::vector<int32_t>& worthwhile(size_t s) {
    const bool near = stages_.all.size() < kLong || s + kNear >= stages_.all.size();
    auto& list = worth_[2 * sets_.number(s) + (near ? 1 : 0)];
    if (!list.empty()) return list;
    const auto& options = sets_.of(s);
    const auto score = [&](const Option& o) { return o.seconds + price_ * static_cast<double>(o.kept); };
    double best = 1e300, forward = 0;
    for (const Option& o : options)
      if (o.moved == 0) best = std::min(best, score(o));
    for (int32_t i = stages_.all[s].begin; i < stages_.all[s].end; ++i) forward += p_.ops[i].seconds;
    int64_t max_moved = 0;  // about what the link can move meanwhile, or one value
    if (link_ >= 0) {
      int64_t least = INT64_MAX;
      for (const Option& o : options)
        if (o.moved > 0) least = std::min(least, o.moved);
      const double meanwhile = kCopyAhead * forward * p_.links[link_].out_bytes_per_second;
      // Limited to what an int64_t holds.
      max_moved = std::max(least, static_cast<int64_t>(std::min(meanwhile, 9e18)));
    }
    for (size_t k = 0; k < options.size(); ++k)
      if (options[k].moved <= max_moved && (near || score(options[k]) <= best + kRegret * forward))
        list.push_back(static_cast<int32_t>(k));
    return list;
  }

  void offer(const Label& n, double seconds) {
    const int64_t cell = std::min(cells_ - 1, static_cast<int64_t>(static_cast<double>(n.kept) * scale_));
    const int kind = n.run == 0 ? 0 : 1;
    const auto slot = static_cast<size_t>(cell * kSlots + kind * static_cast<int>(kPrices.size()));
    const auto kept = static_cast<double>(n.kept);
    double* const score = &table_.score[slot];
    const auto offer_at = [&](size_t k) {
      const double own = seconds + prices_[k] * kept;
      if (own >= score[k]) return;
      score[k] = own;
      table_.plans[slot + k] = n;
      table_.filled[(slot + k) / 64] |= uint64_t{1} << ((slot + k) % 64);
    };
    static_assert(kPrices.size() == 3);
    offer_at(0);
    offer_at(1);
    offer_at(2);
  }

  const Problem& p_;
  const Stages& stages_;
  const OptionSets& sets_;
  int64_t room_, cells_ = 0;
  int32_t link_;
  Lag lag_;
  int64_t max_work_;
  double price_ = 0, scale_ = 0;
  TableInUse in_use_;
  Table& table_ = *in_use_;
  std::array<double, kPrices.size()> prices_{};
  std::vector<Choice> choices_;  // choices of the present stage
  // Options looked at: two lists per set, far from the end of forward and near it.
  std::vector<std::vector<int32_t>> worth_;
};

}  // namespace

Chosen choose_options(const Problem& p, const Stages& stages, const OptionSets& sets, int64_t room,
                      int32_t link, Lag lag, int64_t max_work, double& price) {
  if (room < 0 || stages.all.empty()) return {};
  return Frontier(p, stages, sets, room, link, lag, max_work).solve(price);
}

}  // namespace cairn::plan
