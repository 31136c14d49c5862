// Updates in the midst of backward: where they stand, and what they leave alone.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/graph/joint.h"

namespace cairn::graph {
namespace {

using ops::OpCode;

// A tied table, a residual connection, a norm: parameters that one op reads, and that several do.
std::shared_ptr<Graph> model() {
  auto g = std::make_shared<Graph>();
  const ValueId ids = g->input("ids", {DType::kI32, {2, 4}}),
                targets = g->input("targets", {DType::kI32, {2, 4}});
  const ValueId table = g->parameter("table", {DType::kF32, {11, 8}}, {});
  ValueId x = g->op("embedding", {table, ids})[0];
  for (int i = 0; i < 3; ++i) {
    const ValueId gain = g->parameter(cat("g", i), {DType::kF32, {8}}, {});
    const ValueId w = g->parameter(cat("w", i), {DType::kF32, {8, 8}}, {});
    const ValueId h = g->op("gelu", {g->op("linear", {g->op("rmsnorm", {x, gain})[0], w})[0]})[0];
    x = g->op("add", {x, h})[0];
  }
  const auto loss = g->op("linear_cross_entropy", {x, table, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

std::shared_ptr<const JointGraph> fused() {
  JointOptions options;
  options.fuse_update = true;
  return derive(model(), options);
}

size_t index_of(const JointGraph& joint, const auto& predicate) {
  const auto found = std::find_if(joint.ops().begin(), joint.ops().end(), predicate);
  return static_cast<size_t>(found - joint.ops().begin());
}

TEST(FuseUpdates, WhatOneOpWritesIsUpdatedInBackward) {
  const auto joint = fused();
  int count = 0;
  for (const ParameterSlot& slot : joint->parameters) {
    const std::string& name = joint->values[slot.value].name;
    EXPECT_EQ(slot.fused, name != "table") << name << ": the tied table's gradient has two parts";
    EXPECT_GE(slot.squares, 0);
    EXPECT_EQ(joint->values[slot.gradient].role, slot.fused ? Role::kBackward : Role::kGradient);
    if (!slot.fused) continue;
    ++count;
    const size_t update = index_of(
        *joint, [&](const JointOp& op) { return op.code == OpCode::k_update && op.out[0] == slot.value; });
    ASSERT_LT(update, joint->ops().size());
    const JointOp& op = joint->ops()[update];
    EXPECT_EQ(op.in[0], slot.gradient);
    EXPECT_EQ(op.in[2], slot.squares);
    EXPECT_EQ(op.out[update_op::kGradScale], joint->grad_scale);
    EXPECT_EQ(joint->ops()[update - 1].code, OpCode::k_sum_squares)
        << "its infinities and NaNs are found before it";
    EXPECT_EQ(joint->ops()[update - 1].out[0], slot.squares);
    EXPECT_EQ(joint->ops()[update - 1].accumulates, 0u);
    // Nobody reads the gradient or the parameter afterwards.
    for (size_t i = update + 1; i < joint->ops().size(); ++i)
      for (const int32_t v : joint->ops()[i].in)
        EXPECT_TRUE(v < 0 || (joint->storage(v) != slot.value && v != slot.gradient)) << joint->ops()[i].name;
  }
  EXPECT_EQ(count, 6);
  ASSERT_EQ(joint->ops(kUpdate).size(), 1u);
  EXPECT_EQ(joint->values[joint->ops(kUpdate)[0].out[0]].name, "table");
}

// Whatever recomputing starts from after an update must not lead through the parameter.
TEST(FuseUpdates, NoLaterOpNeedsTheParameterNotEvenByRecomputing) {
  const auto joint = fused();
  for (const ParameterSlot& slot : joint->parameters) {
    if (!slot.fused) continue;
    std::vector<bool> tainted(joint->values.size());  // by forward ops, from this parameter
    tainted[slot.value] = true;
    size_t update = joint->ops().size();
    for (size_t i = 0; i < joint->ops().size(); ++i) {
      const JointOp& op = joint->ops()[i];
      const bool reads = std::any_of(op.in.begin(), op.in.end(),
                                     [&](int32_t v) { return v >= 0 && tainted[joint->storage(v)]; });
      if (!op.backward && reads)
        for (const int32_t v : op.out)
          if (v >= 0) tainted[joint->storage(v)] = true;
      if (op.code == OpCode::k_update && op.out[0] == slot.value) update = i;
      if (i > update)
        EXPECT_FALSE(reads) << op.name << " after the update of " << joint->values[slot.value].name;
    }
  }
  // And it is no later than that: the last layer's weight is updated before the first layer's gradient is
  // made.
  const int32_t last = joint->find("w2"), first = joint->find("w0/gradient");
  const size_t update =
      index_of(*joint, [&](const JointOp& op) { return op.code == OpCode::k_update && op.out[0] == last; });
  const size_t gradient = index_of(*joint, [&](const JointOp& op) {
    return std::find(op.out.begin(), op.out.end(), first) != op.out.end();
  });
  EXPECT_LT(update, gradient);
}

TEST(FuseUpdates, TheGradScaleIsKnownWithTheLoss) {
  const auto joint = fused();
  const size_t grad_scale =
      index_of(*joint, [](const JointOp& op) { return op.code == OpCode::k_grad_scale; });
  const size_t first = index_of(*joint, [](const JointOp& op) { return op.code == OpCode::k_update; });
  ASSERT_LT(grad_scale, first);
  EXPECT_GT(grad_scale, static_cast<size_t>(joint->backward_begin));
  EXPECT_EQ(joint->ops()[grad_scale].in, (std::vector<int32_t>{joint->loss, joint->weight}));
  const size_t loss = index_of(*joint, [&](const JointOp& op) {
    return std::find(op.out.begin(), op.out.end(), joint->loss) != op.out.end();
  });
  EXPECT_LT(loss, grad_scale);
  EXPECT_EQ(derive(model(), {})->grad_scale, -1) << "only where it is asked for";
}

// They are numbered by op, and updates stand between ops.
TEST(FuseUpdates, PacksThatWereLeftOutStayWithTheirOps) {
  JointOptions options;
  options.fuse_update = true;
  options.packed_bytes = [](const TensorDesc& w, std::string_view use, int64_t, DType, int) {
    return use == "any" ? 0 : 4 * w.shape.elements();
  };
  for (int i = 0; i < 3; ++i)
    for (const char* use : {"forward", "input_grad"}) options.not_kept.insert({cat("w", i), use});
  const auto joint = derive(model(), options);
  ASSERT_EQ(joint->plain_uses.size(), 6u);
  for (const PlainUse& use : joint->plain_uses) {
    const JointOp& op = joint->ops()[static_cast<size_t>(use.op)];
    const JointOp& pack = joint->not_kept[static_cast<size_t>(use.pack)].node;
    EXPECT_EQ(op.code, pack.attrs.word("use") == "forward" ? OpCode::k_linear : OpCode::k_linear_grad_input)
        << op.name;
    EXPECT_EQ(op.in[static_cast<size_t>(use.operand)], pack.in[0]) << op.name;
  }
}

}  // namespace
}  // namespace cairn::graph
