#include "tests/runtime/compile/support.h"

namespace cairn::engine {
namespace {

std::shared_ptr<device::Device> reference() { return device::open("reference", {.threads = 1}); }

// One storage, one value; what persists persists; what accumulates is there before.
TEST(Lower, MakesAProblemThatTellsTheTruth) {
  const auto device = reference();
  const auto plan = compile(transformer(), *device, {});
  const plan::Problem& p = plan->problem;
  EXPECT_NO_THROW(plan::check(p));
  EXPECT_EQ(p.regions.size(), plan->joint->forward->regions().size());
  EXPECT_GT(p.backward_begin, 0);
  EXPECT_LT(p.backward_begin, static_cast<int32_t>(p.ops.size()));
  ASSERT_EQ(plan->problem_op.size(), p.ops.size());
  for (size_t i = 0; i < p.ops.size(); ++i) {
    ASSERT_FALSE(plan->problem_op[i].empty());
    for (const int32_t part : plan->problem_op[i])
      EXPECT_FALSE(ops::row(plan->joint->ops()[static_cast<size_t>(part)].code).is(ops::ALIAS));
    const graph::JointOp& op = plan->joint->ops()[static_cast<size_t>(plan->problem_op[i].back())];
    EXPECT_GT(p.ops[i].seconds, 0);
    EXPECT_EQ(p.ops[i].workspace_bytes % 64, 0);
    EXPECT_EQ(!op.backward, static_cast<int32_t>(i) < p.backward_begin) << op.name;
    if (op.accumulates != 0) {
      EXPECT_FALSE(p.ops[i].recomputable) << op.name;
    }
    for (const int32_t v : p.ops[i].outputs)
      if (p.values[static_cast<size_t>(v)].persistent) {
        EXPECT_EQ(p.ops[i].outputs.size() + p.ops[i].inputs.size() > 0, true);
      }
  }
  for (size_t v = 0; v < plan->problem_value.size(); ++v) {
    const graph::JointValue& value = plan->joint->values[v];
    if (value.alias_of >= 0) {
      EXPECT_EQ(plan->problem_value[v], -1);
    } else if (plan->problem_value[v] >= 0) {
      const plan::Value& lowered = p.values[static_cast<size_t>(plan->problem_value[v])];
      EXPECT_EQ(lowered.persistent, graph::kind(value.role).is(graph::PERSISTS)) << value.name;
      EXPECT_GE(lowered.bytes, value.desc.bytes());
      EXPECT_EQ(lowered.bytes % 64, 0);
      EXPECT_LT(lowered.bytes - value.desc.bytes(), 64);
    } else {
      EXPECT_FALSE(graph::kind(value.role).is(graph::PERSISTS)) << value.name;
    }
  }
}

TEST(Lower, SharesKernelsBetweenOpsOfOneSignature) {
  const auto device = reference();
  const auto two = compile(transformer(2), *device, {}), four = compile(transformer(4), *device, {});
  EXPECT_GT(four->problem.ops.size(), two->problem.ops.size() + 20);
  // Only dropout, whose random stream is its own, and its gradient are new in a new layer.
  EXPECT_LE(four->kernels.size(), two->kernels.size() + 6);
}

TEST(Lower, TiersBecomeLinks) {
  const auto device = device::open("reference", {.threads = 1, .link_bytes_per_second = 3e9});
  PlanOptions options;
  options.tiers = {Tier::kDisk, Tier::kHost, Tier::kDisk};
  const auto plan = compile(mlp(), *device, options);
  ASSERT_EQ(plan->problem.links.size(), 2u);
  EXPECT_EQ(plan->problem.links[0].tier, "disk");
  EXPECT_EQ(plan->problem.links[1].tier, "host");
  EXPECT_EQ(plan->problem.links[1].out_bytes_per_second, 3e9);
  EXPECT_GT(plan->problem.links[0].capacity_bytes, 0);
  EXPECT_GT(plan->problem.links[1].capacity_bytes, 0);
  options.tiers = {Tier::kDevice};
  EXPECT_THROW(compile(mlp(), *device, options), Error);
}

TEST(Compile, RegionsOverrideNothingButPlannerDecides) {
  const auto device = reference();
  PlanOptions options;
  options.policy = Policy::kRecompute;
  const auto kept = compile(mlp(4, true, Policy::kKeep), *device, options);
  for (const plan::Region& region : kept->problem.regions) EXPECT_EQ(region.policy, Policy::kKeep);
  const auto free = compile(mlp(4), *device, options);
  for (const plan::Region& region : free->problem.regions) EXPECT_EQ(region.policy, Policy::kRecompute);
}

TEST(Compile, WithoutRegionsThePolicyIsForTheWholeGraph) {
  const auto device = reference();
  PlanOptions options;
  const auto keep = compile(mlp(4, false), *device, options);
  EXPECT_TRUE(keep->problem.regions.empty());
  options.policy = Policy::kRecompute;
  const auto recompute = compile(mlp(4, false), *device, options);
  ASSERT_EQ(recompute->problem.regions.size(), 1u);
  for (const plan::Op& op : recompute->problem.ops) EXPECT_EQ(op.region, 0);
  EXPECT_LE(recompute->plan.arena_bytes, keep->plan.arena_bytes);
}

TEST(Compile, ExplicitOffloadTiersOfRegionsAreObeyed) {
  const auto device = reference();
  PlanOptions options;
  options.tiers = {Tier::kHost};
  const auto plan = compile(mlp(4, true, Policy::kOffload, "disk"), *device, options);
  ASSERT_EQ(plan->link_tier.size(), 2u);  // host by the options, disk by the regions
  EXPECT_EQ(plan->link_tier[1], Tier::kDisk);
  EXPECT_GT(plan->plan.tier_arena_bytes[1], 0);
  EXPECT_EQ(plan->plan.tier_arena_bytes[0], 0);
  for (const CopyJob& job : plan->program().copies)
    EXPECT_TRUE(job.to == Tier::kDisk || job.from == Tier::kDisk);
}

TEST(Compile, WithoutTiersHostServesOnlyWhoAsksOrAStatedLink) {
  const auto device = reference();
  EXPECT_TRUE(compile(mlp(4), *device, {})->link_tier.empty());
  EXPECT_EQ(compile(mlp(4, true, Policy::kOffload), *device, {})->link_tier.size(), 1u);
  PlanOptions options;
  options.policy = Policy::kOffload;
  EXPECT_EQ(compile(mlp(4), *device, options)->link_tier, std::vector<Tier>{Tier::kHost});
  const auto linked = device::open("reference", {.threads = 1, .link_bytes_per_second = 3e9});
  EXPECT_EQ(compile(mlp(4), *linked, {})->link_tier, std::vector<Tier>{Tier::kHost});
}

TEST(Compile, RefusesSenselessOptions) {
  const auto device = reference();
  const auto code = [&](const PlanOptions& options) {
    try {
      compile(mlp(), *device, options);
    } catch (const Error& error) {
      return error.code();
    }
    return Code::kOk;
  };
  EXPECT_EQ(code({.budget_bytes = -1}), Code::kInvalidArgument);
  EXPECT_EQ(code({.budget_share = -0.5}), Code::kInvalidArgument);
  EXPECT_EQ(code({.budget_share = std::nan("")}), Code::kInvalidArgument);
  EXPECT_EQ(code({.link_bytes_per_second = -1}), Code::kInvalidArgument);
  EXPECT_EQ(code({.amp = graph::AmpMode::kFp16, .fuse_update = true}), Code::kUnsupported);
  EXPECT_EQ(code({.budget_bytes = 100}), Code::kOverBudget);
  EXPECT_EQ(code({.budget_share = 1.0}), Code::kOk);
}

TEST(Compile, IsDeterministic) {
  const auto device = reference();
  PlanOptions options;
  options.budget_share = 0.98;
  const auto a = compile(transformer(), *device, options), b = compile(transformer(), *device, options);
  EXPECT_EQ(plan::to_json(a->problem), plan::to_json(b->problem));
  ASSERT_EQ(a->program().code.size(), b->program().code.size());
  for (size_t i = 0; i < a->program().code.size(); ++i) {
    EXPECT_EQ(a->program().code[i].opcode, b->program().code[i].opcode);
    EXPECT_EQ(a->program().code[i].a, b->program().code[i].a);
  }
  ASSERT_EQ(a->program().operands.size(), b->program().operands.size());
  for (size_t i = 0; i < a->program().operands.size(); ++i)
    EXPECT_EQ(a->program().operands[i].offset, b->program().operands[i].offset);
}

}  // namespace
}  // namespace cairn::engine
