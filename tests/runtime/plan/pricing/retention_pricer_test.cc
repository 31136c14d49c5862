#include "runtime/plan/pricing/retention_pricer.h"

#include <random>

#include "tests/runtime/plan/retention_points.h"

namespace cairn::plan {
namespace {

// Every kind of retention point, in any interval that the rules leave free.
int32_t any_point(const Planned& c, int32_t interval, std::mt19937& random) {
  const auto upto = [&](size_t n) { return static_cast<int32_t>(random() % (n + 1)); };
  const Intervals::Interval& where = c.intervals.all[interval];
  const int32_t op = upto(c.p.ops.size());
  switch (upto(5)) {
    case 0:
      return c.rules.base[interval];
    case 1:
      return kNever;
    case 2:
      return early(op);
    case 3:
      if (!c.p.links.empty() && c.rules.across[where.value] == interval)
        return over_link(upto(c.p.links.size() - 1));
      return kKeepIt;
    default:
      return op;
  }
}

struct Walk {
  explicit Walk(uint32_t seed)
      : c(random_problem(seed, {.max_ops = 4 + static_cast<int>(seed % 20)})),
        random(seed),
        sequencer(c.p, c.index, c.intervals),
        pricer(c.p, c.index, c.intervals) {
    for (size_t g = 0; g < c.intervals.all.size(); ++g)
      if (c.rules.free[g]) free.push_back(static_cast<int32_t>(g));
  }

  void step() {
    const RetentionPoints before = c.retention_points;
    for (uint32_t changes = 1 + random() % 3; changes > 0 && !free.empty(); --changes) {
      const int32_t g = free[random() % free.size()];
      c.retention_points[g] = any_point(c, g, random);
    }
    Sequencer::Limits limits;
    if (random() % 4 == 0) limits.seconds = c.index.total_seconds * (1 + 1e-3 * (random() % 3000));
    if (random() % 8 == 0) limits.items = static_cast<int64_t>(c.p.ops.size() + random() % 20);
    compare(limits);
    if (random() % 2 == 0) c.retention_points = before;
  }

  void compare(const Sequencer::Limits& limits) {
    const int64_t work = sequencer.work();
    const bool valid = sequencer.run(c.retention_points, sequence, limits);
    const RetentionPricer::Price price = pricer(c.retention_points, limits);
    ASSERT_EQ(price.valid, valid);
    ASSERT_EQ(price.work, sequencer.work() - work);
    if (!valid) return;
    ++priced;
    ASSERT_EQ(price.seconds, sequence.seconds);
    ASSERT_EQ(price.peak_bytes, sequence.peak_bytes);
    ASSERT_EQ(std::vector<int64_t>(pricer.live().begin(), pricer.live().end()), sequence.live);
    ASSERT_EQ(pricer.excess(price.peak_bytes / 2), sequence.excess(price.peak_bytes / 2));
    bool copies = false;
    for (const Residency& residency : sequence.residencies) copies |= residency.to >= 0;
    ASSERT_EQ(price.copies, copies);
    compare_traces();
    if (!copies) return;
    ++copied;
    Pace limited;
    limited.limit_bytes = price.peak_bytes;
    for (const Pace pace : {Pace{}, Pace{0}, limited}) {  // no schedule is faster or lower than the price
      const Schedule schedule = make_schedule(c.p, c.index, sequence, pace, false);
      ASSERT_GE(schedule.seconds, price.seconds);
      ASSERT_GE(schedule.peak_bytes, price.peak_bytes);
      if (pace == limited)
        ASSERT_LE(schedule.peak_bytes, make_schedule(c.p, c.index, sequence, Pace{0}, false).peak_bytes);
    }
  }

  void compare_traces() {
    if (pricer.trace() == trace && !last.ops.empty()) {
      ++same;
      ASSERT_EQ(sequence.ops, last.ops);
      ASSERT_EQ(sequence.anchor, last.anchor);
      ASSERT_EQ(sequence.residencies.size(), last.residencies.size());
      for (size_t i = 0; i < last.residencies.size(); ++i) {
        const Residency &a = sequence.residencies[i], &b = last.residencies[i];
        ASSERT_EQ(std::tie(a.value, a.begin, a.end, a.from, a.to),
                  std::tie(b.value, b.begin, b.end, b.from, b.to));
      }
    }
    trace = pricer.trace();
    last = sequence;
  }

  Planned c;
  std::mt19937 random;
  Sequencer sequencer;
  RetentionPricer pricer;
  std::vector<int32_t> free;
  Sequence sequence, last;
  std::vector<int32_t> trace;
  int64_t priced = 0, copied = 0, same = 0;
};

// A walk, so that each price goes on from another one: the next, or the one before once more.
TEST(RetentionPricer, PricesAsTheSequenceDoes) {
  int64_t priced = 0, copied = 0, same = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    Walk walk(seed);
    for (int step = 0; step < 60 && !testing::Test::HasFatalFailure(); ++step) walk.step();
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
    priced += walk.priced;
    copied += walk.copied;
    same += walk.same;
  }
  EXPECT_GT(priced, 10'000);
  EXPECT_GT(copied, 1'000);
  EXPECT_GT(same, 1'000);
}

// More than 8 readers, and a problem too large for a table of intervals.
TEST(RetentionPricer, PricesLongChains) {
  Maker m;
  m.value("x", 64, true).value("shared", 640);
  constexpr int kOps = 300;
  m.op("first", 1, {"x"}, {"shared"});
  for (int i = 0; i < kOps; ++i) {
    const std::string name = std::to_string(i), before = std::to_string(i - 1);
    m.value("a" + name, 64 * (1 + i % 7));
    m.op("f" + name, 1 + i % 3, {"shared", i > 0 ? "a" + before : "x"}, {"a" + name});
  }
  m.backward_begin();
  for (int i = kOps; i-- > 0;) m.op("b" + std::to_string(i), 2, {"shared", "a" + std::to_string(i)}, {});
  const Planned all(m.p);
  Sequencer sequencer(all.p, all.index, all.intervals);
  RetentionPricer pricer(all.p, all.index, all.intervals);
  std::mt19937 random(7);
  RetentionPoints t = all.rules.base;
  Sequence sequence;
  for (int step = 0; step < 60; ++step) {
    const auto v = static_cast<int32_t>(random() % all.p.values.size());
    if (const int32_t g = all.rules.across[v]; g >= 0) t[g] = random() % 4 ? all.p.backward_begin : kNever;
    ASSERT_TRUE(sequencer.run(t, sequence));
    const RetentionPricer::Price price = pricer(t, {});
    ASSERT_TRUE(price.valid);
    ASSERT_EQ(price.seconds, sequence.seconds);
    ASSERT_EQ(std::vector<int64_t>(pricer.live().begin(), pricer.live().end()), sequence.live);
  }
}

}  // namespace
}  // namespace cairn::plan
