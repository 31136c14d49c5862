// What crosses the links before and after one program point of a problem in which values live in tiers.
//
// At the instant at which op m first starts, F + z seconds have passed and G + e are to come (README.md).
// For a value w that lives in a tier let y = 1 if it has a place on the device then, and let H be the bytes of activations that
// are complete in a tier then and come back. Of w's copies
//
//     in, before      what it is at the beginning is read by m or an op before it
//     in, after      y = 0 and its next use after m reads it: its place is taken after the instant, so all of the copy is there
//     out, before     y = 0 and an op before m changed it: what leaves the device has been copied by then
//     out, after     m or an op after it changes it: it has to be in its tier in the end
//
// each lies in its window as a whole; activations of H go out before and come in after. A value that may stay and has y = 1
// is taken to stay, without any copy. What a window's directions need together is at most its length: with a and b seconds
// alone and a share f of the rates side by side, both a + k b and b + k a, k = min(1, 1 / f - 1) (a = t + f s, b = u + f s of
// t seconds alone out, u alone in, s together: a + k b <= t + u + f (1 + k) s, and f (1 + k) <= 1). A latency counts in
// each direction by itself only, as the other runs at its full rate meanwhile. The device has C bytes beside op m, so
//
//     sum y <= C,    e >= flow(p) - p (C - sum y + sum H)     for each price p: the lines of README.md
//
// (sums of bytes). What op m uses needs no y, and is taken to stay if it may. A value with y = 0 costs its home_seconds; and so
// does one that may not stay. Those seconds may pass before the first op, so where op m does not begin before F + T,
//
//     z + sum home_seconds (1 - y) >= T.
//
// A fresh value whose first use comes after op m takes no place there: with y = 1 it stays from that use on, and it counts in no sum of
// y above, but all of these are on the device beside the last op, in L bytes:
//
//     sum y <= L
//
// All rows are linear: the least of z + e + sum home_seconds (1 - y) under them is a bound on what
// any plan adds to F + G, and the multipliers of the linear program prove it, whichever way they were found.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/bound/bound.h"
#include "runtime/plan/bound/closure.h"
#include "runtime/plan/bound/linear_program.h"

namespace cairn::plan {

class Crossing {
 public:
  // before, after: seconds of the ops before op `at`, and of the others. room: bytes for what op `at` does not use.
  // last_room: bytes beside the last op. largest: bytes of the largest value that is copied. late: op `at` begins so many
  // seconds later at least, those that values cost
  // in its tier included.
  Crossing(const Problem&, int32_t at, double before, double after, double room, double last_room,
           double largest, const HomeReads&, double late = 0);

  struct Answer {
    double seconds = 0;  // added before and after the program point, and of what lives in its tier
    double available =
        0;  // bytes that need no recompute, as in ProgramPoint::Answer but for what may live in a tier
    // Per value of HomeReads: what share of its like has a place on the device. Negative: nothing depends on it, as op `at`
    // uses it.
    std::vector<double> here;
    int64_t work = 0;
  };
  Answer least(const std::vector<Cut>& lines) const;

 private:
  // Variables for bytes of values that may live in a tier that have no place on the device: at op `at`, or beside the last op.
  struct Gone {
    std::vector<std::pair<int32_t, double>> here, at_the_end;
    double bytes_at_the_end = 0;  // of the latter, if all of them stayed
  };
  void add_link(const Link&, size_t link, int32_t at, double before, double after, double largest,
                const HomeReads&, Gone& gone);

  double seconds_, bytes_;  // units of the program
  double home_ = 0;         // seconds of what has to live in their tier
  double uncounted_ = 0;    // and of what may, but has no variable
  double room_;             // in units of bytes, if all that may live in a tier had its place
  LinearProgram program_;
  std::vector<std::pair<int32_t, double>>
      group_;  // per value of HomeReads: variable and bytes of its like; -1: none
  std::vector<std::pair<int32_t, double>> more_;     // variables that add to the room, or take from it
  std::vector<std::pair<int32_t, double>> at_home_;  // seconds of what lives in its tier, by its bytes
};

}  // namespace cairn::plan
