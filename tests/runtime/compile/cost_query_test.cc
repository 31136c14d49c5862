#include "runtime/compile/cost_query.h"

#include <set>

#include "tests/runtime/compile/support.h"

namespace cairn::engine {
namespace {

std::shared_ptr<const graph::JointGraph> joint_of(std::shared_ptr<const Graph> graph) {
  return graph::derive(std::move(graph), {});
}

TEST(CostQuery, LayersOfOneShapeShareASignature) {
  const auto joint = joint_of(transformer(3));
  std::map<std::string, int> met;
  for (const graph::JointOp& op : joint->ops()) ++met[query_of(*joint, op).signature];
  EXPECT_EQ(met.at("attention(f32[2, 12, 96], -, -) -> (f32[2, 12, 32], f32[2, 4, 12]) heads=4"), 3);
  // Dropout draws from another stream in each layer, which costs nothing.
  int dropouts = 0;
  for (const auto& [signature, count] : met)
    if (signature.starts_with("dropout(")) {
      ++dropouts;
      EXPECT_EQ(count % 3, 0) << signature;
      EXPECT_NE(signature.find(" rate=0.2"), std::string::npos) << signature;
    }
  EXPECT_EQ(dropouts, 1);
}

TEST(CostQuery, ShapesDtypesPresenceAndAttributesTellOpsApart) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->input("x", {DType::kF32, {2, 12, 96}});
  const ValueId a = g->op("attention", {x}, {{"heads", int64_t{4}}})[0];
  const ValueId b = g->op("attention", {x}, {{"heads", int64_t{8}}})[0];
  const ValueId y = g->input("y", {DType::kF32, {4, 12, 96}});
  const ValueId c = g->op("attention", {y}, {{"heads", int64_t{4}}})[0];
  g->freeze(graph::kNone, graph::kNone, {a, b, c});
  const auto joint = joint_of(g);
  std::set<std::string> signatures;
  for (const graph::JointOp& op : joint->ops()) signatures.insert(query_of(*joint, op).signature);
  EXPECT_EQ(signatures.size(), 3u);
}

TEST(CostQuery, AFusedOpIsNotThePlainOne) {
  const auto joint = joint_of(transformer(1));
  std::set<std::string> products, norms;
  for (const graph::JointOp& op : joint->ops()) {
    if (op.code == ops::OpCode::k_linear_grad_input) products.insert(query_of(*joint, op).signature);
    if (op.code == ops::OpCode::k_layernorm_grad) norms.insert(query_of(*joint, op).signature);
  }
  const auto with = [](const std::set<std::string>& list, std::string_view word) {
    return std::count_if(list.begin(), list.end(),
                         [&](const std::string& s) { return s.find(word) != s.npos; });
  };
  EXPECT_EQ(with(products, "activation="), 1);
  EXPECT_EQ(with(products, ", -) ->"), static_cast<int64_t>(products.size()) - 1);
  EXPECT_EQ(with(norms, ", -) ->"), 1) << "the last norm adds nothing";
  EXPECT_EQ(norms.size(), 2u);
}

TEST(CostQuery, ArithmeticIsAsNarrowAsTheNarrowestOperand) {
  graph::JointOptions options;
  options.amp = graph::AmpMode::kBf16;
  const auto joint = graph::derive(transformer(1), options);
  for (const graph::JointOp& op : joint->ops()) {
    if (op.code == ops::OpCode::k_linear) EXPECT_EQ(query_of(*joint, op).dtype, DType::kBF16) << op.name;
    if (op.code == ops::OpCode::k_linear) EXPECT_GT(query_of(*joint, op).work.flops, 0);
  }
}

TEST(CostQuery, CustomOpsGoByTheirName) {
  const auto signature = [](const std::string& first, const std::string& second) {
    auto g = std::make_shared<Graph>();
    for (const std::string& name : {first, second}) {
      graph::CustomOp op;
      op.name = name;
      op.inputs = op.outputs = 1;
      op.shape = [](std::span<const TensorDesc> in, std::span<TensorDesc> out) {
        out[0] = in[0];
        return true;
      };
      op.forward = [](std::span<const Tensor>, std::span<const Tensor>, void*) { return true; };
      g->custom(op);
    }
    const ValueId y = g->op("twist", {g->input("x", {DType::kF32, {4}})})[0];
    g->freeze(graph::kNone, graph::kNone, {y});
    const auto joint = joint_of(g);
    return query_of(*joint, joint->ops().front()).signature;
  };
  EXPECT_EQ(signature("twist", "shout"), signature("shout", "twist"));
  EXPECT_NE(signature("twist", "shout").find("custom=twist"), std::string::npos);
}

TEST(CostQuery, WhatIsAroundAPlan) {
  const auto joint = joint_of(mlp(2, false));
  const costs::Query optimizer = optimizer_query(*joint);
  // Two layers of up, bias, down, and the head.
  EXPECT_EQ(optimizer.signature,
            cat("optimizer(7 tensors, ", 2 * (48 * 24 + 48 + 24 * 48) + 10 * 24, " elements)"));
  EXPECT_GT(optimizer.work.bytes, 0);
  EXPECT_EQ(host_query(*joint).signature, cat("host(2 inputs, ", 32 * 24 * 4 + 32 * 4, " bytes)"));
}

TEST(CostQuery, InputsThatNoNumberCountsAreRefused) {
  graph::JointGraph joint;
  for (int i = 0; i < 3; ++i)
    joint.values.push_back({cat("x", i), {DType::kF32, {int64_t{1} << 60}}, graph::Role::kInput});
  try {
    host_query(joint);
    FAIL() << "3 * 2^62 bytes";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("overflows"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace cairn::engine
