// Chapter 5: values in and out, runs, cancelling from another thread.
#include <cmath>
#include <thread>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

TEST(Session, ForwardRunOfAGraphWithoutALoss) {
  const Devices devices;
  const auto plan = cairn::Plan::create(perceptron(devices.instance, 0, false), devices.device);
  auto session = cairn::Session::create(plan, devices.device);
  session.initialise(1);
  std::vector<float> w(kWidth * kWidth), y(kBatch * kWidth);
  session.read("layer0.weight", w);
  EXPECT_NE(w[0], 0.0f) << "parameters of a graph that only predicts start, too";
  session.write("x", std::vector<float>(kBatch * kWidth, 1.0f));
  session.run();
  session.read("y", y);
  for (int i = 1; i < kBatch; ++i) EXPECT_EQ(y[i * kWidth], y[0]) << "equal rows, equal results";
  // New weights count at once.
  session.write("layer3.weight", std::vector<float>(kWidth * kWidth, 0.0f));
  session.run();
  session.read("y", y);
  EXPECT_EQ(y[0], 0.0f);
}

TEST(Session, NamesAndSizes) {
  const Devices devices;
  Trainer trainer(devices, perceptron(devices.instance));
  cairn_session_t* session = trainer.session.get();
  std::vector<float> some(kBatch * kWidth);
  Failure failure;
  const size_t right = some.size() * 4;
  const auto write = [&](const char* name, size_t bytes) {
    return cairn_session_write(session, name, some.data(), bytes, failure);
  };
  const auto read = [&](const char* name, size_t bytes) {
    return cairn_session_read(session, name, some.data(), bytes, failure);
  };
  expect_failure(write("z", right), CAIRN_STATUS_NOT_FOUND, failure, {"'z'"});
  expect_failure(write("x", right - 4), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"'x'", std::to_string(right)});
  expect_failure(write("y", right), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"'y'", "input"});
  expect_failure(write("layer0/linear_0", right), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"layer0/linear_0"});
  expect_failure(write(nullptr, right), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"'name'"});
  EXPECT_EQ(cairn_session_write(session, "x", nullptr, right, failure), CAIRN_STATUS_INVALID_ARGUMENT);
  expect_failure(read("z", right), CAIRN_STATUS_NOT_FOUND, failure, {"'z'"});
  expect_failure(read("layer0/linear_0", right), CAIRN_STATUS_NOT_FOUND, failure, {"outputs"});
  expect_failure(read("layer0.weight", right), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"layer0.weight"});
  trainer.write(0.5f);
  trainer.stepper.micro();
  std::vector<float> w(kWidth * kWidth);
  for (const char* name : {"layer0.weight", "layer0.weight/gradient", "layer0.weight/m", "layer0.weight/v"}) {
    std::fill(w.begin(), w.end(), 0.0f);
    trainer.session.read(name, w);
    float sum = 0;
    for (float v : w) sum += std::abs(v);
    EXPECT_GT(sum, 0.0f) << name;
  }
  EXPECT_EQ(read("y", right), CAIRN_STATUS_OK) << failure.message();
}

// Whatever the loss is: a loss op's sum, or any number that an op makes, under its own name and in its own type.
TEST(Session, TheLossIsReadByItsName) {
  const Devices devices;
  for (const bool summed : {false, true})
    for (const uint32_t amp : {uint32_t{CAIRN_AMP_OFF}, uint32_t{CAIRN_AMP_BF16}}) {
      auto graph = cairn::Graph::create(devices.instance);
      const auto w = graph.parameter("w", {kWidth, kWidth}, cairn::init_constant(0.5));
      const auto y = graph.op("linear", {graph.input("x", {kBatch, kWidth}), w});
      auto loss = graph.op("reduce_sum", {graph.op("mul", {y, y})});
      if (summed) loss = graph.op("cast", {graph.op("add", {loss, loss})}, {{"dtype", "f64"}});
      graph.name(loss, "r");
      graph.freeze(loss);
      cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
      options.amp = amp;
      Trainer trainer(devices, graph, options);
      trainer.session.write("x", std::vector<float>(kBatch * kWidth, 1.0f));
      const double told = trainer.stepper.micro().loss;
      const double expected = (summed ? 2.0 : 1.0) * kBatch * kWidth * (0.5 * kWidth) * (0.5 * kWidth);
      EXPECT_EQ(told, expected);
      std::vector<float> narrow(1);
      std::vector<double> wide(1);
      summed ? trainer.session.read("r", wide) : trainer.session.read("r", narrow);
      EXPECT_EQ(summed ? wide[0] : static_cast<double>(narrow[0]), told);
    }
}

