// Chapters 4 and 6: optimizers, parameter groups and hyper-parameters by name.
#include <cstddef>
#include <limits>
#include <map>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

// Plan options that own the arrays they point to.
struct Options {
  std::vector<cairn_parameter_group_t> groups;
  std::vector<cairn_hyper_t> hypers;
  cairn_plan_options_t plan = CAIRN_PLAN_OPTIONS_INIT;

  explicit Options(const char* optimizer, std::vector<cairn_hyper_t> h = {},
                   std::vector<cairn_parameter_group_t> g = {})
      : groups(std::move(g)), hypers(std::move(h)) {
    plan.optimizer = optimizer;
    plan.groups = groups.data();
    plan.group_count = static_cast<uint32_t>(groups.size());
    plan.hypers = hypers.data();
    plan.hyper_count = static_cast<uint32_t>(hypers.size());
  }
};

constexpr size_t kWeight = kWidth * kWidth;

struct OptimizersTest : testing::Test {
  cairn_status_t plan_with(const Options& options) { return plan_with(options.plan); }
  cairn_status_t plan_with(const cairn_plan_options_t& options) {
    cairn_plan_t* plan = nullptr;
    const cairn_status_t status =
        cairn_plan_create(graph.get(), devices.device.get(), &options, &plan, failure);
    cairn_plan_release(plan);
    return status;
  }
  void refused(const Options& options, const std::vector<std::string>& words) {
    expect_failure(plan_with(options), CAIRN_STATUS_INVALID_ARGUMENT, failure, words);
  }
  // Values of `names` after `steps` steps at a rate of 0.01, without clipping.
  std::map<std::string, std::vector<float>> trained(const Options& options, int steps,
                                                    const std::vector<std::string>& names) {
    Trainer trainer(devices, graph, options.plan);
    cairn_stepper_options_t o = CAIRN_STEPPER_OPTIONS_INIT;
    o.rate = 0.01;
    o.clip_norm = 0;
    trainer.stepper.configure(o);
    trainer.write(0.5f);
    for (int i = 0; i < steps; ++i)
      EXPECT_EQ(trainer.stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED));
    std::map<std::string, std::vector<float>> values;
    for (const std::string& name : names) {
      values[name].resize(kWeight);
      trainer.session.read(name, values[name]);
    }
    return values;
  }
  Devices devices;
  cairn::Graph graph = perceptron(devices.instance);
  Failure failure;
};

