// Ops that write over what they read: fewer bytes, the same numbers.
#include "runtime/compile/in_place.h"

#include <set>

#include "runtime/exec/measure.h"
#include "tests/runtime/compile/support.h"

namespace cairn::engine {
namespace {

std::shared_ptr<const Lowered> lowered(std::shared_ptr<Graph> graph, device::Device& device,
                                       graph::AmpMode amp, bool in_place) {
  graph::JointOptions joint;
  joint.amp = amp;
  joint.packed_bytes = device.kernels().packed_bytes;
  joint.threads = device.info().threads;
  PlanOptions options;
  options.amp = amp;
  const Lowered plan = lower({graph::derive(std::move(graph), joint)}, device, options);
  return std::make_shared<const Lowered>(in_place ? with_in_place(plan).value() : plan);
}

std::shared_ptr<const CompiledPlan> solved(const std::shared_ptr<const Lowered>& lowered, int64_t budget) {
  const auto device = device::open("reference", {.threads = 1});
  Lowered plan = *lowered;
  plan.problem.budget_bytes = budget;
  plan::Plan found = plan::solve(plan.problem);
  EXPECT_EQ(plan::violation(plan.problem, found), "");
  return std::make_shared<const CompiledPlan>(assemble(Planned(std::move(plan), std::move(found)), *device));
}

int64_t smallest(const Lowered& lowered) {
  plan::Problem problem = lowered.problem;
  problem.budget_bytes = 1;
  try {
    plan::solve(problem);
  } catch (const Error& error) {
    return static_cast<int64_t>(error.fault()->smallest_budget_bytes);
  }
  return 0;
}

Result run(const std::shared_ptr<const CompiledPlan>& plan, const std::shared_ptr<device::Device>& device) {
  Session session(plan, device::checked(device));
  fill(session);
  for (uint32_t micro = 0; micro < 2; ++micro) session.run({42, 7, micro});
  expect_exact_memory(session);
  return result(session);
}

struct Model {
  const char* name;
  std::shared_ptr<Graph> (*graph)();
};

// Values that are large beside what kernels take for workspace. Dropout stands between gelu and the product:
// without it, backward has one op there.
std::shared_ptr<Graph> wide() {
  auto g = std::make_shared<Graph>();
  ValueId x = g->input("x", {DType::kF32, {96, 64}});
  for (int i = 0; i < 2; ++i) {
    const std::string name = "l" + std::to_string(i);
    const graph::RegionId region = g->region_begin(name, Policy::kPlannerDecides);
    const ValueId pre = g->op("linear", {x, parameter(*g, name + ".up", {256, 64})})[0];
    const ValueId h = g->op("dropout", {g->op("gelu", {pre})[0]}, {{"rate", 0.1}})[0];
    const ValueId y = g->op("linear", {h, parameter(*g, name + ".down", {64, 256})})[0];
    x = g->op("add", {x, g->op("dropout", {y}, {{"rate", 0.1}})[0]})[0];
    g->region_end(region);
  }
  const auto loss = g->op("mse", {x, g->input("y", {DType::kF32, {96, 64}})});
  g->freeze(loss[0], loss[1], {});
  return g;
}

const Model kModels[] = {{"mlp", wide}, {"transformer", [] { return transformer(1); }}};

class InPlace : public ::testing::TestWithParam<std::tuple<std::string, graph::AmpMode, size_t>> {
 protected:
  std::shared_ptr<device::Device> device =
      device::open(std::get<0>(GetParam()), {.threads = 1, .disk_directory = {}});
  std::shared_ptr<const Lowered> make(bool in_place) {
    return lowered(kModels[std::get<2>(GetParam())].graph(), *device, std::get<1>(GetParam()), in_place);
  }
};

TEST_P(InPlace, SameBitsInLessMemory) {
  const auto apart = make(false), over = make(true);
  const int64_t min_apart = smallest(*apart), min_over = smallest(*over);
  // The tiny transformer's peak is a kernel's workspace on the CPU, and on the reference at no pair. So is
  // that of any model in bfloat16 on a CPU without tiles, where products widen their operands in workspace.
  const bool widens = std::get<0>(GetParam()) == "cpu" && std::get<1>(GetParam()) == graph::AmpMode::kBf16 &&
                      !device->info().bf16;
  if (std::get<2>(GetParam()) == 0 && !widens) {
    EXPECT_LT(min_over, min_apart);
  }
  EXPECT_LE(min_over, min_apart);
  const auto keep_apart = solved(make(false), 0), keep_over = solved(make(true), 0);
  EXPECT_LE(keep_over->plan.arena_bytes, keep_apart->plan.arena_bytes);
  const Result expected = run(keep_apart, device);
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(run(keep_over, device), expected);
  EXPECT_EQ(run(solved(make(true), min_over), device), expected);
  EXPECT_EQ(run(solved(make(true), (min_over + keep_over->plan.arena_bytes) / 2), device), expected);
}

TEST_P(InPlace, TheProblemIsTheSameWork) {
  const auto apart = make(false), over = make(true);
  EXPECT_NO_THROW(plan::check(over->problem));
  std::multiset<int32_t> before, after;
  double seconds_before = 0, seconds_after = 0;
  for (const auto& parts : apart->problem_op) before.insert(parts.begin(), parts.end());
  for (size_t o = 0; o < over->problem.ops.size(); ++o) {
    const auto& parts = over->problem_op[o];
    after.insert(parts.begin(), parts.end());
    const plan::Op& op = over->problem.ops[o];
    seconds_after += op.seconds;
    std::string name;
    for (const int32_t part : parts) {
      const graph::JointOp& node = over->joint->ops()[static_cast<size_t>(part)];
      name += (name.empty() ? "" : "+") + node.name;
      EXPECT_EQ(node.region, op.region) << op.name;
      EXPECT_EQ(!node.backward, static_cast<int32_t>(o) < over->problem.backward_begin);
    }
    EXPECT_EQ(op.name, name);
  }
  for (const plan::Op& op : apart->problem.ops) seconds_before += op.seconds;
  EXPECT_EQ(before, after);
  EXPECT_NEAR(seconds_after, seconds_before, 1e-12);
  EXPECT_EQ(static_cast<int64_t>(apart->problem.ops.size() - over->problem.ops.size()), over->in_place_ops);
  EXPECT_EQ(static_cast<int64_t>(apart->problem.values.size() - over->problem.values.size()),
            over->in_place_ops);
  int64_t declared = 0;
  const auto plan = solved(over, 0);
  for (const Launch& launch : plan->program().launches) declared += launch.in_place != 0;
  EXPECT_EQ(declared, over->in_place_ops);
}

INSTANTIATE_TEST_SUITE_P(Models, InPlace,
                         ::testing::Combine(::testing::Values("cpu", "reference"),
                                            ::testing::Values(graph::AmpMode::kOff, graph::AmpMode::kBf16),
                                            ::testing::Values(size_t{0}, size_t{1})),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + kModels[std::get<2>(test.param)].name +
                                  (std::get<1>(test.param) == graph::AmpMode::kBf16 ? "_bf16" : "");
                         });

std::shared_ptr<device::Device> reference() {
  return device::open("reference", {.threads = 1, .disk_directory = {}});
}

// The compiler takes what a budget needs, and keeps ops apart where it needs nothing.
TEST(InPlaceChoice, IsTheBudgets) {
  const auto device = reference();
  const auto apart = lowered(wide(), *device, graph::AmpMode::kOff, false);
  const int64_t keep_all = solved(lowered(wide(), *device, graph::AmpMode::kOff, false), 0)->plan.arena_bytes;
  PlanOptions options;
  options.budget_bytes = keep_all;
  EXPECT_EQ(compile(wide(), *device, options)->in_place_ops, 0);
  options.budget_bytes = smallest(*apart) - 64;
  const auto tight = compile(wide(), *device, options);
  EXPECT_GT(tight->in_place_ops, 0);
  EXPECT_LE(tight->plan.arena_bytes, options.budget_bytes);
  // The bound is one for both ways.
  options.budget_bytes = (smallest(*apart) + keep_all) / 2;
  const auto between = compile(wide(), *device, options);
  EXPECT_LE(between->plan.bound_seconds, between->plan.predicted_seconds * (1 + 1e-12));
  for (const bool in_place : {false, true}) {
    const auto way = solved(lowered(wide(), *device, graph::AmpMode::kOff, in_place), options.budget_bytes);
    EXPECT_LE(between->plan.bound_seconds, way->plan.bound_seconds * (1 + 1e-12));
    EXPECT_LE(between->plan.predicted_seconds, way->plan.predicted_seconds * (1 + 1e-12));
  }
  options.budget_bytes = 0;
  EXPECT_LE(compile(wide(), *device, options)->plan.arena_bytes, keep_all);
  // Everything is run once all the same, where the pairs alone make it fit.
  auto over = lowered(wide(), *device, graph::AmpMode::kOff, true);
  const int64_t all_over = solved(over, 0)->plan.arena_bytes;
  if (all_over < keep_all) {
    options.budget_bytes = all_over;
    const auto kept = compile(wide(), *device, options);
    EXPECT_EQ(kept->plan.totals.recompute_bytes, 0);
    EXPECT_GT(kept->in_place_ops, 0);
  }
}

TEST(InPlaceChoice, TheSmallestBudgetNamedIsTheOneThatDoes) {
  const auto device = reference();
  PlanOptions options;
  options.budget_bytes = 1;
  int64_t least = 0;
  try {
    compile(wide(), *device, options);
    FAIL();
  } catch (const Error& error) {
    least = static_cast<int64_t>(error.fault()->smallest_budget_bytes);
  }
  EXPECT_LT(least, smallest(*lowered(wide(), *device, graph::AmpMode::kOff, false)));
  options.budget_bytes = least;
  const auto plan = compile(wide(), *device, options);
  const auto asked_for = compile(wide(), *device, {.smallest_budget = true});
  EXPECT_EQ(asked_for->problem.budget_bytes, least);
  EXPECT_EQ(asked_for->plan.arena_bytes, plan->plan.arena_bytes);
  EXPECT_EQ(asked_for->plan.predicted_seconds, plan->plan.predicted_seconds);
  options.budget_bytes = least - 64;
  EXPECT_THROW(compile(wide(), *device, options), Error);
}

TEST(InPlaceChoice, ASpanNamesEachOp) {
  const auto device = reference();
  const auto plan = solved(lowered(mlp(2), *device, graph::AmpMode::kOff, true), 0);
  Session session(plan, device);
  fill(session);
  session.trace(true);
  session.run({});
  std::multiset<std::string> named, expected;
  for (const Span& span : session.spans()) named.insert(span_name(*plan, span));
  for (const graph::JointOp& op : plan->joint->ops())
    if (!ops::row(op.code).is(ops::ALIAS)) expected.insert(op.name);
  EXPECT_EQ(named, expected);
}

TEST(InPlaceChoice, MemoryAtThePeakCountsAPairOnce) {
  const auto device = reference();
  const auto plan = solved(lowered(transformer(1), *device, graph::AmpMode::kOff, true), 0);
  const CompiledPlan::Memory m = plan->memory_at_peak();
  EXPECT_EQ(m.parameters + m.gradients + m.optimizer + m.activations + m.workspace, plan->plan.arena_bytes);
  EXPECT_GE(m.workspace, 0);
}

TEST(InPlaceChoice, ChainsGrow) {
  const auto device = reference();
  auto g = std::make_shared<Graph>();
  ValueId x = g->op("linear", {g->input("x", {DType::kF32, {8, 4}}), parameter(*g, "w", {4, 4})})[0];
  x = g->op("dropout", {g->op("scale", {x}, {{"factor", 0.5}})[0]}, {{"rate", 0.5}})[0];
  const ValueId loss = g->op("reduce_sum", {g->op("relu", {x})[0]})[0];
  g->freeze(loss, graph::kNone, {});
  const auto plan = lowered(g, *device, graph::AmpMode::kOff, true);
  size_t longest = 0;
  for (const auto& parts : plan->problem_op) longest = std::max(longest, parts.size());
  EXPECT_EQ(longest, 4u);  // the product, scaled, dropped out, and what is below zero
  EXPECT_EQ(run(solved(plan, 0), device),
            run(solved(lowered(g, *device, graph::AmpMode::kOff, false), 0), device));
}

// What a norm's gradient adds, made for it alone: here by a custom op's gradient.
TEST(InPlaceChoice, ANormsGradientLiesOnWhatItAdds) {
  const auto device = device::open("cpu", {.threads = 1, .disk_directory = {}});
  auto g = std::make_shared<Graph>();
  graph::CustomOp twice;
  twice.name = "twice";
  twice.inputs = twice.outputs = 1;
  twice.shape = [](std::span<const TensorDesc> in, std::span<TensorDesc> out) {
    out[0] = in[0];
    return true;
  };
  twice.forward = [](std::span<const Tensor> in, std::span<const Tensor> out, void*) {
    for (int64_t i = 0; i < in[0].desc.shape.elements(); ++i)
      out[0].as<float>()[i] = 2 * in[0].as<float>()[i];
    return true;
  };
  twice.backward = [](std::span<const Tensor> in, std::span<const Tensor> out, void*) {
    for (int64_t i = 0; i < in[2].desc.shape.elements(); ++i)
      out[0].as<float>()[i] = 2 * in[2].as<float>()[i];
    return true;
  };
  g->custom(std::move(twice));
  const ValueId x =
      g->op("linear", {g->input("x", {DType::kF32, {40, 24}}), parameter(*g, "w", {24, 24})})[0];
  const ValueId n = g->op("layernorm", {x})[0];
  const ValueId y = g->op("add", {n, g->op("twice", {x})[0]})[0];
  const auto loss = g->op("mse", {y, g->input("y", {DType::kF32, {40, 24}})});
  g->freeze(loss[0], loss[1], {});
  const auto over = solved(lowered(g, *device, graph::AmpMode::kOff, true), 0);
  int lying = 0;
  for (const Launch& launch : over->program().launches) lying += launch.in_place == 1u << 5;
  EXPECT_EQ(lying, 1);
  EXPECT_EQ(run(over, device), run(solved(lowered(g, *device, graph::AmpMode::kOff, false), 0), device));
}

// Nothing that others read, that lasts, or that is of another size is written over.
TEST(InPlaceChoice, SharedAndLastingValuesStay) {
  const auto device = reference();
  auto g = std::make_shared<Graph>();
  const ValueId x = g->input("x", {DType::kF32, {8, 4}}), w = parameter(*g, "w", {4, 4});
  const ValueId y = g->op("linear", {x, w})[0];
  const ValueId a = g->op("relu", {y})[0];                      // y has another reader
  const ValueId b = g->op("scale", {y}, {{"factor", 2.0}})[0];  // the same
  const ValueId s = g->op("reduce_sum", {g->op("mul", {a, b})[0]}, {{"axes", std::vector<int64_t>{0}}})[0];
  const ValueId z = g->op("add", {b, s})[0];  // s is smaller than the sum; b is shared
  const ValueId loss = g->op("reduce_sum", {z})[0];
  g->freeze(loss, graph::kNone, {z});  // z lasts
  const auto apart = std::make_shared<const Lowered>(lower({graph::derive(g, {})}, *device, {}));
  const auto plan = std::make_shared<const Lowered>(with_in_place(*apart).value());
  for (const auto& parts : plan->problem_op)
    for (size_t p = 1; p < parts.size(); ++p) {
      const graph::JointOp& op = plan->joint->ops()[static_cast<size_t>(parts[p])];
      EXPECT_TRUE(op.backward) << op.name;
    }
  EXPECT_NO_THROW(plan::check(plan->problem));
  EXPECT_EQ(run(solved(plan, 0), device), run(solved(apart, 0), device));
}

}  // namespace
}  // namespace cairn::engine
