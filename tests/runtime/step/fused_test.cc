// The update fused into backward: the same bits as after it, without memory for all gradients at once.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <limits>
#include <map>
#include <thread>

#include "runtime/step/stepper.h"
#include "trained.h"

namespace cairn::step {
namespace {

using graph::ValueId;

constexpr int64_t kBatch = 2, kTime = 8, kWidth = 32, kVocabulary = 19;

// Blocks with residual connections, in regions, between a tied table's two ends.
std::shared_ptr<graph::Graph> model() {
  auto g = std::make_shared<graph::Graph>();
  graph::ParameterOptions normal, ones;
  normal.init = graph::Init::kNormal;
  normal.init_scale = 0.2;
  ones.init_scale = 1;
  ones.decay = false;
  const auto f32 = [](std::initializer_list<int64_t> d) { return TensorDesc{DType::kF32, Shape(d)}; };
  const ValueId ids = g->input("ids", {DType::kI32, {kBatch, kTime}});
  const ValueId targets = g->input("targets", {DType::kI32, {kBatch, kTime}});
  const ValueId scale = g->input("scale", f32({kWidth}));
  const ValueId table = g->parameter("table", f32({kVocabulary, kWidth}), normal);
  ValueId x = g->op("mul", {g->op("embedding", {table, ids})[0], scale})[0];
  for (int i = 0; i < 3; ++i) {
    const auto region = g->region_begin(cat("h", i), Policy::kPlannerDecides);
    const ValueId n = g->op("layernorm", {x, g->parameter(cat("g", i), f32({kWidth}), ones),
                                          g->parameter(cat("b", i), f32({kWidth}), {})})[0];
    const ValueId up = g->op("linear", {n, g->parameter(cat("up", i), f32({4 * kWidth, kWidth}), normal)})[0];
    const ValueId h = g->op("dropout", {g->op("gelu", {up})[0]}, {{"rate", 0.1}})[0];
    x = g->op("add", {x, g->op("linear",
                               {h, g->parameter(cat("down", i), f32({kWidth, 4 * kWidth}), normal)})[0]})[0];
    g->region_end(region);
  }
  const auto loss = g->op("linear_cross_entropy", {x, table, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

engine::PlanOptions options_for(bool fused, Policy policy = Policy::kKeep,
                                graph::AmpMode amp = graph::AmpMode::kOff, DType parameters = DType::kF32) {
  engine::PlanOptions o;
  o.fuse_update = fused;
  o.policy = policy;
  o.amp = amp;
  o.parameters = parameters;
  return o;
}

Options step_options() {
  Options o;
  o.clip_norm = 0;
  o.schedule.rate = 0.01;
  return o;
}

std::shared_ptr<device::Device> open(const char* name, device::DeviceOptions options = {}) {
  options.threads = 1;
  return device::checked(device::open(name, options));
}

struct Training {
  std::shared_ptr<engine::Session> session;
  std::unique_ptr<Stepper> stepper;

  Training(const engine::PlanOptions& options, const std::shared_ptr<device::Device>& device)
      : Training(engine::compile(model(), *device, options), device) {}
  Training(std::shared_ptr<const engine::CompiledPlan> plan, const std::shared_ptr<device::Device>& device)
      : session(std::make_shared<engine::Session>(std::move(plan), device)) {
    initialise(*session, 11);
    stepper = std::make_unique<Stepper>(session, step_options());
  }
  int32_t id(const char* name) const { return session->plan().joint->find(name); }
  void feed(float scale = 1) {
    feed_words(*session, stepper->state().step, kBatch * kTime, kVocabulary);
    std::vector<float> scales(kWidth, scale);
    session->write(id("scale"), scales.data(), static_cast<int64_t>(scales.size() * 4));
  }
  Report micro(float scale = 1) {
    feed(scale);
    return stepper->micro();
  }
  Values values() const { return trained(*session); }
};

struct Precision {
  const char* name;
  graph::AmpMode amp;
  DType parameters;
};

class Fused : public ::testing::TestWithParam<std::tuple<std::string, Precision>> {};

TEST_P(Fused, ChangesNoBitUnderAnyPolicyAndNeedsLessMemory) {
  const auto& [name, precision] = GetParam();
  const auto device = open(name.c_str());
  Training apart(options_for(false, Policy::kKeep, precision.amp, precision.parameters), device);
  std::vector<double> norms;
  for (int i = 0; i < 3; ++i) norms.push_back(apart.micro().gradient_norm);
  int64_t gradients = 0;
  for (const graph::ParameterSlot& slot : apart.session->plan().joint->parameters)
    gradients += apart.session->plan().joint->values[static_cast<size_t>(slot.gradient)].desc.bytes();
  for (const Policy policy : {Policy::kKeep, Policy::kRecompute, Policy::kOffload}) {
    Training fused(options_for(true, policy, precision.amp, precision.parameters), device);
    for (const double norm : norms) {
      const Report report = fused.micro();
      EXPECT_EQ(report.outcome, Outcome::kApplied);
      EXPECT_EQ(report.gradient_norm, norm);
    }
    EXPECT_EQ(fused.values(), apart.values()) << "policy " << static_cast<int>(policy);
    const plan::Plan& plan = fused.session->plan().plan;
    EXPECT_EQ(plan::violation(fused.session->plan().problem, plan), "");
    EXPECT_EQ(fused.session->count(Tier::kDevice).peak_height_bytes, plan.arena_bytes);
    EXPECT_EQ(fused.session->count(Tier::kDevice).peak_live_bytes, plan.device_peak_bytes);
    if (policy == Policy::kKeep)
      EXPECT_LT(plan.arena_bytes, apart.session->plan().plan.arena_bytes - gradients / 3);
    if (policy == Policy::kRecompute) EXPECT_GT(plan.totals.recompute_bytes, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Devices, Fused,
    ::testing::Combine(::testing::Values("cpu", "reference"),
                       ::testing::Values(Precision{"f32", graph::AmpMode::kOff, DType::kF32},
                                         Precision{"bf16", graph::AmpMode::kBf16, DType::kF32},
                                         Precision{"rounded", graph::AmpMode::kBf16, DType::kBF16})),
    [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param).name; });

TEST(FusedUpdate, ALossThatIsNotFiniteUpdatesNothing) {
  const auto device = open("cpu");
  Training fused(options_for(true), device);
  fused.micro();
  const auto before = fused.values();
  const Report report = fused.micro(std::numeric_limits<float>::infinity());
  EXPECT_EQ(report.outcome, Outcome::kSkippedNonFinite);
  EXPECT_EQ(report.skipped_steps, 1u);
  EXPECT_EQ(fused.values(), before);
  EXPECT_EQ(fused.micro().outcome, Outcome::kApplied) << "what was found is forgotten with the step";
}

// custom: y = x, and a gradient that is not a number.
// Targets that all count for nothing: there is no mean.
TEST(FusedUpdate, AStepOfWhichNothingCountsIsSkippedAndUpdatesNothing) {
  for (const char* name : {"cpu", "reference"}) {
    Training training(options_for(true), open(name));
    training.micro();
    const Values before = training.values();
    training.feed();
    const std::vector<int32_t> ignored(kBatch * kTime, -100);
    training.session->write(training.id("targets"), ignored.data(), static_cast<int64_t>(ignored.size() * 4));
    const Report report = training.stepper->micro();
    EXPECT_EQ(report.outcome, Outcome::kSkippedEmpty);
    EXPECT_EQ(report.skipped_steps, 1u);
    EXPECT_EQ(training.values(), before);
    EXPECT_EQ(training.stepper->state().micro, 0u);
    EXPECT_EQ(training.stepper->state().step, 2u);
    EXPECT_EQ(training.micro().outcome, Outcome::kApplied);
  }
}

// on_host: the weights are updated by the host's processors beside backward.
void expect_error_of_gradient(bool on_host) {
  auto g = std::make_shared<graph::Graph>();
  graph::CustomOp op;
  op.name = "broken";
  op.inputs = op.outputs = 1;
  op.shape = [](std::span<const TensorDesc> in, std::span<TensorDesc> out) {
    out[0] = in[0];
    return true;
  };
  op.forward = [](std::span<const Tensor> in, std::span<const Tensor> out, void*) {
    std::copy_n(in[0].as<float>(), in[0].desc.shape.elements(), out[0].as<float>());
    return true;
  };
  op.backward = [](std::span<const Tensor> in, std::span<const Tensor> out, void*) {
    std::copy_n(in[2].as<float>(), in[2].desc.shape.elements(), out[0].as<float>());
    out[0].as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    return true;
  };
  g->custom(op);
  graph::ParameterOptions normal;
  normal.init = graph::Init::kNormal;
  normal.init_scale = 0.2;
  constexpr int64_t kWide = 64;  // a weight is more than a page
  const TensorDesc rows{DType::kF32, {8, kWide}}, square{DType::kF32, {kWide, kWide}};
  const ValueId first = g->op("linear", {g->input("x", rows), g->parameter("before", square, normal)})[0];
  const ValueId last =
      g->op("linear", {g->op("broken", {first})[0], g->parameter("after", square, normal)})[0];
  const auto loss = g->op("mse", {last, g->input("t", rows)});
  g->freeze(loss[0], loss[1], {});
  const auto device = open("cpu");
  engine::PlanOptions options;
  options.fuse_update = true;
  if (on_host) {
    options.tiers = {Tier::kHost};
    options.budget_share = 0.9;
    options.forced.update_on_device = true;
    options.forced.host_updates = engine::ForcedChoices::When::kAlways;
  }
  auto session = std::make_shared<engine::Session>(engine::compile(g, *device, options), device);
  ASSERT_EQ(session->plan().host_updated.size(), on_host ? 2u : 0u);
  initialise(*session, 3);
  Stepper stepper(session, step_options());
  const graph::JointGraph& joint = *session->plan().joint;
  std::vector<float> ones(8 * kWide, 1.0f);
  for (const char* name : {"x", "t"})
    session->write(joint.find(name), ones.data(), joint.values[joint.find(name)].desc.bytes());
  const auto read = [&](const char* name) {
    std::vector<float> found(kWide * kWide);
    session->read(joint.find(name), found.data(), static_cast<int64_t>(found.size() * 4));
    return found;
  };
  const auto before = read("before"), after = read("after");
  try {
    stepper.micro();
    FAIL() << "nobody noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kNonFinite) << error.what();
    EXPECT_NE(std::string(error.what()).find("restore a checkpoint"), std::string::npos);
  }
  EXPECT_NE(read("after"), after) << "its gradient came first, and was finite";
  EXPECT_EQ(read("before"), before);
  EXPECT_EQ(stepper.state().step, 0u);
}

TEST(FusedUpdate, AGradientThatIsNotFiniteEndsTheStepWithAnError) {
  for (const bool on_host : {false, true}) expect_error_of_gradient(on_host);
}

TEST(FusedUpdate, NothingIsAccumulatedOrClipped) {
  const auto device = open("cpu");
  engine::PlanOptions options = options_for(true);
  options.micro_steps = 2;
  EXPECT_THROW(engine::compile(model(), *device, options), Error);
  Training fused(options_for(true), device);
  const auto refusal = [&](const Options& o) {
    try {
      fused.stepper->configure(o);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      return std::string(error.what());
    }
    return std::string("none");
  };
  Options o = step_options();
  o.clip_norm = 1;
  EXPECT_NE(refusal(o).find("clip_norm is 1"), std::string::npos);
  EXPECT_THROW(Stepper(fused.session, o), Error);
  o = step_options();
  o.micro_steps = 2;
  EXPECT_NE(refusal(o).find("micro_steps is 2"), std::string::npos);
}

// A cancel either comes before the first update, and nothing was changed, or the step is finished.
TEST(FusedUpdate, ACancelNeverLeavesParametersHalfUpdated) {
  const auto device = open("cpu");
  const auto plan = engine::compile(model(), *device, options_for(true, Policy::kOffload));
  Training expected(plan, device);
  const auto start = expected.values();
  expected.micro();
  const auto end = expected.values();
  int cancelled = 0;
  for (int i = 0; i < 40; ++i) {
    Training fused(plan, device);
    fused.feed();
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(50 * i));
      fused.session->cancel();
    });
    try {
      fused.stepper->micro();
      EXPECT_EQ(fused.values(), end);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kCancelled) << error.what();
      EXPECT_EQ(fused.values(), start);
      ++cancelled;
    }
    other.join();
  }
  EXPECT_GT(cancelled, 0);
}

// A disk that fails before any update costs the disk, after it the session.
TEST(FusedUpdate, AFailingDiskIsLeftOrEndsTheSession) {
  std::atomic<int> left{1 << 30}, seen{0};
  device::DeviceOptions device_options;
  device_options.disk_fault = [&](bool, int64_t, int64_t bytes) -> int64_t {
    ++seen;
    return left.fetch_sub(1) == 0 ? -EIO : bytes;
  };
  const auto device = open("cpu", device_options);
  engine::PlanOptions options = options_for(true, Policy::kOffload);
  options.tiers = {Tier::kDisk};
  const auto plan = engine::compile(model(), *device, options);
  Training sound(plan, device);
  sound.micro();
  const auto expected = sound.values();
  const int transfers = seen;
  ASSERT_GT(transfers, 2);
  int fell_back = 0, ended = 0;
  for (int at = 0; at < transfers; ++at) {
    left = 1 << 30;
    Training failing(plan, device);
    left = at;
    try {
      fell_back += failing.micro().fell_back;
      EXPECT_EQ(failing.values(), expected) << "transfer " << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kIo);
      EXPECT_NE(std::string(error.what()).find("updated in the midst"), std::string::npos) << error.what();
      EXPECT_THROW(failing.micro(), Error);
      ++ended;
    }
  }
  EXPECT_GT(fell_back, 0);
  EXPECT_EQ(fell_back + ended, transfers);
}

}  // namespace
}  // namespace cairn::step
