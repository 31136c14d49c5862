#include "runtime/plan/structure/options.h"

#include "runtime/plan/structure/stage_model.h"
#include "tests/runtime/plan/retention_points.h"

namespace cairn::plan {
namespace {

constexpr size_t kBlock = 3;  // the second block's stage

struct Blocks {
  // Three blocks x -> n -> h -> x of which backward reads n, h and the block's input.
  static Problem problem() {
    Maker m;
    m.value("x0", 100, true);
    for (int i = 1; i <= 3; ++i)
      for (const char* v : {"n", "h", "x"}) m.value(v + std::to_string(i), v[0] == 'h' ? 400 : 100);
    for (int i = 3; i >= 0; --i) m.value("g" + std::to_string(i), 100);
    const auto name = [](const char* v, int i) { return v + std::to_string(i); };
    for (int i = 1; i <= 3; ++i)
      m.op(name("norm", i), 1, {name("x", i - 1)}, {name("n", i)})
          .op(name("up", i), 8, {name("n", i)}, {name("h", i)})
          .op(name("down", i), 8, {name("h", i), name("x", i - 1)}, {name("x", i)});
    m.backward_begin().op("loss", 1, {"x3"}, {"g3"}, 0, false);
    for (int i = 3; i >= 1; --i)
      m.op(name("b", i), 20, {name("g", i), name("h", i), name("n", i), name("x", i - 1)},
           {name("g", i - 1)});
    return m.p;
  }
};

TEST(Options, PriceWhatASubsetCosts) {
  const Planned c(Blocks::problem());
  const Stages stages(c.p, c.index);
  ASSERT_EQ(stages.all.size(), 5u);  // the first block in three: its input is persistent
  StageModel m;
  ASSERT_TRUE(m.build(c.p, c.index, c.intervals, c.rules, stages, kBlock));
  const Option keep = m.price(0, 0, false);
  EXPECT_EQ(keep.kept, 600);
  EXPECT_EQ(keep.seconds, 0);
  EXPECT_EQ(keep.peak, 500 + 200);  // n, h, and two gradients
  const Option hidden = m.price(0b010, 0, false);
  EXPECT_EQ(hidden.kept, 200);
  EXPECT_EQ(hidden.seconds, 8);
  EXPECT_FALSE(hidden.gives_out);
  const Option all = m.price(0b111, 0, false);
  EXPECT_EQ(all.kept, 0);
  EXPECT_EQ(all.seconds, 17);
  EXPECT_TRUE(all.gives_out);
  EXPECT_TRUE(all.needs_in);
  EXPECT_EQ(all.held, 600);
  const Option twice = m.price(0b111, 0, true);
  EXPECT_EQ(twice.seconds, 17 + 9);
  EXPECT_EQ(twice.held, 100);
}

TEST(Options, SetsHaveNoDominatedOptions) {
  const Planned c(Blocks::problem());
  const Stages stages(c.p, c.index);
  const OptionSets sets(c.p, c.index, c.intervals, c.rules, stages, -1, 48);
  EXPECT_FALSE(sets.whole());
  const auto& options = sets.of(kBlock);
  for (const Option& a : options)
    for (const Option& b : options)
      if (&a != &b)
        EXPECT_FALSE(a.gives_out == b.gives_out && a.kept <= b.kept && a.peak <= b.peak && a.held <= b.held &&
                     a.needs_in <= b.needs_in && a.seconds <= b.seconds);
}

// What an option says is what the whole problem does, if all else stays.
TEST(Options, AgreeWithTheSequence) {
  Planned c(Blocks::problem());
  const Stages stages(c.p, c.index);
  const OptionSets sets(c.p, c.index, c.intervals, c.rules, stages, -1, 48);
  const double all = c.sequence().seconds;
  for (const Option& o : sets.of(kBlock)) {
    c.retention_points = c.rules.base;
    sets.apply(kBlock, o, c.retention_points);
    EXPECT_DOUBLE_EQ(c.sequence().seconds - all, o.seconds) << o.again << o.twice;
  }
}

}  // namespace
}  // namespace cairn::plan