TEST_F(OptimizersTest, AreDescribed) {
  std::map<std::string, cairn_optimizer_info_t> known;
  for (const cairn_optimizer_info_t& info : cairn::optimizers()) known[info.name] = info;
  ASSERT_TRUE(known.count("adamw") && known.count("sgd") && known.count("lion"));
  EXPECT_STREQ(cairn::optimizers()[0].name, "adamw") << "what NULL means";
  EXPECT_STREQ(known["adamw"].states, "m v");
  EXPECT_STREQ(known["sgd"].states, "momentum?momentum");
  EXPECT_STREQ(known["lion"].states, "m");
  EXPECT_STREQ(known["lion"].otherwise, "");
  EXPECT_STREQ(known["adafactor"].states, "row column v");
  EXPECT_STREQ(known["muon"].otherwise, "adamw");
  EXPECT_NE(std::string(known["lion"].hypers).find("beta2=0.99"), std::string::npos) << known["lion"].hypers;
  for (const auto& [name, info] : known) {
    EXPECT_NE(std::string(info.hypers).find("rate_scale=1"), std::string::npos) << name;
    EXPECT_GT(std::string(info.description).size(), 20u);
  }
  cairn_optimizer_info_t info = CAIRN_OPTIMIZER_INFO_INIT;
  expect_failure(cairn_optimizer_describe(known.size(), &info, failure), CAIRN_STATUS_NOT_FOUND, failure,
                 {std::to_string(known.size())});
  std::map<std::string, cairn_setting_info_t> settings;
  for (const cairn_setting_info_t& s : cairn::settings(CAIRN_SETTINGS_OF_OPTIMIZER, "muon"))
    settings[s.name] = s;
  EXPECT_EQ(settings.at("momentum").default_value, 0.95);
  EXPECT_EQ(settings.at("momentum").traits, CAIRN_SETTING_BELOW);
  EXPECT_STREQ(settings.at("momentum").allowed, "at least 0 and below 1");
  EXPECT_EQ(settings.at("ns_steps").traits, CAIRN_SETTING_INTEGER);
  EXPECT_EQ(settings.at("ns_steps").most, 99);
  EXPECT_EQ(settings.at("nesterov").traits, CAIRN_SETTING_INTEGER | CAIRN_SETTING_SWITCH);
  cairn_setting_info_t setting = CAIRN_SETTING_INFO_INIT;
  expect_failure(cairn_setting_describe(CAIRN_SETTINGS_OF_OPTIMIZER, "lion", 1000, &setting, failure),
                 CAIRN_STATUS_NOT_FOUND, failure);
  expect_failure(cairn_setting_describe(CAIRN_SETTINGS_OF_OPTIMIZER, "lyon", 0, &setting, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"lion"});
  expect_failure(cairn_setting_describe(CAIRN_SETTINGS_OF_STEPPER, "adamw", 0, &setting, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"NULL"});
  // A stepper's defaults are those of its options.
  const cairn_stepper_options_t defaults = CAIRN_STEPPER_OPTIONS_INIT;
  for (const cairn_setting_info_t& s : cairn::settings(CAIRN_SETTINGS_OF_STEPPER)) settings[s.name] = s;
  EXPECT_EQ(settings.at("rate").default_value, defaults.rate);
  EXPECT_EQ(settings.at("clip_norm").default_value, defaults.clip_norm);
  EXPECT_EQ(settings.at("loss_scale").traits, CAIRN_SETTING_OR_ZERO);
  for (const cairn_setting_info_t& s : cairn::settings(CAIRN_SETTINGS_OF_OPTIMIZER, "adamw"))
    settings[s.name] = s;
  EXPECT_EQ(settings.at("beta1").default_value, defaults.beta1);
  EXPECT_EQ(settings.at("beta2").default_value, defaults.beta2);
  EXPECT_EQ(settings.at("eps").default_value, defaults.eps);
  EXPECT_EQ(settings.at("weight_decay").default_value, defaults.weight_decay);
  expect_failure(cairn_optimizer_describe(0, nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"out_info"});
}

TEST_F(OptimizersTest, StateIsTheOptimizers) {
  const auto bytes = [&](const Options& options) {
    return cairn::Plan::create(graph, devices.device, options.plan).summary().optimizer_bytes;
  };
  const uint64_t weights = kLayers * kWeight * sizeof(float);
  EXPECT_EQ(bytes(Options(nullptr)), 2 * weights);
  EXPECT_EQ(bytes(Options("adamw")), 2 * weights);
  EXPECT_EQ(bytes(Options("lion")), weights);
  EXPECT_EQ(bytes(Options("sgd", {{nullptr, "momentum", 0.9}})), weights);
  EXPECT_EQ(bytes(Options("sgd")), 0u);
  EXPECT_EQ(bytes(Options("sgd", {{"layer1.*", "momentum", 0.9}}, {{"layer1.*", nullptr}})),
            weights / kLayers);
}

TEST_F(OptimizersTest, SgdAndLionUpdateByTheirFormulas) {
  const std::vector<std::string> names = {"layer2.weight", "layer2.weight/gradient"};
  auto start = trained(Options("sgd"), 0, {"layer2.weight"})["layer2.weight"];
  auto sgd = trained(Options("sgd"), 1, names);
  auto lion = trained(Options("lion"), 1, names);
  const double weight = kBatch * kWidth;  // what a step's gradient, a sum, is divided by
  for (size_t i = 0; i < kWeight; ++i) {
    const double g = sgd[names[1]][i] / weight;
    ASSERT_NEAR(sgd[names[0]][i], start[i] - 0.01 * g, 1e-7);
    ASSERT_NEAR(lion[names[0]][i], start[i] - 0.01 * ((g > 0) - (g < 0)), 1e-7);
  }
  // Two steps of one gradient direction: momentum goes further than none, as much as it says.
  auto with = trained(Options("sgd", {{nullptr, "momentum", 0.5}}), 1, {names[0], names[0] + "/momentum"});
  EXPECT_EQ(with[names[0]], sgd[names[0]]) << "the first momentum is the gradient";
  for (size_t i = 0; i < kWeight; ++i)
    ASSERT_NEAR(with[names[0] + "/momentum"][i], sgd[names[1]][i] / weight, 1e-7);
}

