// Local search on retention points, for graphs of any shape: gives up values until a budget holds, by bytes
// of excess removed per second added, and looks for better plans nearby. Deterministic; stops by work, not by
// clock.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/plan/layout/layout.h"
#include "runtime/plan/search/archive.h"

namespace cairn::plan {

// A plan without copies, with its layout.
struct Placed {
  Candidate from;
  std::vector<int64_t> offsets;
  int64_t height = 0;  // persistent values included
};

class LocalSearch {
 public:
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 2;

  // Every plan that it meets and that the archive wants is added there.
  LocalSearch(const Problem&, const Index&, const Intervals&, const Rules&, Evaluator&, Archive&);

  // What it does from here on depends on no call before.
  void restart();
  // Random numbers of their own for each `which`; those of restart() for 0.
  void use_numbers(uint64_t which) { state_ = kSeed ^ which << 32; }
  // Whether it may send values over links.
  void use_links(bool may) { links_ = may ? static_cast<int32_t>(p_.links.size()) : 0; }
  // Where the first few moves of a descent fail, it tries the others; and what shrinks ends in time.
  void be_thorough() { thorough_ = true; }
  // Gives up values until the peak is within the budget. False if nothing more helps, or after about `work` runs
  // were priced; `c` is the last plan.
  bool descend(Candidate& c, int64_t budget, int64_t work = kUnlimited);
  // Tries faster plans near `c`, which fits, until about `work` runs were priced.
  void search(Candidate& c, int64_t budget, int64_t work);
  // Of annealing: heats in shares of a mean op's seconds. What takes long may begin hotter and still cool down.
  static constexpr double kHot = .33, kHotter = 2 * kHot;
  // Simulated annealing from `c`, whose heat is `hot` at first; whatever it meets goes to the archive.
  void anneal(Candidate c, int64_t budget, int64_t work, double hot = kHot);
  // From the lowest plan of the archive down to the target, as long as that goes well; `work` for each aim on the way.
  void anneal_down(int64_t target, int64_t work);
  // Annealing where each item over the budget counts by itself, at a price that rises, from `c` or (kClose)
  // near it; or at one that rises and falls, so that plans stay close to the budget: for `c` that fits and is slow, or (kFalling) to a
  // budget that is as low as what fits, and falls until it is the given one. There seconds hardly count.
  enum Prices { kRising, kClose, kAdaptive, kFalling };
  void anneal_excess(const Candidate& c, int64_t budget, int64_t work, Prices prices = kRising);
  // The same with a limit of its own for what runs for each op. Returns the fastest plan met within all of them.
  std::optional<Candidate> anneal_excess(Candidate c, std::vector<int64_t> limits, int64_t work, Prices);
  // The plan with offsets within the budget from the exact search alone, for which `effort` is as of lay_out(). Else, per op, how
  // often the search came to an end at what runs for it, as a share of the most.
  std::optional<Placed> place_exactly(const Candidate&, int64_t budget, int64_t effort,
                                      std::vector<double>& trouble);
  // Simulated annealing of a plan together with its layout, which is repaired after each change: what arenas take beyond
  // peaks counts. Returns the fastest plan within the budget, else the lowest one. For plans without copies.
  Placed anneal_placed(Placed from, int64_t budget, int64_t work);
  // The same for plans whose arenas are far above the budget, or of many ops: hotter, each stretch of time by itself.
  // warm: less hot, for what fits already.
  Placed anneal_packed(const Placed& from, int64_t budget, int64_t work, bool warm = false);
  // The same to a height that is as low as what fits, and falls until it is the target. Plans met on the way, each lower than the one
  // before by one of so many parts; the lowest one last.
  std::vector<Placed> pack_lower(const Placed& from, int64_t target, int64_t work, int64_t parts);
  // From there down to the target, as long as that goes well; `work` for each aim on the way.
  Placed place_lower(Placed from, int64_t target, int64_t work);
  // Holds what is made again and again from the earliest op on for which that fits, as checkpoints of deeper levels,
  // until about `work` runs were priced: what saves most per byte first. `c` fits.
  void hold_longer(Candidate& c, int64_t budget, int64_t work);
  // What is alive at the fullest item beside what its op needs leaves over the link, what takes least seconds for its bytes first; else
  // what its op reads, or what an op before it that leaves something there reads, comes over the link instead of being made again. Until
  // that fits; then what need not be sent is as before. hidden: copies count only as far as they take longer than the value is
  // idle. `c` is the last plan.
  void send_around_full(Candidate& c, int64_t budget, int32_t link, bool hidden);
  // Tries plans near `c` with a lower peak.
  void shrink(Candidate& c, int64_t work);
  std::vector<RetentionPoints> minimal() const;
  // What annealing has go down: seconds as a share of keeping everything, and how far the budget is exceeded.
  double energy(double seconds, int64_t peak, int64_t budget) const;

 private:
  // The last heat of annealing, and how many heats worse is never taken.
  static constexpr double kCold = .0165, kSurelyNot = 20;

  // When something was on the device and where. Times are (first run that it is for, op), so that those of two
  // sequences can be compared. Of a workspace, the value is behind all values.
  struct Stay {
    int32_t value;
    int64_t begin, end, offset;
  };
  class Packed;  // what anneal_packed() does
  void list_blocks(const Sequence&, std::vector<Block>&, std::vector<Stay>&);
  void keep_places(const std::vector<Stay>& before, std::vector<Stay>& now);
  struct Move {
    int32_t interval, retention_point;
    double estimate;
  };
  // An interval whose value is made again for several ops in it, and seconds saved per byte if it were held.
  struct Again {
    int32_t interval;
    std::vector<int32_t> anchors;  // ascending
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
  // What the retention points cost that were priced last.
  Cost complete(const Candidate& c, const RetentionPricer::Price&);
  bool accept(const Candidate& c, const RetentionPricer::Price&, double now, double heat, int64_t budget,
              Cost&);
  // Keeps again what fits.
  void relax(Candidate& c, int64_t budget, int64_t until);
  std::vector<Move> moves_at_peak(const Candidate& c);
  void perturb(Candidate& c);
  using Undo = std::vector<std::pair<int32_t, int32_t>>;  // intervals, and what their retention points were
  void set(Candidate&, int32_t interval, int32_t retention_point, Undo&) const;
  void give_up(Candidate&, int32_t interval, int32_t here, Undo&);
  void keep_again(Candidate&, int32_t item, Undo&);
  void keep_inputs(Candidate&, int32_t interval, Undo&) const;
  void change_full(Candidate&, const std::vector<int32_t>& full, const std::vector<int32_t>& made_again,
                   Undo&, size_t most = 1);
  int32_t random_retention(int32_t interval);
  int32_t random_link() { return over_link(static_cast<int32_t>(random() % static_cast<uint64_t>(links_))); }
  // What can be made again is sent only from forward to backward: there is time for it.
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
  std::vector<std::pair<int32_t, int32_t>> opening_;  // (item, residency)
  std::vector<int32_t> first_stay_, next_stay_;       // per value, and per stay
  std::vector<int32_t> free_intervals_;
  int32_t links_, round_ = 0;
  bool thorough_ = false;
  static constexpr uint64_t kSeed = 0x9e3779b97f4a7c15;
  uint64_t state_ = kSeed;
};

}  // namespace cairn::plan
