#include "runtime/plan/local_search/archive.h"

#include <gtest/gtest.h>

namespace cairn::plan {
namespace {

TEST(Archive, KeepsWhatNothingBeatsInBothPeakAndSeconds) {
  Archive archive;
  EXPECT_TRUE(archive.empty());
  EXPECT_EQ(archive.within(INT64_MAX), nullptr);
  const auto add = [&](int64_t peak, double seconds) { archive.add({}, {}, {true, seconds, peak}); };
  add(100, 5);
  add(50, 8);
  add(80, 9);  // slower than the one of 50
  EXPECT_EQ(archive.plans().size(), 2u);
  add(70, 5);  // as fast as the one of 100, with less
  EXPECT_EQ(archive.plans().size(), 2u);
  EXPECT_EQ(archive.within(1000)->cost.peak_bytes, 70);
  add(70, 4);
  EXPECT_EQ(archive.within(70)->cost.seconds, 4);
  EXPECT_EQ(archive.within(69)->cost.seconds, 8);
  EXPECT_EQ(archive.within(49), nullptr);
  add(40, 1);  // beats all
  EXPECT_EQ(archive.plans().size(), 1u);
}

// What it does not want changes nothing; the first that is beaten in all layers.
TEST(Archive, WantsWhatSomeLayerWouldTake) {
  Archive archive;
  EXPECT_TRUE(archive.wants(9, 100));
  for (int copy = 0; copy < 4; ++copy) {  // one in each layer
    EXPECT_TRUE(archive.wants(5, 100));
    archive.add({copy}, {}, {true, 5, 100, static_cast<uint64_t>(copy)});
  }
  EXPECT_FALSE(archive.wants(5, 100));
  EXPECT_FALSE(archive.wants(6, 100));
  EXPECT_FALSE(archive.wants(5, 101));
  EXPECT_TRUE(archive.wants(5, 99));
  EXPECT_TRUE(archive.wants(4, 200));
}

TEST(Archive, RemembersWhatWasBeaten) {
  Archive archive;
  archive.add({1}, {}, {true, 5, 100});
  archive.add({2}, {}, {true, 5, 100});  // the same plan: the first stays
  archive.add({4}, {}, {true, 6, 100});
  archive.add({3}, {}, {true, 4, 90});
  ASSERT_EQ(archive.by_seconds(1000).size(), 3u);
  EXPECT_EQ(archive.by_seconds(1000)[0]->retention_points, RetentionPoints{3});
  EXPECT_EQ(archive.by_seconds(95).size(), 1u);
  EXPECT_EQ(archive.plans().size(), 1u);
}

TEST(Archive, PinnedPlansStay) {
  Archive archive;
  archive.pin({1}, {}, {true, 9, 100});
  for (int k = 0; k < 10; ++k) archive.add({2 + k}, {}, {true, 8.0 - k, 90});
  EXPECT_EQ(archive.by_seconds(100).back()->retention_points, RetentionPoints{1});
  EXPECT_NE(archive.by_seconds(99).back()->retention_points, RetentionPoints{1});
}

// Their arenas may differ.
TEST(Archive, KeepsPlansOfOnePriceInAnotherOrder) {
  Archive archive;
  archive.add({1}, {}, {true, 5, 100, 7});
  archive.add({2}, {}, {true, 5, 100, 8});
  archive.add({3}, {}, {true, 5, 100, 8});
  ASSERT_EQ(archive.by_seconds(1000).size(), 2u);
  EXPECT_EQ(archive.by_seconds(1000)[1]->retention_points, RetentionPoints{2});
}

}  // namespace
}  // namespace cairn::plan
