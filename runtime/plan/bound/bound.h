// The certificate: a lower bound on the seconds of every plan of a problem under a budget. README.md has the program and the proof.
#pragma once
#include <limits>
#include <vector>

#include "runtime/plan/in_parallel.h"
#include "runtime/plan/index.h"

namespace cairn::plan {

// The best bound found and what decides it. Without pressure: program point -1, prices 0.
struct Bound {
  double seconds = 0;
  int32_t point = -1;       // the op at whose first start memory is scarce
  double byte_price = 0;    // seconds saved per byte more on the device at the program point
  double remake_price = 0;  // an op is worth running again if it takes at most this per byte it frees: what
                            // byte_price is without links. With links, time spent on it hides copies, too
};

// What the bound knows of values that may live in a tier. If such a value is not on the device when an op starts and a later op reads
// it, it is copied in after that start. It need not have been copied out before.
struct HomeReads {
  // What ops do with a value, one entry per op, in order; what is written over is changed and not read.
  struct Use {
    int32_t op;
    bool reads, changes;
  };
  struct Value {
    int32_t value;  // of the problem
    int64_t bytes;
    int32_t link;
    bool may_stay;  // on the device for the whole step
    double home_seconds = 0;
    std::vector<Use> uses;
    bool fresh = false;  // where it stays, it takes no place before its first use
  };
  std::vector<Value> values;  // that may live in a tier and are used
  // Per link and op: bytes of values with their home there that ops after it read as they are, and that it does
  // not use itself. No links: there are none.
  std::vector<std::vector<int64_t>> after;
  int64_t largest_bytes = 0;  // of these values
  int64_t last_workspace_bytes =
      0;                  // of the last op, beside which all fresh values that stay are on the device
  bool back_home = true;  // a plan ends once what ops change is back there; else with its last op
  int64_t bytes(size_t op) const {
    int64_t sum = 0;
    for (const auto& link : after) sum += link[op];
    return sum;
  }
};

// What values that live in their tier cost beside the plan's copies, at least: the dearest for their bytes stay on the device.
double least_home_seconds(const HomeReads&, int64_t budget_bytes);

// With values that may live in tiers, of the seconds and Value::home_seconds together. budget_bytes == 0: no limit. Meaningless
// (but finite) where no plan fits the budget. Pure; takes time in
// proportion to the ops, 10 to 100 passes over those before the program points looked at. With values that may live in tiers, the problem
// is one without them (homes/residence.h), all that may live in their tier taken out.
// enough: a bound of so many seconds is not raised any further.
Bound lower_bound(const Problem&, const Index&, int64_t budget_bytes, const HomeReads& = {},
                  double enough = std::numeric_limits<double>::infinity(), int threads = kMostThreads);

// Per value of HomeReads: what share of its like has a place on the device where backward begins, in the program that the
// bound there solves; negative where that does not say.
std::vector<double> shares_here(const Problem&, const Index&, int64_t budget_bytes, const HomeReads&);

double lower_bound_seconds(const Problem&, const Index&, int64_t budget_bytes, const HomeReads& = {},
                           double enough = std::numeric_limits<double>::infinity(),
                           int threads = kMostThreads);

// A bound, too, of plans in which no op begins before its time: `earliest`, seconds per op, never falling, in which Value::home_seconds
// of what lives in its tier may pass before the first op. At two program points and in shares of ops only.
double lower_bound_seconds_behind(const Problem&, const Index&, int64_t budget_bytes, const HomeReads&,
                                  const std::vector<double>& earliest, int threads = kMostThreads);

// A bound, too, of several program points at once, for problems without links (else it says nothing): some percent higher where memory is
// scarce at many ops, in a fraction of a second.
double several_points_bound_seconds(const Problem&, const Index&, int64_t budget_bytes,
                                    int threads = kMostThreads);

// A bound, too, of a few program points and of shares of ops only: some percent of the added seconds lower, in a tenth of the time
// or less. To compare what may be searched for.
double rough_bound_seconds(const Problem&, const Index&, int64_t budget_bytes);

}  // namespace cairn::plan
