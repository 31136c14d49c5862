// Chapters 4 to 6: several programs on one store.
#include <numeric>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

constexpr int64_t kIn = 6, kHidden = 16, kOut = 3;

// x[batch, 6] -> gelu -> y[batch, 3]; with a loss against target where it trains.
cairn::Graph network(const cairn::Instance& instance, int64_t batch, bool trains = true,
                     int64_t hidden = kHidden, bool bias = true) {
  auto graph = cairn::Graph::create(instance);
  const cairn::Value x = graph.input("x", {batch, kIn});
  const cairn::Value w1 = graph.parameter("w1", {hidden, kIn}, cairn::init_normal(0.4));
  std::vector<cairn::Value> operands = {x, w1};
  if (bias) operands.push_back(graph.parameter("b1", {hidden}));
  const cairn::Value w2 = graph.parameter("w2", {kOut, hidden}, cairn::init_normal(0.4));
  const cairn::Value h = graph.op("linear", operands, {{"activation", "gelu_tanh"}});
  const cairn::Value y = graph.op("linear", {h, w2});
  graph.name(y, "y");
  if (!trains) {
    graph.freeze(0, {y});
    return graph;
  }
  const cairn::Value target = graph.input("target", {batch, kOut});
  const auto ends = graph.ops<2>("mse", {y, target});
  graph.freeze(ends[0], {y}, ends[1]);
  return graph;
}

// Rows `first` and on of one endless table.
std::vector<float> rows(int64_t first, int64_t count, int64_t columns) {
  std::vector<float> list(static_cast<size_t>(count * columns));
  for (size_t i = 0; i < list.size(); ++i)
    list[i] = std::sin(0.37f * static_cast<float>(static_cast<size_t>(first * columns) + i + 1));
  return list;
}

void feed(cairn::Session& session, int64_t first, int64_t count) {
  session.write("x", rows(first, count, kIn));
  session.write("target", rows(first + 7, count, kOut));
}

std::vector<float> values(const cairn::Session& session, const std::string& name, int64_t count) {
  std::vector<float> list(static_cast<size_t>(count));
  session.read(name, list);
  return list;
}

constexpr int64_t kBatches[] = {8, 4, 3};

struct StoreTest : testing::Test {
  std::vector<cairn::Program> programs() {
    std::vector<cairn::Program> list;
    for (const int64_t batch : kBatches)
      list.push_back({"batch " + std::to_string(batch), network(devices.instance, batch)});
    list.push_back({"evaluation", network(devices.instance, 16, false)});
    return list;
  }
  cairn_status_t plan_set(const std::vector<cairn::Program>& list,
                          const cairn_plan_options_t* options = nullptr) {
    std::vector<cairn_program_t> raw;
    for (const cairn::Program& program : list) raw.push_back({program.name.c_str(), program.graph.get()});
    std::vector<cairn_plan_t*> out(list.size(), nullptr);
    const cairn_status_t status =
        cairn_plan_create_set(raw.data(), raw.size(), devices.device.get(), options, out.data(), failure);
    for (cairn_plan_t* plan : out) {
      EXPECT_EQ(plan != nullptr, status == CAIRN_STATUS_OK);
      cairn_plan_release(plan);
    }
    return status;
  }
  void refused(const std::vector<cairn::Program>& list, const std::vector<std::string>& words) {
    expect_failure(plan_set(list), CAIRN_STATUS_INVALID_ARGUMENT, failure, words);
  }
  Devices devices;
  Failure failure;
};

TEST_F(StoreTest, UnequalMicroBatchesAreOneLargeBatch) {
  const auto plans = cairn::Plan::create_set(programs(), devices.device);
  auto sessions = cairn::Session::create_set(plans, devices.device);
  sessions[0].initialise(4);
  const auto whole_plan = cairn::Plan::create(
      network(devices.instance, std::accumulate(std::begin(kBatches), std::end(kBatches), int64_t{0})),
      devices.device);
  auto whole = cairn::Session::create(whole_plan, devices.device);
  whole.initialise(4);
  EXPECT_EQ(whole.digest(), sessions[2].digest());
  cairn_stepper_options_t options = CAIRN_STEPPER_OPTIONS_INIT;
  options.rate = 1e-2;
  auto one = cairn::Stepper::create(whole, options);
  options.micro_steps = std::size(kBatches);
  auto parts = cairn::Stepper::create(sessions[0], options);
  feed(whole, 0, 15);
  const auto wanted = one.micro();
  cairn_step_report_t found = CAIRN_STEP_REPORT_INIT;
  int64_t first = 0;
  for (size_t i = 0; i < std::size(kBatches); first += kBatches[i++]) {
    feed(sessions[i], first, kBatches[i]);
    found = parts.micro(sessions[i]);
  }
  EXPECT_EQ(found.outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED));
  EXPECT_EQ(found.step_weight, wanted.step_weight);
  EXPECT_NEAR(found.step_loss, wanted.step_loss, 1e-6 * wanted.step_loss);
  EXPECT_NEAR(found.gradient_norm, wanted.gradient_norm, 1e-6 * wanted.gradient_norm);
  const auto a = values(sessions[1], "w1", kHidden * kIn), b = values(whole, "w1", kHidden * kIn);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5);
}

