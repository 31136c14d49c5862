// An estimate of the seconds with so many bytes of values that stay on the device, from the numbers of bytes tried before.
#pragma once
#include <cstddef>
#include <map>

namespace cairn::plan {

// Seconds are about convex in these bytes, as those of a linear program are: what leaves beyond them frees memory that is
// worth less than what was freed before, and takes the link longer. So they lie above the line through the two tries
// nearest on a side. Between two tries no plan is faster than the faster one of theirs would be if it never waited for copies.
class Outlook {
 public:
  // seconds: with all copies; infinite: it does not fit. without: of the plan if what lives in its tier took no time.
  void add(size_t bytes, double without, double seconds);
  // About the least that bytes which were not tried may take; less than nothing where nothing is known.
  double least(size_t bytes) const;

 private:
  struct Seconds {
    double without, with;
  };
  std::map<size_t, Seconds> tried_;
};

}  // namespace cairn::plan
