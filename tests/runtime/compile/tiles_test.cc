// Rows in tiles: the same bits in less memory, for any number of tiles.
#include "runtime/compile/tiles/tiles.h"

#include "runtime/compile/tiles/groups.h"
#include "tests/runtime/compile/support.h"

namespace cairn::engine {
namespace {

constexpr int64_t kWidth = 32, kInner = 256;

struct Shapes {
  int64_t batch, time;
};

ValueId weight(Graph& g, const std::string& name, std::initializer_list<int64_t> shape, bool frozen) {
  return g.parameter(name, {DType::kF32, Shape(shape)}, {.frozen = frozen});
}

// y = x W^T (+ x' A^T B^T scaled, x' with dropout).
ValueId product(Graph& g, ValueId x, const std::string& name, int64_t to, int64_t from, bool adapts) {
  const ValueId y = g.op("linear", {x, weight(g, name + ".weight", {to, from}, adapts)})[0];
  if (!adapts) return y;
  const ValueId dropped = g.op("dropout", {x}, {{"rate", 0.1}})[0];
  const ValueId a = g.op("linear", {dropped, weight(g, name + ".lora_A.weight", {8, from}, false)})[0];
  const ValueId b = g.op("linear", {a, weight(g, name + ".lora_B.weight", {to, 8}, false)})[0];
  return g.op("add", {y, g.op("scale", {b}, {{"factor", 2.0}})[0]})[0];
}

// Blocks like Llama's, or GPT-2's.
std::shared_ptr<Graph> decoder(const Shapes& s, bool llama, bool adapts, int layers = 2,
                               Policy policy = Policy::kPlannerDecides) {
  auto g = std::make_shared<Graph>();
  ValueId x = g->input("x", {DType::kF32, {s.batch, s.time, kWidth}});
  const auto vector = [&](const std::string& name) { return weight(*g, name, {kWidth}, adapts); };
  const auto norm = [&](ValueId v, const std::string& name) {
    return llama ? g->op("rmsnorm", {v, vector(name)})[0]
                 : g->op("layernorm", {v, vector(name), vector(name + ".bias")})[0];
  };
  for (int i = 0; i < layers; ++i) {
    const std::string name = "h" + std::to_string(i);
    const graph::RegionId region = g->region_begin(name, policy);
    const ValueId qkv = product(*g, norm(x, name + ".n1"), name + ".qkv", 3 * kWidth, kWidth, adapts);
    const ValueId y = g->op("attention", {qkv}, {{"heads", int64_t{4}}})[0];
    x = g->op("add", {x, product(*g, y, name + ".o", kWidth, kWidth, adapts)})[0];
    const ValueId n = norm(x, name + ".n2");
    const ValueId up = product(*g, n, name + ".up", kInner, kWidth, adapts);
    const ValueId h = llama ? g->op("swiglu", {product(*g, n, name + ".gate", kInner, kWidth, adapts), up})[0]
                            : g->op("dropout", {g->op("gelu", {up})[0]}, {{"rate", 0.1}})[0];
    x = g->op("add", {x, product(*g, h, name + ".down", kWidth, kInner, adapts)})[0];
    g->region_end(region);
  }
  const auto loss = g->op("mse", {x, g->input("y", {DType::kF32, {s.batch, s.time, kWidth}})});
  g->freeze(loss[0], loss[1], {});
  return g;
}

PlanOptions options_with(graph::AmpMode amp, int64_t tiles) {
  PlanOptions options;
  options.amp = amp;
  options.forced.row_tiles = tiles;
  return options;
}

Result run(const std::shared_ptr<const CompiledPlan>& plan, const std::shared_ptr<device::Device>& device) {
  EXPECT_EQ(plan::violation(plan->problem, plan->plan), "");
  Session session(plan, device);
  fill(session);
  for (uint32_t micro = 0; micro < 2; ++micro) session.run({42, 7, micro});
  expect_exact_memory(session);
  return result(session);
}

class RowTiles : public ::testing::TestWithParam<std::tuple<bool, bool, graph::AmpMode>> {
 protected:
  const bool llama = std::get<0>(GetParam()), adapts = std::get<1>(GetParam());
  const graph::AmpMode amp = std::get<2>(GetParam());
  const std::shared_ptr<device::Device> device = cpu();
};

TEST_P(RowTiles, SameBitsInLessMemory) {
  // Tiles end with a block of the kernels' sums over rows; the last one has what is left.
  const auto graph =
      decoder(amp == graph::AmpMode::kOff ? Shapes{2, 550} : Shapes{1, 2100}, llama, adapts, 1);
  const auto whole = compile(graph, *device, options_with(amp, 1));
  const Result expected = run(whole, device);
  ASSERT_FALSE(expected.empty());
  int64_t before = whole->plan.device_peak_bytes;
  for (const int64_t tiles : {2, 8}) {
    const auto plan = compile(graph, *device, options_with(amp, tiles));
    ASSERT_FALSE(plan->tiles.empty()) << "nothing goes in tiles";
    EXPECT_EQ(run(plan, device), expected) << tiles << " tiles";
    EXPECT_LE(plan->plan.device_peak_bytes, before) << tiles << " tiles";
    before = plan->plan.device_peak_bytes;
  }
  EXPECT_LT(before, whole->plan.device_peak_bytes);
}

INSTANTIATE_TEST_SUITE_P(, RowTiles,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool(),
                                            ::testing::Values(graph::AmpMode::kOff, graph::AmpMode::kBf16)),
                         [](const auto& row) {
                           return std::string(std::get<0>(row.param) ? "llama" : "gpt2") +
                                  (std::get<1>(row.param) ? "_adapters" : "") +
                                  (std::get<2>(row.param) == graph::AmpMode::kOff ? "" : "_bf16");
                         });

// What fits no plan without tiles fits one with them, which nobody has to ask for.
TEST(RowTilesAlone, ChosenWhereNothingElseFits) {
  const auto device = cpu();
  const auto graph = decoder({1, 1024}, true, true, 1);
  const auto whole = compile(graph, *device, options_with(graph::AmpMode::kOff, 0));
  EXPECT_TRUE(whole->tiles.empty());
  const Result expected = run(whole, device);
  const int64_t without = smallest_budget(graph, *device, options_with(graph::AmpMode::kOff, 1)),
                with = smallest_budget(graph, *device, options_with(graph::AmpMode::kOff, 0));
  EXPECT_LT(with, without);
  PlanOptions options = options_with(graph::AmpMode::kOff, 0);
  options.budget_bytes = with;
  const auto plan = compile(graph, *device, options);
  EXPECT_GT(most_tiles(*plan), 1);
  EXPECT_EQ(run(plan, device), expected);
}

// A region whose policy is given is left as it is.
TEST(RowTilesAlone, PoliciesAreObeyed) {
  const auto device = cpu();
  for (const Policy policy : {Policy::kKeep, Policy::kRecompute})
    EXPECT_TRUE(
        compile(decoder({1, 1024}, true, true, 1, policy), *device, options_with(graph::AmpMode::kOff, 4))
            ->tiles.empty());
}

// Norms that learn sum the gradients of their factors in an order of their own: tiles begin behind them.
TEST(RowTilesAlone, WhatTilesWouldSumOtherwiseRunsWhole) {
  const auto device = cpu();
  const auto plan =
      compile(decoder({1, 1024}, true, false, 1), *device, options_with(graph::AmpMode::kOff, 4));
  ASSERT_FALSE(plan->tiles.empty());
  for (const auto& [op, tiles] : plan->tiles)
    for (const TileLaunch& launch : tiles->launches)
      EXPECT_NE(plan->joint->ops()[static_cast<size_t>(launch.joint_op)].code, ops::OpCode::k_rmsnorm_grad);
}

}  // namespace
}  // namespace cairn::engine
