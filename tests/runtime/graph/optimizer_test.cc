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
  ASSERT_EQ(joint->ops(kGradientNorm).size(), 2u);
  ASSERT_EQ(joint->ops(kUpdate).size(), 2u);
  size_t i = 0;
  for (const ParameterSlot& slot : joint->parameters) {
    if (slot.gradient < 0) continue;
    const std::vector<int32_t> own = joint->owned(slot.value, Role::kOptimizer);
    ASSERT_EQ(own.size(), 2u);
    const JointOp &norm = joint->ops(kGradientNorm).at(i), &update = joint->ops(kUpdate).at(i);
    EXPECT_EQ(norm.code, OpCode::k_sum_squares);
    EXPECT_EQ(norm.in, std::vector<int32_t>{slot.gradient});
    EXPECT_EQ(norm.out, std::vector<int32_t>{joint->norm});
    EXPECT_EQ(norm.accumulates, 1u);
    EXPECT_EQ(norm.first_writer, i == 0 ? 1u : 0u) << "the first overwrites, the others add";
    const bool decay = joint->values[slot.value].name == "w";
    EXPECT_EQ(update.code, OpCode::k_update);
    EXPECT_EQ(update.in, (std::vector<int32_t>{slot.gradient, joint->hypers[decay ? 1 : 0].value}));
    EXPECT_EQ(update.attrs.word("optimizer"), "adamw");
    EXPECT_EQ(update.out, (std::vector<int32_t>{slot.value, own[0], own[1]}));
    ++i;
  }
  ASSERT_EQ(joint->hypers.size(), 2u);
  EXPECT_NE(joint->hypers[0].value, joint->hypers[1].value);
  EXPECT_FALSE(joint->hypers[0].decays);
}

// Names of all states, one after the other; those of a step alone in brackets.
std::string states(const JointGraph& joint) {
  std::string text;
  for (const Resident& state : joint.residents) {
    if (state.saved == Saved::kNever) continue;
    text += cat(text.empty() ? "" : " ",
                state.lifetime == Lifetime::kStep ? cat('[', state.name, ']') : state.name);
  }
  return text;
}

TEST(Optimizer, StatesFollowFromTheRowAndItsHyperParameters) {
  const auto of = [](OptimizerOptions options) {
    return states(*derive(model(), {.optimizer = std::move(options)}));
  };
  EXPECT_EQ(of({}), "w w/m w/v [w/gradient] b b/m b/v [b/gradient] f");
  EXPECT_EQ(of({.name = "lion"}), "w w/m [w/gradient] b b/m [b/gradient] f");
  EXPECT_EQ(of({.name = "sgd"}), "w [w/gradient] b [b/gradient] f");
  EXPECT_EQ(of({.name = "sgd", .hypers = {{{}, "momentum", 0.9}}}),
            "w w/momentum [w/gradient] b b/momentum [b/gradient] f");
  EXPECT_EQ(of({.name = ""}), "w [w/gradient] b [b/gradient] f");
}

TEST(Optimizer, GroupsHaveOptimizersAndHyperParametersOfTheirOwn) {
  const auto joint = derive(
      model(),
      {.optimizer = {.groups = {{"b", "lion"}}, .hypers = {{{}, "beta1", 0.5}, {"b", "rate_scale", 2.0}}}});
  ASSERT_EQ(joint->groups.size(), 2u);
  EXPECT_EQ(joint->groups[0].hyper("beta1"), 0.5);
  EXPECT_EQ(joint->groups[0].hyper("rate_scale"), 1.0);
  EXPECT_EQ(joint->groups[1].hyper("beta1"), 0.5) << "of all groups that have one";
  EXPECT_EQ(joint->groups[1].hyper("rate_scale"), 2.0);
  ASSERT_EQ(joint->hypers.size(), 2u) << "only those that a parameter reads";
  EXPECT_EQ(joint->hypers[1].group, 1);
  EXPECT_EQ(states(*joint), "w w/m w/v [w/gradient] b b/m [b/gradient] f");
  for (const JointOp& op : joint->ops(kUpdate))
    EXPECT_EQ(op.attrs.word("optimizer"), joint->values[op.out[0]].name == "b" ? "lion" : "adamw");
}

// A table, two hidden matrices, the weights of an output layer, vectors and a kernel of a convolution's shape.
std::shared_ptr<Graph> language_model(bool fused_head, bool tied) {
  auto g = std::make_shared<Graph>();
  const ValueId ids = g->input("ids", {DType::kI32, {2, 4}}), t = g->input("t", {DType::kI32, {2, 4}});
  const ValueId table = g->parameter("table", {DType::kF32, {16, 8}}, {});
  const ValueId head = tied ? table : g->parameter("head", {DType::kF32, {16, 8}}, {});
  const ValueId positions = g->parameter("positions", {DType::kF32, {4, 8}}, {});
  ValueId x = g->op("add", {g->op("embedding", {table, ids})[0], positions})[0];
  for (const char* name : {"up", "down"}) {
    const ValueId w = g->parameter(name, {DType::kF32, {8, 8}}, {});
    const ValueId b = g->parameter(cat(name, ".bias"), {DType::kF32, {8}}, {});
    x = g->op("add", {x, g->op("gelu", {g->op("linear", {x, w, b})[0]})[0]})[0];
  }
  const ValueId cube = g->parameter("cube", {DType::kF32, {2, 4, 8}}, {});
  x = g->op("layernorm", {g->op("mul", {x, cube})[0]})[0];
  std::vector<ValueId> loss;
  if (fused_head) {
    loss = g->op("linear_cross_entropy", {x, head, t});
  } else {
    const ValueId bias = g->parameter("head.bias", {DType::kF32, {16}}, {});
    const ValueId y = g->op("add", {g->op("linear", {x, head})[0], bias})[0];
    loss = g->op("cross_entropy", {g->op("reshape", {y}, {{"shape", std::vector<int64_t>{8, 16}}})[0],
                                   g->op("reshape", {t}, {{"shape", std::vector<int64_t>{8}}})[0]});
  }
  g->freeze(loss[0], loss[1], {});
  return g;
}

