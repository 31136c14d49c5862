// Files know one parameter, whether its vocabulary is in parts or not.
#include <gtest/gtest.h>

#include "runtime/io/checkpoint.h"
#include "runtime/io/manifest.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {

// A lookup, a norm and the fused loss over the same table, which is large enough for two parts.
std::shared_ptr<graph::Graph> tied() {
  auto g = std::make_shared<graph::Graph>();
  const auto ids = g->input("ids", {DType::kI32, {2, 4}}),
             targets = g->input("targets", {DType::kI32, {2, 4}});
  const auto table =
      g->parameter("wte", {DType::kF32, {1536, 8}}, {.init = graph::Init::kNormal, .init_scale = 0.02});
  const auto gamma = g->parameter("ln.weight", {DType::kF32, {8}}, {.decay = false, .init_scale = 1});
  const auto x = g->op("layernorm", {g->op("embedding", {table, ids})[0], gamma}, {{"eps", 1e-6}})[0];
  const auto loss = g->op("linear_cross_entropy", {x, table, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

TEST(VocabularyInParts, IsOneParameterToFiles) {
  constexpr uint64_t cut = 7, end = 12;  // in the middle of an effective batch: gradients are saved, too
  const test::Scratch scratch;
  engine::PlanOptions parts = test::Rig::two_tiers();
  parts.forced.vocabulary_parts = 2;
  parts.micro_steps = 3;
  test::Rig whole(tied(), 7), split(tied(), 7, parts);
  ASSERT_FALSE(split.session->plan().joint->slices.empty());
  EXPECT_EQ(split.digest(), whole.digest());
  whole.train(0, cut);
  split.train(0, cut);
  save(*whole.stepper, scratch / "whole", {});
  save(*split.stepper, scratch / "split", {});
  EXPECT_EQ(test::slurp(scratch / "split" / kTensorsName), test::slurp(scratch / "whole" / kTensorsName));
  test::Rig on_whole(tied(), 98), on_split(tied(), 99, parts);
  Checkpoint(scratch / "split").restore(*on_whole.stepper);
  Checkpoint(scratch / "whole").restore(*on_split.stepper);
  whole.train(cut, end);
  for (test::Rig* rig : {&split, &on_whole, &on_split}) {
    rig->train(cut, end);
    EXPECT_EQ(rig->digest(), whole.digest());
  }
}

}  // namespace
}  // namespace cairn::io
