// Chapter 6: schedules by name, their parameters, warm-up by count, and what checkpoints keep of them.
#include <cmath>
#include <limits>
#include <map>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

constexpr int kSteps = 12, kHalf = 7;

// Every schedule there is, as a run of kSteps steps could have it.
std::map<std::string, cairn::Schedules> samples() {
  std::map<std::string, cairn::Schedules> all;
  for (const cairn_schedule_info_t& info : cairn::schedules()) all[info.name].add(info.name);
  all["cosine restarts"].add("cosine").set("first_cycle", 2).set("cycle_multiplier", 2);
  all["step"].set("step_size", 2).set("gamma", 0.5);
  all["multistep"].set("milestones", 3).set("milestones", 8).set("gamma", 0.3);
  all["onecycle"].set("anneal", "linear").set("pct_start", 0.5);
  all["wsd"].set("decay_steps", 6).set("decay_shape", "sqrt");
  all["joined"]
      .add("linear", 5)
      .set("start_factor", 0.1)
      .set("end_factor", 1)
      .add("constant", 3)
      .add("polynomial");
  return all;
}

cairn_stepper_options_t options_of(cairn::Schedules& schedules) {
  cairn_stepper_options_t options = CAIRN_STEPPER_OPTIONS_INIT;
  options.rate = 0.05;
  options.minimum_rate = 0.001;
  options.total_steps = kSteps;
  schedules.apply_to(options);
  return options;
}

TEST(Schedules, AreListedWithWhatTheyTake) {
  const auto all = cairn::schedules();
  ASSERT_GE(all.size(), 9u);
  std::map<std::string, cairn_schedule_info_t> by_name;
  for (const auto& info : all) {
    EXPECT_TRUE(by_name.emplace(info.name, info).second);
    EXPECT_GT(std::string(info.description).size(), 20u);
  }
  EXPECT_STREQ(all[CAIRN_SCHEDULE_COSINE].name, "cosine");
  EXPECT_STREQ(all[CAIRN_SCHEDULE_LINEAR].name, "linear");
  EXPECT_STREQ(by_name.at("wsd").parameters, "decay_steps=0 decay_shape=linear|cosine|sqrt");
  EXPECT_STREQ(by_name.at("multistep").parameters, "milestones= gamma=0.1");
  EXPECT_EQ(by_name.at("wsd").ends, 1u);
  EXPECT_EQ(by_name.at("step").ends, 0u);
  Failure failure;
  cairn_schedule_info_t info = CAIRN_SCHEDULE_INFO_INIT;
  expect_failure(cairn_schedule_describe(all.size(), &info, failure), CAIRN_STATUS_NOT_FOUND, failure);
}

TEST(Schedules, OldFieldsAndNewNamesAreTheSame) {
  for (const char* name : {"constant", "cosine", "linear"}) {
    cairn_stepper_options_t old = CAIRN_STEPPER_OPTIONS_INIT;
    old.warmup_steps = 3;
    old.total_steps = 20;
    old.minimum_rate = 1e-5;
    auto named = old;
    while (std::string(cairn::schedules()[old.schedule].name) != name) ++old.schedule;
    cairn::Schedules schedules;
    schedules.add(name).apply_to(named);
    std::vector<double> momenta;
    EXPECT_EQ(cairn::schedule_rates(old, 0, 25), cairn::schedule_rates(named, 0, 25, &momenta));
    for (double momentum : momenta) EXPECT_TRUE(std::isnan(momentum));
  }
}

TEST(Schedules, WarmupCountsWhatAStepTakes) {
  cairn_stepper_options_t steps = CAIRN_STEPPER_OPTIONS_INIT, units = CAIRN_STEPPER_OPTIONS_INIT;
  steps.warmup_steps = 4;
  units.warmup_units = 1000;  // more than three steps of 300
  units.step_units = 300;
  EXPECT_EQ(cairn::schedule_rates(steps, 0, 8), cairn::schedule_rates(units, 0, 8));
  units.warmup_units = 1200;
  EXPECT_EQ(cairn::schedule_rates(steps, 0, 8), cairn::schedule_rates(units, 0, 8));
  units.warmup_units = std::numeric_limits<uint64_t>::max();
  units.step_units = 1;
  EXPECT_GT(cairn::schedule_rates(units, 0, 1)[0], 0.0);
  Failure failure;
  double rate = 0;
  units.step_units = 0;
  expect_failure(cairn_schedule_rates(&units, 0, 1, &rate, nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"step_units"});
  units.step_units = 1;
  units.warmup_steps = 1;
  expect_failure(cairn_schedule_rates(&units, 0, 1, &rate, nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"warmup_steps is 1", "leave one 0"});
}

