#include "runtime/step/schedule.h"

#include "runtime/base/error.h"

namespace cairn::step {
namespace {

TEST(Schedule, WarmupIsLinearAndReachesTheRate) {
  Schedule s;
  s.rate = 1.0;
  s.warmup_steps = 4;
  EXPECT_DOUBLE_EQ(rate_at(s, 0), 0.25);
  EXPECT_DOUBLE_EQ(rate_at(s, 3), 1.0);
  EXPECT_DOUBLE_EQ(rate_at(s, 1000), 1.0);
}

TEST(Schedule, CosineGoesFromRateToMinimumAndStays) {
  Schedule s;
  s.kind = ScheduleKind::kCosine;
  s.rate = 1.0;
  s.minimum_rate = 0.1;
  s.warmup_steps = 10;
  s.total_steps = 110;
  EXPECT_DOUBLE_EQ(rate_at(s, 10), 1.0);
  EXPECT_NEAR(rate_at(s, 60), 0.55, 1e-12);
  EXPECT_NEAR(rate_at(s, 110), 0.1, 1e-12);
  EXPECT_NEAR(rate_at(s, 5000), 0.1, 1e-12);
  for (uint64_t i = 10; i < 110; ++i) EXPECT_GE(rate_at(s, i), rate_at(s, i + 1));
}

TEST(Schedule, LinearFallsEvenly) {
  Schedule s;
  s.kind = ScheduleKind::kLinear;
  s.rate = 1.0;
  s.total_steps = 100;
  EXPECT_DOUBLE_EQ(rate_at(s, 0), 1.0);
  EXPECT_DOUBLE_EQ(rate_at(s, 25), 0.75);
  EXPECT_DOUBLE_EQ(rate_at(s, 100), 0.0);
}

TEST(Schedule, NamesAreChecked) {
  EXPECT_EQ(schedule_from_name("cosine"), ScheduleKind::kCosine);
  EXPECT_THROW(schedule_from_name("cosin"), Error);
}

}  // namespace
}  // namespace cairn::step
