// Ops with adapters: what they are made of, what is frozen, what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/graph/joint.h"

namespace cairn::graph {
namespace {

TensorDesc f32(std::initializer_list<int64_t> dims) { return {DType::kF32, Shape(dims)}; }

// Two layers between a table and a head.
struct Model {
  std::shared_ptr<Graph> g = std::make_shared<Graph>();
  ValueId hidden = kNone, loss = kNone, weight = kNone;

  explicit Model(std::vector<AdapterRule> rules, bool tied = false, std::string_view activation = "") {
    for (AdapterRule& rule : rules) g->adapt(std::move(rule));
    const ValueId ids = g->input("ids", {DType::kI32, {4, 8}}),
                  targets = g->input("targets", {DType::kI32, {4, 8}});
    const ValueId table = g->parameter("wte.weight", f32({19, 16}), {});
    const RegionId region = g->region_begin("h0", Policy::kPlannerDecides);
    ValueId x = g->op("embedding", {table, ids})[0];
    Attrs attrs;
    if (!activation.empty()) attrs.set("activation", std::string(activation));
    const auto out = g->op("linear",
                           {x, g->parameter("h.0.up_proj.weight", f32({24, 16}), {}),
                            g->parameter("h.0.up_proj.bias", f32({24}), {})},
                           attrs);
    hidden = out[0];
    x = g->op("linear", {hidden, g->parameter("h.0.down_proj.weight", f32({16, 24}), {})})[0];
    g->region_end(region);
    const ValueId head = tied ? table : g->parameter("head.weight", f32({19, 16}), {});
    const auto made = g->op("linear_cross_entropy", {x, head, targets});
    loss = made[0];
    weight = made[1];
  }
  std::shared_ptr<Graph> freeze() {
    g->freeze(loss, weight, {});
    return g;
  }
  const Value& value(std::string_view name) const {
    const ValueId v = g->find(name);
    EXPECT_NE(v, kNone) << name;
    return g->values()[static_cast<size_t>(std::max(v, 0))];
  }
};

std::vector<std::string> trained(const Graph& g) {
  std::vector<std::string> names;
  for (const Value& v : g.values())
    if (v.kind == ValueKind::kParameter && !v.parameter.frozen) names.push_back(v.name);
  return names;
}

std::string refusal(std::vector<AdapterRule> rules, bool tied = false) {
  try {
    Model(std::move(rules), tied).freeze();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  ADD_FAILURE() << "nothing is refused";
  return "";
}

TEST(Adapters, LinearLayersGetThemInTheirRegionAndAllElseIsFrozen) {
  Model m({{.rank = 4, .alpha = 8}});
  m.freeze();
  EXPECT_EQ(trained(*m.g),
            (std::vector<std::string>{"h.0.up_proj.lora_A.weight", "h.0.up_proj.lora_B.weight",
                                      "h.0.down_proj.lora_A.weight", "h.0.down_proj.lora_B.weight"}));
  EXPECT_EQ(m.value("h.0.up_proj.lora_A.weight").desc, f32({4, 16}));
  EXPECT_EQ(m.value("h.0.up_proj.lora_B.weight").desc, f32({24, 4}));
  EXPECT_EQ(m.value("h.0.up_proj.lora_A.weight").parameter.init, Init::kUniform);
  EXPECT_DOUBLE_EQ(m.value("h.0.up_proj.lora_A.weight").parameter.init_scale, 0.25);
  EXPECT_EQ(m.value("h.0.up_proj.lora_B.weight").parameter.init_scale, 0);
  for (const Value& v : m.g->values())
    if (v.name.find("up_proj") != std::string::npos) EXPECT_EQ(v.region, 0) << v.name;
  const Op& scale = m.g->ops()[static_cast<size_t>(m.value("h.0.up_proj/scaled").producer)];
  EXPECT_EQ(scale.attrs.real("factor"), 2);
  // No gradient and no state of what is frozen, and no product that makes one.
  const auto joint = derive(m.g, {});
  for (const JointValue& v : joint->values) {
    const bool of_adapter = v.name.find("lora_") != std::string::npos;
    if (v.role == Role::kGradient || v.role == Role::kOptimizer) EXPECT_TRUE(of_adapter) << v.name;
  }
  const auto products = std::ranges::count_if(
      joint->ops(), [](const JointOp& op) { return op.code == ops::OpCode::k_linear_grad_weight; });
  EXPECT_EQ(products, 4);
}

TEST(Adapters, TheActivationIsThatOfTheSum) {
  for (const char* activation : {"relu", "gelu_erf", "silu"}) {
    Model m({{.targets = {"up_proj"}}}, false, activation);
    m.freeze();
    const Value& made = m.g->values()[static_cast<size_t>(m.hidden)];
    const Op& last = m.g->ops()[static_cast<size_t>(made.producer)];
    EXPECT_EQ(last.in[0], m.g->find("h.0.up_proj/adapted")) << activation;
    EXPECT_EQ(last.attrs.word("approximate"), activation == std::string("gelu_erf") ? "erf" : "");
    for (const Op& op : m.g->ops())
      EXPECT_FALSE(op.code == ops::OpCode::k_linear && op.attrs.has("activation"));
  }
}

// A rule for weights that are stored in fewer bits does not mean what learns.
TEST(Adapters, FormatsOfFrozenWeightsAreNotTheirs) {
  Graph g;
  g.adapt({.rank = 2});
  const ValueId x = g.input("x", f32({4, 64})), w = g.parameter("h.0.weight", f32({64, 64}), {});
  const auto y = g.op("mse", {g.op("linear", {x, w})[0], x});
  g.freeze(y[0], y[1], {});
  JointOptions options;
  options.formats = {{"h.*", "int8"}};
  const auto joint = derive(std::make_shared<Graph>(g), options);
  const auto type = [&](const char* name) {
    return joint->values[static_cast<size_t>(joint->find(name))].desc.dtype;
  };
  EXPECT_EQ(type("h.0.weight"), DType::kInt8);
  EXPECT_EQ(type("h.0.lora_B.weight"), DType::kF32);
}

TEST(Adapters, RanksAndAlphasByPattern) {
  Model m({{.kind = AdapterKind::kRslora,
            .rank = 4,
            .dropout = 0.1,
            .ranks = {{"*_proj", 2}, {"down_proj", 9}},
            .alphas = {{"down_proj", 6}}}});
  m.freeze();
  EXPECT_EQ(m.value("h.0.up_proj.lora_A.weight").desc.shape[0], 2);
  EXPECT_EQ(m.value("h.0.down_proj.lora_A.weight").desc.shape[0], 9);
  const auto factor = [&](const char* name) {
    return m.g->ops()[static_cast<size_t>(m.value(name).producer)].attrs.real("factor");
  };
  EXPECT_DOUBLE_EQ(factor("h.0.up_proj/scaled"), 4 / std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(factor("h.0.down_proj/scaled"), 2);
  EXPECT_EQ(m.g->ops()[static_cast<size_t>(m.value("h.0.up_proj/dropout").producer)].attrs.real("rate"), 0.1);
}

TEST(Adapters, TablesAndExperts) {
  Model m({{.rank = 2, .targets = {"wte"}}});
  m.freeze();
  EXPECT_EQ(m.value("wte.lora_embedding_A").desc, f32({19, 2}));
  EXPECT_EQ(m.value("wte.lora_embedding_B").desc, f32({16, 2}));
  EXPECT_EQ(m.value("wte.lora_embedding_B").parameter.init, Init::kNormal);

  for (const int64_t transposed : {0, 1}) {
    Graph g;
    g.adapt({.rank = 2});
    const ValueId x = g.input("x", f32({6, 8})), starts = g.input("starts", {DType::kI32, {4}});
    const ValueId w = g.parameter("experts.up", transposed ? f32({3, 8, 5}) : f32({3, 5, 8}), {});
    const ValueId y = g.op("grouped_linear", {x, w, starts}, {{"transposed", transposed}})[0];
    g.freeze(kNone, kNone, {y});
    EXPECT_EQ(g.values()[static_cast<size_t>(g.find("experts.up.lora_A.weight"))].desc, f32({3, 2, 8}));
    EXPECT_EQ(g.values()[static_cast<size_t>(g.find("experts.up.lora_B.weight"))].desc, f32({3, 5, 2}));
    EXPECT_EQ(g.values()[static_cast<size_t>(y)].desc, f32({6, 5}));
  }
}

TEST(Adapters, WhatIsSavedTrainsAndStaysTied) {
  Model m({{.rank = 2, .saved = {"wte", "head"}}});
  m.freeze();
  EXPECT_EQ(trained(*m.g).size(), 6u);
  Model tied({{.rank = 2, .saved = {"wte"}}}, true);
  tied.freeze();
  EXPECT_EQ(trained(*tied.g).front(), "wte.weight");
  Model folder({{.rank = 2, .targets = {"up_proj"}, .saved = {"down*"}}});
  EXPECT_EQ(folder.freeze()->values()[0].kind, ValueKind::kInput);
  EXPECT_EQ(trained(*folder.g).size(), 3u);
}

TEST(Adapters, DoraDividesByAConstant) {
  for (const double dropout : {0.0, 0.1}) {
    Model m({{.kind = AdapterKind::kDora, .rank = 2, .dropout = dropout}});
    m.freeze();
    EXPECT_EQ(m.value("h.0.up_proj.lora_magnitude_vector").parameter.init, Init::kRowNorms);
    EXPECT_EQ(m.value("h.0.up_proj.lora_weight_norms").kind, ValueKind::kStatistic);
    const auto joint = derive(m.g, {});
    // Nothing of the norms is differentiated.
    for (const JointOp& op : joint->ops())
      EXPECT_FALSE(op.backward && op.name.find("sqrt") != std::string::npos) << op.name;
    EXPECT_GE(joint->find("h.0.up_proj.lora_magnitude_vector/gradient"), 0);
  }
}

TEST(Adapters, PatternsThatMatchNothingOrTwiceAreNamed) {
  EXPECT_EQ(refusal({{.targets = {"q_proj"}}}),
            "the pattern 'q_proj' (targets) of an adapter matches no module; there are wte, h.0.up_proj, "
            "h.0.down_proj, head");
  EXPECT_EQ(refusal({{.saved = {"classifier"}}}),
            "the pattern 'classifier' (saved) of an adapter matches no module; there are wte, h.0.up_proj, "
            "h.0.down_proj, "
            "head");
  EXPECT_NE(refusal({{.ranks = {{"q_proj", 2}}}}).find("'q_proj' (ranks)"), std::string::npos);
  EXPECT_EQ(refusal({{.targets = {"*_proj", "up_proj"}}}),
            "the patterns '*_proj' and 'up_proj' (targets) both match the module 'h.0.up_proj'; one must");
  EXPECT_EQ(refusal({{.targets = {"up_proj"}}, {.targets = {"*"}}}),
            "two rules give the module 'h.0.up_proj' an adapter; one must");
  EXPECT_NE(refusal({{.targets = {"up_proj"}, .saved = {"up_proj"}}}).find("leave it out of one list"),
            std::string::npos);
}

TEST(Adapters, WeightsThatAreSharedOrInALossAreRefused) {
  EXPECT_EQ(refusal({{.targets = {"wte"}}}, true),
            "'wte' has an adapter for embedding and is used by linear_cross_entropy as well: an adapter is "
            "for one use. Leave a "
            "tied or shared weight out of the targets, or train it as it is, which keeps it tied "
            "(modules_to_save)");
  EXPECT_EQ(refusal({{.targets = {"head"}}}),
            "'head' is multiplied within linear_cross_entropy, which has no place for an adapter; leave it "
            "out of the targets, "
            "or train it as it is (modules_to_save)");
  EXPECT_NE(refusal({{.kind = AdapterKind::kDora, .targets = {"wte"}}})
                .find("DoRA and PiSSA are for linear layers"),
            std::string::npos);
  EXPECT_NE(refusal({{.kind = AdapterKind::kPissa, .rank = 17}}).find("has no 17 singular values"),
            std::string::npos);
  EXPECT_NE(refusal({{.rank = 0}}).find("rank is 0"), std::string::npos);
  EXPECT_NE(refusal({{.dropout = 1}}).find("dropout is 1"), std::string::npos);
}

TEST(Adapters, ARefusedOpLeavesTheGraphAsItWas) {
  Graph g;
  g.adapt({.rank = 2});
  const ValueId x = g.input("x", f32({4, 8})), w = g.parameter("a.weight", f32({8, 8}), {});
  g.parameter("a.lora_B.weight", f32({8, 2}), {});  // the name that the adapter would have
  const size_t values = g.values().size(), count = g.ops().size();
  EXPECT_THROW(g.op("linear", {x, w}), Error);
  EXPECT_EQ(g.values().size(), values);
  EXPECT_EQ(g.ops().size(), count);
  EXPECT_EQ(g.find("a.lora_A.weight"), kNone);
  const ValueId y = g.op("linear", {x, g.parameter("b.weight", f32({8, 8}), {})})[0];
  EXPECT_EQ(g.values()[static_cast<size_t>(y)].name, "b/adapted");
  EXPECT_THROW(g.op("linear", {y, g.find("b.weight")}), Error);
}

}  // namespace
}  // namespace cairn::graph
