// What kernels reach on the host tier they use where it lies: optimizer state, master weights and gradients there cost no copy, no
// byte of the device, and no bit.
#include <random>

#include "tests/runtime/compile/update_check.h"
#include "tests/support/campaign.h"
#include "tests/support/seeds.h"

namespace cairn::engine {
namespace {

// A table of rows that lookups and the loss share, and layers of random widths between them.
std::shared_ptr<Graph> random_model(std::mt19937& random) {
  const auto draw = [&](int from, int to) { return static_cast<int64_t>(from + random() % (to - from + 1)); };
  auto g = std::make_shared<Graph>();
  const int64_t rows = draw(4, 24), width = draw(2, 6) * 16, vocab = draw(40, 700);
  const ValueId ids = g->input("ids", {DType::kI32, {rows}}),
                targets = g->input("targets", {DType::kI32, {rows}});
  const ValueId table = parameter(*g, "table", {vocab, width});
  ValueId x = g->op("embedding", {table, ids})[0];
  for (int64_t i = 0, layers = draw(1, 4); i < layers; ++i) {
    const std::string name = "l" + std::to_string(i);
    const int64_t hidden = draw(2, 12) * 16;
    const ValueId up = g->op(
        "linear", {x, parameter(*g, name + ".up", {hidden, width}), parameter(*g, name + ".b", {hidden})})[0];
    const ValueId down =
        g->op("linear", {g->op("gelu", {up})[0], parameter(*g, name + ".down", {width, hidden})})[0];
    x = g->op("add", {x, down})[0];
    if (random() % 2 == 0)
      x = g->op("layernorm",
                {x, parameter(*g, name + ".g", {width}), parameter(*g, name + ".h", {width})})[0];
  }
  const ValueId head = random() % 2 == 0 ? table : parameter(*g, "head", {vocab, width});
  const auto loss = g->op("linear_cross_entropy", {x, head, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

// Parameters and optimizer state after two steps.
Result trained_on(const std::shared_ptr<const CompiledPlan>& plan,
                  const std::shared_ptr<device::Device>& device, uint32_t micro_steps) {
  Session session(plan, device);
  fill(session);
  if (const int32_t table = session.plan().joint->find("table"); table >= 0) {
    std::vector<float> numbers(static_cast<size_t>(session.declared(table).shape.elements()));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * 37 % 101) / 150.0f - 0.3f;
    session.write_declared(table, numbers.data());  // whole, whatever parts it is in
  }
  set_hyper(session);
  for (uint64_t s = 0; s < 2; ++s) {
    for (uint32_t micro = 0; micro < micro_steps; ++micro) session.run({7, s, micro});
    session.gradient_squares();
    session.update({7, s, 0});
  }
  expect_exact_memory(session);
  return trained(session);
}

double step_seconds(const CompiledPlan& plan, uint32_t micro_steps) {
  return plan.plan.predicted_seconds * micro_steps + plan.update_seconds;
}

// At every budget: a plan wherever there was one, no slower, and to the same bits.
TEST(WithinReach, NoPlanIsSlowerNorLargerAndNoBitIsAnother) {
  static constexpr const char* kOptimizers[] = {"adamw", "adamw8", "sgd", "muon", "adafactor"};
  int moved = 0, below = 0, seeds = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    if (!support::taken(seed, 6)) continue;
    if (seeds++ % support::stride(2) != 0) continue;
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto g = random_model(random);
    PlanOptions o;
    o.amp = random() % 2 == 0 ? graph::AmpMode::kOff : graph::AmpMode::kBf16;
    o.optimizer.name = kOptimizers[random() % std::size(kOptimizers)];
    o.micro_steps = 1 + static_cast<uint32_t>(random() % 3);
    o.fuse_update = o.micro_steps == 1 && random() % 2 == 0;
    if (o.amp == graph::AmpMode::kBf16 && random() % 2 == 0)
      o.parameters = random() % 2 == 0 ? DType::kBF16 : DType::kSplit;
    auto device = cpu();
    if (random() % 2 == 0) device = device::checked(device);
    const auto resident = compile(g, *device, o);
    const Result expected = trained_on(resident, device, o.micro_steps);
    o.tiers = {Tier::kHost};
    PlanOptions streams = o;
    streams.forced.update_on_device = true;
    const int64_t least = smallest_budget(g, *device, o), streamed = smallest_budget(g, *device, streams);
    EXPECT_LE(least, streamed);
    below += least < streamed;
    for (const double share : {0.0, 0.1, 0.4, 0.9}) {
      SCOPED_TRACE(share);
      o.budget_bytes = streams.budget_bytes =
          streamed + static_cast<int64_t>(share * static_cast<double>(resident->plan.arena_bytes - streamed));
      const auto plan = compile(g, *device, o), other = compile(g, *device, streams);
      EXPECT_LE(plan->plan.arena_bytes, o.budget_bytes);
      EXPECT_LE(step_seconds(*plan, o.micro_steps), step_seconds(*other, o.micro_steps) * (1 + 1e-9));
      EXPECT_EQ(plan::violation(plan->problem, plan->plan), "");
      EXPECT_TRUE(plan->program(graph::kUpdate).copies.empty());
      EXPECT_EQ(trained_on(plan, device, o.micro_steps), expected);
      moved += plan->update_at() == Tier::kHost;
    }
    o.budget_bytes = least;
    EXPECT_EQ(trained_on(compile(g, *device, o), device, o.micro_steps), expected);
  }
  EXPECT_GT(moved, 8 / support::stride(2));
  EXPECT_GT(below, 0);
}

// State on the host in place, weights and gradients that stream from a disk in parts, and the other way round: whatever
// the host has room for.
TEST(WithinReach, TheHostMayHoldAnyPartOfIt) {
  const auto device = cpu();
  const auto g = layers();
  int mixed = 0;
  for (const char* optimizer : {"adamw", "adamw8"}) {
    PlanOptions o;
    o.optimizer.name = optimizer;
    o.micro_steps = 2;
    const Result expected = trained_on(compile(g, *device, o), device, 2);
    o.tiers = {Tier::kHost, Tier::kDisk};
    for (int64_t room = 64 << 10; room < int64_t{2} << 20; room *= 2 * support::stride(2)) {
      SCOPED_TRACE(room);
      o.costs = with_host_bytes(room);
      o.budget_bytes =
          smallest_budget(g, *device, o) + 4 * kPageBytes;  // the smallest is that of the disk alone
      // Of a model of this very device.
      const auto plan = std::make_shared<CompiledPlan>(*compile(g, *device, o));
      plan->device = device->info().name;
      EXPECT_LE(plan->resident_bytes(Tier::kHost), room);
      EXPECT_EQ(trained_on(plan, device, 2), expected);
      int both = 0;
      for (const Tier tier : {Tier::kHost, Tier::kDisk}) both += plan->resident_bytes(tier) > 0;
      mixed += both == 2 && plan->update_at() == Tier::kHost && !plan->program(graph::kUpdate).copies.empty();
    }
  }
  EXPECT_GT(mixed, 4 / support::stride(2)) << "an update of which some streams and some does not";
}

// The gradient of a vocabulary in parts is added to where it lives, part by part, and read as a whole.
TEST(WithinReach, AVocabularyInPartsKeepsItsGradientOnTheHost) {
  auto g = std::make_shared<Graph>();
  const ValueId ids = g->input("ids", {DType::kI32, {8}}), targets = g->input("targets", {DType::kI32, {8}});
  const ValueId table = parameter(*g, "table", {1536, 32});
  const ValueId x = g->op("gelu", {g->op("embedding", {table, ids})[0]})[0];
  const auto loss = g->op("linear_cross_entropy", {x, table, targets});
  g->freeze(loss[0], loss[1], {});
  const auto device = cpu();
  PlanOptions o;
  o.micro_steps = 3;
  const Result expected = trained_on(compile(g, *device, o), device, 3);
  o.tiers = {Tier::kHost};
  o.forced.vocabulary_parts = 2;
  o.budget_bytes = smallest_budget(g, *device, o);
  const auto plan = compile(g, *device, o);
  ASSERT_FALSE(plan->joint->slices.empty());
  for (const graph::Slices& slices : plan->joint->slices) {
    const bool gradient =
        plan->joint->values[static_cast<size_t>(slices.whole)].role == graph::Role::kGradient;
    EXPECT_EQ(plan->offloaded.contains(slices.whole), gradient);
    for (const int32_t part : slices.parts) EXPECT_EQ(plan->offloaded.contains(part), gradient);
  }
  Result values = trained_on(plan, device, 3);
  std::erase_if(values, [&](const auto& value) { return !expected.contains(value.first); });  // the parts
  EXPECT_EQ(values, expected);
}

}  // namespace
}  // namespace cairn::engine
