// Searches how many values are kept on the device, and which share of the budget is left to copies. Pairs of the two
// are tried, those with the lowest bounds first. Pairs whose bound is above the best plan are left out.
#pragma once
#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/plan/residency/outlook.h"
#include "runtime/plan/residency/placement.h"
#include "runtime/plan/search/effort.h"

namespace cairn::plan {

class Trials {
 public:
  static constexpr double kWorthIt = 1e-3;  // of the best seconds: smaller gains are not searched for
  static constexpr double kEqual = 1e-9;    // of seconds: smaller differences count as none

  using Placed = std::function<Placement&(size_t stay)>;
  // bytes: of the first k values of the order, for each k from 0 on. limit: seconds that are known to be possible; no
  // slower plan is looked for.
  Trials(Placed placed, std::vector<size_t> bytes, int64_t budget_bytes, double limit)
      : placed_(std::move(placed)),
        bytes_(std::move(bytes)),
        all_(bytes_.size() - 1),
        limited_(budget_bytes > 0),
        budget_(limited_ ? budget_bytes : std::numeric_limits<int64_t>::max()),
        best_seconds_(limit) {}

  // Searches with at most so many values kept; with all of them, if everything may be kept. The result is best().
  // kQuick: no full search for a plan that a quick search finds.
  void run_up_to(size_t most, Effort);

  bool found() const { return best_.has_value(); }
  Plan& best() { return *best_; }
  double best_seconds() const { return best_seconds_; }
  size_t best_stay() const { return best_trial_.stay; }

 private:
  static constexpr double kUnlimitedSeconds = std::numeric_limits<double>::infinity();
  // The shares of the budget above its persistent values that are left to copies.
  static constexpr std::array kRoomForCopies = {0.0, 0.0625, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75};

  struct Trial {
    size_t stay = 0, share = 0;
    double least = 0, expected = 0;
    double before = 0;                   // seconds with the share from which this one was reached
    double seconds = kUnlimitedSeconds;  // of the plan found
    double streamed = 0;                 // with all copies, before offsets were assigned
    Effort effort = Effort::kQuick;      // of the search for its plan
    int step = 1;                        // from a share to the next one; 0: either direction
  };

  void look_between(size_t low, size_t high);
  void look_at(size_t stay);
  void look_again(size_t stay);
  void run(Effort, size_t most = std::numeric_limits<size_t>::max());
  static std::vector<Trial>::iterator first_of(std::vector<Trial>&);
  void run_roughly();
  bool tiny() const;
  bool may_lead_on(const Trial& slow) const;
  void refine();
  void fit_closely(Effort);
  void finish();
  void search_where_all_leave();
  template <class Work>
  bool is_faster_after(Work);
  bool slow() const;
  int64_t for_the_rest(const Placement& at, size_t share) const;
  void open(size_t stay, size_t share, int step = 1, double before = kUnlimitedSeconds, double without = 0);
  Trial opened(size_t stay, size_t share, int step, double before, double without) const;
  Trial at_best_share(const Trial&) const;
  // A plan with copies in which values are kept between uses that are so many seconds apart.
  struct Way {
    double keep;
    Streamed copies;
  };
  std::vector<Way> ways(const Placement& at, const Plan& plan) const;
  void consider(const Trial& trial, std::optional<Plan> with);
  bool attempt_once(Trial trial, Effort);
  void attempt(const Trial& trial, Effort);

  const Placed placed_;
  const std::vector<size_t> bytes_;
  const size_t all_;
  const bool limited_;
  const int64_t budget_;
  std::set<size_t> seen_, met_;  // numbers that were looked at; numbers that need no further search
  std::vector<Trial> open_;
  std::set<std::tuple<size_t, size_t, Effort>> attempted_;  // pairs tried: number, share, effort
  std::vector<Trial> tried_;                                // not by a full search
  std::vector<Trial> slow_;                                 // by a rough search, far above the bound
  std::array<Outlook, kRoomForCopies.size()> outlooks_;     // per share, not by a full search
  std::optional<Plan> best_;
  double best_seconds_;  // home_seconds included; the limit where nothing was found
  Trial best_trial_;
};

}  // namespace cairn::plan
