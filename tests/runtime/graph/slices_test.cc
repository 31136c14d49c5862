// Weights of a vocabulary in parts: what becomes of the ops, and which weights may be.
#include <gtest/gtest.h>

#include "runtime/graph/joint.h"

namespace cairn::graph {
namespace {

using ops::OpCode;

struct Options {
  bool tied = true, projected = false, frozen = false;
};

// tokens -> embedding -> layernorm -> fused loss; `projected`: the table is read by a product as well.
std::shared_ptr<Graph> model(const Options& o) {
  auto g = std::make_shared<Graph>();
  const TensorDesc weight{DType::kF32, {16, 8}};
  const ValueId tokens = g->input("tokens", {DType::kI32, {2, 3}}),
                targets = g->input("targets", {DType::kI32, {2, 3}});
  const ValueId table = g->parameter("table", weight, {.frozen = o.frozen});
  const ValueId head = o.tied ? table : g->parameter("head", weight, {});
  ValueId x = g->op("embedding", {table, tokens})[0];
  if (o.projected) {
    const ValueId y = g->op("linear", {x, table})[0];
    x = g->op("linear", {y, g->parameter("back", {DType::kF32, {8, 16}}, {})})[0];
  }
  x = g->op("layernorm", {x, g->parameter("g", {DType::kF32, {8}}, {})})[0];
  const auto loss = g->op("linear_cross_entropy", {x, head, targets}, {{"chunk", int64_t{2}}});
  g->freeze(loss[0], loss[1], {});
  return g;
}

std::shared_ptr<const JointGraph> in_parts(const Options& o, AmpMode amp = AmpMode::kOff) {
  JointOptions options;
  options.amp = amp;
  options.parts = {{"table", {0, 5, 12}}};
  return derive(model(o), options);
}

std::vector<JointOp> of(const JointGraph& joint, OpCode code) {
  std::vector<JointOp> found;
  for (const JointOp& op : joint.ops())
    if (op.code == code) found.push_back(op);
  return found;
}

TEST(Slices, EveryPartHasAnOpOfItsOwn) {
  const auto joint = in_parts({});
  ASSERT_EQ(joint->slices.size(), 2u);
  const ParameterSlot& slot = joint->parameters[0];
  const Slices *weight = joint->slices_of(slot.value), *gradient = joint->slices_of(slot.gradient);
  ASSERT_TRUE(weight != nullptr && gradient != nullptr);
  const int64_t rows[] = {5, 7, 4};
  ASSERT_EQ(weight->parts.size(), 3u);
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(joint->values[static_cast<size_t>(weight->parts[k])].desc.shape, (Shape{rows[k], 8}));
    EXPECT_EQ(joint->values[static_cast<size_t>(gradient->parts[k])].role, Role::kGradient);
  }
  EXPECT_EQ(joint->values[static_cast<size_t>(weight->parts[1])].name, "table[5:12]");
  for (const OpCode code :
       {OpCode::k_embedding_part, OpCode::k_linear_cross_entropy_max, OpCode::k_linear_cross_entropy_sum,
        OpCode::k_linear_cross_entropy_part, OpCode::k_embedding_part_grad}) {
    const std::vector<JointOp> parts = of(*joint, code);
    ASSERT_EQ(parts.size(), 3u) << ops::name(code);
    EXPECT_EQ(parts[1].attrs.integer("first"), 5) << ops::name(code);
  }
  for (const OpCode code :
       {OpCode::k_embedding, OpCode::k_embedding_grad, OpCode::k_linear_cross_entropy_grad})
    EXPECT_TRUE(of(*joint, code).empty()) << ops::name(code);
  // Nothing in the micro-batch has the whole, which the update and the states are of.
  for (const JointOp& op : joint->ops())
    for (const auto* list : {&op.in, &op.out})
      for (const int32_t v : *list) EXPECT_TRUE(v != slot.value && v != slot.gradient) << op.name;
  EXPECT_EQ(joint->ops(kUpdate)[0].out[0], slot.value);
  EXPECT_EQ(joint->residents.size(), derive(model({}), {})->residents.size());
  // The loss writes first, the lookup's gradient adds; backward begins where the fused loss stood.
  const std::vector<JointOp> loss = of(*joint, OpCode::k_linear_cross_entropy_part);
  EXPECT_EQ(loss[0].first_writer, 2u);
  EXPECT_EQ(loss[0].attrs.integer("chunk"), 2);
  EXPECT_EQ(of(*joint, OpCode::k_embedding_part_grad)[0].first_writer, 0u);
  EXPECT_EQ(joint->ops()[static_cast<size_t>(joint->backward_begin)].code,
            OpCode::k_linear_cross_entropy_max);
  EXPECT_TRUE(of(*joint, OpCode::k_cast).empty());
}

TEST(Slices, GradientsOfNarrowActivationsAreRoundedOnce) {
  const auto joint = in_parts({}, AmpMode::kBf16);
  const std::vector<JointOp> parts = of(*joint, OpCode::k_linear_cross_entropy_part);
  ASSERT_EQ(parts.size(), 3u);
  for (const JointOp& part : parts)
    EXPECT_EQ(joint->values[static_cast<size_t>(part.out[0])].desc.dtype, DType::kF32);
  bool rounded = false;
  for (const JointOp& op : of(*joint, OpCode::k_cast)) rounded = rounded || op.in[0] == parts[2].out[0];
  EXPECT_TRUE(rounded);
}

TEST(Slices, OnlyWhatLookupsAndFusedLossesAloneUse) {
  const auto may = [](const Options& o) {
    const auto joint = derive(model(o), {});
    return slices_by_rows(*joint, joint->parameters[0]);
  };
  EXPECT_TRUE(may({}));
  EXPECT_TRUE(may({.tied = false}));
  EXPECT_TRUE(may({.frozen = true}));
  EXPECT_FALSE(may({.projected = true}));
  EXPECT_TRUE(in_parts({.projected = true})->slices.empty());
  JointOptions fused;
  fused.fuse_update = true;
  fused.parts = {{"table", {0, 5}}};
  EXPECT_TRUE(derive(model({}), fused)->slices.empty());
}

}  // namespace
}  // namespace cairn::graph
