// The update as ops of the joint graph.
#include <gtest/gtest.h>

#include "runtime/graph/joint.h"

namespace cairn::graph {
namespace {

using ops::OpCode;

// Three parameters: one with decay, one without, one frozen.
std::shared_ptr<Graph> model() {
  auto g = std::make_shared<Graph>();
  ParameterOptions no_decay, frozen;
  no_decay.decay = false;
  frozen.frozen = true;
  const ValueId x = g->input("x", {DType::kF32, {4, 8}});
  const ValueId w = g->parameter("w", {DType::kF32, {8, 8}}, {});
  const ValueId b = g->parameter("b", {DType::kF32, {8}}, no_decay);
  const ValueId f = g->parameter("f", {DType::kF32, {8, 8}}, frozen);
  const ValueId y = g->op("linear", {g->op("linear", {x, f})[0], w, b})[0];
  const auto loss = g->op("mse", {y, g->input("t", {DType::kF32, {4, 8}})});
  g->freeze(loss[0], loss[1], {});
  return g;
}

TEST(Optimizer, OneNormAndOneUpdatePerTrainedParameterInGraphOrder) {
  const auto joint = derive(model(), {});
  ASSERT_EQ(joint->norm_ops.size(), 2u);
  ASSERT_EQ(joint->update_ops.size(), 2u);
  size_t i = 0;
  for (const ParameterSlot& slot : joint->parameters) {
    if (slot.gradient < 0) continue;
    ASSERT_EQ(slot.moments.size(), 2u);
    const JointOp &norm = joint->norm_ops.at(i), &update = joint->update_ops.at(i);
    EXPECT_EQ(norm.code, OpCode::k_sum_squares);
    EXPECT_EQ(norm.in, std::vector<int32_t>{slot.gradient});
    EXPECT_EQ(norm.out, std::vector<int32_t>{joint->norm});
    EXPECT_EQ(norm.accumulates, 1u);
    EXPECT_EQ(norm.first_writer, i == 0 ? 1u : 0u) << "the first overwrites, the others add";
    const bool decay = joint->values[slot.value].name == "w";
    EXPECT_EQ(update.code, OpCode::k_adamw);
    EXPECT_EQ(update.in, (std::vector<int32_t>{slot.gradient, joint->hyper[decay ? 1 : 0]}));
    EXPECT_EQ(update.out, (std::vector<int32_t>{slot.value, slot.moments[0], slot.moments[1]}));
    EXPECT_EQ(update.phase, Phase::kUpdate);
    ++i;
  }
  EXPECT_NE(joint->hyper[0], joint->hyper[1]);
}

}  // namespace
}  // namespace cairn::graph