TEST(Session, SaysWhatAValueIs) {
  const Devices devices;
  Trainer trainer(devices, perceptron(devices.instance));
  const cairn_session_t* session = trainer.session.get();
  Failure failure;
  const auto info = [&](const char* name) {
    cairn_value_info_t out = CAIRN_VALUE_INFO_INIT;
    EXPECT_EQ(cairn_session_value_info(session, name, &out, failure), CAIRN_STATUS_OK) << failure.message();
    EXPECT_STREQ(out.name, name);
    return out;
  };
  for (const auto& [name, kind, rows] : {std::tuple{"x", 0u, kBatch},
                                         {"layer0.weight", 1u, kWidth},
                                         {"y", 2u, kBatch},
                                         {"layer0.weight/gradient", 2u, kWidth},
                                         {"layer0.weight/m", 2u, kWidth}}) {
    const cairn_value_info_t found = info(name);
    EXPECT_EQ(found.kind, kind) << name;
    EXPECT_EQ(found.dtype, uint32_t{CAIRN_F32}) << name;
    ASSERT_EQ(found.rank, 2u) << name;
    EXPECT_EQ(found.dims[0], rows) << name;
    EXPECT_EQ(found.dims[1], kWidth) << name;
    EXPECT_EQ(found.bytes, static_cast<uint64_t>(rows * kWidth * 4)) << name;
  }
  cairn_value_info_t out = CAIRN_VALUE_INFO_INIT;
  expect_failure(cairn_session_value_info(session, "z", &out, failure), CAIRN_STATUS_NOT_FOUND, failure,
                 {"'z'"});
  expect_failure(cairn_session_value_info(session, "layer0/linear_0", &out, failure), CAIRN_STATUS_NOT_FOUND,
                 failure, {"outputs"});
  expect_failure(cairn_session_value_info(session, nullptr, &out, failure), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"'name'"});
}

// What the host gives and gets is float32, whatever the plan stores.
TEST(Session, AValueIsWhatItWasDeclaredAs) {
  const Devices devices;
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.amp = CAIRN_AMP_BF16;
  options.parameters = CAIRN_BF16;
  Trainer trainer(devices, perceptron(devices.instance), options);
  cairn_value_info_t out = CAIRN_VALUE_INFO_INIT;
  ASSERT_EQ(cairn_session_value_info(trainer.session.get(), "layer0.weight", &out, nullptr), CAIRN_STATUS_OK);
  EXPECT_EQ(out.dtype, uint32_t{CAIRN_F32});
  EXPECT_EQ(out.bytes, static_cast<uint64_t>(kWidth * kWidth * 4));
}