TEST_F(StoreTest, EvaluationBetweenStepsLeavesEveryDigestAndSeesTheParameters) {
  const auto run = [&](bool evaluates) {
    auto sessions =
        cairn::Session::create_set(cairn::Plan::create_set(programs(), devices.device), devices.device);
    cairn::Session &train = sessions[0], &evaluation = sessions[3];
    train.initialise(4);
    auto stepper = cairn::Stepper::create(train);
    std::vector<std::string> digests;
    std::vector<float> seen;
    for (int64_t step = 0; step < 3; ++step) {
      feed(train, step, 8);
      stepper.micro();
      if (evaluates) {
        evaluation.write("x", rows(0, 16, kIn));
        evaluation.run();
        const auto y = values(evaluation, "y", 16 * kOut);
        EXPECT_NE(y, seen) << "parameters have changed";
        seen = y;
        EXPECT_EQ(values(evaluation, "w2", kOut * kHidden), values(train, "w2", kOut * kHidden));
      }
      digests.push_back(train.digest());
      EXPECT_EQ(digests.back(), evaluation.digest());
    }
    return digests;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST_F(StoreTest, MemoryIsTakenOnceAndIsThePlannedPeakOfTheLargest) {
  for (const bool fuses : {false, true}) {
    cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
    options.fuse_update = fuses;
    const auto plans = cairn::Plan::create_set(programs(), devices.device, options);
    auto sessions = cairn::Session::create_set(plans, devices.device);
    sessions[0].initialise(4);
    cairn_stepper_options_t o = CAIRN_STEPPER_OPTIONS_INIT;
    o.clip_norm = 0;
    auto stepper = cairn::Stepper::create(sessions[0], o);
    uint64_t planned = 0;
    for (size_t i = 0; i < plans.size(); ++i) {
      planned = std::max(planned, plans[i].summary().peak_bytes[CAIRN_TIER_DEVICE]);
      if (i == 3) break;
      feed(sessions[i], 0, kBatches[i]);
      stepper.micro(sessions[i]);
    }
    sessions[3].write("x", rows(0, 16, kIn));
    sessions[3].run();
    for (const cairn::Session& session : sessions) {
      EXPECT_EQ(session.usage().reserved_bytes, planned);
      EXPECT_LE(session.usage().peak_bytes, planned);
    }
    EXPECT_EQ(sessions[0].usage().peak_bytes, planned);
  }
}

TEST_F(StoreTest, HandlesGoInAnyOrder) {
  auto plans = cairn::Plan::create_set(programs(), devices.device);
  auto sessions = cairn::Session::create_set(plans, devices.device);
  plans.clear();
  sessions[0].initialise(4);
  auto stepper = cairn::Stepper::create(sessions[0]);
  auto last = sessions[1];
  sessions.clear();
  feed(last, 0, kBatches[1]);
  EXPECT_EQ(stepper.micro(last).step, 1u);
  stepper = {};
  EXPECT_EQ(last.digest().size(), 32u);
}

TEST_F(StoreTest, SavedByOneProgramAndRestoredByAnotherSet) {
  const Folder folder;
  auto sessions =
      cairn::Session::create_set(cairn::Plan::create_set(programs(), devices.device), devices.device);
  sessions[0].initialise(4);
  cairn_stepper_options_t options = CAIRN_STEPPER_OPTIONS_INIT;
  options.micro_steps = 2;
  auto stepper = cairn::Stepper::create(sessions[0], options);
  feed(sessions[1], 0, kBatches[1]);
  stepper.micro(sessions[1]);
  stepper.save(folder / "half");  // inside of an effective batch
  auto others =
      cairn::Session::create_set(cairn::Plan::create_set(programs(), devices.device), devices.device);
  auto restored = cairn::Stepper::create(others[0], options);
  restored.restore(cairn::Checkpoint::open(devices.instance, folder / "half"));
  for (auto* each : {&sessions, &others}) feed((*each)[2], 4, kBatches[2]);
  stepper.micro(sessions[2]);
  EXPECT_EQ(restored.micro(others[2]).step, 1u);
  EXPECT_EQ(others[3].digest(), sessions[3].digest());
}

TEST_F(StoreTest, GraphsThatDoNotGoTogetherAreNamed) {
  const cairn::Program first{"first", network(devices.instance, 8)};
  refused({first, {"wide", network(devices.instance, 4, true, kHidden + 1)}},
          {"'w1'", "f32[17, 6]", "'wide'", "f32[16, 6]", "'first'"});
  refused({{"bare", network(devices.instance, 4, true, kHidden, false)}, first},
          {"'b1'", "'bare'", "'first'"});
  refused({first, {"bare", network(devices.instance, 4, true, kHidden, false)}},
          {"'b1'", "gradient", "'bare'"});
  refused({{"evaluation", network(devices.instance, 8, false)}, first},
          {"'first'", "trains", "'evaluation'"});
  refused({first, {"first", network(devices.instance, 4)}}, {"'first'"});
}

TEST_F(StoreTest, WrongCallsAreNamed) {
  const auto bad = CAIRN_STATUS_INVALID_ARGUMENT;
  const auto graph = network(devices.instance, 2);
  cairn_plan_t* plan = nullptr;
  const cairn_program_t good = {"a", graph.get()}, nameless = {nullptr, graph.get()}, empty = {"a", nullptr};
  const auto with = [&](const cairn_program_t* programs, size_t count) {
    return cairn_plan_create_set(programs, count, devices.device.get(), nullptr, &plan, failure);
  };
  expect_failure(with(nullptr, 1), bad, failure, {"programs"});
  expect_failure(with(&good, 0), bad, failure, {"count is 0"});
  expect_failure(with(&good, SIZE_MAX), bad, failure, {"count"});
  expect_failure(with(&nameless, 1), bad, failure, {"programs[0].name"});
  expect_failure(with(&empty, 1), bad, failure, {"programs[0].graph"});
  expect_failure(cairn_plan_create_set(&good, 1, nullptr, nullptr, &plan, failure), bad, failure, {"device"});
  expect_failure(cairn_plan_create_set(&good, 1, devices.device.get(), nullptr, nullptr, failure), bad,
                 failure, {"out_plans"});
  auto building = cairn::Graph::create(devices.instance);
  const cairn_program_t unfrozen = {"draft", building.get()};
  expect_failure(with(&unfrozen, 1), CAIRN_STATUS_WRONG_STATE, failure, {"'draft'", "frozen"});

  cairn_plan_t* none[] = {nullptr};
  cairn_session_t* session = nullptr;
  const auto open = [&](cairn_plan_t* const* plans, size_t count) {
    return cairn_session_create_set(plans, count, devices.device.get(), &session, failure);
  };
  expect_failure(open(nullptr, 1), bad, failure, {"plans"});
  expect_failure(open(none, 0), bad, failure, {"count is 0"});
  expect_failure(open(none, 1), bad, failure, {"plans[0]"});
  EXPECT_EQ(session, nullptr);
}

TEST_F(StoreTest, SessionsNeedAllPlansInTheirOrderAndSteppersTheirStore) {
  const auto plans = cairn::Plan::create_set(programs(), devices.device);
  const auto refused_by = [&](std::vector<size_t> order) {
    std::vector<cairn_plan_t*> raw;
    for (const size_t i : order) raw.push_back(plans[i].get());
    std::vector<cairn_session_t*> out(raw.size(), nullptr);
    expect_failure(
        cairn_session_create_set(raw.data(), raw.size(), devices.device.get(), out.data(), failure),
        CAIRN_STATUS_INVALID_ARGUMENT, failure, {"order"});
  };
  refused_by({1, 0, 2, 3});
  refused_by({0, 1, 2});
  refused_by({0, 0, 1, 2});
  cairn_session_t* alone = nullptr;
  expect_failure(cairn_session_create(plans[0].get(), devices.device.get(), &alone, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure);
  auto here = cairn::Session::create_set(plans, devices.device),
       there = cairn::Session::create_set(plans, devices.device);
  here[0].initialise(1);
  there[0].initialise(1);
  auto stepper = cairn::Stepper::create(here[0]);
  cairn_step_report_t report = CAIRN_STEP_REPORT_INIT;
  const auto on = [&](cairn_session_t* session) {
    return cairn_stepper_micro_on(stepper.get(), session, &report, failure);
  };
  expect_failure(on(there[1].get()), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"another store"});
  expect_failure(on(nullptr), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"session"});
  expect_failure(on(here[3].get()), CAIRN_STATUS_WRONG_STATE, failure, {"no loss"});
  EXPECT_EQ(stepper.report().micro, 0u);
}

TEST_F(StoreTest, OverBudgetNamesTheProgramAndASetOfOneIsAPlan) {
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.budget_bytes = 1;
  expect_failure(plan_set(programs(), &options), CAIRN_STATUS_OVER_BUDGET, failure, {"budget"});
  const auto graph = network(devices.instance, 8);
  const auto set = cairn::Plan::create_set({{"only", graph}}, devices.device);
  const auto plan = cairn::Plan::create(graph, devices.device);
  EXPECT_EQ(set[0].summary().peak_bytes[CAIRN_TIER_DEVICE], plan.summary().peak_bytes[CAIRN_TIER_DEVICE]);
  auto session = cairn::Session::create(set[0], devices.device);
  session.initialise(1);
}

}  // namespace
}  // namespace cairn_test
