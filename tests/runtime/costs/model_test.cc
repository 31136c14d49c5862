#include "runtime/costs/model.h"

#include <gtest/gtest.h>

#include "samples.h"

namespace cairn::costs {
namespace {

device::DeviceInfo sample_device() {
  device::DeviceInfo info;
  info.name = "cpu";
  info.memory_bytes = 1000;
  info.bf16 = true;
  info.f32_flops_per_second = 1e9;
  info.bf16_flops_per_second = 4e9;
  info.memory_bytes_per_second = 1e8;
  return info;
}

Model with(Profile profile) {
  Table table;
  table.profile = std::move(profile);
  return {sample_device(), std::make_shared<const Table>(std::move(table))};
}

const Model kPlain(sample_device(), nullptr);

TEST(CostModel, ARooflineWithoutMeasurements) {
  const ops::Work arithmetic{2e9, 1e3}, traffic{1, 5e8};
  EXPECT_DOUBLE_EQ(kPlain.modelled(arithmetic, DType::kF32), 2);
  EXPECT_DOUBLE_EQ(kPlain.modelled(arithmetic, DType::kBF16), 0.5);
  EXPECT_DOUBLE_EQ(kPlain.modelled(traffic, DType::kBF16), 5);
  const Answer answer = kPlain.seconds({"linear", DType::kF32, arithmetic, "any"});
  EXPECT_FALSE(answer.measured);
  EXPECT_DOUBLE_EQ(answer.seconds, 2 + kPlain.launch_seconds());
}

TEST(CostModel, AGpuOfWhichNothingWasMeasuredTakesTheShareOfOne) {
  device::DeviceInfo gpu = sample_device();
  gpu.host_reaches = false;
  const Model plain(gpu, nullptr);
  const ops::Work second{1e9, 0};
  const auto ratio = [&](const Model& model, std::string_view op, DType dtype) {
    const double seconds = model.seconds({op, dtype, second, "any"}).seconds - model.launch_seconds();
    return seconds / model.modelled(second, dtype);
  };
  EXPECT_GT(ratio(plain, "attention_grad", DType::kBF16), 1.5);
  EXPECT_DOUBLE_EQ(ratio(plain, "linear", DType::kBF16), 1);
  EXPECT_DOUBLE_EQ(ratio(plain, "attention_grad", DType::kF32), 1);
  EXPECT_DOUBLE_EQ(ratio(kPlain, "attention_grad", DType::kBF16), 1) << "a processor";
  const Model described(gpu, std::make_shared<const Table>(from_json(kModel)));
  EXPECT_DOUBLE_EQ(ratio(described, "attention_grad", DType::kBF16), 1);
}

TEST(CostModel, AMatchingSignatureIsTaken) {
  const Model model = with(sample_profile());
  const Answer answer = model.seconds({"gelu", DType::kF32, {1e12, 1e12}, "gelu(f32[8]) -> (f32[8])"});
  EXPECT_TRUE(answer.measured);
  EXPECT_DOUBLE_EQ(answer.seconds, 3e-3 + 1e-6);
}

TEST(CostModel, TheRestIsScaledByItsClass) {
  Profile p = sample_profile();
  p.ops["gelu(f32[80]) -> (f32[80])"] = {
      .op = "gelu", .dtype = "f32", .median_seconds = 9e-3, .modelled_seconds = 5e-3, .count = 1};
  const Model model = with(p);
  const ops::Work second{1e9, 0};  // modelled as 1 s in f32
  // 12 ms measured where 6 ms were modelled.
  EXPECT_NEAR(model.seconds({"gelu", DType::kF32, second, "gelu(f32[9])"}).seconds, 2, 1e-5);
  EXPECT_NEAR(model.seconds({"linear", DType::kF32, second, "linear(f32[9])"}).seconds, 0.5, 1e-5);
  // Neither this op nor this dtype was measured: the ratio of all, 112 ms for 206 ms.
  EXPECT_NEAR(model.seconds({"rope", DType::kF32, second, "rope(f32[9])"}).seconds, 112.0 / 206, 1e-5);
  EXPECT_NEAR(model.seconds({"gelu", DType::kBF16, second, "gelu(bf16[9])"}).seconds, 112.0 / 206 / 4, 1e-5);
  EXPECT_FALSE(model.seconds({"gelu", DType::kF32, second, "gelu(f32[9])"}).measured);
}

TEST(CostModel, WhatIsAroundAPlanScalesByItselfAlone) {
  Profile p = sample_profile();
  p.ops["optimizer(1)"] = {
      .op = "optimizer", .dtype = "f32", .median_seconds = 8, .modelled_seconds = 1, .count = 1};
  const Model model = with(p);
  const ops::Work second{1e9, 0};
  EXPECT_NEAR(model.seconds({kOptimizerOp, DType::kF32, second, "optimizer(2)"}).seconds, 8, 1e-5);
  EXPECT_NEAR(model.seconds({kHostOp, DType::kF32, second, "host(2)"}).seconds, 1, 1e-5);
  EXPECT_NEAR(model.seconds({"rope", DType::kF32, second, "rope"}).seconds, 103.0 / 201, 1e-5);
}

TEST(CostModel, ADeviceModelReplacesTheRates) {
  const Model model(sample_device(), std::make_shared<const Table>(from_json(kModel)));
  EXPECT_DOUBLE_EQ(model.modelled({4e9, 0}, DType::kBF16), 1);
  EXPECT_DOUBLE_EQ(model.modelled({4e9, 0}, DType::kF16), 2);
  EXPECT_DOUBLE_EQ(model.launch_seconds(), 1e-3);
  const plan::Link link = model.host_link(0);
  EXPECT_EQ(link.out_bytes_per_second, 1e6);
  EXPECT_EQ(link.capacity_bytes, 800);  // of the machine here: the model names none
}

// A rate stated by a device with memory of its own is no throttle: what is measured counts, above it, too.
TEST(CostModel, AGuessedLinkGivesWayToTheMeasuredOne) {
  device::DeviceInfo info = sample_device();
  info.link_bytes_per_second = 5e9;
  EXPECT_EQ(info.throttle(), 5e9);
  info.host_reaches = false;
  EXPECT_EQ(info.throttle(), 0);
  const Model guessed(info, nullptr);
  EXPECT_EQ(guessed.host_link(info.throttle()).in_bytes_per_second, 5e9);
  EXPECT_EQ(guessed.host_link(info.throttle()).both_ways_factor, 1);
  Table table;
  table.profile = sample_profile();
  const Model measured(info, std::make_shared<const Table>(std::move(table)));
  EXPECT_EQ(measured.host_link(info.throttle()).out_bytes_per_second, 8e9);
}

// What a device with memory of its own has on a disk crosses its link; the host reads the disk without.
TEST(CostModel, ADeviceIsNoFasterOnADiskThanItsLink) {
  device::DeviceInfo info;
  info.host_reaches = false;
  info.link_bytes_per_second = 5e9;
  const plan::Link probed{"disk", 1e-4, 4e9, 30e9, 0.6, 0};
  const Model card(info, nullptr);
  const plan::Link disk = card.disk_link(77, &probed);
  EXPECT_EQ(disk.in_bytes_per_second, 5e9);
  EXPECT_EQ(disk.out_bytes_per_second, 4e9);
  EXPECT_EQ(card.host_disk_link(disk, &probed).in_bytes_per_second, 30e9);
  EXPECT_EQ(card.host_disk_link(disk, nullptr), disk) << "nothing else is known";
  EXPECT_EQ(kPlain.disk_link(77, &probed).in_bytes_per_second, 30e9);

  Table table;
  table.model.emplace().links = {disk};
  const auto modelled = [&] { return Model(info, std::make_shared<const Table>(table)); };
  EXPECT_EQ(modelled().host_disk_link(disk, &probed), disk) << "the machine at hand is another";
  table.model->host_disk = probed;
  EXPECT_EQ(modelled().host_disk_link(disk, nullptr), probed);
}

TEST(CostModel, LinksAreTheMeasuredOnes) {
  EXPECT_EQ(kPlain.host_link(0).tier, "host");
  EXPECT_EQ(kPlain.host_link(5e9).out_bytes_per_second, 5e9);
  EXPECT_EQ(kPlain.host_link(5e9).both_ways_factor, 1);
  EXPECT_EQ(kPlain.disk_link(77).capacity_bytes, 77);
  plan::Link probed{"disk", 1e-4, 2e9, 3e9, 0.6, 0};
  EXPECT_EQ(kPlain.disk_link(77, &probed).in_bytes_per_second, 3e9);
  EXPECT_EQ(kPlain.disk_link(77, &probed).capacity_bytes, 77);
  EXPECT_FALSE(kPlain.knows_disk());

  Profile p = sample_profile();
  const plan::Link free = with(p).host_link(0);
  EXPECT_EQ(free.out_bytes_per_second, 8e9);
  EXPECT_EQ(free.in_bytes_per_second, 4e9);
  EXPECT_EQ(free.capacity_bytes, 800);
  // A throttle that was not measured caps each direction, and leaves less contention: both share 2e9.
  const plan::Link capped = with(p).host_link(5e9);
  EXPECT_EQ(capped.out_bytes_per_second, 5e9);
  EXPECT_EQ(capped.in_bytes_per_second, 4e9);
  EXPECT_DOUBLE_EQ(capped.both_ways_factor, 0.5);
  EXPECT_EQ(with(p).host_link(1e9).both_ways_factor, 1);
  p.set_link({{"host", 7, 4.9e9, 4.8e9, 0.9, 0}, 5e9});
  EXPECT_EQ(with(p).host_link(5e9).in_bytes_per_second, 4.8e9);
  // Only a throttled link is known: it says nothing about the free one.
  p.links.erase(p.links.begin());
  EXPECT_EQ(with(p).host_link(0).out_bytes_per_second, kPlain.host_link(0).out_bytes_per_second);
}

}  // namespace
}  // namespace cairn::costs