TEST(Schedules, BadOnesAreRefusedBeforeAndBehindThem) {
  const Devices devices;
  Trainer trainer(devices, perceptron(devices.instance));
  Failure failure;
  const auto refused = [&](cairn_stepper_options_t options, const std::vector<std::string>& words) {
    expect_failure(cairn_schedule_rates(&options, 0, 0, nullptr, nullptr, failure),
                   CAIRN_STATUS_INVALID_ARGUMENT, failure, words);
    expect_failure(cairn_stepper_configure(trainer.stepper.get(), &options, failure),
                   CAIRN_STATUS_INVALID_ARGUMENT, failure, words);
  };
  const auto with = [&](cairn::Schedules schedules, const std::vector<std::string>& words,
                        uint64_t warmup = 0) {
    auto options = options_of(schedules);
    options.warmup_steps = warmup;
    refused(options, words);
  };
  using cairn::Schedules;
  with(Schedules().add("cosin"), {"unknown schedule 'cosin'", "inverse_sqrt"});
  with(Schedules().add("step").set("step_size", 3).set("pct_start", 0.3),
       {"step has no parameter 'pct_start'", "step_size, gamma", "onecycle"});
  with(Schedules().add("step").set("step_sice", 3), {"no parameter 'step_sice'; it has: step_size, gamma"});
  with(Schedules().add("step"), {"step_size is 0"});
  with(Schedules().add("step").set("step_size", 3).set("gamma", 2), {"gamma is 2"});
  with(Schedules().add("step").set("step_size", 3).set("gamma", NAN), {"gamma is nan"});
  with(Schedules().add("multistep").set("milestones", 5).set("milestones", 4), {"4 after 5"});
  with(Schedules().add("wsd").set("decay_shape", "round"), {"linear, cosine, sqrt"});
  with(Schedules().add("wsd").set("decay_shape", 1), {"decay_shape is 1", "one of"});
  with(Schedules().add("cosine"), {"ends at step 12", "takes 12 steps"}, 12);
  with(Schedules().add("linear").add("cosine"), {"schedule 1 of 2", "steps"});
  with(Schedules().add("linear", 8).add("cosine"), {"ends at step 12", "take 13"}, 5);
  cairn::Schedules plain;
  plain.add("constant");
  for (double rate : {0.0, -1.0, HUGE_VAL, std::nan("")}) {
    auto options = options_of(plain);
    options.rate = rate;
    refused(options, {"rate is"});
  }
  auto both = options_of(plain);
  both.schedule = CAIRN_SCHEDULE_COSINE;
  refused(both, {"options.schedule is 1", "leave one out"});
  both = options_of(plain);
  both.schedules = nullptr;
  refused(both, {"options.schedules"});
  cairn_schedule_t nameless{};
  both.schedules = &nameless;
  refused(both, {"options.schedules[0].name"});
}

// Momenta reach the update as if a host had set them by hand, step by step.
TEST(Schedules, OnecycleMovesTheMomentumOfEveryOptimizer) {
  for (const auto& [optimizer, hyper] :
       {std::pair{"adamw", "beta1"}, {"sgd", "momentum"}, {"lion", "beta1"}}) {
    const Devices devices;
    const auto graph = perceptron(devices.instance);
    cairn_plan_options_t plan = CAIRN_PLAN_OPTIONS_INIT;
    plan.optimizer = optimizer;
    const cairn_hyper_t momentum{nullptr, "momentum", 0.9};
    if (std::string(optimizer) == "sgd") {
      plan.hypers = &momentum;
      plan.hyper_count = 1;
    }
    auto schedule = cairn::Schedules().add("onecycle").set("div_factor", 4);
    auto options = options_of(schedule);
    Trainer cycled(devices, graph, plan), by_hand(devices, graph, plan), fixed(devices, graph, plan);
    cycled.stepper.configure(options);
    auto unmoved = cairn::Schedules(schedule).set("cycle_momentum", "false");
    auto unmoved_options = options;
    unmoved.apply_to(unmoved_options);
    fixed.stepper.configure(unmoved_options);
    std::vector<double> momenta;
    const std::vector<double> rates = cairn::schedule_rates(options, 0, kSteps, &momenta);
    for (int i = 0; i < kSteps; ++i) {
      cairn_stepper_options_t constant = CAIRN_STEPPER_OPTIONS_INIT;
      constant.rate = rates[i];
      by_hand.stepper.configure(constant);
      by_hand.stepper.set_hyper(hyper, momenta[i]);
      for (Trainer* trainer : {&cycled, &by_hand, &fixed}) trainer->write(0.1f * static_cast<float>(i));
      EXPECT_EQ(cycled.stepper.micro().rate, rates[i]);
      by_hand.stepper.micro();
      fixed.stepper.micro();
    }
    EXPECT_EQ(cycled.session.digest(), by_hand.session.digest()) << optimizer;
    EXPECT_NE(cycled.session.digest(), fixed.session.digest()) << optimizer;
  }
}

