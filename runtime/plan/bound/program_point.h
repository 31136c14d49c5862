// The bound at one program point: the least seconds any plan adds because memory is scarce when one op first
// starts. README.md.
#pragma once
#include <optional>
#include <vector>

#include "runtime/plan/bound/bound.h"
#include "runtime/plan/bound/closure.h"
#include "runtime/plan/bound/crossing.h"

namespace cairn::plan {

// Least seconds recomputed as a function of the bytes available without: the highest of the lines found so
// far, each of which lies below it. Lines are added where they matter.
class Remake {
 public:
  explicit Remake(Closure& closure) : closure_(closure) { restart(); }

  void restart();                           // after ops were fixed
  const Cut& line(double available) const;  // the highest there
  bool refine(double available);  // adds the lines that meet the function there; false: had them all
  // The op on which the two cuts around these bytes differ that takes longest, or -1 if one of them fits
  // exactly: then the function's value there is a whole answer's, not a mixture.
  int32_t undecided(double available);
  const std::vector<Cut>& lines() const { return cuts_; }

 private:
  size_t first_within(double available) const;

  Closure& closure_;
  std::vector<Cut> cuts_;  // rising in price, falling in bytes
};

class ProgramPoint {
 public:
  // The program point op `at` first starts; `before` is the seconds of the ops before it, and it starts `late` seconds later at least.
  ProgramPoint(const Problem&, const Index&, int32_t at, double before, int64_t budget_bytes,
               const HomeReads& homes = {}, double late = 0);
  ProgramPoint(const ProgramPoint&) = delete;
  ProgramPoint& operator=(const ProgramPoint&) = delete;

  struct Answer {
    double seconds;            // added before and after the program point, those it is late included
    double available;          // bytes that need no recompute, tiers included
    std::vector<double> here;  // Crossing::Answer::here; none without values that live in tiers
  };
  Answer solve();  // of the program as narrowed by fix()
  // The program's answer over whole ops instead of shares of them, or as near to it as the work allows: a
  // search over which ops run again, best first. At least solve()'s.
  double solve_whole(int64_t work_limit);

  double byte_price() const;
  double remake_price(const Answer& answer) const { return remake_.line(answer.available).price; }
  int64_t work() const { return closure_.work() + work_; }  // arcs and lines looked at: the cost in time

 private:
  struct Tier {
    double capacity, out, in;
    double home;  // bytes that have to be on the device or come in, and need not have gone out
  };
  double available(double stall, double extra, double* growth = nullptr) const;
  double extra_after(double stall, double more_room) const;
  Answer best(double more_room) const;
  double branch(int64_t work_limit);  // over which ops run again, best first

  Closure closure_;
  Remake remake_;
  std::optional<Crossing> crossing_;  // where values may live in tiers
  std::vector<Tier> tiers_;
  double room_, late_, before_, after_;
  double home_;  // seconds of what lives in its tier, at least
  mutable int64_t work_ = 0;
};

}  // namespace cairn::plan
