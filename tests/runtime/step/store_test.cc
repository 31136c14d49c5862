// Several programs on one store: lengths mixed in an effective batch, evaluation between steps, one arena.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cmath>

#include "runtime/step/stepper.h"
#include "tests/runtime/step/trained.h"
#include "tests/support/gpt2.h"

namespace cairn::step {
namespace {

using Sessions = std::vector<std::shared_ptr<engine::Session>>;

constexpr int kBatch = 2, kLengths[] = {8, 16, 32}, kLongest = 32;

test::Gpt2 shape(int length) {
  test::Gpt2 o;
  o.layers = 1;
  o.length = length;
  o.batch = kBatch;
  o.positions = kLongest;
  return o;
}

std::shared_ptr<device::Device> device() {
  device::DeviceOptions options;
  options.threads = 2;
  return device::checked(device::open("cpu", options));
}

// Documents of a length, the same ones whatever window they are put into.
struct Window {
  std::vector<int32_t> tokens, targets;
  Window(int length, int window, int salt) : tokens(kBatch * window), targets(kBatch * window, -100) {
    for (int b = 0; b < kBatch; ++b)
      for (int i = 0; i < length; ++i) {
        const int n = salt * 131 + b * 37 + i * 7;
        tokens[b * window + i] = n % 64;
        targets[b * window + i] = (n + 7) % 64;
      }
  }
  void feed(engine::Session& session) const {
    const graph::JointGraph& joint = *session.plan().joint;
    const auto bytes = static_cast<int64_t>(tokens.size() * 4);
    session.write(joint.find("tokens"), tokens.data(), bytes);
    if (const int32_t to = joint.find("targets"); to >= 0) session.write(to, targets.data(), bytes);
  }
};

Sessions open(std::span<const engine::ProgramGraph> graphs, const engine::PlanOptions& options,
              std::shared_ptr<device::Device> on) {
  Sessions sessions = engine::Session::open(engine::compile_set(graphs, *on, options), on);
  initialise(*sessions[0], 5);
  return sessions;
}

Sessions buckets(const engine::PlanOptions& options, bool evaluation = false) {
  std::vector<engine::ProgramGraph> graphs;
  for (const int length : kLengths)
    graphs.push_back({cat("length ", length), test::gpt2_graph(shape(length))});
  if (evaluation) {
    test::Gpt2 o = shape(kLongest);
    o.loss = false;
    graphs.push_back({"evaluation", test::gpt2_graph(o)});
  }
  return open(graphs, options, device());
}

Options options(uint32_t micro_steps) {
  Options o;
  o.micro_steps = micro_steps;
  o.schedule.rate = 3e-3;
  return o;
}

// Micro-batches of all lengths, each by the program of its length.
void train(Stepper& stepper, const Sessions& sessions, int step, size_t count = std::size(kLengths)) {
  for (size_t i = 0; i < count; ++i) {
    Window(kLengths[i], kLengths[i], step * 10 + static_cast<int>(i)).feed(*sessions[i]);
    stepper.micro(*sessions[i]);
  }
}

std::vector<float> gradient(const engine::Session& session, const graph::ParameterSlot& slot) {
  std::vector<float> out(
      static_cast<size_t>(session.plan().joint->values[slot.gradient].desc.shape.elements()));
  session.read(slot.gradient, out.data(), static_cast<int64_t>(out.size() * 4));
  return out;
}

TEST(Store, MixedLengthsGiveThePaddedRunsGradients) {
  const Sessions mixed = buckets({});
  const engine::ProgramGraph longest{"padded", test::gpt2_graph(shape(kLongest))};
  const Sessions padded = open({&longest, 1}, {}, device());
  Stepper a(mixed[0], options(4)), b(padded[0], options(4));
  train(a, mixed, 0);
  for (size_t i = 0; i < std::size(kLengths); ++i) {
    Window(kLengths[i], kLongest, static_cast<int>(i)).feed(*padded[0]);
    b.micro();
  }
  EXPECT_EQ(a.state().weight_sum, b.state().weight_sum);
  EXPECT_NEAR(a.state().loss_sum, b.state().loss_sum, 1e-6 * b.state().loss_sum);
  const graph::JointGraph& ours = *mixed[0]->plan().joint;
  for (size_t p = 0; p < ours.parameters.size(); ++p) {
    const std::vector<float> x = gradient(*mixed[0], ours.parameters[p]);
    const std::vector<float> y = gradient(*padded[0], padded[0]->plan().joint->parameters[p]);
    double apart = 0, size = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      apart += (x[i] - y[i]) * (x[i] - y[i]);
      size += y[i] * y[i];
    }
    EXPECT_LE(std::sqrt(apart), 1e-6 * std::sqrt(size)) << ours.values[ours.parameters[p].value].name;
  }
}

// Parameters and optimizer state after three steps of mixed lengths.
Values after_training(const engine::PlanOptions& plan_options) {
  const Sessions sessions = buckets(plan_options);
  Stepper stepper(sessions[0], options(3));
  for (int step = 0; step < 3; ++step) train(stepper, sessions, step);
  EXPECT_EQ(stepper.state().updates, 3u);
  return trained(*sessions[0]);
}

TEST(Store, BudgetsAndTiersChangeNoBit) {
  for (const auto amp : {graph::AmpMode::kOff, graph::AmpMode::kBf16}) {
    engine::PlanOptions free;
    free.amp = amp;
    const Values expected = after_training(free);
    for (const double share : {0.75}) {
      engine::PlanOptions tight = free;
      tight.budget_share = share;
      tight.tiers = {Tier::kHost};
      EXPECT_EQ(after_training(tight), expected) << "share " << share;
    }
  }
}

TEST(Store, PlannedPeakOfTheSetIsTheMeasuredOne) {
  for (const double share : {0.0, 0.85}) {
    engine::PlanOptions plan_options;
    plan_options.budget_share = share;
    plan_options.amp = graph::AmpMode::kBf16;
    if (share > 0)
      plan_options.tiers = {Tier::kHost};  // what fits otherwise depends on the processor's workspaces
    const Sessions sessions = buckets(plan_options, true);
    Stepper stepper(sessions[0], options(3));
    for (int step = 0; step < 2; ++step) train(stepper, sessions, step);
    Window(kLongest, kLongest, 3).feed(*sessions[2]);
    std::vector<int32_t> tokens(kBatch * kLongest, 5);
    sessions[3]->write(sessions[3]->plan().joint->find("tokens"), tokens.data(),
                       static_cast<int64_t>(tokens.size() * 4));
    sessions[3]->run({});
    int64_t arena = 0, live = 0;
    for (const auto& session : sessions) {
      arena = std::max(arena, session->plan().plan.arena_bytes);
      live = std::max(live, session->plan().plan.device_peak_bytes);
      const auto m = session->plan().memory_at_peak();
      EXPECT_EQ(m.parameters + m.gradients + m.optimizer + m.activations + m.workspace,
                session->plan().plan.arena_bytes);
    }
    const device::TierCount count = sessions[0]->count(Tier::kDevice);
    EXPECT_EQ(count.reserved_bytes, arena) << "one arena";
    EXPECT_EQ(count.peak_live_bytes, live);
    EXPECT_LE(count.peak_height_bytes, arena);
    if (share > 0) EXPECT_LE(arena, sessions[0]->plan().plan.budget_bytes);
  }
}

TEST(Store, EvaluationBetweenMicroBatchesLeavesEverythingAsItWas) {
  engine::PlanOptions plan_options;
  plan_options.amp = graph::AmpMode::kBf16;
  const auto run = [&](bool evaluates) {
    const Sessions sessions = buckets(plan_options, true);
    Stepper stepper(sessions[0], options(2));
    for (int step = 0; step < 2; ++step) {
      train(stepper, sessions, step, 1);
      if (evaluates) {
        Window(kLongest, kLongest, 1).feed(*sessions[2]);  // of another program, which does not run
        std::vector<int32_t> tokens(kBatch * kLongest, 9);
        engine::Session& evaluation = *sessions[3];
        evaluation.write(evaluation.plan().joint->find("tokens"), tokens.data(),
                         static_cast<int64_t>(tokens.size() * 4));
        evaluation.run({});
        const int32_t value = evaluation.plan().joint->find("hidden");
        std::vector<char> hidden(static_cast<size_t>(evaluation.plan().joint->values[value].desc.bytes()));
        evaluation.read(value, hidden.data(), static_cast<int64_t>(hidden.size()));
        EXPECT_NE(hidden, std::vector<char>(hidden.size())) << "it was computed";
      }
      Window(kLengths[1], kLengths[1], step).feed(*sessions[1]);
      stepper.micro(*sessions[1]);
    }
    return trained(*sessions[0]);
  };
  EXPECT_EQ(run(true), run(false));
}

// Batches of a size of their own: the remainder of an epoch, without padding.
TEST(Store, ARemainderRunsAtItsOwnSize) {
  test::Gpt2 rest = shape(kLongest);
  rest.batch = 1;
  const std::vector<engine::ProgramGraph> graphs = {{"whole", test::gpt2_graph(shape(kLongest))},
                                                    {"rest", test::gpt2_graph(rest)}};
  const Sessions sessions = open(graphs, {}, device());
  const Sessions alone = open({graphs.data(), 1}, {}, device());
  Stepper a(sessions[0], options(4)), b(alone[0], options(4));
  Window w(kLongest, kLongest, 1);
  const auto bytes = static_cast<int64_t>(kLongest * 4);
  const graph::JointGraph& joint = *sessions[1]->plan().joint;
  sessions[1]->write(joint.find("tokens"), w.tokens.data(), bytes);
  sessions[1]->write(joint.find("targets"), w.targets.data(), bytes);
  a.micro(*sessions[1]);
  std::fill(w.targets.begin() + kLongest, w.targets.end(), -100);  // the second row counts for nothing
  w.feed(*alone[0]);
  b.micro();
  EXPECT_EQ(a.state().weight_sum, kLongest);
  EXPECT_EQ(b.state().weight_sum, kLongest);
  EXPECT_NEAR(a.state().loss_sum, b.state().loss_sum, 1e-6 * b.state().loss_sum);
}

// One micro-batch per update, whichever program it is of: parameters are updated inside its backward.
TEST(Store, FusedUpdatesOfAllPrograms) {
  const auto run = [](bool fused) {
    engine::PlanOptions plan_options;
    plan_options.fuse_update = fused;
    plan_options.amp = graph::AmpMode::kBf16;
    const Sessions sessions = buckets(plan_options);
    Options o = options(1);
    o.clip_norm = 0;
    Stepper stepper(sessions[0], o);
    for (int step = 0; step < 2; ++step) train(stepper, sessions, step);
    EXPECT_EQ(stepper.state().updates, 6u);
    return trained(*sessions[0]);
  };
  EXPECT_EQ(run(true), run(false));
}

// The disk fails under one program: all of them go on without it, with the same bits.
TEST(Store, AFailingDiskIsLeftByAllPrograms) {
  std::atomic<int> left{1 << 30};
  device::DeviceOptions device_options;
  device_options.threads = 2;
  device_options.disk_fault = [&](bool, int64_t, int64_t bytes) -> int64_t {
    return left.fetch_sub(1) == 0 ? -EIO : bytes;
  };
  engine::PlanOptions plan_options;
  plan_options.policy = Policy::kOffload;
  plan_options.tiers = {Tier::kDisk};
  const auto on = device::open("cpu", device_options);
  std::vector<engine::ProgramGraph> graphs;
  for (const int length : kLengths) graphs.push_back({cat(length), test::gpt2_graph(shape(length))});
  const auto plans = engine::compile_set(graphs, *on, plan_options);
  const auto run = [&](int at) {
    const Sessions sessions = engine::Session::open(plans, on);
    initialise(*sessions[0], 5);
    Stepper stepper(sessions[0], options(3));
    left = at;
    bool fell_back = false;
    for (int step = 0; step < 2; ++step)
      for (size_t i = 0; i < std::size(kLengths); ++i) {
        Window(kLengths[i], kLengths[i], step * 10 + static_cast<int>(i)).feed(*sessions[i]);
        fell_back = stepper.micro(*sessions[i]).fell_back || fell_back;
      }
    EXPECT_EQ(fell_back, at < 1 << 30);
    return trained(*sessions[0]);
  };
  const Values expected = run(1 << 30);
  for (const int at : {0, 3}) EXPECT_EQ(run(at), expected) << "transfer " << at;
}

TEST(Store, GraphsThatDoNotGoTogetherAreNamed) {
  const auto refused = [](const test::Gpt2& other, const std::string& says) {
    const std::vector<engine::ProgramGraph> graphs = {{"a", test::gpt2_graph(shape(16))},
                                                      {"b", test::gpt2_graph(other)}};
    try {
      engine::compile_set(graphs, *device(), {});
      ADD_FAILURE() << "taken, but: " << says;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
  };
  test::Gpt2 wide = shape(16), deep = shape(16);
  wide.vocabulary = 65;
  deep.layers = 2;
  refused(wide, "parameter 'wte.weight' is f32[65, 32] in program 'b' and f32[64, 32] in 'a'");
  refused(deep, "program 'b' has a parameter 'h.1.ln_1.weight', which 'a' does not have");
  test::Gpt2 hidden = shape(8);
  hidden.loss = false;
  const std::vector<engine::ProgramGraph> graphs = {{"evaluation", test::gpt2_graph(hidden)},
                                                    {"train", test::gpt2_graph(shape(8))}};
  EXPECT_THROW(engine::compile_set(graphs, *device(), {}), Error) << "the first one trains";
}

TEST(Store, SessionsNeedAllPlansOfASetAndSteppersTheirStore) {
  const auto on = device();
  std::vector<engine::ProgramGraph> graphs;
  for (const int length : kLengths) graphs.push_back({cat(length), test::gpt2_graph(shape(length))});
  auto plans = engine::compile_set(graphs, *on, {});
  EXPECT_THROW(engine::Session(plans[0], on), Error);
  EXPECT_THROW(engine::Session::open({plans[1], plans[0], plans[2]}, on), Error);
  const Sessions one = engine::Session::open(plans, on), other = engine::Session::open(plans, on);
  Stepper stepper(one[0], options(1));
  EXPECT_THROW(stepper.micro(*other[1]), Error);
}

}  // namespace
}  // namespace cairn::step
