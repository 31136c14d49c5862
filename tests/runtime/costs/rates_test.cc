#include "runtime/costs/rates.h"

#include <gtest/gtest.h>

#include "rate_samples.h"
#include "runtime/base/error.h"
#include "runtime/costs/model.h"

namespace cairn::costs {
namespace {

constexpr double kOps = 1e9, kBytes = 1e8;  // a second's, by the model

device::DeviceInfo machine() {
  device::DeviceInfo info;
  info.name = "cpu";
  info.f32_flops_per_second = info.bf16_flops_per_second = kOps;
  info.memory_bytes_per_second = kBytes;
  info.memory_bytes = 1000;
  return info;
}

Model with(Rates rates, bool gpu = false) {
  auto table = std::make_shared<Table>();
  table->rates = std::move(rates);
  device::DeviceInfo info = machine();
  info.host_reaches = !gpu;
  return {info, table};
}
Model of_gpu(Rates rates) { return with(std::move(rates), true); }

double seconds(const Model& model, std::string_view op, double modelled, DType dtype = DType::kF32) {
  return model.seconds({.op = op, .dtype = dtype, .work = {modelled * kOps, 0}, .signature = {}}).seconds;
}

TEST(Rates, ReadBackAsWritten) {
  const std::string text = to_json(sample_rates());
  const Rates rates = rates_from_json(text);
  EXPECT_EQ(to_json(rates), text);
  EXPECT_EQ(rates.classes, sample_rates().classes);
  EXPECT_EQ(rates.host, sample_rates().host);
  EXPECT_EQ(rates.machine.cairn, "9.9.9");
}

TEST(Rates, WhatIsNoneIsRefusedWithItsPlace) {
  const auto failure = [](std::string from, const std::string& to) {
    std::string text = to_json(sample_rates());
    text.replace(text.find(from), from.size(), to);
    try {
      rates_from_json(text);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(failure("cairn.rates/1", "cairn.rates/2").find("format: expected 'cairn.rates/1'"),
            std::string::npos);
  EXPECT_NE(failure("\"seconds\": 2", "\"seconds\": 0").find("classes[0].seconds: must be above 0"),
            std::string::npos);
  EXPECT_NE(
      failure("\"busy_factor\": 0.5", "\"busy_factor\": 2").find("links[0].busy_factor: must not be above 1"),
      std::string::npos);
  EXPECT_NE(failure("\"host\"", "\"disk\"").find("links[0].tier"), std::string::npos);
  EXPECT_NE(failure("}\n", "").find("rates: not JSON"), std::string::npos);
}

// The sample's product takes twice what the model says of one second, and as long as it says of a hundred.
TEST(Rates, BetweenSizesByTheirLogarithm) {
  const Model model = with(sample_rates());
  EXPECT_DOUBLE_EQ(seconds(model, "linear", 1) - model.launch_seconds(), 2);
  EXPECT_DOUBLE_EQ(seconds(model, "linear", 100) - model.launch_seconds(), 100);
  EXPECT_DOUBLE_EQ(seconds(model, "linear", 10) - model.launch_seconds(), 15);
  EXPECT_NEAR(seconds(model, "linear", 0.01) - model.launch_seconds(), 0.02, 1e-12);
  EXPECT_DOUBLE_EQ(seconds(model, "linear", 1e4) - model.launch_seconds(), 1e4);
  EXPECT_EQ(model.launch_seconds(), 0.25);
  EXPECT_FALSE(model.seconds({.op = "linear", .work = {1, 1}, .signature = {}}).measured);
}

TEST(Rates, AClassThatIsMissingTakesTheNearest) {
  const Model model = with(sample_rates());
  const double launch = model.launch_seconds();
  // The op in another dtype; what is bound by products, or by bytes, as a product or an addition.
  EXPECT_DOUBLE_EQ(seconds(model, "linear", 1, DType::kBF16) - launch, 2);
  EXPECT_DOUBLE_EQ(seconds(model, "convolution", 1) - launch, 2);
  const Answer moved = model.seconds({.op = "slice", .work = {0, kBytes}, .signature = {}});
  EXPECT_DOUBLE_EQ(moved.seconds - launch, 0.5);
  // One parameter's update takes the optimizer's ratio, and what is around a step none but its own.
  EXPECT_DOUBLE_EQ(seconds(model, "update", 1) - launch, 3);
  EXPECT_DOUBLE_EQ(seconds(model, std::string(kHostOp), 1) - launch, 1);
}

// A GPU takes some time to begin an op, however little there is to do; the rest grows with the op.
TEST(Rates, OfAGpuOnTheLineBetweenSizes) {
  const Model model = of_gpu(sample_rates());
  const double launch = model.launch_seconds();
  EXPECT_DOUBLE_EQ(seconds(model, "linear", 1) - launch, 2);
  EXPECT_NEAR(seconds(model, "linear", 50.5) - launch, 51, 1e-9);
  EXPECT_NEAR(seconds(model, "linear", 199) - launch, 198, 1e-9);
  EXPECT_DOUBLE_EQ(seconds(model, "linear", 1e-3) - launch, 2);
  EXPECT_DOUBLE_EQ(seconds(model, kOptimizerOp, 0.01) - launch, 3) << "of one size alone";
  EXPECT_DOUBLE_EQ(seconds(model, kOptimizerOp, 10) - launch, 30);
  // One parameter's update does not begin as the whole does, with the norm.
  EXPECT_NEAR(seconds(model, "update", 0.01) - launch, 0.03, 1e-12);
}

// Products in 16 bits lower a GPU's clock when they last, which measuring is too short for; of others nothing is known.
TEST(Rates, OfAGpuUnderLastingLoad) {
  Rates rates = sample_rates();
  rates.classes.push_back({.op = "linear", .dtype = "bf16", .modelled_seconds = 1, .seconds = 1, .count = 1});
  rates.classes.push_back({.op = "linear", .dtype = "bf16", .modelled_seconds = 2, .seconds = 2, .count = 1});
  const Model model = of_gpu(rates);
  const double launch = model.launch_seconds();
  const double lasting = (seconds(model, "linear", 100, DType::kBF16) - launch) / 100;
  EXPECT_GT(lasting, 1.1);
  EXPECT_LT(lasting, 1.25);
  EXPECT_DOUBLE_EQ(seconds(model, "linear", 100, DType::kF16) - launch, 100 * lasting) << "as in bfloat16";
  EXPECT_DOUBLE_EQ(seconds(model, "linear", 100) - launch, 100);
  EXPECT_DOUBLE_EQ(seconds(with(rates), "linear", 100, DType::kBF16) - launch, 100) << "a processor";
}

TEST(Rates, OneSizeTwiceCountsOnce) {
  Rates rates = sample_rates();
  rates.classes.push_back(
      {.op = "optimizer", .dtype = "f32", .modelled_seconds = 1, .seconds = 5, .count = 1});
  EXPECT_DOUBLE_EQ(seconds(with(rates), kOptimizerOp, 1) - rates.launch_seconds, 4);
  EXPECT_DOUBLE_EQ(seconds(of_gpu(rates), kOptimizerOp, 1) - rates.launch_seconds, 4);
}

// Waking threads takes as long for however few parameters and inputs; larger inputs add their copies.
TEST(Rates, WhatHappensAroundAPlanHasAFixedPart) {
  Rates rates = sample_rates();
  rates.classes.push_back({.op = "host", .dtype = "f32", .modelled_seconds = 1, .seconds = 5, .count = 1});
  const Model model = with(rates);
  EXPECT_DOUBLE_EQ(seconds(model, kOptimizerOp, 0.01) - model.launch_seconds(), 3);
  EXPECT_DOUBLE_EQ(seconds(model, kOptimizerOp, 10) - model.launch_seconds(), 30);
  EXPECT_DOUBLE_EQ(seconds(model, kHostOp, 0.01) - model.launch_seconds(), 5);
  EXPECT_DOUBLE_EQ(seconds(model, kHostOp, 10) - model.launch_seconds(), 5 + 9);
}

TEST(Rates, TheLinkAloneAndUnderAThrottle) {
  const Model model = with(sample_rates());
  const plan::Link free = model.host_link(0);
  EXPECT_EQ(free.out_bytes_per_second, 8e9);
  EXPECT_EQ(free.busy_factor, 0.5);
  EXPECT_EQ(free.busy_rate_factor, 0.25);
  EXPECT_EQ(free.capacity_bytes, 800);
  // A quarter of the bytes takes a quarter of what kernels lose, and is no slower beside them.
  const plan::Link slow = model.host_link(2e9);
  EXPECT_EQ(slow.out_bytes_per_second, 2e9);
  EXPECT_DOUBLE_EQ(slow.busy_factor, 0.875);
  EXPECT_DOUBLE_EQ(slow.busy_rate_factor, 1);
  // Nothing was measured of the disk.
  EXPECT_EQ(model.disk_link(7), Model(machine(), nullptr).disk_link(7));
}

TEST(Rates, SustainedRatesAreThoseOfTheLargest) {
  const Sustained sustained = with(sample_rates()).sustained();
  EXPECT_DOUBLE_EQ(sustained.f32_flops_per_second, kOps);
  EXPECT_DOUBLE_EQ(sustained.memory_bytes_per_second, kBytes / 3);
}

}  // namespace
}  // namespace cairn::costs
