// The loss scale's trace over steps, infinities included, equals torch.amp.GradScaler's (make_loss_scale.py).
#include "runtime/step/loss_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace cairn::step {
namespace {

TEST(LossScale, FollowsPyTorch) {
  std::ifstream file(std::string(CAIRN_SOURCE_DIR) + "/tests/golden/data/loss_scale.txt");
  LossScaleOptions options;
  LossScale scale;
  int steps = 0, settings = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::vector<double> numbers;
    for (double number; words >> number;) numbers.push_back(number);
    if (numbers.size() == 4) {
      options = {numbers[0], numbers[1], numbers[2], static_cast<uint32_t>(numbers[3])};
      check(options);
      scale = {options.initial, 0};
      ++settings;
      continue;
    }
    ASSERT_EQ(numbers.size(), 3u) << line;
    scale.update(options, numbers[0] != 0);
    ++steps;
    EXPECT_NEAR(scale.scale, numbers[1], 1e-5 * numbers[1]) << "step " << steps;  // PyTorch's is a float32
    EXPECT_EQ(scale.finite_steps, numbers[2]) << "step " << steps;
  }
  EXPECT_EQ(settings, 4);
  EXPECT_EQ(steps, 4 * 120);
}

TEST(LossScale, OptionsOutOfRangeAreNamed) {
  const auto refused = [](const LossScaleOptions& options) {
    try {
      check(options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused({}), "");
  EXPECT_NE(refused({.initial = -1}).find("loss_scale is -1"), std::string::npos);
  EXPECT_NE(refused({.initial = std::nan("")}).find("loss_scale is nan"), std::string::npos);
  EXPECT_NE(refused({.growth = 0.5}).find("loss_scale_growth"), std::string::npos);
  EXPECT_NE(refused({.backoff = 1}).find("loss_scale_backoff"), std::string::npos);
  EXPECT_NE(refused({.interval = 0}).find("loss_scale_interval"), std::string::npos);
}

}  // namespace
}  // namespace cairn::step
