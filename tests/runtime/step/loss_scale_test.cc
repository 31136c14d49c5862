// The rule of the loss scale, by itself.
#include "runtime/step/loss_scale.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"

namespace cairn::step {
namespace {

TEST(LossScale, FallsAndGrowsAsOfGradScaler) {
  const LossScaleOptions options{.interval = 3};
  LossScale scale{64};
  const bool finite[] = {true, true, false, true, true, true, true, false, false};
  const double wanted[] = {64, 64, 32, 32, 32, 64, 64, 32, 16};
  for (size_t i = 0; i < std::size(finite); ++i) {
    scale.update(options, finite[i]);
    EXPECT_EQ(scale.scale, wanted[i]) << "step " << i;
  }
}

TEST(LossScale, NeverFallsToWhatItCannotGrowFrom) {
  const LossScaleOptions options{.backoff = 1e-6, .interval = 1};
  LossScale scale{1};
  for (int step = 0; step < 100; ++step) scale.update(options, false);
  EXPECT_EQ(scale.scale, 1e-30);
  scale.update(options, true);
  EXPECT_EQ(scale.scale, 2e-30);
}

TEST(LossScale, DoesNotGrowPastFloat32) {
  const LossScaleOptions options{.growth = 1e6, .interval = 1};
  LossScale scale{1e33};
  scale.update(options, true);
  EXPECT_EQ(scale.scale, 1e33);
}

}  // namespace
}  // namespace cairn::step
