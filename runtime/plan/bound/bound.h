// The certificate: a lower bound on the seconds of every plan of a problem under a budget. README.md has the program
// and the proof.
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
  double remake_price = 0;  // most seconds per byte it frees at which an op is worth recomputing: without
                            // links, byte_price. With links, time spent on it hides copies, too
};

// What the bound takes into account of values that may live in a tier. If such a value is not on the device when an
// op starts and a later op reads it, it is copied in after that start. It need not have been copied out before.
struct HomeReads {
  // What ops do with a value, one entry per op, in order; what is written over is changed and not read.
  struct Use {
    int32_t op;
    bool reads, changes;
  };
  struct Value {
    int32_t value;  // index into Problem::values
    int64_t bytes;
    int32_t link;
    bool may_stay;  // the plan may keep it on the device for the full step
    double home_seconds = 0;
    std::vector<Use> uses;
    bool fresh = false;  // if kept on the device, it takes no memory before its first use
  };
  std::vector<Value> values;  // that may live in a tier and are used
  // Per link and op: bytes of values that live in the link's tier, that are read unchanged by a later op and that the
  // op itself does not use. No links: there are no such values.
  std::vector<std::vector<int64_t>> after;
  int64_t largest_bytes = 0;  // bytes of the largest of these values
  int64_t last_workspace_bytes =
      0;                  // of the last op, during which all fresh values that are kept are on the device
  bool back_home = true;  // a plan ends once changed values are back in their tier; else with its last op
  int64_t bytes(size_t op) const {
    int64_t sum = 0;
    for (const auto& link : after) sum += link[op];
    return sum;
  }
};

// The least that tier-resident values cost besides the plan's copies. The values with the highest cost per byte are
// kept on the device.
double least_home_seconds(const HomeReads&, int64_t budget_bytes);

// The bound in seconds; with values that may live in tiers, the sum of the seconds and Value::home_seconds. The
// problem is then one without these values (residency/residence.h): all that may live in their tier is taken out.
// budget_bytes == 0: no limit. Where no plan fits the budget, the result is finite and means nothing. enough: a bound
// of so many seconds is not raised any further. Pure. Takes time in proportion to the ops: 10 to 100 passes over
// those before the program points looked at.
Bound lower_bound(const Problem&, const Index&, int64_t budget_bytes, const HomeReads& = {},
                  double enough = std::numeric_limits<double>::infinity(), int threads = kMostThreads);

// Per value of HomeReads: the share of values of its kind that has a place on the device where backward begins, in
// the linear program of the bound at that point. Negative where the program does not say.
std::vector<double> shares_here(const Problem&, const Index&, int64_t budget_bytes, const HomeReads&);

double lower_bound_seconds(const Problem&, const Index&, int64_t budget_bytes, const HomeReads& = {},
                           double enough = std::numeric_limits<double>::infinity(),
                           int threads = kMostThreads);

// A lower bound on the seconds of plans in which no op begins before its time. earliest: these times in seconds, per
// op, never falling. The Value::home_seconds of tier-resident values may pass before the first op. Looks at two
// program points only, and at shares of ops.
double lower_bound_seconds_behind(const Problem&, const Index&, int64_t budget_bytes, const HomeReads&,
                                  const std::vector<double>& earliest, int threads = kMostThreads);

// A lower bound from several program points at once, for problems without links; with links it returns the seconds
// of all ops. It is some percent higher where memory is scarce at many ops, and takes a fraction of a second.
double several_points_bound_seconds(const Problem&, const Index&, int64_t budget_bytes,
                                    int threads = kMostThreads);

// A lower bound from a few program points, with shares of ops only. It counts some percent less of the added seconds,
// in a tenth of the time or less. It serves to rank problems that may be searched.
double rough_bound_seconds(const Problem&, const Index&, int64_t budget_bytes);

}  // namespace cairn::plan
