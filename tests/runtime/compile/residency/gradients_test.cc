// Gradients that are on the device from backward to the update, and not before.
#include "runtime/compile/residency/gradients.h"

#include "tests/runtime/compile/support.h"
#include "tests/runtime/compile/update_check.h"

namespace cairn::engine {
namespace {

PlanOptions one_micro_batch() {
  PlanOptions o;
  o.micro_steps = 1;
  return o;
}

int64_t gradient_bytes(const CompiledPlan& plan) {
  int64_t bytes = 0;
  for (const auto& [value, offset] : plan.gradient_offsets)
    bytes += plan.problem.values[static_cast<size_t>(value)].bytes;
  return bytes;
}

// Steps with their updates, of which one reads all that the host sees in between, and one writes a gradient.
struct Trained {
  Result values;
  std::vector<double> squares;
};
Trained train(Session& session) {
  const graph::JointGraph& joint = *session.plan().joint;
  const double row[8] = {0.01, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05, 1.0};
  fill(session);
  for (const graph::HyperBlock& hyper : joint.hypers) session.write(hyper.value, row, sizeof row);
  Trained trained;
  for (uint32_t step = 0; step < 4; ++step) {
    session.run({1, step, 0});
    if (step == 1)
      for (const graph::Resident& state : joint.residents)
        if (state.saved != graph::Saved::kNever)
          trained.values["step 1 " + state.name] = bytes_of(session, state.value);
    if (step == 2) {
      const int32_t gradient = joint.parameters[0].gradient;
      std::vector<float> numbers(
          static_cast<size_t>(joint.values[static_cast<size_t>(gradient)].desc.shape.elements()), 0.25f);
      session.write(gradient, numbers.data(), static_cast<int64_t>(numbers.size() * sizeof(float)));
    }
    trained.squares.push_back(session.gradient_squares());
    session.update({1, step, 0});
  }
  for (const graph::Resident& state : joint.residents)
    if (state.saved != graph::Saved::kNever) trained.values[state.name] = bytes_of(session, state.value);
  return trained;
}

// Of plans for any number of micro-batches.
Trained expected(const std::shared_ptr<Graph>& graph, const std::shared_ptr<device::Device>& device,
                 PlanOptions options = {}) {
  options.budget_bytes = 0;
  options.micro_steps = 0;
  Session session(compile(graph, *device, options), device);
  EXPECT_TRUE(session.plan().gradient_offsets.empty());
  return train(session);
}

void expect_same(const Trained& trained, const Trained& as) {
  EXPECT_EQ(trained.squares, as.squares);
  EXPECT_EQ(trained.values, as.values);
}

TEST(Gradients, TakeNoMemoryBeforeBackward) {
  const auto device = cpu();
  for (const auto& graph : {mlp(6), transformer(3)}) {  // the latter's table has two writers
    const auto any = compile(graph, *device, {}), one = compile(graph, *device, one_micro_batch());
    EXPECT_EQ(plan::violation(one->problem, one->plan), "");
    ASSERT_FALSE(one->gradient_offsets.empty());
    EXPECT_EQ(one->persistent_bytes() + gradient_bytes(*one), any->persistent_bytes());
    EXPECT_LT(one->plan.arena_bytes, any->plan.arena_bytes);
    EXPECT_LT(smallest_budget(graph, *device, one_micro_batch()), smallest_budget(graph, *device, {}));
  }
}

TEST(Gradients, ChangeNoBitAtAnyBudget) {
  const auto device = cpu();
  for (const auto& graph : {mlp(4), transformer(2)}) {
    const Trained as = expected(graph, device);
    const int64_t least = smallest_budget(graph, *device, one_micro_batch());
    PlanOptions options = one_micro_batch();
    const int64_t most = compile(graph, *device, options)->plan.arena_bytes;
    for (const int64_t budget : {least, (least + most) / 2, most}) {
      options.budget_bytes = budget;
      Session session(compile(graph, *device, options), device);
      ASSERT_FALSE(session.plan().gradient_offsets.empty());
      expect_same(train(session), as);
      expect_exact_memory(session);
    }
  }
}

// What of the state lives on the host streams through the part of the arena that gradients leave.
TEST(Gradients, AreBesideWhatStreams) {
  const auto device = cpu();
  PlanOptions options = one_micro_batch();
  options.tiers = {Tier::kHost};
  options.forced.update_on_device = true;
  options.link_bytes_per_second = 1e9;
  const std::shared_ptr<Graph> graph = layers(4);
  const Trained as = expected(graph, device, options);
  const int64_t least = smallest_budget(graph, *device, options);
  const int64_t most = compile(graph, *device, options)->plan.arena_bytes;
  int both = 0;
  for (int64_t budget = least; budget <= most; budget += (most - least) / 8) {
    options.budget_bytes = budget;
    Session session(compile(graph, *device, options), device);
    both += session.plan().streams() && !session.plan().gradient_offsets.empty() ? 1 : 0;
    EXPECT_EQ(plan::violation(session.plan().problem, session.plan().plan), "");
    expect_same(train(session), as);
    expect_exact_memory(session);
  }
  EXPECT_GE(both, 2) << "gradients that stay beside what does not";
}

TEST(Gradients, OfSeveralWritersPersistWhereTheyCouldBeSent) {
  const auto device = cpu();
  PlanOptions options = one_micro_batch();
  options.tiers = {Tier::kHost};
  const auto plan = compile(transformer(2), *device, options);
  const auto offset = [&](const char* name) {
    return plan->gradient_offsets.contains(plan->problem_value[static_cast<size_t>(plan->joint->find(name))]);
  };
  EXPECT_FALSE(offset("table/gradient"));
  EXPECT_TRUE(offset("h0.o/gradient"));
}

TEST(Gradients, OfSeveralMicroBatchesProgramsOrUpdatesInBackwardPersist) {
  const auto device = cpu();
  PlanOptions fused = one_micro_batch(), two;
  fused.fuse_update = true;
  two.micro_steps = 2;
  for (const PlanOptions& options : {fused, two, PlanOptions{}})
    EXPECT_TRUE(compile(mlp(2), *device, options)->gradient_offsets.empty());
  const ProgramGraph programs[] = {{"a", mlp(2)}, {"b", mlp(2)}};
  for (const auto& plan : compile_set(programs, *device, one_micro_batch()))
    EXPECT_TRUE(plan->gradient_offsets.empty());
}

TEST(Gradients, AreAddedToByNoSecondMicroBatch) {
  const auto device = cpu();
  Session session(compile(mlp(2), *device, one_micro_batch()), device);
  fill(session);
  session.run({1, 0, 0});
  const Result once = result(session);
  EXPECT_THROW(session.run({1, 0, 1}), Error);
  session.run({1, 0, 0});
  EXPECT_EQ(result(session), once);
}

// Without an optimizer they are what the caller is after.
TEST(Gradients, AreResultsWithoutAnOptimizer) {
  const auto device = cpu();
  PlanOptions options = one_micro_batch();
  options.optimizer.name = "";
  Session one(compile(mlp(3), *device, options), device);
  options.micro_steps = 0;
  Session any(compile(mlp(3), *device, options), device);
  for (Session* s : {&one, &any}) {
    fill(*s);
    s->run({1, 0, 0});
  }
  EXPECT_FALSE(one.plan().gradient_offsets.empty());
  EXPECT_EQ(result(one), result(any));
  const int32_t head = one.plan().joint->find("head/gradient");
  EXPECT_EQ(std::memcmp(one.address(head), bytes_of(any, head).data(), bytes_of(any, head).size()), 0);
  expect_exact_memory(one);
}

// The other way leaves the problem that there was.
TEST(Gradients, MayPersistAgain) {
  const auto device = cpu();
  const Lowered plan = lower({graph::derive(transformer(2), {})}, *device, {});
  const plan::Problem& before = plan.problem;
  const Lowered ended = end_gradients(plan, one_micro_batch());
  EXPECT_EQ(ended.problem.ops.size(), before.ops.size() + 1);
  EXPECT_LT(ended.problem.persistent_bytes(), before.persistent_bytes());
  const Lowered again = let_gradients_persist(ended);
  EXPECT_EQ(again.problem.values, before.values);
  EXPECT_EQ(again.problem_op.size(), before.ops.size());
  for (size_t o = 0; o < before.ops.size(); ++o)
    EXPECT_EQ(again.problem.ops[o].outputs, before.ops[o].outputs);
}

}  // namespace
}  // namespace cairn::engine