TEST(Session, TokensOutsideTheVocabulary) {
  const Devices devices;
  const auto plan = cairn::Plan::create(language(devices.instance), devices.device);
  auto session = cairn::Session::create(plan, devices.device);
  Failure failure;
  const auto write = [&](const char* name, std::vector<int32_t> data) {
    return cairn_session_write(session.get(), name, data.data(), data.size() * 4, failure);
  };
  EXPECT_EQ(write("ids", numbers(kVocabulary - 1)), CAIRN_STATUS_OK) << failure.message();
  std::vector<int32_t> bad = numbers(3);
  bad[kLength + 2] = kVocabulary;
  expect_failure(write("ids", bad), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"'ids'", " 11 ", "[1, 2]", "embedding", "0..10"});
  bad[kLength + 2] = -1;
  expect_failure(write("ids", bad), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"-1", "[1, 2]"});
  expect_failure(write("targets", bad), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"'targets'", "-1", "-100"});
  bad[kLength + 2] = -100;
  EXPECT_EQ(write("targets", bad), CAIRN_STATUS_OK) << "the number that losses ignore: " << failure.message();
  expect_failure(write("ids", bad), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"-100"});
  // The refused numbers did not get in.
  std::vector<int32_t> now(kRows * kLength);
  session.read("ids", now);
  EXPECT_EQ(now, numbers(kVocabulary - 1));
}

TEST(Session, RunNeedsAPlanWithoutAnOptimizer) {
  const Devices devices;
  Trainer trainer(devices, perceptron(devices.instance));
  Failure failure;
  expect_failure(cairn_session_run(trainer.session.get(), failure), CAIRN_STATUS_WRONG_STATE, failure,
                 {"stepper"});
}

TEST(Session, GradientsAloneAreThoseOfTheStepper) {
  const Devices devices;
  const auto graph = perceptron(devices.instance);
  Trainer trainer(devices, graph);
  trainer.write(0.5f);
  trainer.stepper.micro();
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.no_optimizer = 1;
  const Devices others;
  auto session = cairn::Session::create(cairn::Plan::create(graph, others.device, options), others.device);
  session.initialise(1);
  session.write("x", std::vector<float>(kBatch * kWidth, 0.5f));
  session.write("target", std::vector<float>(kBatch * kWidth, 0.25f));
  std::vector<float> ours(kWidth * kWidth), theirs(ours.size());
  for (int i = 0; i < 2; ++i) {  // each run overwrites
    session.run();
    session.read("layer1.weight/gradient", ours);
    trainer.session.read("layer1.weight/gradient", theirs);
    EXPECT_EQ(ours, theirs);
  }
}

TEST(Session, DeviceMustBeThePlans) {
  const Devices devices;
  const auto plan = cairn::Plan::create(perceptron(devices.instance), devices.device);
  const auto oracle = cairn::Device::open(devices.instance, "reference");
  cairn_session_t* session = nullptr;
  Failure failure;
  expect_failure(cairn_session_create(plan.get(), oracle.get(), &session, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"cpu", "reference"});
}

TEST(Session, ADiskTierThatIsGoneIsAnIoError) {
  Folder folder;
  const auto instance = cairn::Instance::create();
  cairn_device_options_t device_options = CAIRN_DEVICE_OPTIONS_INIT;
  const std::string directory = folder / "disk";
  std::filesystem::create_directory(directory);
  device_options.disk_directory = directory.c_str();
  const auto device = cairn::Device::open(instance, "cpu", device_options);
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.policy = CAIRN_REGION_OFFLOAD;
  options.tier_count = 1;
  options.tiers[0] = CAIRN_TIER_DISK;
  const auto plan = cairn::Plan::create(perceptron(instance), device, options);
  ASSERT_GT(plan.summary().peak_bytes[CAIRN_TIER_DISK], 0u);
  EXPECT_NO_THROW(cairn::Session::create(plan, device));
  std::filesystem::remove_all(directory);
  cairn_session_t* session = nullptr;
  Failure failure;
  expect_failure(cairn_session_create(plan.get(), device.get(), &session, failure), CAIRN_STATUS_IO, failure,
                 {directory});
}

