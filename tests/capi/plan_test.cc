// Chapter 4: budgets, the table of values, renderings.
#include <set>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

struct PlanTest : testing::Test {
  cairn_status_t plan_with(cairn_plan_options_t options) {
    cairn_plan_t* plan = nullptr;
    const cairn_status_t status =
        cairn_plan_create(graph.get(), devices.device.get(), &options, &plan, failure);
    cairn_plan_release(plan);
    return status;
  }
  cairn_status_t with(auto change) {
    cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
    change(options);
    return plan_with(options);
  }
  Devices devices;
  cairn::Graph graph = perceptron(devices.instance);
  Failure failure;
};

TEST_F(PlanTest, WrongOptions) {
  expect_failure(with([](auto& o) { o.amp = 3; }), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"amp", "3"});
  expect_failure(with([](auto& o) { o.amp = CAIRN_AMP_FP16, o.no_optimizer = 1; }), CAIRN_STATUS_UNSUPPORTED,
                 failure, {"fp16"});
  expect_failure(with([](auto& o) { o.policy = 4; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"policy", "4"});
  expect_failure(with([](auto& o) { o.no_optimizer = 2; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"no_optimizer"});
  expect_failure(with([](auto& o) { o.budget_share = NAN; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"budget_share"});
  expect_failure(with([](auto& o) { o.budget_share = INFINITY; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"budget_share", "inf"});
  expect_failure(with([](auto& o) { o.budget_share = 1.0625; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"budget_share", "1.0625", "at most 1"});
  expect_failure(with([](auto& o) { o.budget_share = -0.5; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"budget_share", "-0.5"});
  for (const double none : {1e300, 1e18})  // as bytes they fit no number
    expect_failure(with([none](auto& o) { o.budget_share = none; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                   {"share is 1e+"});
  expect_failure(with([](auto& o) { o.budget_bytes = UINT64_MAX; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"budget_bytes"});
  expect_failure(with([](auto& o) { o.tier_count = 5; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"tier_count"});
  expect_failure(with([](auto& o) { o.tier_count = 1; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"tiers[0]"});
  expect_failure(with([](auto& o) {
                   o.tier_count = 2;
                   o.tiers[0] = o.tiers[1] = CAIRN_TIER_HOST;
                 }),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"tiers[1]", "twice"});
  cairn_plan_t* plan = nullptr;
  expect_failure(cairn_plan_create(graph.get(), nullptr, nullptr, &plan, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"'device'"});
  auto building = cairn::Graph::create(devices.instance);
  expect_failure(cairn_plan_create(building.get(), devices.device.get(), nullptr, &plan, failure),
                 CAIRN_STATUS_WRONG_STATE, failure, {"frozen"});
}

TEST_F(PlanTest, OverBudgetNamesTheSmallestThatDoes) {
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.budget_bytes = 4096;
  expect_failure(plan_with(options), CAIRN_STATUS_OVER_BUDGET, failure, {"4096", "linear"});
  cairn_memory_fault_t fault = CAIRN_MEMORY_FAULT_INIT;
  ASSERT_EQ(cairn_error_memory_fault(failure, &fault), CAIRN_STATUS_OK);
  EXPECT_EQ(fault.tier, static_cast<uint32_t>(CAIRN_TIER_DEVICE));
  options.budget_bytes = fault.smallest_budget_bytes;
  ASSERT_EQ(plan_with(options), CAIRN_STATUS_OK) << failure.message();
  options.budget_bytes = fault.smallest_budget_bytes - 4096;
  EXPECT_EQ(plan_with(options), CAIRN_STATUS_OVER_BUDGET);
  options.smallest_budget = 1;
  EXPECT_EQ(cairn::Plan::create(graph, devices.device, options).summary().budget_bytes,
            fault.smallest_budget_bytes);
  options.smallest_budget = 0;
  // What the smallest plan says is what a run takes.
  options.budget_bytes = fault.smallest_budget_bytes;
  Trainer trainer(devices, graph, options);
  trainer.write(0.5f);
  trainer.stepper.micro();
  EXPECT_EQ(trainer.session.usage().peak_bytes, trainer.plan.summary().peak_bytes[CAIRN_TIER_DEVICE]);
  EXPECT_LE(trainer.session.usage().peak_bytes, fault.smallest_budget_bytes);
}

TEST_F(PlanTest, SummaryAddsUp) {
  const auto s = cairn::Plan::create(graph, devices.device).summary();
  EXPECT_EQ(s.budget_bytes, 0u);
  EXPECT_EQ(
      s.parameters_bytes + s.gradients_bytes + s.optimizer_bytes + s.activations_bytes + s.workspace_bytes,
      s.peak_bytes[CAIRN_TIER_DEVICE]);
  EXPECT_EQ(s.gradients_bytes, kLayers * kWidth * kWidth * 4u);
  EXPECT_EQ(s.optimizer_bytes, 2 * s.gradients_bytes);
  EXPECT_GE(s.parameters_bytes, s.gradients_bytes);
  EXPECT_GE(s.peak_bytes[CAIRN_TIER_DEVICE], s.live_peak_bytes);
  EXPECT_GT(s.live_peak_bytes, s.persistent_bytes);
  EXPECT_LE(s.persistent_bytes + s.activation_peak_bytes, s.live_peak_bytes);
  // Backward of the last layer needs the arguments of all four gelus and the outputs of three.
  EXPECT_GE(s.activation_peak_bytes, (2 * kLayers - 1) * kBatch * kWidth * 4u);
  EXPECT_EQ(s.recompute_bytes + s.offload_host_bytes + s.offload_disk_bytes, 0u);
  EXPECT_GT(s.keep_bytes, 0u);
  EXPECT_GT(s.predicted_seconds, 0.0);
  EXPECT_GE(s.predicted_seconds, s.bound_seconds);
  EXPECT_EQ(s.region_count, static_cast<uint64_t>(kLayers));
  EXPECT_GT(s.instruction_count, s.op_count);
}

// A step of one micro-batch frees gradients of weights as it goes: they are no activations there either.
TEST_F(PlanTest, ActivationsAtTheirPeakAreThoseOfAnyNumberOfMicroBatches) {
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  std::vector<uint64_t> peaks;
  for (const uint32_t micro_steps : {1u, 2u}) {
    options.micro_steps = micro_steps;
    const auto s = cairn::Plan::create(graph, devices.device, options).summary();
    peaks.push_back(s.activation_peak_bytes);
    EXPECT_LE(s.activation_peak_bytes, s.live_peak_bytes);
  }
  EXPECT_EQ(peaks[0], peaks[1]);
}

TEST_F(PlanTest, MemoryByTierAddsUpToThePeaks) {
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.tiers[0] = CAIRN_TIER_HOST;
  options.tier_count = 1;
  options.micro_steps = 1;
  options.budget_bytes = 1;
  cairn_memory_fault_t fault = CAIRN_MEMORY_FAULT_INIT;
  ASSERT_EQ(plan_with(options), CAIRN_STATUS_OVER_BUDGET);
  ASSERT_EQ(cairn_error_memory_fault(failure, &fault), CAIRN_STATUS_OK);
  for (const uint64_t budget : {uint64_t{0}, fault.smallest_budget_bytes}) {
    options.budget_bytes = budget;
    const auto plan = cairn::Plan::create(graph, devices.device, options);
    const auto s = plan.summary();
    for (const uint32_t tier : {CAIRN_TIER_DEVICE, CAIRN_TIER_HOST, CAIRN_TIER_DISK}) {
      const cairn_plan_memory_t m = plan.memory(tier);
      EXPECT_EQ(m.parameters_bytes + m.gradients_bytes + m.optimizer_bytes + m.activations_bytes +
                    m.workspace_bytes,
                s.peak_bytes[tier])
          << tier;
    }
    const cairn_plan_memory_t device = plan.memory(), host = plan.memory(CAIRN_TIER_HOST);
    EXPECT_EQ(device.parameters_bytes, s.parameters_bytes);
    EXPECT_EQ(device.workspace_bytes, s.workspace_bytes);
    EXPECT_STRNE(device.peak_at, "");
    EXPECT_GE(host.optimizer_bytes + host.parameters_bytes, s.optimizer_host_bytes);
    if (budget > 0) EXPECT_GT(host.optimizer_bytes, 0u);
  }
  const auto plan = cairn::Plan::create(graph, devices.device);
  cairn_plan_memory_t memory = CAIRN_PLAN_MEMORY_INIT;
  expect_failure(cairn_plan_memory(plan.get(), 3, &memory, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"tier", "3"});
  expect_failure(cairn_plan_memory(plan.get(), 0, nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"out_memory"});
  expect_failure(cairn_plan_memory(nullptr, 0, &memory, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"plan"});
}

TEST_F(PlanTest, OptimizerStateInATierIsToldAndTaken) {
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.tiers[0] = CAIRN_TIER_HOST;
  options.tier_count = 1;
  options.micro_steps = 4;
  options.budget_bytes = 1;
  cairn_memory_fault_t fault = CAIRN_MEMORY_FAULT_INIT;
  ASSERT_EQ(plan_with(options), CAIRN_STATUS_OVER_BUDGET);
  ASSERT_EQ(cairn_error_memory_fault(failure, &fault), CAIRN_STATUS_OK);
  options.budget_bytes = fault.smallest_budget_bytes;
  Trainer trainer(devices, graph, options, 4);
  const auto s = trainer.plan.summary();
  const uint64_t moments = 2u * kLayers * kWidth * kWidth * 4u;
  EXPECT_GE(s.optimizer_host_bytes, moments / 2);
  EXPECT_EQ(s.optimizer_disk_bytes, 0u);
  EXPECT_LE(s.optimizer_bytes, moments / 2);
  EXPECT_GE(s.peak_bytes[CAIRN_TIER_HOST], s.optimizer_host_bytes);
  EXPECT_EQ(trainer.plan.counter("update_at"), CAIRN_TIER_HOST);
  for (const cairn_plan_counter_info_t& counter : cairn::plan_counters()) {
    EXPECT_GE(trainer.plan.counter(counter.name), 0) << counter.name;
    EXPECT_NE(std::string_view(counter.description), "") << counter.name;
  }
  double value = 7;
  expect_failure(cairn_plan_counter(trainer.plan.get(), "packed", &value, failure), CAIRN_STATUS_NOT_FOUND,
                 failure, {"packed_bytes"});
  EXPECT_EQ(value, 7) << "an out parameter of a call that failed";
  cairn_plan_counter_info_t info = CAIRN_PLAN_COUNTER_INFO_INIT;
  expect_failure(cairn_plan_counter_describe(1000, &info, failure), CAIRN_STATUS_NOT_FOUND, failure);
  uint64_t rows = 0, here = 0, there = 0, gradients = 0;
  for (const cairn_plan_value_t& row : trainer.plan.values()) {
    ++rows;
    if (row.decision != CAIRN_DECISION_PERSISTENT) continue;
    const bool away = row.tier != CAIRN_TIER_DEVICE, gradient = std::string_view(row.category) == "gradient";
    (!away ? here : gradient ? gradients : there) += row.bytes;
    if (away) EXPECT_STREQ(row.reason, "offloaded to the host, updated in place") << row.name;
    EXPECT_EQ(row.offset_bytes < 0, row.tier != CAIRN_TIER_DEVICE) << row.name;
  }
  EXPECT_EQ(rows, s.value_count);
  EXPECT_EQ(here, s.persistent_bytes);
  EXPECT_GT(there, 0u);
  EXPECT_LE(there, s.optimizer_host_bytes);
  EXPECT_EQ(trainer.plan.memory(CAIRN_TIER_HOST).gradients_bytes, gradients);
  for (int micro = 0; micro < 4; ++micro) {
    trainer.write(0.5f);
    trainer.stepper.micro();
  }
  for (const uint32_t tier : {CAIRN_TIER_DEVICE, CAIRN_TIER_HOST, CAIRN_TIER_DISK})
    EXPECT_EQ(trainer.session.usage(tier).peak_bytes, s.peak_bytes[tier]) << tier;
  options.fuse_update = 1;
  expect_failure(plan_with(options), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"4 micro-batches"});
}

TEST_F(PlanTest, RegionPolicies) {
  const auto planned = [&](std::vector<cairn_region_policy_t> rows, uint32_t policy = 0) {
    cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
    options.policy = policy;
    options.region_policies = rows.data();
    options.region_policy_count = static_cast<uint32_t>(rows.size());
    const auto plan = cairn::Plan::create(graph, devices.device, options);
    std::set<std::string> recomputed;
    for (const cairn_plan_value_t& row : plan.values())
      if (row.decision == CAIRN_DECISION_RECOMPUTE) recomputed.insert(row.region);
    return std::pair(recomputed, plan.summary());
  };
  const auto all = planned({}, CAIRN_REGION_RECOMPUTE).first;
  ASSERT_GT(all.size(), 1u);
  EXPECT_EQ(planned({{"layer*", CAIRN_REGION_RECOMPUTE, 0}}).first, all);
  const std::set<std::string> one = planned({{"layer1", CAIRN_REGION_RECOMPUTE, 0}}).first;
  EXPECT_EQ(one, std::set<std::string>{"layer1"});
  auto rest = all;
  rest.erase("layer1");
  EXPECT_EQ(planned({{"layer[13]", CAIRN_REGION_KEEP, 0}, {"layer3", CAIRN_REGION_RECOMPUTE, 0}},
                    CAIRN_REGION_RECOMPUTE)
                .first,
            rest);
  const auto away = planned({{"layer1", CAIRN_REGION_OFFLOAD, CAIRN_TIER_DISK}}).second;
  EXPECT_GT(away.offload_disk_bytes, 0u);
  EXPECT_EQ(away.offload_host_bytes, 0u);
}

TEST_F(PlanTest, WrongRegionPolicies) {
  const auto refused = [&](cairn_region_policy_t row, cairn_status_t status, std::vector<std::string> says,
                           uint32_t tier = 0) {
    expect_failure(with([&](auto& o) {
                     o.region_policies = &row, o.region_policy_count = 1;
                     if (tier != 0) o.tier_count = 1, o.tiers[0] = tier;
                   }),
                   status, failure, says);
  };
  const cairn_status_t invalid = CAIRN_STATUS_INVALID_ARGUMENT;
  refused({"leyer*", CAIRN_REGION_KEEP, 0}, CAIRN_STATUS_NOT_FOUND, {"'leyer*'", "'layer0'"});
  refused({nullptr, CAIRN_REGION_KEEP, 0}, invalid, {"region_policies[0].pattern"});
  refused({"", CAIRN_REGION_KEEP, 0}, invalid, {"empty pattern"});
  refused({"\xff", CAIRN_REGION_KEEP, 0}, invalid, {"UTF-8"});
  refused({"layer0", CAIRN_REGION_PLANNER_DECIDES, 0}, invalid, {"'layer0'", "KEEP, RECOMPUTE or OFFLOAD"});
  refused({"layer0", 4, 0}, invalid, {"region_policies[0].policy", "4"});
  refused({"layer0", CAIRN_REGION_OFFLOAD, 3}, invalid, {"region_policies[0].tier", "3"});
  refused({"layer0", CAIRN_REGION_KEEP, CAIRN_TIER_HOST}, invalid, {"'layer0'", "OFFLOAD only"});
  refused({"layer0", CAIRN_REGION_OFFLOAD, CAIRN_TIER_DISK}, invalid, {"not open", "add disk"},
          CAIRN_TIER_HOST);
  expect_failure(with([](auto& o) { o.region_policy_count = 1; }), invalid, failure, {"region_policies"});
  expect_failure(with([](auto& o) { o.region_policy_count = UINT32_MAX; }), invalid, failure,
                 {"region_policies"});
  expect_failure(with([](auto& o) { o.reserved = 1; }), CAIRN_STATUS_UNSUPPORTED, failure, {"reserved"});
  expect_failure(with([](auto& o) { o.smallest_budget = 2; }), invalid, failure, {"smallest_budget", "2"});
}

TEST_F(PlanTest, PoliciesShowInTheTable) {
  for (const uint32_t policy : {CAIRN_REGION_KEEP, CAIRN_REGION_RECOMPUTE, CAIRN_REGION_OFFLOAD}) {
    cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
    options.policy = policy;
    const auto plan = cairn::Plan::create(graph, devices.device, options);
    uint64_t sums[4] = {0, 0, 0, 0}, persistent = 0;
    std::set<std::string> names, categories;
    for (const cairn_plan_value_t& row : plan.values()) {
      EXPECT_TRUE(names.insert(row.name).second) << row.name;
      ASSERT_LE(row.decision, static_cast<uint32_t>(CAIRN_DECISION_PERSISTENT));
      sums[row.decision] += row.bytes;
      categories.insert(row.category);
      if (row.decision == CAIRN_DECISION_PERSISTENT) persistent += row.bytes;
      if (row.decision == CAIRN_DECISION_OFFLOAD) {
        EXPECT_EQ(row.tier, static_cast<uint32_t>(CAIRN_TIER_HOST));
      }
      EXPECT_GE(row.offset_bytes, 0) << row.name;
      EXPECT_STRNE(row.reason, "") << row.name;
    }
    const auto s = plan.summary();
    EXPECT_EQ(persistent, s.persistent_bytes);
    EXPECT_EQ(s.recompute_bytes > 0, policy == CAIRN_REGION_RECOMPUTE);
    EXPECT_EQ(s.offload_host_bytes > 0, policy == CAIRN_REGION_OFFLOAD);
    EXPECT_EQ(sums[CAIRN_DECISION_RECOMPUTE] > 0, policy == CAIRN_REGION_RECOMPUTE);
    EXPECT_EQ(sums[CAIRN_DECISION_OFFLOAD] > 0, policy == CAIRN_REGION_OFFLOAD);
    for (const char* wanted :
         {"parameter", "gradient", "optimizer", "input", "output", "activation", "backward"})
      EXPECT_TRUE(categories.count(wanted)) << wanted;
    cairn_plan_value_t row = CAIRN_PLAN_VALUE_INIT;
    expect_failure(cairn_plan_value(plan.get(), s.value_count, &row, failure), CAIRN_STATUS_NOT_FOUND,
                   failure, {std::to_string(s.value_count)});
  }
}

TEST_F(PlanTest, Renderings) {
  const auto plan = cairn::Plan::create(graph, devices.device);
  EXPECT_NE(plan.render(CAIRN_RENDER_PLAN_JSON).find("cairn.plan/1"), std::string::npos);
  EXPECT_NE(plan.render(CAIRN_RENDER_HTML, "a title of its own").find("a title of its own"),
            std::string::npos);
  EXPECT_NE(plan.render(CAIRN_RENDER_SVG).find("<svg"), std::string::npos);
  const Folder folder;
  EXPECT_NE(plan.render(CAIRN_RENDER_SWEEP).find("cairn.sweep/1"), std::string::npos);
  EXPECT_GT(plan.render(CAIRN_RENDER_REPORT, "t").size(), plan.render(CAIRN_RENDER_HTML, "t").size());
  const std::string bytes = plan.render(CAIRN_RENDER_FILE), path = folder / "plan.cairn";
  FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
  std::fclose(file);
  EXPECT_NE(devices.instance.inspect(path).find("plan"), std::string::npos);
  cairn_text_t* text = nullptr;
  expect_failure(cairn_plan_render(plan.get(), 7, nullptr, &text, failure), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"kind", "7"});
}

TEST_F(PlanTest, ProblemsAreSolvedAlone) {
  const auto plan = cairn::Plan::create(graph, devices.device);
  const std::string problem = plan.render(CAIRN_RENDER_PROBLEM_JSON);
  cairn_text_t* text = nullptr;
  const auto solve = [&](const std::string& json, uint64_t budget) {
    return cairn_problem_solve(devices.instance.get(), json.data(), json.size(), budget,
                               CAIRN_RENDER_PLAN_JSON, &text, failure);
  };
  ASSERT_EQ(solve(problem, 0), CAIRN_STATUS_OK) << failure.message();
  const std::string wanted =
      "\"arena_bytes\":" + std::to_string(plan.summary().peak_bytes[CAIRN_TIER_DEVICE]);
  std::string found = cairn_text_data(text);
  std::erase(found, ' ');
  EXPECT_NE(found.find(wanted), std::string::npos) << wanted;
  cairn_text_release(text);
  text = nullptr;
  EXPECT_EQ(solve(problem, 1), CAIRN_STATUS_OVER_BUDGET);
  EXPECT_EQ(solve("{", 0), CAIRN_STATUS_CORRUPT_FILE) << failure.message();
  EXPECT_EQ(solve("", 0), CAIRN_STATUS_CORRUPT_FILE) << failure.message();
  EXPECT_EQ(text, nullptr);
  EXPECT_EQ(cairn_problem_solve(devices.instance.get(), nullptr, 3, 0, 0, &text, failure),
            CAIRN_STATUS_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace cairn_test
