// Weights and gradients that live in a tier.
#include "runtime/engine/compile/homes/homes.h"

#include "tests/runtime/engine/support.h"

namespace cairn::engine {
namespace {

// Layers whose weights are large beside the activations.
std::shared_ptr<Graph> wide() {
  auto g = std::make_shared<Graph>();
  ValueId x = g->input("x", {DType::kF32, {4, 128}});
  const ValueId t = g->input("t", {DType::kF32, {4, 128}});
  for (int i = 0; i < 6; ++i)
    x = g->op("gelu", {g->op("linear", {x, parameter(*g, "w" + std::to_string(i), {128, 128})})[0]})[0];
  const auto loss = g->op("mse", {x, t});
  g->freeze(loss[0], loss[1], {});
  return g;
}

// streams: what lives on the host is brought to the device for updates, and gradients are added to there.
PlanOptions with_budget(int64_t bytes, uint32_t micro_steps, bool streams = false) {
  PlanOptions o;
  o.update_on_device = streams;
  o.tiers = {Tier::kHost};
  o.budget_bytes = bytes;
  o.micro_steps = micro_steps;
  return o;
}

int64_t smallest(uint32_t micro_steps, device::Device& device, bool streams = false) {
  try {
    compile(wide(), device, with_budget(1, micro_steps, streams));
  } catch (const Error& error) {
    return static_cast<int64_t>(error.fault()->smallest_budget_bytes);
  }
  ADD_FAILURE() << "a budget of one byte was met";
  return 0;
}

TEST(Homes, AModelLargerThanItsBudgetTrainsToTheSameBits) {
  const auto device = cpu();
  constexpr int64_t kWeight = 128 * 128 * 4;
  for (const auto& [micro_steps, streams] : {std::pair(1u, true), {2u, true}, {1u, false}, {2u, false}}) {
    const int64_t budget = smallest(micro_steps, *device, streams);
    EXPECT_LT(budget, 6 * kWeight) << "less than the weights alone";
    const auto tight = compile(wide(), *device, with_budget(budget, micro_steps, streams));
    EXPECT_GE(tight->homes.size(), 6u);
    EXPECT_EQ(plan::violation(tight->problem, tight->plan), "");
    Session session(tight, device), resident(compile(wide(), *device, with_budget(0, micro_steps)), device);
    const double row[8] = {0.01, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05, 1.0};
    for (Session* s : {&session, &resident}) {
      fill(*s);
      for (const graph::HyperBlock& hyper : s->plan().joint->hypers) s->write(hyper.value, row, sizeof row);
    }
    for (uint32_t step = 0; step < 3; ++step) {
      for (uint32_t micro = 0; micro < micro_steps; ++micro)
        for (Session* s : {&session, &resident}) s->run({1, step, micro});
      EXPECT_EQ(session.gradient_squares(), resident.gradient_squares());
      for (Session* s : {&session, &resident}) s->update({1, step, 0});
      EXPECT_EQ(result(session), result(resident)) << "step " << step;
    }
    expect_exact_memory(session);
  }
}

TEST(Homes, OneMicroBatchPerUpdateIsHeldTo) {
  const auto device = cpu();
  Session session(compile(wide(), *device, with_budget(smallest(1, *device, true), 1, true)), device);
  fill(session);
  session.run({1, 0, 0});
  try {
    session.run({1, 0, 1});
    FAIL() << "gradients that left were added to";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kWrongState);
    EXPECT_NE(std::string(error.what()).find("plan with micro_steps for more"), std::string::npos)
        << error.what();
  }
  session.run({1, 0, 0});
}

// Gradients that are added to where they live take any number of micro-batches.
TEST(Homes, GradientsWithinReachNeverTravel) {
  const auto device = cpu();
  const auto plan = compile(wide(), *device, with_budget(smallest(1, *device), 1));
  int gradients = 0;
  for (const auto& [value, place] : plan->offloaded)
    gradients += plan->joint->values[static_cast<size_t>(value)].role == graph::Role::kGradient;
  EXPECT_EQ(gradients, 6);
  for (const CopyJob& copy : plan->program().copies)
    EXPECT_EQ(copy.to, Tier::kDevice) << "weights come, nothing goes";
  Session session(plan, device), resident(compile(wide(), *device, with_budget(0, 1)), device);
  for (Session* s : {&session, &resident}) {
    fill(*s);
    for (uint32_t micro = 0; micro < 3; ++micro) s->run({1, 0, micro});
  }
  EXPECT_EQ(result(session), result(resident));
  EXPECT_EQ(session.gradient_squares(), resident.gradient_squares());
  expect_exact_memory(session);
}

}  // namespace
}  // namespace cairn::engine