// "parameter:optimizer@group" of every update.
std::string updates(const JointGraph& joint) {
  std::string text;
  for (const ParameterSlot& slot : joint.parameters) {
    const ParameterGroup& group =
        joint.groups[static_cast<size_t>(joint.hypers[static_cast<size_t>(slot.hyper)].group)];
    text += cat(text.empty() ? "" : " ", joint.values[static_cast<size_t>(slot.value)].name, ':',
                group.optimizer->name, group.pattern.empty() ? "" : "@", group.pattern);
  }
  return text;
}

TEST(Optimizer, MatricesOfHiddenLayersAloneAreMuons) {
  const std::string hidden =
      "positions:adamw@/adamw up:muon up.bias:adamw@/adamw down:muon down.bias:adamw@/adamw "
      "cube:adamw@/adamw";
  const auto of = [](bool fused_head, bool tied) {
    return updates(*derive(language_model(fused_head, tied), {.optimizer = {.name = "muon"}}));
  };
  EXPECT_EQ(of(true, true), "table:adamw@/adamw " + hidden);
  EXPECT_EQ(of(true, false), "table:adamw@/adamw head:adamw@/adamw " + hidden);
  EXPECT_EQ(of(false, false), "table:adamw@/adamw head:adamw@/adamw " + hidden + " head.bias:adamw@/adamw");
}

TEST(Optimizer, TheRestOfAGroupIsAGroup) {
  const auto model = language_model(true, true);
  const auto joint = derive(model, {.optimizer = {.name = "muon",
                                                  .groups = {{"/adamw"}, {"*.bias"}, {"d*n", "sgd"}},
                                                  .hypers = {{"/adamw", "rate_scale", 0.25},
                                                             {"", "rate_scale", 0.5},
                                                             {{}, "beta1", 0.8},
                                                             {"*.bias", "weight_decay", 0.0},
                                                             {{}, "ns_steps", 3.0}}}});
  EXPECT_EQ(updates(*joint),
            "table:adamw@/adamw positions:adamw@/adamw up:muon up.bias:adamw@*.bias/adamw down:sgd@d*n "
            "down.bias:adamw@*.bias/adamw "
            "cube:adamw@/adamw");
  const auto hyper = [&](const char* pattern, const char* name) {
    return group_of_pattern(joint->groups, pattern).hyper(name);
  };
  EXPECT_EQ(hyper("", "rate_scale"), 0.5);
  EXPECT_EQ(hyper("/adamw", "rate_scale"), 0.25) << "what is said of the rest wins";
  EXPECT_EQ(hyper("*.bias/adamw", "rate_scale"), 1.0);
  EXPECT_EQ(hyper("/adamw", "beta1"), 0.8);
  EXPECT_EQ(hyper("*.bias/adamw", "weight_decay"), 0.0) << "of a group and its rest";
  EXPECT_EQ(hyper("", "weight_decay"), 0.1);
  for (const JointOp& op : joint->ops(kUpdate))
    EXPECT_EQ(op.attrs.integer("ns_steps", -1), op.attrs.word("optimizer") == "muon" ? 3 : -1);
  for (const Resident& state : joint->residents)
    if (state.name == "up/momentum") EXPECT_FALSE(state.splits);
}

TEST(Optimizer, WhatDoesNotExistIsNamed) {
  const auto refused = [](OptimizerOptions options, const std::string& says) {
    try {
      derive(model(), {.optimizer = std::move(options)});
      ADD_FAILURE() << "taken, but: " << says;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
  };
  refused({.name = "adamax"},
          "unknown optimizer 'adamax'; known: adamw, sgd, lion, adam, adamw8, adafactor, muon");
  refused({.hypers = {{{}, "momentum", 0.9}}},
          "'adamw' has no hyper-parameter 'momentum'; it has: rate_scale, beta1");
  refused({.hypers = {{{}, "beta1", 1.0}}}, "beta1 is 1; it must be at least 0 and below 1");
  refused({.hypers = {{"c", "beta1", 0.5}}}, "there is no parameter group 'c'; there are: ''");
  refused({.groups = {{"c"}}}, "the group 'c' matches no parameter; there are w, b, f");
  refused({.groups = {{"?"}, {"*b"}}}, "the groups '?' and '*b' both match the parameter 'b'");
  refused({.groups = {{"b"}, {"b"}}}, "the group 'b' is there twice");
  refused({.groups = {{""}}}, "needs a pattern");
  refused({.groups = {{"b", "adagrad"}}}, "unknown optimizer 'adagrad'");
  refused({.groups = {{"b", "muon"}}}, "the group 'b' asks for muon, which takes none of its parameters");
  refused({.name = "muon", .groups = {{"/adamw", "sgd"}}}, "the group '/adamw' has what muon leaves over");
  refused({.name = "muon", .hypers = {{"", "dampening", 0.5}}}, "'muon' has no hyper-parameter 'dampening'");
  refused({.name = "muon", .hypers = {{"/sgd", "momentum", 0.5}}}, "there are: '', '/adamw'");
  refused({.name = "adamw", .groups = {{"/adamw"}}}, "the group '/adamw' matches no parameter");
}

}  // namespace
}  // namespace cairn::graph
