// Chapter 6: the state machine as it shows through the ABI.
#include <cmath>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

TEST(Stepper, NeedsALossAndAnOptimizer) {
  const Devices devices;
  Failure failure;
  cairn_stepper_t* stepper = nullptr;
  auto session = cairn::Session::create(
      cairn::Plan::create(perceptron(devices.instance, 0, false), devices.device), devices.device);
  expect_failure(cairn_stepper_create(session.get(), nullptr, &stepper, failure), CAIRN_STATUS_WRONG_STATE,
                 failure, {"loss"});
  const Devices others;
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.no_optimizer = 1;
  session = cairn::Session::create(cairn::Plan::create(perceptron(others.instance), others.device, options),
                                   others.device);
  expect_failure(cairn_stepper_create(session.get(), nullptr, &stepper, failure), CAIRN_STATUS_WRONG_STATE,
                 failure, {"optimizer"});
  EXPECT_EQ(stepper, nullptr);
}

TEST(Stepper, WrongOptions) {
  const Devices devices;
  Trainer trainer(devices, perceptron(devices.instance));
  Failure failure;
  const auto with = [&](auto change) {
    cairn_stepper_options_t options = CAIRN_STEPPER_OPTIONS_INIT;
    change(options);
    return cairn_stepper_configure(trainer.stepper.get(), &options, failure);
  };
  expect_failure(with([](auto& o) { o.schedule = 3; }), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"schedule"});
  expect_failure(with([](auto& o) { o.schedule = CAIRN_SCHEDULE_COSINE; }), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"total_steps"});
  expect_failure(with([](auto& o) { o.rate = -1; }), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"rate"});
  expect_failure(with([](auto& o) { o.rate = INFINITY; }), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"rate"});
  expect_failure(with([](auto& o) { o.rate = NAN; }), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"rate"});
  expect_failure(with([](auto& o) { o.clip_norm = -1; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"clip_norm", "-1"});
  for (const double scale : {-1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)})
    expect_failure(with([&](auto& o) { o.loss_scale = scale; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                   {"loss_scale"});
  expect_failure(with([](auto& o) { o.loss_scale_backoff = NAN; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"loss_scale_backoff"});
  expect_failure(with([](auto& o) { o.loss_scale_growth = INFINITY; }), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"loss_scale_growth"});
  expect_failure(with([](auto& o) {
                   o.schedule = CAIRN_SCHEDULE_COSINE;
                   o.total_steps = 5;
                   o.warmup_steps = 6;
                 }),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"5", "6"});
  expect_failure(with([](auto& o) { o.beta1 = 1; }), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"beta1"});
  expect_failure(with([](auto& o) { o.clip_norm = NAN; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"clip_norm"});
  EXPECT_EQ(cairn_stepper_configure(trainer.stepper.get(), nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT);
}

TEST(Stepper, AccumulatesAppliesDiscards) {
  const Devices devices;
  Trainer trainer(devices, perceptron(devices.instance), CAIRN_PLAN_OPTIONS_INIT, 3);
  Failure failure;
  cairn_step_report_t report = CAIRN_STEP_REPORT_INIT;
  expect_failure(cairn_stepper_apply(trainer.stepper.get(), &report, failure), CAIRN_STATUS_WRONG_STATE,
                 failure);
  const std::string start = trainer.session.digest();
  trainer.write(0.5f);
  for (uint32_t i = 1; i <= 2; ++i) {
    report = trainer.stepper.micro();
    EXPECT_EQ(report.outcome, static_cast<uint32_t>(CAIRN_STEP_ACCUMULATED));
    EXPECT_EQ(report.micro, i);
    EXPECT_EQ(report.weight, kBatch * kWidth);
    EXPECT_EQ(report.step_weight, i * report.weight);
    EXPECT_GT(report.submit_seconds, 0);
    EXPECT_LE(report.submit_seconds, report.seconds);
  }
  const auto standing = trainer.stepper.report();
  EXPECT_EQ(standing.micro, 2u);
  EXPECT_DOUBLE_EQ(standing.step_loss, report.step_loss);
  cairn_stepper_options_t options = CAIRN_STEPPER_OPTIONS_INIT;
  expect_failure(cairn_stepper_configure(trainer.stepper.get(), &options, failure), CAIRN_STATUS_WRONG_STATE,
                 failure, {"2"});
  EXPECT_EQ(trainer.session.digest(), start);
  trainer.stepper.discard();
  EXPECT_EQ(trainer.stepper.report().micro, 0u);
  for (int i = 0; i < 3; ++i) report = trainer.stepper.micro();
  EXPECT_EQ(report.outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED));
  EXPECT_EQ(report.step, 1u);
  EXPECT_GT(report.gradient_norm, 0.0);
  EXPECT_NE(trainer.session.digest(), start);
  options.rate = 0.5;
  options.seed = 99;
  trainer.stepper.configure(options);
  EXPECT_EQ(trainer.stepper.micro().rate, 0.5);
  EXPECT_EQ(trainer.stepper.report().step, 2u);
}

