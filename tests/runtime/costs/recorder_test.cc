#include "runtime/costs/recorder.h"

#include <gtest/gtest.h>

#include "samples.h"

namespace cairn::costs {
namespace {

TEST(Recorder, MediansPerPlaceAveragedOverThePlaces) {
  Recorder recorder;
  EXPECT_TRUE(recorder.empty());
  const Query query{"gelu", DType::kBF16, {}, "gelu(bf16[8])"};
  for (const double seconds : {1.0, 2.0, 100.0}) recorder.add(query, 0.5, 0, seconds);
  for (const double seconds : {8.0, 8.0, 9.0}) recorder.add(query, 0.5, 1, seconds);
  Profile p = sample_profile();
  recorder.merge_into(p);
  const OpCost& cost = p.ops.at("gelu(bf16[8])");
  EXPECT_EQ(cost.op, "gelu");
  EXPECT_EQ(cost.dtype, "bf16");
  EXPECT_DOUBLE_EQ(cost.median_seconds, (2 + 8) / 2.0);
  EXPECT_DOUBLE_EQ(cost.spread_seconds, (49.5 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(cost.modelled_seconds, 0.5);
  EXPECT_EQ(cost.count, 6);
  EXPECT_EQ(p.ops.size(), 3u);               // the others stay
  EXPECT_DOUBLE_EQ(p.launch_seconds, 1e-6);  // no run told of it
}

TEST(Recorder, ReplacesWhatWasThere) {
  Recorder recorder;
  recorder.add({"gelu", DType::kF32, {}, "gelu(f32[8]) -> (f32[8])"}, 1, 0, 4);
  recorder.add_launch(3e-6);
  recorder.add_launch(5e-6);
  recorder.add_launch(4e-6);
  Profile p = sample_profile();
  recorder.merge_into(p);
  EXPECT_DOUBLE_EQ(p.ops.at("gelu(f32[8]) -> (f32[8])").median_seconds, 4);
  EXPECT_EQ(p.ops.at("gelu(f32[8]) -> (f32[8])").count, 1);
  EXPECT_DOUBLE_EQ(p.launch_seconds, 4e-6);
}

TEST(Recorder, OpsAddUpToTheMedianRun) {
  Recorder recorder;
  const double seconds[3][2] = {{1, 1}, {1, 2}, {2, 1}};  // the medians of both add up to 2, runs to 2, 3, 3
  for (const auto& run : seconds) {
    recorder.begin_run();
    recorder.add({"gelu", DType::kF32, {}, "gelu(1)"}, 1, 0, run[0]);
    recorder.add({"gelu", DType::kF32, {}, "gelu(1)"}, 1, 1, run[1]);
    recorder.end_run();
    recorder.add({"host", DType::kF32, {}, "host(1)"}, 1, 0, 10);
  }
  Profile p;
  recorder.merge_into(p);
  EXPECT_DOUBLE_EQ(p.ops.at("gelu(1)").median_seconds, 1.5);
  EXPECT_DOUBLE_EQ(p.ops.at("host(1)").median_seconds, 10);
}

TEST(Recorder, SecondsBelowZeroAreNone) {  // a difference of two noisy times
  Recorder recorder;
  recorder.add({"host", DType::kF32, {}, "host(1)"}, 1, 0, -4);
  Profile p;
  recorder.merge_into(p);
  EXPECT_EQ(p.ops.at("host(1)").median_seconds, 0);
}

}  // namespace
}  // namespace cairn::costs
