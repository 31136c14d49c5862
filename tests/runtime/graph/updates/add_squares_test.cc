// Sums of squares of gradients in the micro-batch: where they stand, and that the norm's own ops stay.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/graph/joint.h"

namespace cairn::graph {
namespace {

using ops::OpCode;

// A tied table, whose gradient two ops add to, and a layer with a bias, whose gradients one op makes.
std::shared_ptr<Graph> model() {
  auto g = std::make_shared<Graph>();
  const ValueId ids = g->input("ids", {DType::kI32, {2, 4}}),
                targets = g->input("targets", {DType::kI32, {2, 4}});
  const ValueId table = g->parameter("table", {DType::kF32, {11, 8}}, {});
  const ValueId x = g->op("embedding", {table, ids})[0];
  const ValueId w = g->parameter("w", {DType::kF32, {8, 8}}, {}),
                b = g->parameter("b", {DType::kF32, {8}}, {});
  const auto loss = g->op("linear_cross_entropy", {g->op("linear", {x, w, b})[0], table, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

std::shared_ptr<const JointGraph> derived(bool squares, bool fuse = false, std::string optimizer = "adamw") {
  JointOptions options;
  options.squares_in_backward = squares;
  options.fuse_update = fuse;
  options.optimizer.name = std::move(optimizer);
  return derive(model(), options);
}

TEST(AddSquares, TheyStandBehindWhatAddsToTheGradientLast) {
  const auto joint = derived(true);
  EXPECT_TRUE(joint->squares_in_backward);
  int found = 0;
  for (const ParameterSlot& slot : joint->parameters) {
    ASSERT_GE(slot.squares, 0);
    EXPECT_EQ(joint->values[slot.squares].role, Role::kScratch);
    int last = -1, squares = -1;
    for (int i = 0; i < static_cast<int>(joint->ops().size()); ++i) {
      const JointOp& op = joint->ops()[i];
      if (std::find(op.out.begin(), op.out.end(), slot.gradient) != op.out.end()) last = i;
      if (op.code != OpCode::k_sum_squares || op.in[0] != slot.gradient) continue;
      squares = i;
      ++found;
      EXPECT_EQ(op.out, std::vector<int32_t>{slot.squares});
      EXPECT_EQ(op.accumulates | op.first_writer, 0u) << "every micro-batch begins anew";
      EXPECT_TRUE(op.backward);
    }
    EXPECT_GT(squares, last);
    for (int i = last + 1; i < squares; ++i) EXPECT_EQ(joint->ops()[i].code, OpCode::k_sum_squares);
  }
  EXPECT_EQ(found, 3);
}

TEST(AddSquares, EverythingElseIsAsItWas) {
  const auto plain = derived(false), joint = derived(true);
  EXPECT_FALSE(plain->squares_in_backward);
  EXPECT_EQ(joint->ops().size(), plain->ops().size() + 3);
  EXPECT_EQ(joint->backward_begin, plain->backward_begin);
  ASSERT_EQ(joint->ops(kGradientNorm).size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const JointOp &op = joint->ops(kGradientNorm)[i], &before = plain->ops(kGradientNorm)[i];
    EXPECT_EQ(joint->values[op.in[0]].name, plain->values[before.in[0]].name);
    EXPECT_EQ(op.out[0], joint->norm);
    EXPECT_EQ(op.first_writer, before.first_writer);
  }
  const auto saved = [](const JointGraph& of) {
    return std::count_if(of.residents.begin(), of.residents.end(),
                         [](const Resident& resident) { return resident.saved != Saved::kNever; });
  };
  EXPECT_EQ(saved(*joint), saved(*plain)) << "nothing more is saved";
}

TEST(AddSquares, OnlyWhereThereIsANormOfGradientsThatLast) {
  EXPECT_FALSE(derived(true, true)->squares_in_backward) << "updates within backward have their own";
  EXPECT_FALSE(derived(true, false, "")->squares_in_backward);
}

}  // namespace
}  // namespace cairn::graph
