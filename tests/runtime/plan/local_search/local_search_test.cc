#include "runtime/plan/local_search/local_search.h"

#include "tests/runtime/plan/retention_points.h"

namespace cairn::plan {
namespace {

struct Search {
  explicit Search(Problem p)
      : c(std::move(p)),
        evaluate(c.p, c.index, c.intervals),
        improve(c.p, c.index, c.intervals, c.rules, evaluate, archive) {}
  Candidate keep_all() { return {c.rules.base, {}, evaluate(c.rules.base, {}, sequence)}; }

  Planned c;
  Evaluator evaluate;
  Sequence sequence;
  Archive archive;
  LocalSearch improve;
};

TEST(LocalSearch, DescendsToABudget) {
  Search s(chain(20));
  Candidate c = s.keep_all();
  const int64_t budget = 128 + 12 * 6400;
  ASSERT_TRUE(s.improve.descend(c, budget));
  EXPECT_LE(c.cost.peak_bytes, budget);
  EXPECT_EQ(s.archive.plans().begin()->first, c.cost.peak_bytes);
  EXPECT_GE(c.cost.seconds, s.c.index.total_seconds + 9);
}

// f1 to f20 may not run again, so only copies help: what is sent comes down to what the largest op needs, and with room for more no more
// than that takes is sent.
TEST(LocalSearch, SendsAsMuchAsTheFullestItemsAskFor) {
  Problem p = chain(20);
  for (Op& op : p.ops) op.recomputable = false;
  p.links.push_back({"host", 0, 6400, 6400, 1, 1 << 20});
  Search s(std::move(p));
  int before = -1;
  for (const int64_t blocks : {20, 16, 12, 8, 4}) {
    Candidate c = s.keep_all();
    c.pace.limit_bytes = 128 + blocks * 6400;
    s.improve.send_around_full(c, c.pace.limit_bytes, 0, false);
    EXPECT_LE(c.cost.peak_bytes, c.pace.limit_bytes);
    const auto sent = static_cast<int>(
        std::count_if(c.retention_points.begin(), c.retention_points.end(), [](int32_t t) { return t < 0; }));
    EXPECT_GT(sent, before);
    before = sent;
  }
}

TEST(LocalSearch, GivesUpWhereNothingHelps) {
  Search s(chain(5, 6400, 5, Policy::kKeep));
  Candidate c = s.keep_all();
  EXPECT_FALSE(s.improve.descend(c, 128 + 6400));
}

// Far too much made again: the search keeps what fits, and ends where nothing is left to gain.
TEST(LocalSearch, SearchEndsUnderTheBudgetAndFaster) {
  Search s(chain(16));
  const int64_t budget = 128 + 12 * 6400;
  Candidate c = s.keep_all();
  for (int v = 1; v <= 15; ++v)
    if (v % 4) c.retention_points[s.c.rules.across[v]] = s.c.p.backward_begin;
  c.cost = s.evaluate(c.retention_points, {}, s.sequence);
  ASSERT_LE(c.cost.peak_bytes, budget);
  s.improve.search(c, budget, 100'000);
  EXPECT_LE(c.cost.peak_bytes, budget);
  EXPECT_DOUBLE_EQ(c.cost.seconds, s.c.index.total_seconds + 5);  // 17 blocks at the peak, 12 may stay
}

TEST(LocalSearch, ShrinksBelowTheGreedyPeak) {
  Search s(chain(24));
  Candidate c = s.keep_all();
  s.improve.shrink(c, 300'000);
  EXPECT_LE(c.cost.peak_bytes, 128 + 9 * 6400);
}

}  // namespace
}  // namespace cairn::plan
