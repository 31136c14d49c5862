// The engine on an (emulated) GPU: what is recorded and replayed has the bits of what is submitted piece by
// piece, under every plan, and memory is what the plan said.
#include <tuple>

#include "tests/runtime/compile/support.h"

namespace cairn::engine {
namespace {

struct Case {
  std::string name;
  std::function<std::shared_ptr<Graph>()> graph;
  graph::AmpMode amp;
};
const Case kCases[] = {
    {"mlp", [] { return mlp(3); }, graph::AmpMode::kOff},
    {"transformer", [] { return transformer(1); }, graph::AmpMode::kOff},
    {"transformer_bf16", [] { return transformer(1); }, graph::AmpMode::kBf16},
};
constexpr RunKey kRuns[] = {{42, 0, 0}, {42, 0, 1}, {42, 1, 0}, {42, 1, 1}, {42, 2, 0}, {42, 2, 1}};

class Replay : public ::testing::TestWithParam<size_t> {
 protected:
  const Case& model() const { return kCases[GetParam()]; }
  PlanOptions options() const {
    PlanOptions o;
    o.amp = model().amp;
    return o;
  }
  // Results after every run. Checked devices do not record.
  std::vector<Result> run(const PlanOptions& options, const std::string& name, bool checked,
                          std::shared_ptr<const CompiledPlan>* out_plan = nullptr) {
    auto device = device::open(name, {});
    if (checked) device = device::checked(device);
    const auto plan = compile(model().graph(), *device, options);
    EXPECT_EQ(plan::violation(plan->problem, plan->plan), "");
    Session session(plan, device);
    fill(session);
    std::vector<Result> results;
    for (const RunKey& key : kRuns) {
      session.reset_peaks();
      session.run(key);
      results.push_back(result(session));
      losses_.push_back(loss_of(session));
      expect_exact_memory(session);
    }
    if (out_plan != nullptr) *out_plan = plan;
    return results;
  }
  std::vector<double> losses_;
};

TEST_P(Replay, HasTheBitsOfWhatIsSubmitted) {
  EXPECT_EQ(run(options(), "cuda:0", false), run(options(), "cuda:0", true));
  EXPECT_NE(losses_[0], losses_[2]);  // another step, other dropped elements
}

TEST_P(Replay, IsReportedBySubmissionAndByTheDriversCount) {
  const auto device = device::open("cuda:0", {});
  Session session(compile(model().graph(), *device, options()), device);
  EXPECT_GE(device->taken_bytes() - session.taken_before(), session.count(Tier::kDevice).reserved_bytes);
  fill(session);
  for (const RunKey& key : kRuns) {
    const RunReport report = session.run(key);
    EXPECT_GT(report.submit_seconds, 0);
    EXPECT_LT(report.submit_seconds, report.seconds);
  }
}

// Runs are submitted, recorded with what measures, and without; and one of many is measured again.
TEST_P(Replay, EveryRunTellsOfItsCopies) {
  const auto device = device::open("cuda:0", {});
  PlanOptions o = options();
  o.policy = Policy::kOffload;
  Session session(compile(model().graph(), *device, o), device);
  fill(session);
  const auto host = static_cast<size_t>(Tier::kHost);
  std::vector<double> seconds;
  int64_t bytes = 0;
  for (uint64_t step = 0; step < 36; ++step) {
    const RunReport report = session.run({42, step, 0});
    EXPECT_GT(report.out[host].busy_seconds, 0) << step;
    if (step > 0) EXPECT_EQ(report.out[host].bytes, bytes) << step;
    bytes = report.out[host].bytes;
    seconds.push_back(report.out[host].busy_seconds);
  }
  EXPECT_GT(bytes, 0);
  constexpr size_t kMeasured = 1, kAgain = 33;
  for (size_t step = kMeasured; step < seconds.size(); ++step)
    EXPECT_EQ(seconds[step], seconds[step < kAgain ? kMeasured : kAgain]) << step;
  EXPECT_NE(seconds[kAgain], seconds[kMeasured]);
}

TEST_P(Replay, IsNearTheReference) {
  run(options(), "cuda:0", false);
  const std::vector<double> gpu = std::exchange(losses_, {});
  run(options(), "reference", false);
  for (size_t i = 0; i < gpu.size(); ++i)
    EXPECT_NEAR(gpu[i], losses_[i],
                (model().amp == graph::AmpMode::kOff ? 1e-5 : 1e-2) * std::abs(losses_[i]));
}

TEST_P(Replay, ChangesNoBitUnderAnyPlan) {
  PlanOptions o = options();
  o.policy = Policy::kKeep;
  std::shared_ptr<const CompiledPlan> keep, plan;
  const auto expected = run(o, "cuda:0", true, &keep);
  o.policy = Policy::kRecompute;
  EXPECT_EQ(run(o, "cuda:0", false, &plan), expected);
  EXPECT_LT(plan->plan.arena_bytes, keep->plan.arena_bytes);
  o.policy = Policy::kOffload;
  for (const Tier tier : {Tier::kHost, Tier::kDisk}) {
    o.tiers = {tier};
    EXPECT_EQ(run(o, "cuda:0", false, &plan), expected);
    EXPECT_FALSE(plan->program().copies.empty());
  }
  o.policy = Policy::kPlannerDecides;
  o.tiers = {Tier::kHost};
  o.budget_bytes = 1;
  try {
    run(o, "cuda:0", false);
    FAIL() << "a budget of one byte was met";
  } catch (const Error& error) {
    ASSERT_EQ(error.code(), Code::kOverBudget) << error.what();
    o.budget_bytes = static_cast<int64_t>(error.fault()->smallest_budget_bytes);
  }
  EXPECT_EQ(run(o, "cuda:0", false, &plan), expected);
  EXPECT_LE(plan->plan.arena_bytes, o.budget_bytes);
}

TEST_P(Replay, ValuesHaveNoAddressOnTheHost) {
  const auto device = device::open("cuda:0", {});
  Session session(compile(model().graph(), *device, options()), device);
  try {
    session.address(session.plan().joint->parameters[0].value);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnsupported);
  }
}

TEST_P(Replay, ACancelledRunLeavesNothingRecorded) {
  const auto device = device::open("cuda:0", {});
  Session session(compile(model().graph(), *device, options()), device);
  fill(session);
  session.run({42, 0, 0});
  const Result expected = result(session);
  for (int i = 0; i < 3; ++i) {
    session.cancel();
    EXPECT_THROW(session.run({42, 0, 0}), Error);
    session.run({42, 0, 0});
    EXPECT_EQ(result(session), expected);
  }
}

TEST_P(Replay, AFailingDiskIsLeft) {
  PlanOptions o = options();
  o.policy = Policy::kOffload;
  o.tiers = {Tier::kDisk};
  const auto expected = run(o, "cuda:0", true);
  std::atomic<bool> fails{false};
  device::DeviceOptions faulty;
  faulty.disk_fault = [&](bool writes, int64_t, int64_t bytes) {
    return writes && fails ? -int64_t{5} : bytes;
  };
  const auto device = device::open("cuda:0", faulty);
  Session session(compile(model().graph(), *device, o), device);
  fill(session);
  for (size_t i = 0; i < std::size(kRuns); ++i) {
    fails = i == 4;  // a recording is what runs then; the first micro-batch of a step may be repeated
    EXPECT_EQ(session.run(kRuns[i]).fell_back, fails.load());
    EXPECT_EQ(result(session), expected[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Replay, ::testing::Range(size_t{0}, std::size(kCases)),
                         [](const auto& test) { return kCases[test.param].name; });

}  // namespace
}  // namespace cairn::engine
