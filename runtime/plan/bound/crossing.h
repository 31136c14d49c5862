// What crosses the links before and after one program point of a problem in which values live in tiers.
//
// At the instant at which op m first starts, F + z seconds have passed and G + e are to come (README.md).
// For a value w that lives in a tier, let y = 1 if it has a place on the device then. Let H be the bytes of activations
// that are complete in a tier then and are fetched back. Of w's copies
//
//     in, before      m or an op before it reads the value as it is at the beginning
//     in, after       y = 0 and its next use after m reads it: it gets its place after the instant
//     out, before     y = 0 and an op before m changed it: it was copied out before it left the device
//     out, after      m or an op after it changes it: it has to be in its tier in the end
//
// each lies completely in its window. The activations of H go out before and come in after. A value that may be kept
// on the device and has y = 1 is taken to be kept, without any copy. What the two directions of a window need
// together is at most the window's length. Let a direction need a and b seconds alone, and let f be its share of the
// rate while both run: then both a + k b and b + k a are at most that length, with k = min(1, 1 / f - 1). (Proof: let
// t seconds be out alone, u in alone, s both. Then a = t + f s, b = u + f s, a + k b <= t + u + f (1 + k) s, and
// f (1 + k) <= 1.) A latency counts in its own direction only, as the other runs at its full rate meanwhile. The device
// has C bytes besides those of op m, so
//
//     sum y <= C,    e >= flow(p) - p (C - sum y + sum H)     for each price p: the lines of README.md
//
// (sums of bytes). What op m uses needs no y, and is taken to be kept on the device if it may be. A value with y = 0
// costs its home_seconds. So does one that may not be kept. Those seconds may pass before the first op, so where op m
// does not begin before F + T,
//
//     z + sum home_seconds (1 - y) >= T.
//
// A fresh value whose first use comes after op m takes no memory there. With y = 1 it is on the device from that use
// on. It counts in no sum of y above, but all these values are on the device during the last op, in L bytes:
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
  // last_room: bytes that the last op does not use. largest: bytes of the largest value that is copied. late: op `at`
  // begins at least so many seconds later; the home_seconds of values count among them.
  Crossing(const Problem&, int32_t at, double before, double after, double room, double last_room,
           double largest, const HomeReads&, double late = 0);

  struct Answer {
    double seconds = 0;  // added before and after the program point, and the home_seconds of values
    double available =
        0;  // bytes that need no recompute, as in ProgramPoint::Answer, without those of values that may live in a tier
    // Per value of HomeReads: the share of values of its kind with a place on the device. Negative: op `at` uses it,
    // so nothing depends on it.
    std::vector<double> here;
    int64_t work = 0;
  };
  Answer least(const std::vector<Cut>& lines) const;

 private:
  // Variables for the bytes of values that may live in a tier and have no place on the device: at op `at`, or during
  // the last op.
  struct Gone {
    std::vector<std::pair<int32_t, double>> here, at_the_end;
    double bytes_at_the_end = 0;  // of at_the_end, if all of them were kept on the device
  };
  void add_link(const Link&, size_t link, int32_t at, double before, double after, double largest,
                const HomeReads&, Gone& gone);

  double seconds_, bytes_;  // units in which the program counts seconds and bytes
  double home_ = 0;         // home_seconds of values that have to live in their tier
  double uncounted_ = 0;    // home_seconds of values that may, but have no variable
  double room_;  // in units of bytes, if all values that may live in a tier had a place on the device
  LinearProgram program_;
  std::vector<std::pair<int32_t, double>>
      group_;  // per value of HomeReads: variable and bytes of its kind; -1: none
  std::vector<std::pair<int32_t, double>> more_;     // variables that add to the room, or take from it
  std::vector<std::pair<int32_t, double>> at_home_;  // home_seconds of tier-resident values, per byte
};

}  // namespace cairn::plan