TEST(Stepper, NotANumberIsSkippedAndNothingChanges) {
  const Devices devices;
  Trainer trainer(devices, perceptron(devices.instance));
  trainer.write(0.5f);
  trainer.stepper.micro();
  const std::string before = trainer.session.digest();
  std::vector<float> moment(kWidth * kWidth), after(kWidth * kWidth);
  trainer.session.read("layer0.weight/m", moment);
  trainer.write(std::nanf(""));
  const auto report = trainer.stepper.micro();
  EXPECT_EQ(report.outcome, static_cast<uint32_t>(CAIRN_STEP_SKIPPED_NONFINITE));
  EXPECT_EQ(report.skipped_steps, 1u);
  EXPECT_EQ(trainer.session.digest(), before);
  trainer.session.read("layer0.weight/m", after);
  EXPECT_EQ(moment, after);
  trainer.write(0.5f);
  EXPECT_EQ(trainer.stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED));
}

// Targets that do not count, in one micro-batch or in all of a step, which is skipped then, and counted.
TEST(Stepper, AStepOfWhichNothingCountsIsSkipped) {
  for (const uint32_t micro_steps : {1u, 3u}) {
    SCOPED_TRACE(micro_steps);
    const Devices devices;
    Trainer trainer(devices, language(devices.instance), CAIRN_PLAN_OPTIONS_INIT, micro_steps);
    trainer.session.write("ids", numbers(1));
    trainer.session.write("targets", numbers(2));
    for (uint32_t i = 0; i < micro_steps; ++i) trainer.stepper.micro();
    const std::string before = trainer.session.digest();
    std::vector<float> moment(kVocabulary * 8), after(kVocabulary * 8);
    trainer.session.read("table/m", moment);
    trainer.session.write("targets", numbers(-100));
    for (uint32_t i = 1; i < micro_steps; ++i) EXPECT_EQ(trainer.stepper.micro().weight, 0);
    const auto report = trainer.stepper.micro();
    EXPECT_EQ(report.outcome, static_cast<uint32_t>(CAIRN_STEP_SKIPPED_EMPTY));
    EXPECT_EQ(report.step_loss, 0);
    EXPECT_EQ(report.skipped_steps, 1u);
    EXPECT_EQ(trainer.session.digest(), before);
    trainer.session.read("table/m", after);
    EXPECT_EQ(moment, after);
    EXPECT_EQ(trainer.stepper.report().micro, 0u);
    EXPECT_EQ(trainer.stepper.report().step, 2u);
    if (micro_steps > 1) {
      trainer.stepper.micro();
      EXPECT_EQ(trainer.stepper.apply().outcome, static_cast<uint32_t>(CAIRN_STEP_SKIPPED_EMPTY));
      EXPECT_EQ(trainer.session.digest(), before);
    }
    for (uint32_t i = 1; i < micro_steps; ++i)
      trainer.stepper.micro();  // of those some may count for nothing
    trainer.session.write("targets", numbers(2));
    const auto applied = trainer.stepper.micro();
    EXPECT_EQ(applied.outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED));
    EXPECT_EQ(applied.step_weight, kRows * kLength);
    EXPECT_NE(trainer.session.digest(), before);
  }
}