TEST(Session, CancelBeforeARunAndFromAnotherThread) {
  const Devices devices;
  Trainer trainer(devices, perceptron(devices.instance));
  trainer.write(0.5f);
  trainer.stepper.micro();
  const std::string before = trainer.session.digest();
  Failure failure;
  trainer.session.cancel();
  expect_failure(cairn_stepper_micro(trainer.stepper.get(), nullptr, failure), CAIRN_STATUS_CANCELLED,
                 failure);
  EXPECT_EQ(trainer.stepper.report().micro, 0u);
  EXPECT_EQ(trainer.session.digest(), before);
  EXPECT_EQ(trainer.stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED))
      << "one cancel, one run";

  std::thread other([session = trainer.session] { session.cancel(); });
  cairn_status_t status = CAIRN_STATUS_OK;
  for (int i = 0; i < 100000 && status == CAIRN_STATUS_OK; ++i)
    status = cairn_stepper_micro(trainer.stepper.get(), nullptr, failure);
  other.join();
  EXPECT_EQ(status, CAIRN_STATUS_CANCELLED);
  EXPECT_EQ(trainer.stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED));
}

// Zeros that nobody wrote would train like anything else.
TEST(Session, WhatWasNeverWrittenIsNamed) {
  const Devices devices;
  const auto graph = perceptron(devices.instance);
  const auto plan = cairn::Plan::create(graph, devices.device);
  auto session = cairn::Session::create(plan, devices.device);
  const auto stepper = cairn::Stepper::create(session);
  Failure failure;
  const auto micro = [&] { return cairn_stepper_micro(stepper.get(), nullptr, failure); };
  expect_failure(micro(), CAIRN_STATUS_WRONG_STATE, failure,
                 {std::to_string(kLayers) + " parameters have no values", "'layer0.weight'", "...",
                  "initialise", "2 inputs were never written: 'x', 'target'"});
  session.initialise(1);
  session.write("x", std::vector<float>(kBatch * kWidth, 0.5f));
  expect_failure(micro(), CAIRN_STATUS_WRONG_STATE, failure, {"this input was never written: 'target'"});
  session.write("target", std::vector<float>(kBatch * kWidth, 0.1f));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(micro(), 0);  // written once is enough
}

// Parameters that are written one by one, and a graph that only predicts.
TEST(Session, WrittenOneByOneIsWritten) {
  const Devices devices;
  auto session = cairn::Session::create(
      cairn::Plan::create(perceptron(devices.instance, CAIRN_REGION_KEEP, false), devices.device),
      devices.device);
  session.write("x", std::vector<float>(kBatch * kWidth, 0.5f));
  Failure failure;
  const std::vector<float> weights(kWidth * kWidth, 0.1f);
  for (int i = 0; i + 1 < kLayers; ++i) session.write("layer" + std::to_string(i) + ".weight", weights);
  const std::string last = "layer" + std::to_string(kLayers - 1) + ".weight";
  expect_failure(cairn_session_run(session.get(), failure), CAIRN_STATUS_WRONG_STATE, failure,
                 {"this parameter has no values: '" + last + "'"});
  session.write(last, weights);
  session.run();
}

TEST(Session, UsageOfEveryTier) {
  const Devices devices;
  Trainer trainer(devices, perceptron(devices.instance, CAIRN_REGION_OFFLOAD));
  trainer.write(0.5f);
  trainer.stepper.micro();
  const auto summary = trainer.plan.summary();
  for (uint32_t tier : {CAIRN_TIER_DEVICE, CAIRN_TIER_HOST, CAIRN_TIER_DISK}) {
    EXPECT_EQ(trainer.session.usage(tier).peak_bytes, summary.peak_bytes[tier]) << tier;
    EXPECT_GE(trainer.session.usage(tier).reserved_bytes, summary.peak_bytes[tier]) << tier;
  }
  EXPECT_EQ(trainer.session.usage(CAIRN_TIER_DEVICE).live_peak_bytes, summary.live_peak_bytes);
  cairn_tier_usage_t usage = CAIRN_TIER_USAGE_INIT;
  Failure failure;
  expect_failure(cairn_session_usage(trainer.session.get(), 3, &usage, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"tier", "3"});
}

}  // namespace
}  // namespace cairn_test
