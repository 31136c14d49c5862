// What rules of mixed precision compute, to the bit; for the devices that a test names.
#pragma once
#include "tests/runtime/compile/support.h"

namespace cairn::engine {

using graph::AmpMode;
using graph::AmpRule;

inline PlanOptions options_of(AmpMode amp, std::vector<AmpRule> rules = {}) {
  PlanOptions o;
  o.amp = amp;
  o.amp_rules = std::move(rules);
  return o;
}

// x -> linear -> region "wide": layernorm, linear, gelu -> linear -> loss. by_hand: with casts where mixed
// precision would put them under a rule that wants the region in float32.
inline std::shared_ptr<Graph> three_parts(bool by_hand) {
  auto g = std::make_shared<Graph>();
  const auto to = [&](const char* dtype, ValueId v) {
    return by_hand ? g->op("cast", {v}, {{"dtype", std::string(dtype)}})[0] : v;
  };
  // First of all, so that both graphs number them alike, and fill() gives them the same numbers.
  const ValueId x = g->input("x", {DType::kF32, {16, 24}}),
                target = g->input("target", {DType::kF32, {16, 24}});
  const ValueId a = parameter(*g, "a", {32, 24}), gain = parameter(*g, "gain", {32}),
                shift = parameter(*g, "shift", {32}), m = parameter(*g, "m", {32, 32}),
                n = parameter(*g, "n", {32}), z = parameter(*g, "z", {24, 32});
  const ValueId first = g->op("linear", {to("bf16", x), a})[0];
  const graph::RegionId region = g->region_begin("wide", Policy::kPlannerDecides);
  const ValueId normed = g->op("layernorm", {to("f32", first), gain, shift})[0];
  const ValueId h = g->op("gelu", {g->op("linear", {normed, m, n})[0]})[0];
  g->region_end(region);
  const auto loss = g->op("mse", {g->op("linear", {to("bf16", h), z})[0], target});
  g->freeze(loss[0], loss[1], {});
  return g;
}

class AmpRulesOn : public ::testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<device::Device> open() const {
    device::DeviceOptions options;
    options.threads = 1;
    return device::checked(device::open(GetParam(), options));
  }
  Result run(const std::shared_ptr<Graph>& g, const PlanOptions& options,
             std::shared_ptr<const CompiledPlan>* out_plan = nullptr) const {
    const auto device = open();
    const auto plan = compile(g, *device, options);
    EXPECT_EQ(plan::violation(plan->problem, plan->plan), "");
    Session session(plan, device);
    fill(session);
    for (uint32_t micro = 0; micro < 2; ++micro) session.run({42, 7, micro});
    expect_exact_memory(session);
    if (out_plan != nullptr) *out_plan = plan;
    return result(session);
  }
};

TEST_P(AmpRulesOn, EverythingFullIsMixedPrecisionOff) {
  const AmpRule full{.op = "*", .amp_class = "full"};
  for (const auto& make :
       {std::function([] { return mlp(2); }), std::function([] { return transformer(1); })}) {
    const Result off = run(make(), options_of(AmpMode::kOff));
    EXPECT_EQ(run(make(), options_of(AmpMode::kBf16, {full})), off);
    EXPECT_NE(run(make(), options_of(AmpMode::kBf16)), off);
    EXPECT_EQ(run(make(), options_of(AmpMode::kOff, {{.op = "*", .amp_class = "half"}})), off)
        << "without mixed precision rules have no effect";
  }
}

TEST_P(AmpRulesOn, DefaultUndoesWhatWasSaidBefore) {
  const AmpRule full{.region = "h0", .amp_class = "full"}, back{.op = "*", .amp_class = "default"};
  EXPECT_EQ(run(transformer(1), options_of(AmpMode::kBf16, {full, back})),
            run(transformer(1), options_of(AmpMode::kBf16)));
}

TEST_P(AmpRulesOn, ARegionInFloat32HasTheBitsOfThatRegionFromCastInputs) {
  const PlanOptions rules = options_of(AmpMode::kBf16, {{.region = "wide", .amp_class = "full"}});
  const Result by_rule = run(three_parts(false), rules);
  const Result by_hand = run(three_parts(true), options_of(AmpMode::kOff));
  ASSERT_GE(by_rule.size(), 7u);
  size_t compared = 0;
  for (const auto& [name, bytes] : by_rule) {
    const auto same = by_hand.find(name);
    if (same == by_hand.end()) continue;  // the scalars' casts have names of their own
    EXPECT_TRUE(bytes == same->second) << name;
    ++compared;
  }
  EXPECT_GE(compared, 6u) << "gradients of all parameters";
  EXPECT_NE(by_rule, run(three_parts(false), options_of(AmpMode::kBf16)));
}

TEST_P(AmpRulesOn, PlansNeverChangeBits) {
  const std::vector<AmpRule> rules = {{.op = "layernorm", .amp_class = "full"},
                                      {.region = "h0/attn", .amp_class = "full"},
                                      {.op = "attention", .amp_class = "half"},
                                      {.op = "linear_cross_entropy", .amp_class = "half"}};
  for (const AmpMode mode : {AmpMode::kBf16, AmpMode::kFp16}) {
    PlanOptions o = options_of(mode, rules);
    if (mode == AmpMode::kBf16) o.optimizer.name = "";  // what planning takes longest for
    o.policy = Policy::kKeep;
    std::shared_ptr<const CompiledPlan> keep, other;
    const Result expected = run(transformer(1), o, &keep);
    o.policy = Policy::kRecompute;
    EXPECT_EQ(run(transformer(1), o, &other), expected);
    EXPECT_LT(other->plan.arena_bytes, keep->plan.arena_bytes);
    if (mode == AmpMode::kFp16) continue;
    o.policy = Policy::kOffload;
    EXPECT_EQ(run(transformer(1), o), expected);
  }
}

TEST_P(AmpRulesOn, EveryOpRunsInEveryClass) {
  for (const ops::AmpRow& row : ops::amp_classes()) {
    if (!row.by_rule) continue;
    for (const char* op :
         {"softmax", "reduce_mean", "layernorm", "rope", "attention", "linear", "gelu", "cross_entropy"}) {
      auto g = std::make_shared<Graph>();
      const ValueId x = g->input("x", {DType::kF32, {2, 8, 16}});
      const ValueId targets = g->input("targets", {DType::kI32, {2, 8}});
      ValueId h = g->op("linear", {x, parameter(*g, "w", {16, 16})})[0];
      const std::string name = op;
      const Attrs heads{{"heads", int64_t{1}}};
      if (name == "linear")
        h = g->op(name, {h, parameter(*g, "v", {16, 16})})[0];
      else if (name == "attention")
        h = g->op(name, {h, h, h}, heads)[0];
      else if (name == "rope")
        h = g->op(name, {h}, heads)[0];
      else if (name == "reduce_mean")
        h = g->op("add", {h, g->op(name, {h}, {{"axes", std::vector<int64_t>{0, 1}}})[0]})[0];
      else if (name != "cross_entropy")
        h = g->op(name, {h})[0];
      const auto loss = g->op("cross_entropy", {h, targets});
      g->freeze(loss[0], loss[1], {});
      const PlanOptions options =
          options_of(AmpMode::kBf16, {{.op = name, .amp_class = std::string(row.name)}});
      EXPECT_FALSE(run(g, options).empty()) << name << " as " << row.name;
    }
  }
}

}  // namespace cairn::engine