// The loss is of both micro-batches, which come twice.
TEST(Stepper, ValuesOfTheEffectiveBatchTakeTwoPasses) {
  const Devices devices;
  const auto model = [&] {
    auto graph = cairn::Graph::create(devices.instance);
    const cairn::Value w = graph.parameter("w", {kWidth, kWidth}, cairn::init_normal(0.2));
    const cairn::Value y = graph.op("linear", {graph.input("x", {kBatch, kWidth}), w});
    const cairn::Value all = graph.op("effective", {y}, {{"micro_steps", 2}});
    graph.freeze(graph.op("mse", {all, graph.input("target", {2 * kBatch, kWidth})}));
    return graph;
  };
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.ema = 0.5;
  Trainer trainer(devices, model(), options, 2);
  EXPECT_EQ(trainer.plan.counter("two_passes"), 1);
  trainer.session.write("target", std::vector<float>(2 * kBatch * kWidth, 0.25f));
  std::vector<float> start(kWidth * kWidth), average(kWidth * kWidth), after(kWidth * kWidth);
  trainer.session.read("w", start);
  trainer.session.read("w/ema", average);
  EXPECT_EQ(average, start);
  const auto micro = [&](float number) {
    trainer.session.write("x", std::vector<float>(kBatch * kWidth, number));
    return trainer.stepper.micro();
  };
  Failure failure;
  const Folder folder;
  for (const float number : {0.5f, 0.75f})
    EXPECT_EQ(micro(number).outcome, static_cast<uint32_t>(CAIRN_STEP_GATHERED));
  expect_failure(
      cairn_stepper_save(trainer.stepper.get(), (folder / "midst").c_str(), nullptr, 0, nullptr, 0, failure),
      CAIRN_STATUS_WRONG_STATE, failure, {"between steps"});
  trainer.session.write("x", std::vector<float>(kBatch * kWidth, 1.0f));
  expect_failure(cairn_stepper_micro(trainer.stepper.get(), nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"micro-batch 1 of 2", "first pass"});
  EXPECT_EQ(micro(0.5f).outcome, static_cast<uint32_t>(CAIRN_STEP_ACCUMULATED));
  const auto report = micro(0.75f);
  EXPECT_EQ(report.outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED));
  EXPECT_GT(report.step_loss, 0);
  trainer.session.read("w", after);
  trainer.session.read("w/ema", average);
  for (size_t i = 0; i < start.size(); ++i) ASSERT_NEAR(average[i], (start[i] + after[i]) / 2, 1e-7);
  cairn_plan_options_t alone = CAIRN_PLAN_OPTIONS_INIT;
  alone.no_optimizer = 1;
  auto session = cairn::Session::create(cairn::Plan::create(model(), devices.device, alone), devices.device);
  session.initialise(1);
  expect_failure(cairn_session_run(session.get(), failure), CAIRN_STATUS_WRONG_STATE, failure,
                 {"a stepper runs it"});
}

TEST(Stepper, ReportStructIsCheckedBeforeAnythingRuns) {
  const Devices devices;
  Trainer trainer(devices, perceptron(devices.instance));
  trainer.write(0.5f);
  cairn_step_report_t report = CAIRN_STEP_REPORT_INIT;
  report.struct_size = 0;
  Failure failure;
  expect_failure(cairn_stepper_micro(trainer.stepper.get(), &report, failure), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"out_report"});
  EXPECT_EQ(trainer.stepper.report().step, 0u);
  EXPECT_EQ(cairn_stepper_micro(trainer.stepper.get(), nullptr, failure), CAIRN_STATUS_OK);
}

}  // namespace
}  // namespace cairn_test