// The last layer makes what the loss reads.
TEST_F(OptimizersTest, AdafactorAndMuonByName) {
  const auto bytes = [&](const Options& options) {
    return cairn::Plan::create(graph, devices.device, options.plan).summary().optimizer_bytes;
  };
  const uint64_t mean = (kWidth * sizeof(float) + 63) / 64 * 64, weight = kWeight * sizeof(float);
  EXPECT_EQ(bytes(Options("adafactor")), kLayers * 2 * mean);
  EXPECT_EQ(bytes(Options("muon")), (kLayers - 1) * weight + 2 * weight);
  EXPECT_EQ(bytes(Options("muon", {}, {{"layer1.*", "adafactor"}})),
            (kLayers - 2) * weight + 2 * mean + 2 * weight);
  const Options options("muon", {{"/adamw", "rate_scale", 0.0}, {nullptr, "beta1", 0.5}});
  Trainer trainer(devices, graph, options.plan);
  std::vector<float> hidden[2], last[2];
  for (int step : {0, 1}) {
    hidden[step].resize(kWeight), last[step].resize(kWeight);
    trainer.session.read("layer0.weight", hidden[step]);
    trainer.session.read("layer" + std::to_string(kLayers - 1) + ".weight", last[step]);
    trainer.write(0.5f);
    EXPECT_EQ(trainer.stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED));
  }
  EXPECT_NE(hidden[0], hidden[1]);
  EXPECT_EQ(last[0], last[1]) << "AdamW's, at a rate of 0";
  EXPECT_EQ(trainer.stepper.hyper("momentum"), 0.95);
  EXPECT_EQ(trainer.stepper.hyper("beta1", "/adamw"), 0.5);
  expect_failure(cairn_stepper_set(trainer.stepper.get(), nullptr, "ns_steps", 3, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"ns_steps 5", "make a plan with ns_steps 3"});
  refused(Options("muon", {{nullptr, "ns_steps", 100}}), {"ns_steps is 100", "1 to 99"});
  refused(Options("muon", {}, {{"layer1.*", nullptr}, {"layer1.*/adamw", "sgd"}}),
          {"layer1.*/adamw", "adamw's"});
  refused(Options("adafactor", {{nullptr, "clip_threshold", 0.5}}), {"clip_threshold is 0.5", "from 1"});
}

TEST_F(OptimizersTest, GroupsHaveTheirOwn) {
  const std::vector<std::string> names = {"layer0.weight", "layer1.weight", "layer3.weight"};
  auto plain = trained(Options("sgd"), 1, names);
  auto start = trained(Options("sgd"), 0, names);
  auto grouped = trained(
      Options("sgd", {{"layer1.*", "rate_scale", 0.0}}, {{"layer1.*", nullptr}, {"*3.weight", "lion"}}), 1,
      names);
  EXPECT_EQ(grouped["layer0.weight"], plain["layer0.weight"]);
  EXPECT_EQ(grouped["layer1.weight"], start["layer1.weight"]);
  EXPECT_EQ(grouped["layer3.weight"], trained(Options("lion"), 1, names)["layer3.weight"]);
}

