// Estimates the seconds of a plan that keeps so many bytes of values on the device, from the numbers of bytes tried
// before.
#pragma once
#include <cstddef>
#include <map>

namespace cairn::plan {

// Seconds are about convex in these bytes, as those of a linear program are: each further byte that is offloaded
// frees memory that is worth less and occupies the link longer. So the seconds lie above the line through the two
// nearest tries on one side. Between two tries, no plan is faster than the faster of the two would be if it never
// waited for copies.
class Outlook {
 public:
  // seconds: of the plan with all copies; infinite: it does not fit. without: the same if these copies took no time.
  void add(size_t bytes, double without, double seconds);
  // About the least seconds with a number of bytes that was not tried; minus infinity where nothing is known.
  double least(size_t bytes) const;

 private:
  struct Seconds {
    double without, with;
  };
  std::map<size_t, Seconds> tried_;
};

}  // namespace cairn::plan
