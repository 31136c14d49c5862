// The bound at one program point: the least seconds any plan adds because memory is scarce when one op first
// starts. README.md.
#pragma once
#include <optional>
#include <vector>

#include "runtime/plan/bound/bound.h"
#include "runtime/plan/bound/closure.h"
#include "runtime/plan/bound/crossing.h"

namespace cairn::plan {

// The least seconds recomputed, as a function of the bytes available. It is represented by the highest of the lines
// found so far, each of which lies below it. Lines are added where they matter.
class Remake {
 public:
  explicit Remake(Closure& closure) : closure_(closure) { restart(); }

  void restart();                           // forgets all lines: after ops were fixed
  const Cut& line(double available) const;  // the highest line at so many bytes
  bool refine(double available);  // adds the lines that meet the function there; false: there is none to add
  // The slowest op on which the two cuts around these bytes differ, or -1 if one of them fits exactly. In the latter
  // case the function's value is that of an answer without shares of ops, not of a mixture.
  int32_t undecided(double available);
  const std::vector<Cut>& lines() const { return cuts_; }

 private:
  size_t first_within(double available) const;

  Closure& closure_;
  std::vector<Cut> cuts_;  // rising in price, falling in bytes
};

class ProgramPoint {
 public:
  // The program point is the first start of op `at`. before: the seconds of the ops before it. The op starts at least
  // `late` seconds later.
  ProgramPoint(const Problem&, const Index&, int32_t at, double before, int64_t budget_bytes,
               const HomeReads& homes = {}, double late = 0);
  ProgramPoint(const ProgramPoint&) = delete;
  ProgramPoint& operator=(const ProgramPoint&) = delete;

  struct Answer {
    double seconds;            // added before and after the program point, those it is late included
    double available;          // bytes that need no recompute, tiers included
    std::vector<double> here;  // Crossing::Answer::here; none without values that live in tiers
  };
  Answer solve();  // solves the program as narrowed by fix()
  // The program's answer with every op recomputed or not, never a share of it, or as near to that as the work allows:
  // a search over which ops run again, best first. At least solve()'s.
  double solve_whole(int64_t work_limit);

  double byte_price() const;
  double remake_price(const Answer& answer) const { return remake_.line(answer.available).price; }
  int64_t work() const { return closure_.work() + work_; }  // arcs and lines looked at: the cost in time

 private:
  struct Tier {
    double capacity, out, in;
    double home;  // bytes that are on the device or come in, and need not have gone out
  };
  double available(double stall, double extra, double* growth = nullptr) const;
  double extra_after(double stall, double more_room) const;
  Answer best(double more_room) const;
  double branch(int64_t work_limit);  // searches which ops run again, best first

  Closure closure_;
  Remake remake_;
  std::optional<Crossing> crossing_;  // set if values may live in tiers
  std::vector<Tier> tiers_;
  double room_, late_, before_, after_;
  double home_;  // home_seconds of tier-resident values, at least
  mutable int64_t work_ = 0;
};

}  // namespace cairn::plan