TEST_F(OptimizersTest, WrongOptionsAreNamed) {
  refused(Options("adamax"), {"'adamax'", "adamw", "sgd", "lion"});
  refused(Options(""), {"''", "adamw"});
  refused(Options("sgd", {{nullptr, "beta1", 0.9}}), {"'sgd'", "'beta1'", "momentum", "nesterov"});
  refused(Options(nullptr, {{nullptr, "momentum", 0.9}}), {"'adamw'", "'momentum'", "beta1"});
  refused(Options("sgd", {{nullptr, "momentum", 1.0}}), {"momentum is 1", "below 1"});
  refused(Options("sgd", {{nullptr, "nesterov", 0.5}}), {"nesterov", "0 or 1"});
  refused(Options("sgd", {{nullptr, "nesterov", 1.0}}), {"nesterov with momentum 0"});
  refused(Options("sgd", {{"layer2*", "nesterov", 1.0}}, {{"layer2*", nullptr}}),
          {"nesterov with momentum 0"});
  refused(Options("lion", {{nullptr, "weight_decay", -1.0}}), {"weight_decay", "-1"});
  for (const double none : {std::nan(""), std::numeric_limits<double>::infinity()})
    refused(Options("lion", {{nullptr, "rate_scale", none}}), {"rate_scale"});
  refused(Options("sgd", {{nullptr, nullptr, 1.0}}), {"hypers[0].name"});
  refused(Options("sgd", {{"*.bias", "momentum", 0.5}}), {"no parameter group '*.bias'"});
}

TEST_F(OptimizersTest, WrongGroupsAreNamed) {
  refused(Options(nullptr, {}, {{"*.bias", nullptr}}), {"'*.bias'", "matches no parameter", "layer0.weight"});
  refused(Options(nullptr, {}, {{"*.weight", nullptr}, {"layer2*", nullptr}}),
          {"'*.weight'", "'layer2*'", "'layer2.weight'"});
  refused(Options(nullptr, {}, {{"layer2*", nullptr}, {"layer2*", nullptr}}), {"'layer2*'", "twice"});
  refused(Options(nullptr, {}, {{"", nullptr}}), {"pattern"});
  refused(Options(nullptr, {}, {{nullptr, nullptr}}), {"groups[0].pattern"});
  refused(Options(nullptr, {}, {{"layer0*", "rmsprop"}}), {"'rmsprop'", "lion"});
}

TEST_F(OptimizersTest, NoOptimizerGoesWithNone) {
  for (Options options : {Options("sgd"), Options(nullptr, {{nullptr, "beta1", 0.5}}),
                          Options(nullptr, {}, {{"*", nullptr}})}) {
    options.plan.groups = options.groups.data();
    options.plan.hypers = options.hypers.data();
    options.plan.no_optimizer = 1;
    refused(options, {"no_optimizer"});
  }
}

TEST_F(OptimizersTest, CountsNeedArrays) {
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.hyper_count = 1;
  expect_failure(plan_with(options), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"hypers"});
  options = CAIRN_PLAN_OPTIONS_INIT;
  options.group_count = 1;
  expect_failure(plan_with(options), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"groups"});
  Trainer trainer(devices, graph);
  cairn_stepper_options_t o = CAIRN_STEPPER_OPTIONS_INIT;
  o.hyper_count = 2;
  expect_failure(cairn_stepper_configure(trainer.stepper.get(), &o, failure), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"hypers"});
}

TEST_F(OptimizersTest, SmallerStructsOfOlderCallersMeanWhatTheyMeant) {
  Options options("sgd");
  options.plan.struct_size = offsetof(cairn_plan_options_t, optimizer);
  const auto plan = cairn::Plan::create(graph, devices.device, options.plan);
  EXPECT_EQ(plan.summary().optimizer_bytes, 2 * kLayers * kWeight * sizeof(float)) << "adamw";
  Trainer trainer(devices, graph);
  cairn_stepper_options_t o = CAIRN_STEPPER_OPTIONS_INIT;
  o.struct_size = offsetof(cairn_stepper_options_t, hypers);
  o.beta1 = 0.75;
  o.hyper_count = 5;  // beyond what the struct has
  trainer.stepper.configure(o);
  EXPECT_EQ(trainer.stepper.hyper("beta1"), 0.75);
}