// Where the update runs inside backward, rate and momentum are there before it.
TEST(Schedules, FusedUpdatesFollowTheSchedule) {
  const Devices devices;
  const auto graph = perceptron(devices.instance);
  cairn_plan_options_t fused = CAIRN_PLAN_OPTIONS_INIT;
  fused.fuse_update = 1;
  auto schedule = cairn::Schedules().add("step", 3).set("step_size", 1).add("onecycle");
  auto options = options_of(schedule);
  options.clip_norm = 0;
  Trainer apart(devices, graph);
  Trainer inside{devices, graph, CAIRN_PLAN_OPTIONS_INIT};
  inside.plan = cairn::Plan::create(graph, devices.device, fused);
  inside.session = cairn::Session::create(inside.plan, devices.device);
  inside.session.initialise(1);
  inside.stepper = cairn::Stepper::create(inside.session, options);
  apart.stepper.configure(options);
  for (int i = 0; i < kSteps; ++i)
    for (Trainer* trainer : {&apart, &inside}) {
      trainer->write(0.1f * static_cast<float>(i));
      trainer->stepper.micro();
    }
  EXPECT_EQ(apart.session.digest(), inside.session.digest());
}

TEST(Schedules, OnecycleNeedsAMomentumToMove) {
  const Devices devices;
  cairn_plan_options_t plan = CAIRN_PLAN_OPTIONS_INIT;
  plan.optimizer = "sgd";
  Trainer trainer(devices, perceptron(devices.instance), plan);
  auto schedule = cairn::Schedules().add("onecycle");
  auto options = options_of(schedule);
  Failure failure;
  expect_failure(cairn_stepper_configure(trainer.stepper.get(), &options, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"momentum of sgd", "cycle_momentum"});
  schedule.set("cycle_momentum", "false").apply_to(options);
  trainer.stepper.configure(options);
}

// A run that is saved and gone on with at any step, by a stepper that knew nothing of the schedule.
TEST(Schedules, ResumeInTheMiddleIsExact) {
  const Folder folder;
  const Devices devices;
  const auto graph = perceptron(devices.instance);
  for (auto& [schedule_name, schedule] : samples()) {
    const std::string name = schedule_name;
    const auto options = options_of(schedule);
    Trainer whole(devices, graph), resumed(devices, graph);
    whole.stepper.configure(options);
    const std::vector<double> rates = cairn::schedule_rates(options, 0, kSteps);
    const auto step = [&](Trainer& trainer, int i) {
      trainer.write(0.1f * static_cast<float>(i));
      EXPECT_EQ(trainer.stepper.micro().rate, rates[i]) << name;
    };
    for (int i = 0; i < kHalf; ++i) step(whole, i);
    whole.stepper.save(folder / name);
    resumed.stepper.restore(cairn::Checkpoint::open(devices.instance, folder / name));
    for (int i = kHalf; i < kSteps; ++i) {
      step(whole, i);
      step(resumed, i);
    }
    EXPECT_EQ(whole.session.digest(), resumed.session.digest()) << name;
    EXPECT_NE(devices.instance.inspect(folder / name).find(name == "joined" ? "linear:5" : name.substr(0, 4)),
              std::string::npos)
        << name;
  }
}

TEST(Schedules, ASkippedStepLeavesTheScheduleWhereItWas) {
  const Devices devices;
  Trainer trainer(devices, perceptron(devices.instance));
  auto schedule = cairn::Schedules().add("step").set("step_size", 1).set("gamma", 0.5);
  trainer.stepper.configure(options_of(schedule));
  trainer.write(0.5f);
  EXPECT_EQ(trainer.stepper.micro().rate, 0.05);
  trainer.write(std::nanf(""));
  EXPECT_EQ(trainer.stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_SKIPPED_NONFINITE));
  trainer.write(0.5f);
  EXPECT_EQ(trainer.stepper.micro().rate, 0.025);
  EXPECT_EQ(trainer.stepper.micro().rate, 0.0125);
}

}  // namespace
}  // namespace cairn_test
