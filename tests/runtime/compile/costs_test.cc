// Plans with costs: profiles, device models, and the memory that bounds budgets.
#include "runtime/compile/cost_query.h"
#include "runtime/exec/measure.h"
#include "tests/runtime/compile/support.h"

namespace cairn::engine {
namespace {

struct CostsTest : testing::Test {
  std::shared_ptr<device::Device> cpu = device::open("cpu", {.threads = 1});
  std::shared_ptr<const Graph> graph = transformer(2);

  // A profile of this machine in which every op of the graph takes `seconds`.
  costs::Profile uniform(double seconds) {
    costs::Profile p;
    p.machine = costs::machine_of(cpu->info());
    const auto plan = compile(graph, *cpu, {});
    costs::Recorder recorder;
    for (const auto* list : {&plan->joint->ops(), &plan->joint->ops(graph::kRepack)})
      for (const graph::JointOp& op : *list) recorder.add(query_of(*plan->joint, op), 1, 0, seconds);
    recorder.add(optimizer_query(*plan->joint), 1, 0, 5);
    recorder.add(host_query(*plan->joint), 1, 0, 7);
    recorder.merge_into(p);
    return p;
  }
  static std::shared_ptr<const costs::Table> table(costs::Profile p) {
    costs::Table t;
    t.profile = std::move(p);
    return std::make_shared<const costs::Table>(std::move(t));
  }
  static std::shared_ptr<const costs::Table> table(costs::DeviceModel m) {
    costs::Table t;
    t.model = std::move(m);
    return std::make_shared<const costs::Table>(std::move(t));
  }
  static costs::DeviceModel engine() {
    return {.name = "Engine",
            .sources = {},
            .memory_bytes = 1 << 30,
            .f32_flops_per_second = 1e12,
            .bf16_flops_per_second = 1e13,
            .f16_flops_per_second = 1e13,
            .memory_bytes_per_second = 1e11,
            .launch_seconds = 0,
            .separate_memory = true,
            .links = {{"host", 1e-5, 1e10, 1e10, 0.7, int64_t{1} << 40}}};
  }
  std::string refusal(const PlanOptions& options) {
    try {
      compile(graph, *cpu, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument) << error.what();
      return error.what();
    }
    return "no error";
  }
};

TEST_F(CostsTest, MeasuredSecondsMakeThePlan) {
  const auto plan = compile(graph, *cpu, {.costs = table(uniform(0.25))});
  const auto ops = static_cast<double>(plan->problem.ops.size());
  EXPECT_EQ(plan->measured_ops, static_cast<int64_t>(plan->problem.ops.size()));
  EXPECT_DOUBLE_EQ(plan->plan.predicted_seconds, 0.25 * ops);
  EXPECT_DOUBLE_EQ(plan->update_seconds,
                   5 + 0.25 * static_cast<double>(plan->joint->ops(graph::kRepack).size()));
  EXPECT_DOUBLE_EQ(plan->host_seconds, 7);
  EXPECT_EQ(compile(graph, *cpu, {})->measured_ops, 0);
}

TEST_F(CostsTest, AnotherModelIsScaled) {
  const auto profile = table(uniform(0.25));
  const auto plan = compile(mlp(2), *cpu, {.costs = profile});
  EXPECT_EQ(plan->measured_ops, 0);
  EXPECT_GT(plan->plan.predicted_seconds, 0);
}

TEST_F(CostsTest, AProfileOfAnotherMachineIsRefusedUnlessForced) {
  costs::Profile p = uniform(0.25);
  p.machine.processor = "Abacus";
  EXPECT_NE(refusal({.costs = table(p)}).find("'Abacus' there"), std::string::npos);
  const auto forced = compile(graph, *cpu, {.costs = table(p), .force_costs = true});
  EXPECT_EQ(forced->measured_ops, static_cast<int64_t>(forced->problem.ops.size()));
  p = uniform(0.25);
  p.machine.threads += 1;
  EXPECT_NE(refusal({.costs = table(p)}).find("threads"), std::string::npos);
}

TEST_F(CostsTest, CostsChangeNoDecisionOfMemory) {
  const auto plain = compile(graph, *cpu, {.budget_share = 0.9});
  const auto costed = compile(graph, *cpu, {.budget_share = 0.9, .costs = table(uniform(0.25))});
  EXPECT_EQ(plain->problem.budget_bytes, costed->problem.budget_bytes);
  EXPECT_LE(costed->plan.arena_bytes, costed->problem.budget_bytes);
}

TEST_F(CostsTest, ADeviceThatIsNotThere) {
  const auto plan = compile(graph, *cpu, {.costs = table(engine())});
  EXPECT_EQ(plan->problem.budget_bytes, 1 << 30);
  EXPECT_TRUE(plan->joint->ops(graph::kRepack).empty())
      << "the CPU's packs are no part of another device's plan";
  ASSERT_EQ(plan->problem.links.size(), 1u);
  EXPECT_EQ(plan->problem.links[0].out_bytes_per_second, 1e10);
  EXPECT_EQ(plan->problem.links[0].capacity_bytes, int64_t{1} << 40);
  try {
    Session session(plan, cpu);
    FAIL() << "a session ran a plan for a device that is not there";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("Engine"), std::string::npos);
  }
  costs::DeviceModel shared = engine();
  shared.separate_memory = false;
  EXPECT_TRUE(compile(graph, *cpu, {.costs = table(shared)})->problem.links.empty());
}

// Nor does it matter how many threads the machine has that plans.
TEST_F(CostsTest, PlansForADeviceThatIsNotThereAreTheSameEverywhere) {
  const auto problem = [&](int threads) {
    const auto device = device::open("cpu", {.threads = threads});
    return plan::to_json(compile(graph, *device, {.budget_share = 0.7, .costs = table(engine())})->problem);
  };
  EXPECT_EQ(problem(1), problem(3));
}

TEST_F(CostsTest, BudgetsAboveTheMemory) {
  const int64_t memory = cpu->info().memory_bytes;
  EXPECT_NE(refusal({.budget_bytes = memory + 1}).find(cat(memory, " bytes of memory")), std::string::npos);
  EXPECT_EQ(compile(graph, *cpu, {.budget_bytes = memory})->problem.budget_bytes, memory);
  const std::string message = refusal({.budget_bytes = (1 << 30) + 1, .costs = table(engine())});
  EXPECT_NE(message.find("1073741824 bytes of memory that 'Engine' has"), std::string::npos) << message;
  // A share is of what keeping everything takes, and the memory bounds it.
  costs::DeviceModel small = engine();
  small.memory_bytes = compile(graph, *cpu, {.costs = table(small)})->plan.arena_bytes;
  EXPECT_EQ(compile(graph, *cpu, {.budget_share = 2, .costs = table(small)})->problem.budget_bytes,
            small.memory_bytes);
}

TEST_F(CostsTest, ARunIsRecorded) {
  const auto plan = compile(graph, *cpu, {});
  Session session(plan, cpu);
  fill(session);
  costs::Recorder recorder;
  session.run({});
  EXPECT_THROW(record_run(recorder, session, {}), Error) << "nothing was traced";
  session.trace(true);
  session.run({});
  record_run(recorder, session, {.step = 100, .optimizer = 40});
  costs::Profile profile;
  profile.machine = costs::machine_of(cpu->info());
  recorder.merge_into(profile);
  double sum = 0;
  for (const Span& span : session.spans()) sum += span.end - span.begin;
  const costs::OpCost& host = profile.ops.at(host_query(*plan->joint).signature);
  EXPECT_LE(host.median_seconds, 60 - sum);
  EXPECT_GT(host.median_seconds, 0);
  EXPECT_DOUBLE_EQ(profile.ops.at(optimizer_query(*plan->joint).signature).median_seconds, 40);
  // The plan with these costs predicts what was measured: ops and the gaps between them.
  const auto again = compile(graph, *cpu, {.costs = table(profile)});
  EXPECT_EQ(again->measured_ops, static_cast<int64_t>(again->problem.ops.size()));
  const double launches = static_cast<double>(again->problem.ops.size()) * profile.launch_seconds;
  double main = 0;
  for (const Span& span : session.spans())
    if (span.phase == graph::kMicroBatch) main += span.end - span.begin;
  EXPECT_NEAR(again->plan.predicted_seconds, main + launches, 1e-9 + 1e-6 * main);
}

// Updates make packed weights; the seconds that a traced run takes to make them are not the optimizer's, too.
TEST_F(CostsTest, PacksCountOnce) {
  PlanOptions options;
  options.amp = graph::AmpMode::kBf16;
  options.micro_steps = 4;  // so that packed weights save something
  const auto plan = compile(graph, *cpu, options);
  const auto packed_weights = static_cast<int64_t>(plan->joint->ops(graph::kRepack).size());
  if (packed_weights == 0) GTEST_SKIP() << "needs amx";
  Session session(plan, cpu);
  fill(session);
  session.run({});
  session.trace(true);
  session.run({});
  costs::Recorder recorder;
  record_run(recorder, session, {.step = 100, .optimizer = 40});
  costs::Profile profile;
  profile.machine = costs::machine_of(cpu->info());
  recorder.merge_into(profile);
  double packing = 0, begin = -1, end = 0;
  int64_t packed = 0;
  for (const Span& span : session.spans()) {
    if (span.phase == graph::kRepack) packing += span.end - span.begin, ++packed;
    if (span.phase == graph::kMicroBatch && begin < 0) begin = span.begin;
    end = std::max(end, span.end);
  }
  EXPECT_EQ(packed, packed_weights);
  EXPECT_DOUBLE_EQ(profile.ops.at(optimizer_query(*plan->joint).signature).median_seconds, 40 - packing);
  EXPECT_NEAR(profile.ops.at(host_query(*plan->joint).signature).median_seconds, 60 - (end - begin), 1e-9);
  options.costs = table(profile);
  EXPECT_NEAR(compile(graph, *cpu, options)->update_seconds,
              40 + static_cast<double>(packed_weights + 1) * profile.launch_seconds, 1e-9);
}

TEST_F(CostsTest, SpansNameWhatRan) {
  const auto plan = compile(graph, *cpu, {.policy = Policy::kOffload, .tiers = {Tier::kHost}});
  Session session(plan, cpu);
  fill(session);
  session.trace(true);
  session.run({});
  int copies = 0;
  int64_t peak = 0;
  for (const Span& span : session.spans()) {
    EXPECT_FALSE(span_name(*plan, span).empty());
    EXPECT_LE(span.begin, span.end);
    peak = std::max(peak, span.live_bytes);
    if (span.lane == device::Lane::kCompute) {
      EXPECT_EQ(span_tier(*plan, span), Tier::kDevice);
    } else {
      ++copies;
      EXPECT_EQ(span_tier(*plan, span), Tier::kHost);
    }
  }
  EXPECT_GT(copies, 0);
  EXPECT_EQ(peak, plan->plan.device_peak_bytes);
}

}  // namespace
}  // namespace cairn::engine
