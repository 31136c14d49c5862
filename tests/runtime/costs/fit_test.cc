#include "runtime/costs/fit.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/base/error.h"

namespace cairn::costs {
namespace {

TEST(Fit, FindsLatencyAndRateOfALine) {
  std::vector<Transfer> samples;
  for (double bytes = 65536; bytes <= 1 << 26; bytes *= 4) samples.push_back({bytes, 20e-6 + bytes / 8e9});
  const Line line = fit(samples);
  EXPECT_NEAR(line.latency_seconds, 20e-6, 1e-12);
  EXPECT_NEAR(line.bytes_per_second, 8e9, 1);
}

TEST(Fit, NoiseOfAFewPercentLeavesBothNearby) {
  std::mt19937 random(5);
  std::normal_distribution<double> noise(1, 0.02);
  std::vector<Transfer> samples;
  for (int repeat = 0; repeat < 50; ++repeat)
    for (double bytes = 65536; bytes <= 1 << 26; bytes *= 4)
      samples.push_back({bytes, (50e-6 + bytes / 5e10) * noise(random)});
  const Line line = fit(samples);
  EXPECT_NEAR(line.latency_seconds, 50e-6, 2e-6);
  EXPECT_NEAR(line.bytes_per_second, 5e10, 1e9);
}

TEST(Fit, SmallTransfersCountAsMuchAsLargeOnes) {
  // The large one is 5 % off; unweighted, that would move the latency by more than itself.
  const Line line =
      fit(std::vector<Transfer>{{1e4, 11e-6}, {2e4, 12e-6}, {4e4, 14e-6}, {1e8, 1.05 * 1.001e-2}});
  EXPECT_GT(line.latency_seconds, 9e-6);
  EXPECT_LT(line.latency_seconds, 11e-6);
}

TEST(Fit, ALatencyBelowZeroIsNone) {
  const Line line = fit(std::vector<Transfer>{{1e6, 0.9e-3}, {2e6, 2.1e-3}});
  EXPECT_EQ(line.latency_seconds, 0);
  EXPECT_GT(line.bytes_per_second, 0.9e9);
  EXPECT_LT(line.bytes_per_second, 1.2e9);
  // Larger is faster: no rate fits, the mean stands in.
  const Line odd = fit(std::vector<Transfer>{{1e6, 2e-3}, {2e6, 1e-3}});
  EXPECT_EQ(odd.latency_seconds, 0);
  EXPECT_GT(odd.bytes_per_second, 0);
}

TEST(Fit, RefusesWhatHasNoLine) {
  EXPECT_THROW(fit(std::vector<Transfer>{}), Error);
  EXPECT_THROW(fit(std::vector<Transfer>{{1, 1}}), Error);
  EXPECT_THROW(fit(std::vector<Transfer>{{5, 1}, {5, 2}}), Error);
  EXPECT_THROW(fit(std::vector<Transfer>{{1, 1}, {2, 0}}), Error);
  EXPECT_THROW(fit(std::vector<Transfer>{{1, 1}, {2, NAN}}), Error);
}

TEST(Spread, QuartilesLieBetweenSamples) {
  EXPECT_EQ(spread({}).median, 0);
  EXPECT_EQ(spread({3}).median, 3);
  EXPECT_EQ(spread({3}).interquartile, 0);
  const Spread s = spread({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(s.median, 2.5);
  EXPECT_DOUBLE_EQ(s.interquartile, 1.5);
  EXPECT_EQ(spread({1, 2, 3, 4, 1000}).median, 3);
}

}  // namespace
}  // namespace cairn::costs
