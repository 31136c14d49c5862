// Chapter 4: costs; chapter 5: traces.
#include <algorithm>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

const std::string kModel = R"({"format": "cairn.device-model/1", "name": "Engine", "sources": [],
  "memory_bytes": 1000000000, "f32_flops_per_second": 1e12, "bf16_flops_per_second": 1e13,
  "f16_flops_per_second": 1e13, "memory_bytes_per_second": 1e11, "launch_seconds": 0, "separate_memory": true,
  "links": []})";

struct CostsTest : testing::Test {
  Devices devices;
  cairn::Graph graph = perceptron(devices.instance);
  Failure failure;
};

TEST_F(CostsTest, MeasuredPlannedWrittenAndRead) {
  Trainer trainer(devices, graph);
  trainer.write(0.5f);
  auto costs = cairn::Costs::create(devices.device);
  trainer.session.trace(true);
  for (int i = 0; i < 3; ++i) {
    const cairn_step_report_t report = trainer.stepper.micro();
    costs.add_run(trainer.session, report.seconds, report.optimizer_seconds);
  }
  const auto planned = [&](const cairn::Costs& with) {
    cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
    options.costs = with.get();
    return cairn::Plan::create(graph, devices.device, options);
  };
  const auto plan = planned(costs);
  const auto summary = plan.summary();
  EXPECT_EQ(plan.counter("measured_ops"), static_cast<double>(summary.op_count));
  EXPECT_GT(summary.update_seconds, 0);
  const std::string json = costs.json();
  EXPECT_NE(json.find("cairn.profile/1"), std::string::npos);
  const auto again = cairn::Costs::read(devices.instance, json);
  EXPECT_EQ(again.json(), json);
  EXPECT_EQ(planned(again).summary().predicted_seconds, summary.predicted_seconds);
  EXPECT_EQ(cairn::Plan::create(graph, devices.device).counter("measured_ops"), 0);
}

TEST_F(CostsTest, AProfileOfAnotherMachine) {
  std::string json = cairn::Costs::create(devices.device).json();
  json.replace(json.find("\"device\": \"cpu\""), 15, "\"device\": \"slate\"");
  auto costs = cairn::Costs::read(devices.instance, json);
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.costs = costs.get();
  cairn_plan_t* plan = nullptr;
  expect_failure(cairn_plan_create(graph.get(), devices.device.get(), &options, &plan, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"another machine", "slate", "cpu"});
  EXPECT_EQ(plan, nullptr);
  options.force_costs = 1;
  EXPECT_EQ(cairn_plan_create(graph.get(), devices.device.get(), &options, &plan, failure), CAIRN_STATUS_OK);
  cairn_plan_release(plan);
  expect_failure(cairn_costs_measure_link(costs.get(), devices.device.get(), CAIRN_TIER_HOST, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"another machine"});
  options.force_costs = 2;
  expect_failure(cairn_plan_create(graph.get(), devices.device.get(), &options, &plan, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"force_costs"});
}

TEST_F(CostsTest, ADeviceModelPlansAndDoesNotRun) {
  auto model = cairn::Costs::read(devices.instance, kModel);
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.costs = model.get();
  const auto plan = cairn::Plan::create(graph, devices.device, options);
  EXPECT_EQ(plan.summary().budget_bytes, 1000000000u);
  cairn_session_t* session = nullptr;
  expect_failure(cairn_session_create(plan.get(), devices.device.get(), &session, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"Engine"});
  options.budget_bytes = 1000000001;
  cairn_plan_t* over = nullptr;
  expect_failure(cairn_plan_create(graph.get(), devices.device.get(), &options, &over, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"1000000001", "Engine"});
  cairn_text_t* text = nullptr;
  expect_failure(cairn_costs_json(model.get(), &text, failure), CAIRN_STATUS_WRONG_STATE, failure,
                 {"device model"});
  expect_failure(cairn_costs_measure_link(model.get(), devices.device.get(), CAIRN_TIER_HOST, failure),
                 CAIRN_STATUS_WRONG_STATE, failure, {"device model"});
  expect_failure(cairn_costs_measure_kernels(model.get(), plan.get(), devices.device.get(), nullptr, failure),
                 CAIRN_STATUS_WRONG_STATE, failure, {"device model"});
  auto profile = cairn::Costs::create(devices.device);
  expect_failure(
      cairn_costs_measure_kernels(profile.get(), plan.get(), devices.device.get(), nullptr, failure),
      CAIRN_STATUS_INVALID_ARGUMENT, failure, {"Engine", "'cpu'"});
}