TEST_F(OptimizersTest, SteppersChangeAndTellHypers) {
  const Options options("adamw", {{nullptr, "eps", 1e-6}, {"layer0*", "momentum", 0.9}},
                        {{"layer0*", "sgd"}, {"layer1*", nullptr}});
  Trainer trainer(devices, graph, options.plan);
  cairn::Stepper& stepper = trainer.stepper;
  EXPECT_EQ(stepper.hyper("eps"), 1e-6) << "the plan's, not the field of the stepper's options";
  EXPECT_EQ(stepper.hyper("beta2"), 0.95);
  EXPECT_EQ(stepper.hyper("momentum", "layer0*"), 0.9);
  stepper.set_hyper("weight_decay", 0.25);
  EXPECT_EQ(stepper.hyper("weight_decay", ""), 0.25);
  EXPECT_EQ(stepper.hyper("weight_decay", "layer0*"), 0.25) << "of all groups";
  stepper.set_hyper("weight_decay", 0.5, "layer1*");
  EXPECT_EQ(stepper.hyper("weight_decay"), 0.25);
  EXPECT_EQ(stepper.hyper("weight_decay", "layer1*"), 0.5);
  stepper.set_hyper("momentum", 0.0);
  EXPECT_EQ(stepper.hyper("momentum", "layer0*"), 0.0);
}

TEST_F(OptimizersTest, SteppersRefuseWhatThereIsNot) {
  const Options options("sgd", {}, {{"layer0*", "lion"}});
  Trainer trainer(devices, graph, options.plan, 2);
  cairn_stepper_t* const stepper = trainer.stepper.get();
  const auto set = [&](const char* group, const char* name, double value) {
    return cairn_stepper_set(stepper, group, name, value, failure);
  };
  double value = 0;
  const auto bad = CAIRN_STATUS_INVALID_ARGUMENT;
  expect_failure(set(nullptr, "beta3", 0.5), bad, failure, {"'beta3'", "momentum"});
  expect_failure(set("layer1*", "momentum", 0.5), bad, failure, {"'layer1*'", "'layer0*'"});
  expect_failure(set("layer0*", "momentum", 0.5), bad, failure, {"'lion'", "'momentum'"});
  expect_failure(set("layer0*", "beta1", 1.5), bad, failure, {"beta1", "1.5"});
  expect_failure(set("", "momentum", 0.5), bad, failure, {"momentum 0", "make a plan with momentum 0.5"});
  expect_failure(set(nullptr, nullptr, 0.5), bad, failure, {"name"});
  expect_failure(cairn_stepper_set(nullptr, nullptr, "momentum", 0, failure), bad, failure, {"stepper"});
  expect_failure(cairn_stepper_get(stepper, nullptr, "beta1", &value, failure), bad, failure, {"'beta1'"});
  expect_failure(cairn_stepper_get(stepper, "*", "beta1", &value, failure), bad, failure, {"'*'"});
  expect_failure(cairn_stepper_get(stepper, "", nullptr, &value, failure), bad, failure, {"name"});
  expect_failure(cairn_stepper_get(stepper, "", "momentum", nullptr, failure), bad, failure, {"out_value"});
  trainer.write(0.5f);
  trainer.stepper.micro();
  expect_failure(set(nullptr, "weight_decay", 0.1), CAIRN_STATUS_WRONG_STATE, failure,
                 {"1", "between steps"});
  EXPECT_EQ(trainer.stepper.hyper("weight_decay"), 0.0);
}

TEST_F(OptimizersTest, WhatWasSetIsSavedAndAnotherOptimizersStateIsRefused) {
  const Folder folder;
  const Options lion("lion");
  Trainer trainer(devices, graph, lion.plan);
  trainer.stepper.set_hyper("beta2", 0.5);
  trainer.write(0.5f);
  trainer.stepper.micro();
  trainer.stepper.save(folder / "run");
  const auto checkpoint = cairn::Checkpoint::open(devices.instance, folder / "run");
  Trainer again(devices, graph, lion.plan);
  again.stepper.restore(checkpoint);
  EXPECT_EQ(again.stepper.hyper("beta2"), 0.5);
  for (Trainer* each : {&trainer, &again}) {
    each->write(0.75f);
    each->stepper.micro();
  }
  EXPECT_EQ(again.session.digest(), trainer.session.digest());
  Trainer other(devices, graph);
  const std::string before = other.session.digest();
  expect_failure(cairn_stepper_restore(other.stepper.get(), checkpoint.get(), failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"lion", "adamw"});
  EXPECT_EQ(other.session.digest(), before);
}

}  // namespace
}  // namespace cairn_test
