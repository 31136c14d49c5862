// Rules of mixed precision: which ops they match, what they refuse, and the joint graphs they make.
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/graph/joint.h"

namespace cairn::graph {
namespace {

using ops::Amp;

TensorDesc f32(std::initializer_list<int64_t> dims) { return {DType::kF32, Shape(dims)}; }

// x -> h0 (linear -> attn: softmax) -> h1 (linear -> cast to float32) -> mse.
std::shared_ptr<Graph> model() {
  auto g = std::make_shared<Graph>();
  ValueId x = g->input("x", f32({4, 8}));
  const ValueId target = g->input("target", f32({4, 8}));
  const RegionId h0 = g->region_begin("h0", Policy::kPlannerDecides);
  x = g->op("linear", {x, g->parameter("a", f32({8, 8}), {})})[0];
  const RegionId inner = g->region_begin("attn", Policy::kPlannerDecides);
  x = g->op("softmax", {x})[0];
  g->region_end(inner);
  g->region_end(h0);
  const RegionId h1 = g->region_begin("h1", Policy::kPlannerDecides);
  x = g->op("linear", {x, g->parameter("b", f32({8, 8}), {})})[0];
  x = g->op("cast", {x}, {{"dtype", std::string("f32")}})[0];
  g->region_end(h1);
  const auto loss = g->op("mse", {x, target});
  g->freeze(loss[0], loss[1], {});
  return g;
}

enum : size_t { kFirst, kSoftmax, kSecond, kCast, kLoss };

std::vector<AmpChoice> choices(const std::vector<AmpRule>& rules) { return amp_choices(*model(), rules); }

TEST(AmpRules, WithoutAnyTheTableHolds) {
  const auto made = choices({});
  for (const AmpChoice& choice : made) EXPECT_EQ(choice.rule, -1);
  EXPECT_EQ(made[kFirst].amp_class, Amp::COMPUTE);
  EXPECT_EQ(made[kSoftmax].amp_class, Amp::FULL);
  EXPECT_EQ(made[kCast].amp_class, Amp::ASIS);
  EXPECT_EQ(made[kLoss].amp_class, Amp::MIXED);
}

TEST(AmpRules, MatchByOpByRegionAndByBoth) {
  auto made = choices({{.op = "soft*", .amp_class = "half"}});
  EXPECT_EQ(made[kSoftmax].amp_class, Amp::COMPUTE);
  EXPECT_EQ(made[kSoftmax].rule, 0);
  EXPECT_EQ(made[kFirst].rule, -1);

  made = choices({{.region = "h0", .amp_class = "follow"}});  // and what lies in h0/attn
  EXPECT_EQ(made[kFirst].amp_class, Amp::FOLLOW);
  EXPECT_EQ(made[kSoftmax].amp_class, Amp::FOLLOW);
  EXPECT_EQ(made[kSecond].rule, -1);

  made = choices({{.op = "linear", .region = "h?", .amp_class = "full"}});
  EXPECT_EQ(made[kFirst].amp_class, Amp::FULL);
  EXPECT_EQ(made[kSecond].amp_class, Amp::FULL);
  EXPECT_EQ(made[kSoftmax].rule, -1);

  made = choices({{.region = "*/attn", .amp_class = "half"}});
  EXPECT_EQ(made[kSoftmax].rule, 0);
  EXPECT_EQ(made[kFirst].rule, -1);
}

TEST(AmpRules, TheLastThatMatchesCounts) {
  auto made = choices({{.op = "*", .amp_class = "full"}, {.region = "h1", .amp_class = "half"}});
  EXPECT_EQ(made[kFirst].amp_class, Amp::FULL);
  EXPECT_EQ(made[kSecond].amp_class, Amp::COMPUTE);
  EXPECT_EQ(made[kSecond].rule, 1);
  EXPECT_EQ(made[kCast].amp_class, Amp::ASIS) << "types that follow from attributes stay";
  EXPECT_EQ(made[kCast].rule, -1);

  made = choices({{.op = "*", .amp_class = "full"}, {.op = "mse", .amp_class = "default"}});
  EXPECT_EQ(made[kLoss].amp_class, Amp::MIXED);
  EXPECT_EQ(made[kLoss].rule, -1);
}

TEST(AmpRules, WhatIsRefused) {
  const auto g = model();
  const Graph* graphs[] = {g.get()};
  const auto refused = [&](const AmpRule& rule, std::initializer_list<std::string_view> words) {
    try {
      check_amp_rules(graphs, {&rule, 1});
      FAIL() << to_string(rule) << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      for (const std::string_view word : words)
        EXPECT_NE(std::string_view(error.what()).find(word), std::string_view::npos)
            << "'" << word << "' is not in: " << error.what();
    }
  };
  refused({.op = "softmax", .amp_class = "fp8"}, {"'fp8'", "half, follow, full, default"});
  refused({.op = "softmax", .amp_class = "mixed"}, {"'mixed'", "half"});
  refused({.op = "softmax", .amp_class = ""}, {"''", "half"});
  refused({.amp_class = "full"}, {"neither an op nor a region", "'*'"});
  refused({.op = "sofmax", .amp_class = "full"}, {"'sofmax'", "no op", "linear", "softmax", "mse"});
  refused({.region = "h7*", .amp_class = "full"}, {"'h7*'", "no region", "h0", "h0/attn", "h1"});
  refused({.op = "softmax", .region = "h1", .amp_class = "full"}, {"no op", "in that region", "linear"});
  refused({.op = "cast", .amp_class = "full"}, {"cast", "types follow"});
  const AmpRule fine[] = {{.op = "*", .amp_class = "full"}, {.region = "h1", .amp_class = "half"}};
  EXPECT_NO_THROW(check_amp_rules(graphs, fine));
}

// A program for evaluation may lack what only training has, but no rule may match in none.
TEST(AmpRules, OneGraphOfASetIsEnough) {
  auto forward = std::make_shared<Graph>();
  const ValueId x = forward->input("x", f32({4, 8}));
  forward->freeze(kNone, kNone, {forward->op("linear", {x, forward->parameter("a", f32({8, 8}), {})})[0]});
  const auto whole = model();
  const AmpRule rule{.op = "mse", .amp_class = "full"};
  const Graph* both[] = {whole.get(), forward.get()};
  EXPECT_NO_THROW(check_amp_rules(both, {&rule, 1}));
  EXPECT_THROW(check_amp_rules(std::span(both).subspan(1), {&rule, 1}), Error);
}

const JointOp& op_named(const JointGraph& joint, ops::OpCode code, size_t number = 0) {
  for (const JointOp& op : joint.ops())
    if (op.code == code && number-- == 0) return op;
  throw std::logic_error("no such op");
}

DType made_by(const JointGraph& joint, const JointOp& op) {
  return joint.values[static_cast<size_t>(op.out[0])].desc.dtype;
}

TEST(AmpRules, DecideTheTypesOfForwardAndBackward) {
  JointOptions options;
  options.amp = AmpMode::kBf16;
  options.amp_rules = {{.op = "softmax", .amp_class = "half"}, {.region = "h1", .amp_class = "full"}};
  const auto joint = derive(model(), options);
  EXPECT_EQ(made_by(*joint, op_named(*joint, ops::OpCode::k_linear)), DType::kBF16);
  EXPECT_EQ(made_by(*joint, op_named(*joint, ops::OpCode::k_softmax)), DType::kBF16);
  EXPECT_EQ(made_by(*joint, op_named(*joint, ops::OpCode::k_linear, 1)), DType::kF32);
  const JointOp& gradient = op_named(*joint, ops::OpCode::k_linear_grad_input);
  EXPECT_EQ(made_by(*joint, gradient), DType::kF32);
  EXPECT_EQ(gradient.amp_rule, 1);
  EXPECT_EQ(made_by(*joint, op_named(*joint, ops::OpCode::k_softmax_grad)), DType::kBF16);
  EXPECT_EQ(joint->amp_choices.at(kSoftmax).rule, 0);
}

// add's second term may be float32 beside a half one, but not the other way round.
TEST(AmpRules, Float32IsForEveryOperandThatIsHalf) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->input("x", f32({4, 8}));
  const ValueId a = g->op("linear", {x, g->parameter("a", f32({8, 8}), {})})[0];
  const ValueId b = g->op("linear", {x, g->parameter("b", f32({8, 8}), {})})[0];
  const auto loss = g->op("mse", {g->op("add", {a, b})[0], x});
  g->freeze(loss[0], loss[1], {});
  JointOptions options;
  options.amp = AmpMode::kBf16;
  options.amp_rules = {{.op = "add", .amp_class = "full"}};
  const auto joint = derive(g, options);
  const JointOp& add = op_named(*joint, ops::OpCode::k_add);
  for (const int32_t v : add.in) EXPECT_EQ(joint->values[static_cast<size_t>(v)].desc.dtype, DType::kF32);
  EXPECT_EQ(made_by(*joint, add), DType::kF32);
}

TEST(AmpRules, ChangeNothingWithoutMixedPrecision) {
  JointOptions options;
  options.amp_rules = {{.op = "*", .amp_class = "half"}};
  const auto joint = derive(model(), options);
  for (const JointValue& value : joint->values) EXPECT_NE(value.desc.dtype, DType::kBF16) << value.name;
}

}  // namespace
}  // namespace cairn::graph
