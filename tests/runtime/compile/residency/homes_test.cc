// Weights and gradients that live in a tier.
#include "runtime/compile/residency/homes.h"

#include "tests/runtime/compile/support.h"
#include "tests/runtime/compile/update_check.h"

namespace cairn::engine {
namespace {

// Layers whose weights are large beside the activations.
std::shared_ptr<Graph> wide(int64_t rows = 4, bool trains = true) {
  auto g = std::make_shared<Graph>();
  ValueId x = g->input("x", {DType::kF32, {rows, 128}});
  const ValueId t = g->input("t", {DType::kF32, {rows, 128}});
  for (int i = 0; i < 6; ++i)
    x = g->op("gelu", {g->op("linear", {x, parameter(*g, "w" + std::to_string(i), {128, 128})})[0]})[0];
  if (!trains) {
    g->freeze(graph::kNone, graph::kNone, {x});
    return g;
  }
  const auto loss = g->op("mse", {x, t});
  g->freeze(loss[0], loss[1], {});
  return g;
}

// streams: what lives on the host is brought to the device for updates, and gradients are added to there.
PlanOptions with_budget(int64_t bytes, uint32_t micro_steps, bool streams = false) {
  PlanOptions o;
  o.forced.update_on_device = streams;
  if (streams) o.link_bytes_per_second = 1e9;
  o.tiers = {Tier::kHost};
  o.budget_bytes = bytes;
  o.micro_steps = micro_steps;
  return o;
}

int64_t smallest(uint32_t micro_steps, device::Device& device, bool streams = false) {
  return smallest_budget(wide(), device, with_budget(1, micro_steps, streams));
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
  Session session(plan, device), resident(compile(wide(), *device, with_budget(0, 3)), device);
  for (Session* s : {&session, &resident}) {
    fill(*s);
    for (uint32_t micro = 0; micro < 3; ++micro) s->run({1, 0, micro});
  }
  EXPECT_EQ(result(session), result(resident));
  EXPECT_EQ(session.gradient_squares(), resident.gradient_squares());
  expect_exact_memory(session);
}

// Of the gradients' norm: what is known when a gradient leaves need not come back for it.
TEST(Homes, GradientsDoNotComeBackForTheirNorm) {
  const auto device = cpu();
  for (const uint32_t micro_steps : {1u, 3u}) {
    SCOPED_TRACE(micro_steps);
    const int64_t least = smallest(micro_steps, *device, true);
    EXPECT_FALSE(compile(wide(), *device, with_budget(least, micro_steps, true))->joint->squares_in_backward)
        << "there is not a byte for them";
    const auto tight = compile(wide(), *device, with_budget(least + kPageBytes, micro_steps, true));
    ASSERT_TRUE(tight->joint->squares_in_backward);
    Session session(tight, device), resident(compile(wide(), *device, with_budget(0, micro_steps)), device);
    EXPECT_FALSE(resident.plan().joint->squares_in_backward);
    for (Session* s : {&session, &resident}) {
      fill(*s);
      for (uint32_t micro = 0; micro < micro_steps; ++micro) s->run({1, 0, micro});
    }
    session.reset_peaks();
    EXPECT_EQ(session.gradient_squares(), resident.gradient_squares());
    EXPECT_EQ(session.count(Tier::kDevice).peak_live_bytes, tight->persistent_bytes()) << "nothing came";
    EXPECT_EQ(result(session), result(resident));

    // Of gradients that the host wrote nothing is known: they come.
    for (Session* s : {&session, &resident}) {
      const int32_t gradient = s->plan().joint->parameters[2].gradient;
      const std::vector<float> numbers(128 * 128, 0.25f);
      s->write(gradient, numbers.data(), static_cast<int64_t>(numbers.size() * sizeof(float)));
    }
    session.reset_peaks();
    EXPECT_EQ(session.gradient_squares(), resident.gradient_squares());
    EXPECT_GT(session.count(Tier::kDevice).peak_live_bytes, tight->persistent_bytes());
    for (Session* s : {&session, &resident}) s->run({1, 1, 0});
    EXPECT_EQ(session.gradient_squares(), resident.gradient_squares());
    expect_exact_memory(session);
  }
}

// A run that was cancelled says nothing of the gradients that there are.
// Beside a host with so much room and a slow disk; at the smallest budget and so much more.
std::shared_ptr<const CompiledPlan> with_host_and_disk(int64_t host_bytes, int64_t more) {
  const auto device = cpu();
  PlanOptions o = with_budget(1, 1, true);
  o.link_bytes_per_second = 0;
  o.tiers = {Tier::kHost, Tier::kDisk};
  o.costs = with_host_bytes(host_bytes);
  try {
    compile(wide(), *device, o);
  } catch (const Error& error) {
    o.budget_bytes = static_cast<int64_t>(error.fault()->smallest_budget_bytes) + more;
  }
  return compile(wide(), *device, o);
}

std::map<std::pair<graph::Role, Tier>, int> away(const CompiledPlan& plan) {
  std::map<std::pair<graph::Role, Tier>, int> counts;
  for (const auto* places : {&plan.homes, &plan.offloaded})
    for (const auto& [value, place] : *places)
      ++counts[{plan.joint->values[static_cast<size_t>(value)].role, place.tier}];
  return counts;
}

TEST(Homes, WeightsHaveTheFasterTier) {
  constexpr int64_t kWeight = 128 * 128 * 4;
  auto counts = away(*with_host_and_disk(13 * kWeight, 0));
  EXPECT_EQ((counts[{graph::Role::kParameter, Tier::kHost}]), 6);
  EXPECT_EQ((counts[{graph::Role::kParameter, Tier::kDisk}]), 0);
  EXPECT_EQ((counts[{graph::Role::kGradient, Tier::kDisk}]), 0);
  EXPECT_EQ((counts[{graph::Role::kOptimizer, Tier::kDisk}]), 12);
}

// Of gradients that the host has no room for all of, every other one lives there: so the disk's link is never idle for long.
TEST(Homes, BothTiersHaveValuesFromAllOfTheModel) {
  constexpr int64_t kWeight = 128 * 128 * 4;
  const auto plan = with_host_and_disk(9 * kWeight + kWeight / 2, 0);
  std::vector<int> on_host;
  for (const auto& [value, place] : plan->homes) {
    const graph::JointValue& v = plan->joint->values[static_cast<size_t>(value)];
    if (v.role == graph::Role::kGradient && place.tier == Tier::kHost) on_host.push_back(v.name[1] - '0');
  }
  std::sort(on_host.begin(), on_host.end());
  ASSERT_EQ(on_host.size(), 3u);
  EXPECT_EQ(on_host[1] - on_host[0], 2);
  EXPECT_EQ(on_host[2] - on_host[1], 2);
}

// What stays on the device takes no room on the host, so that the disk is not needed.
TEST(Homes, TheSlowerTierIsForWhatNeitherTheDeviceNorTheFasterOneHolds) {
  constexpr int64_t kWeight = 128 * 128 * 4;
  const auto plan = with_host_and_disk(22 * kWeight, 8 * kWeight);  // of 24
  for (const auto& [what, count] : away(*plan)) EXPECT_EQ(what.second, Tier::kHost) << count;
  EXPECT_EQ(plan::violation(plan->problem, plan->plan), "");
}

TEST(Homes, ACancelledRunLeavesNoSquares) {
  const auto device = cpu();
  const auto plan = compile(wide(), *device, with_budget(smallest(1, *device, true) + kPageBytes, 1, true));
  ASSERT_TRUE(plan->joint->squares_in_backward);
  Session session(plan, device);
  fill(session);
  session.run({1, 0, 0});
  session.cancel();
  EXPECT_THROW(session.run({1, 1, 0}), Error);
  session.run({1, 1, 0});
  const double squares = session.gradient_squares();
  EXPECT_GT(squares, 0);
  EXPECT_EQ(session.gradient_squares(), squares);
}

// Programs of other lengths on one store, whose gradients leave: any of them may be the last of an effective batch, and one
// that does not train may run before the update.
TEST(Homes, ProgramsOfOneStoreShareTheSquares) {
  const auto device = cpu();
  for (const bool streams : {true, false}) {
    SCOPED_TRACE(streams);
    const std::vector<ProgramGraph> programs = {
        {"long", wide(8)}, {"short", wide(4)}, {"eval", wide(4, false)}};
    const auto sessions_for = [&](const PlanOptions& options) {
      return Session::open(compile_set(programs, *device, options), device);
    };
    PlanOptions o = with_budget(1, 2, streams);
    try {
      compile_set(programs, *device, o);
      FAIL() << "a budget of one byte was met";
    } catch (const Error& error) {
      o.budget_bytes = static_cast<int64_t>(error.fault()->smallest_budget_bytes) + kPageBytes;
    }
    const auto tight = sessions_for(o), resident = sessions_for(with_budget(0, 2));
    EXPECT_EQ(tight[0]->plan().joint->squares_in_backward, streams);
    EXPECT_EQ(tight[0]->plan().update_at(), streams ? Tier::kDevice : Tier::kHost);
    const double row[8] = {0.01, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05, 1.0};
    for (const auto& store : {tight, resident}) {
      for (const auto& s : store) fill(*s);
      for (const graph::HyperBlock& hyper : store[0]->plan().joint->hypers)
        store[0]->write(hyper.value, row, sizeof row);
    }
    for (uint64_t step = 0; step < 3; ++step) {
      for (const auto& store : {tight, resident}) {
        store[step % 2]->run({1, step, 0});
        store[1 - step % 2]->run({1, step, 1});
        if (step == 1) store[2]->run({1, step, 0});
      }
      EXPECT_EQ(tight[0]->gradient_squares(), resident[0]->gradient_squares());
      for (const auto& store : {tight, resident}) store[0]->update({1, step, 0});
      EXPECT_EQ(result(*tight[0]), result(*resident[0])) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace cairn::engine
