// For tests of everything that works on retention points: a problem with its index, intervals and rules.
#pragma once
#include <gtest/gtest.h>

#include "make_problem.h"
#include "runtime/plan/pricing/evaluate.h"
#include "runtime/plan/pricing/rules.h"
#include "runtime/plan/pricing/sequence.h"

namespace cairn::plan {

struct Planned {
  explicit Planned(Problem problem)
      : p(std::move(problem)),
        index(p),
        intervals(p, index),
        rules(p, index, intervals),
        retention_points(rules.base) {}

  // Of the value's interval around the beginning of backward.
  Planned& set(int32_t value, int32_t retention_point) {
    retention_points[rules.across[value]] = retention_point;
    return *this;
  }
  Sequence sequence() const {
    Sequence s;
    EXPECT_TRUE(Sequencer(p, index, intervals).run(retention_points, s));
    return s;
  }
  // "f1 f2 loss ..."
  std::string order() const {
    std::string out;
    for (int32_t op : sequence().ops) out += (out.empty() ? "" : " ") + p.ops[op].name;
    return out;
  }

  Problem p;
  Index index;
  Intervals intervals;
  Rules rules;
  RetentionPoints retention_points;
};

}  // namespace cairn::plan
