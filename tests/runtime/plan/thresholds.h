// For tests of everything that works on thresholds: a problem with its index, gaps and rules.
#pragma once
#include <gtest/gtest.h>

#include "make_problem.h"
#include "runtime/plan/evaluate.h"
#include "runtime/plan/rules.h"
#include "runtime/plan/sequence.h"

namespace cairn::plan {

struct Planned {
  explicit Planned(Problem problem)
      : p(std::move(problem)), index(p), gaps(p, index), rules(p, index, gaps), thresholds(rules.base) {}

  // Of the value's gap around the turnaround.
  Planned& set(int32_t value, int32_t threshold) {
    thresholds[rules.across[value]] = threshold;
    return *this;
  }
  Sequence sequence() const {
    Sequence s;
    EXPECT_TRUE(Sequencer(p, index, gaps).run(thresholds, s));
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
  Gaps gaps;
  Rules rules;
  Thresholds thresholds;
};

}  // namespace cairn::plan
