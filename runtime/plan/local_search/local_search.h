// Local search on retention points, for graphs of any shape. It evicts values until the peak is within a budget,
// those with the best ratio of excess bytes to added seconds first. Then it looks for faster plans nearby. It is
// deterministic: it stops after counted work, not after a time. Work is counted in runs of ops that were priced.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/plan/local_search/archive.h"

namespace cairn::plan {

class LocalSearch {
 public:
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 2;

  // Every plan that a search meets is added to the archive if the archive wants it.
  LocalSearch(const Problem&, const Index&, const Intervals&, const Rules&, Evaluator&, Archive&);

  // Resets the random numbers and all flags, so that what follows does not depend on earlier calls.
  void restart();
  // Chooses a sequence of random numbers; restart() chooses number 0.
  void use_numbers(uint64_t which) { state_ = kSeed ^ which << 32; }
  // Whether searches may offload values over links.
  void use_links(bool may) { links_ = may ? static_cast<int32_t>(p_.links.size()) : 0; }
  // From now on a descent tries all moves where the first few fail, and shrink() keeps to its work.
  void be_thorough() { thorough_ = true; }
  // Evicts values until the peak is within the budget. Returns false if nothing helps, or when the work is spent. `c`
  // becomes the last plan that was reached.
  bool descend(Candidate& c, int64_t budget, int64_t work = kUnlimited);
  // Tries faster plans near `c`, whose peak is within the budget, until the work is spent.
  void search(Candidate& c, int64_t budget, int64_t work);
  // Simulated annealing from `c`. What it finds is in the archive afterwards.
  void anneal(Candidate c, int64_t budget, int64_t work);
  // Simulated annealing of a plan in which every item above the budget counts by itself, at a price per byte that
  // adapts: it rises while anything is above the budget and falls while nothing is. kFalling begins with a budget as
  // high as the plan's own peak, which then falls towards the given one. What it meets goes to the archive.
  enum Prices { kAdaptive, kFalling };
  void anneal_excess(Candidate c, int64_t budget, int64_t work, Prices prices = kAdaptive);
  // `c` fits and recomputes some values for several ops. Keeps such a value from the earliest of these ops for which
  // there is room, the one that saves most seconds per byte first, until the work is spent.
  void hold_longer(Candidate& c, int64_t budget, int64_t work);
  // Offloads values that are alive at the fullest item and that its op does not use, the cheapest copy per byte
  // first. If there are none, the inputs of that op are offloaded instead of recomputed. This is repeated until the
  // peak is within the budget. Then values that need not be offloaded are kept again. hidden: a copy costs only the
  // seconds by which it exceeds the time for which its value is unused. `c` becomes the last plan that was reached.
  void send_around_full(Candidate& c, int64_t budget, int32_t link, bool hidden);
  // Lowers the peak of `c`, whatever the seconds.
  void shrink(Candidate& c, int64_t work);
  std::vector<RetentionPoints> minimal() const;
  // What annealing minimises: seconds as a share of those of keeping everything, plus a weight for bytes above the
  // budget.
  double energy(double seconds, int64_t peak, int64_t budget) const;

 private:
  // The first and the last temperature of annealing, in shares of a mean op's seconds; and how many temperatures of
  // increase are never accepted.
  static constexpr double kHot = .33, kCold = .0165, kSurelyNot = 20;

  struct Move {
    int32_t interval, retention_point;
    double estimate;
  };
  // An interval whose value is recomputed for several ops in it, and the seconds per byte that keeping it would save.
  struct Again {
    int32_t interval;
    std::vector<int32_t> anchors;  // the ops that it is recomputed for, ascending
    double estimate;
  };
  std::vector<Again> made_again(const Candidate& c, int64_t budget);
  bool hold_from(Candidate& c, int32_t interval, int32_t op, int64_t budget);
  bool could_send(const Candidate& c, int32_t interval) const;
  double seconds_to_send(int32_t interval, int32_t link, bool hidden) const;
  bool send_at_peak(Candidate& c, int64_t budget, int32_t link, bool hidden);
  bool price(Candidate& c);
  void note(const Candidate& c);
  void make_sequence(const Candidate& c);
  // The exact cost of the retention points that were priced last.
  Cost complete(const Candidate& c, const RetentionPricer::Price&);
  bool accept(const Candidate& c, const RetentionPricer::Price&, double now, double heat, int64_t budget,
              Cost&);
  // Keeps evicted values again as far as the budget allows.
  void relax(Candidate& c, int64_t budget, int64_t until);
  std::vector<Move> moves_at_peak(const Candidate& c);
  void perturb(Candidate& c);
  using Undo = std::vector<std::pair<int32_t, int32_t>>;  // intervals, and what their retention points were
  void set(Candidate&, int32_t interval, int32_t retention_point, Undo&) const;
  void give_up(Candidate&, int32_t interval, int32_t here, Undo&);
  void keep_again(Candidate&, int32_t item, Undo&);
  void keep_inputs(Candidate&, int32_t interval, Undo&) const;
  void change_full(Candidate&, const std::vector<int32_t>& full, const std::vector<int32_t>& made_again,
                   Undo&);
  int32_t random_retention(int32_t interval);
  int32_t random_link() { return over_link(static_cast<int32_t>(random() % static_cast<uint64_t>(links_))); }
  // A value that can be recomputed is offloaded only between forward and backward, where there is time for its copies.
  bool may_send(int32_t interval) const {
    return rules_.sent[interval] &&
           (!rules_.remade[interval] || rules_.across[intervals_.all[interval].value] == interval);
  }
  int32_t random_early(int32_t interval);
  void change_something(Candidate& c, int64_t budget, Undo& undo);
  bool chance(int percent) { return static_cast<int>(random() % 100) < percent; }
  uint64_t random();

  const Problem& p_;
  const Index& index_;
  const Intervals& intervals_;
  const Rules& rules_;
  Evaluator& evaluate_;
  Archive& archive_;
  Sequence sequence_, tried_;
  bool made_ = false;  // tried_ is the sequence of what was priced last
  std::vector<int32_t> last_use_, blocked_;
  std::vector<int32_t> free_intervals_;
  int32_t links_, round_ = 0;
  bool thorough_ = false;
  static constexpr uint64_t kSeed = 0x9e3779b97f4a7c15;
  uint64_t state_ = kSeed;
};

}  // namespace cairn::plan