// The CPU's kernels have nothing to choose from: tests/cuda has devices whose kernels do.
TEST_F(CostsTest, KernelsWithoutChoices) {
  auto profile = cairn::Costs::create(devices.device);
  const auto plan = cairn::Plan::create(graph, devices.device);
  EXPECT_EQ(profile.measure_kernels(plan, devices.device), 0u);
  EXPECT_EQ(profile.json().find("choices"), std::string::npos);
  uint64_t count = 7;
  expect_failure(cairn_costs_measure_kernels(nullptr, plan.get(), devices.device.get(), &count, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"costs"});
  expect_failure(cairn_costs_measure_kernels(profile.get(), nullptr, devices.device.get(), &count, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"plan"});
  EXPECT_EQ(count, 7u);
  EXPECT_EQ(cairn_costs_measure_kernels(profile.get(), plan.get(), devices.device.get(), nullptr, failure),
            CAIRN_STATUS_OK);
}

// A choice stays in the profile as it is, whoever reads it; the CPU takes no notice.
TEST_F(CostsTest, ChoicesOfKernelsAreKept) {
  std::string json = cairn::Costs::create(devices.device).json();
  json.insert(json.rfind('}'),
              R"(, "choices": [{"choice": "row|word", "seconds": 1, "own_seconds": 2, "workspace_bytes": 3,
                 "signature": "an op"}])");
  const auto costs = cairn::Costs::read(devices.instance, json);
  EXPECT_NE(
      costs.json().find(R"("choice": "row|word", "seconds": 1, "own_seconds": 2, "workspace_bytes": 3)"),
      std::string::npos)
      << costs.json();
  EXPECT_EQ(cairn::Costs::read(devices.instance, costs.json()).json(), costs.json());
  cairn_costs_t* bad = nullptr;
  for (const char* change : {"\"own_seconds\": -2", "\"own_seconds\": \"x\""}) {
    std::string wrong = json;
    wrong.replace(wrong.find("\"own_seconds\": 2"), 16, change);
    expect_failure(cairn_costs_read(devices.instance.get(), wrong.data(), wrong.size(), &bad, failure),
                   CAIRN_STATUS_INVALID_ARGUMENT, failure, {"own_seconds"});
  }
}

TEST_F(CostsTest, WrongArguments) {
  cairn_costs_t* costs = nullptr;
  const auto read = [&](const std::string& json) {
    return cairn_costs_read(devices.instance.get(), json.data(), json.size(), &costs, failure);
  };
  EXPECT_EQ(read("{"), CAIRN_STATUS_CORRUPT_FILE);
  expect_failure(read(R"({"format": "cairn.plan/1"})"), CAIRN_STATUS_CORRUPT_FILE, failure, {"cairn.plan/1"});
  expect_failure(read(R"({"format": "cairn.profile/1"})"), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"machine"});
  EXPECT_EQ(costs, nullptr);
  auto profile = cairn::Costs::create(devices.device);
  expect_failure(cairn_costs_measure_link(profile.get(), devices.device.get(), CAIRN_TIER_DEVICE, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"link to itself"});
  expect_failure(cairn_costs_measure_link(profile.get(), devices.device.get(), 3, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"tier"});
  Trainer trainer(devices, graph);
  expect_failure(cairn_costs_add_run(profile.get(), trainer.session.get(), 0, 0, failure),
                 CAIRN_STATUS_WRONG_STATE, failure, {"traced"});
  expect_failure(cairn_costs_add_run(profile.get(), trainer.session.get(), NAN, 0, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"step_seconds"});
}

TEST_F(CostsTest, SpansOfARun) {
  Trainer trainer(devices, graph);
  trainer.write(0.5f);
  trainer.stepper.micro();
  EXPECT_TRUE(trainer.session.spans().empty());
  trainer.session.trace(true);
  trainer.stepper.micro();
  const auto spans = trainer.session.spans();
  EXPECT_GE(spans.size(), trainer.plan.summary().op_count);
  uint64_t peak = 0;
  for (const cairn_span_t& span : spans) {
    EXPECT_STRNE(span.name, "");
    EXPECT_EQ(span.lane, static_cast<uint32_t>(CAIRN_LANE_COMPUTE));
    EXPECT_LE(span.begin_seconds, span.end_seconds);
    peak = std::max(peak, span.live_bytes);
  }
  EXPECT_EQ(peak, trainer.plan.summary().live_peak_bytes);
  cairn_span_t span = CAIRN_SPAN_INIT;
  expect_failure(cairn_session_span(trainer.session.get(), spans.size(), &span, failure),
                 CAIRN_STATUS_NOT_FOUND, failure, {std::to_string(spans.size())});
  expect_failure(cairn_session_trace(trainer.session.get(), 2, failure), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"on"});
}

}  // namespace
}  // namespace cairn_test
