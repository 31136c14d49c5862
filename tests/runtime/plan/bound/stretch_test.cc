#include "runtime/plan/bound/stretch.h"

#include <gtest/gtest.h>

#include "tests/runtime/plan/make_problem.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

using Place = Stretch::Place;

// a is made, an op in between needs room, and a is read.
Problem squeezed() {
  Maker m;
  m.value("in", 1, true).value("a", 100).value("w", 0).value("out", 1, true);
  m.op("make", 5, {"in"}, {"a"}).op("squeeze", 1, {"in"}, {"w"}, 100).op("read", 1, {"a"}, {"out"});
  m.backward_begin();
  return m.p;
}

TEST(Stretch, ChargesWhatStaysOrMakesItAgain) {
  const Problem p = squeezed();
  const Index index(p);
  Stretch stretch(p, index, 1, 3);
  const std::vector<double> none(p.values.size(), 0);
  EXPECT_NEAR(stretch.least({0, 3, 0, 0}, none), 3, 1e-9);
  EXPECT_EQ(stretch.place(1), Place::kStays);
  EXPECT_NEAR(stretch.least({0, 7, 0, 0}, none), 5, 1e-9);
  EXPECT_EQ(stretch.place(1), Place::kMade);
}

TEST(Stretch, LeavesOutWhatNobodyReads) {
  const Problem p = squeezed();
  const Index index(p);
  // a is read by the op that the next stretch begins with, or by none of this one.
  Stretch read(p, index, 1, 2);
  EXPECT_NEAR(read.least({0, 3, 0, 0}, {0, 0, 0, 0}), 3, 1e-9);
  Problem later = p;
  later.ops.insert(later.ops.begin() + 2, later.ops[1]);
  later.ops[2].outputs.clear();
  const Index index_later(later);
  Stretch unread(later, index_later, 1, 2);
  EXPECT_NEAR(unread.least({0, 3, 0, 0}, {0, 2, 0, 0}), 2, 1e-9);
  EXPECT_EQ(unread.place(1), Place::kMissing);
  EXPECT_NEAR(unread.least({0, 3, 0, 0}, {0, 4, 0, 0}), 3, 1e-9);
  EXPECT_EQ(unread.place(1), Place::kStays);
}

// Of all sets of ops that may run again the cheapest, which the places attain.
TEST(Stretch, IsTheCheapestOfAllSets) {
  for (const uint32_t seed : support::seeds(300)) {
    const Problem p = random_problem(seed, {4, false, false});
    const Index index(p);
    std::mt19937 random(seed);
    const auto ops = static_cast<int32_t>(p.ops.size());
    for (int32_t at = 1; at < std::min(ops, 12); ++at) {
      const int32_t next = at + 1 + static_cast<int32_t>(random() % static_cast<uint32_t>(ops - at));
      Stretch stretch(p, index, at, next);
      std::vector<double> charges, fines;
      for (size_t v = 0; v < p.values.size(); ++v) {
        charges.push_back(.25 * static_cast<double>(random() % 40));
        fines.push_back(.25 * static_cast<double>(random() % 20));
      }
      std::vector<bool> read(p.values.size(), false);
      for (int32_t op = at; op < std::min(next + 1, ops); ++op)
        for (const int32_t v : index.inputs[op]) read[v] = true;
      const auto cost = [&](const auto& again, const auto& costs_of_value) {
        double sum = 0;
        for (int32_t op = 0; op < at; ++op)
          if (again(op)) sum += p.ops[op].seconds;
        for (size_t v = 0; v < p.values.size(); ++v) {
          const int32_t maker = index.maker[v];
          if (p.values[v].persistent || maker < 0 || maker >= at || stretch.busy(static_cast<int32_t>(v)))
            continue;
          bool asked = read[v];
          for (const int32_t op : index.readers[static_cast<int64_t>(v)]) asked |= op < at && again(op);
          sum += costs_of_value(static_cast<int32_t>(v), asked);
        }
        return sum;
      };
      double least = std::numeric_limits<double>::infinity();
      for (uint32_t set = 0; set < 1U << at; ++set) {
        const auto again = [&](int32_t op) { return (set >> op & 1) != 0; };
        bool may = true;
        for (int32_t op = 0; op < at; ++op) may &= !again(op) || p.ops[op].recomputable;
        if (!may) continue;
        least = std::min(least, cost(again, [&](int32_t v, bool asked) {
                           if (again(index.maker[v])) return 0.0;
                           return asked ? charges[v] : std::min(charges[v], fines[v]);
                         }));
      }
      const double found = stretch.least(charges, fines);
      EXPECT_NEAR(found, least, 1e-9) << seed << " at " << at << " next " << next;
      std::vector<bool> made(p.ops.size(), false);
      for (int32_t op = 0; op < at; ++op) made[op] = stretch.again(op);
      const double attained =
          cost([&](int32_t op) { return made[op]; },
               [&](int32_t v, bool asked) {
                 const Place place = stretch.place(v);
                 EXPECT_EQ(place == Place::kMade, made[index.maker[v]]);
                 EXPECT_TRUE(!asked || place != Place::kMissing);
                 return place == Place::kStays ? charges[v] : place == Place::kMissing ? fines[v] : 0;
               });
      EXPECT_NEAR(attained, least, 1e-9) << seed << " at " << at << " next " << next;
    }
  }
}

}  // namespace
}  // namespace cairn::plan
