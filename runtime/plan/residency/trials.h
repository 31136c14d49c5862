// How many values stay on the device, and which share of the budget is left to copies. Pairs of the two are tried, first those with the
// lowest bounds; pairs whose bound is above the best plan are left out.
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
  static constexpr double kWorthIt = 1e-3;  // of the best seconds: less is not searched for
  static constexpr double kEqual = 1e-9;    // of seconds: below, two are the same

  using Placed = std::function<Placement&(size_t stay)>;
  // bytes: per number of values that may stay, from 0 on, what so many take. limit: seconds that are known to be possible;
  // nothing slower is looked for.
  Trials(Placed placed, std::vector<size_t> bytes, int64_t budget_bytes, double limit)
      : placed_(std::move(placed)),
        bytes_(std::move(bytes)),
        all_(bytes_.size() - 1),
        limited_(budget_bytes > 0),
        budget_(limited_ ? budget_bytes : std::numeric_limits<int64_t>::max()),
        best_seconds_(limit) {}

  // Numbers that may stay: all, if everything may. What comes of it is best(). kQuick: nothing is searched for as a whole that a
  // quick search finds a plan for.
  void run_up_to(size_t most, Effort);

  bool found() const { return best_.has_value(); }
  Plan& best() { return *best_; }
  double best_seconds() const { return best_seconds_; }
  size_t best_stay() const { return best_trial_.stay; }

 private:
  static constexpr double kUnlimitedSeconds = std::numeric_limits<double>::infinity();
  // Shares of what a budget has above its persistent values that are left to copies.
  static constexpr std::array kRoomForCopies = {0.0, 0.0625, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75};

  struct Trial {
    size_t stay = 0, share = 0;
    double least = 0, expected = 0;
    double before = 0;                   // seconds with the share that led to this one
    double seconds = kUnlimitedSeconds;  // of what was found
    double streamed = 0;                 // with all copies, before they had to fit
    Effort effort = Effort::kQuick;      // that it was searched for with
    int step = 1;                        // from a share to the next one; 0: whichever helps
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
  // Copies put into a plan that is to keep values between uses so many seconds apart.
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
  std::set<size_t> seen_, met_;  // numbers that were looked at, and of which there are plans or need be none
  std::vector<Trial> open_;
  std::set<std::tuple<size_t, size_t, Effort>> attempted_;  // number, share
  std::vector<Trial> tried_;                                // not as a whole
  std::vector<Trial> slow_;                                 // roughly, far above the bound
  std::array<Outlook, kRoomForCopies.size()> outlooks_;     // per share, not as a whole
  std::optional<Plan> best_;
  double best_seconds_;  // with what living in a tier costs; the limit where nothing was found
  Trial best_trial_;
};

}  // namespace cairn::plan
