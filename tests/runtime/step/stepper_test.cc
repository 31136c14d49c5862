#include "runtime/step/stepper.h"

#include <cmath>
#include <limits>

namespace cairn::step {
namespace {

using graph::ValueId;

constexpr int kIn = 5, kOut = 3;

// y = gelu(x w1 + b1) w2, weighted squared error; `rows` rows.
std::shared_ptr<graph::Graph> mlp(int64_t rows) {
  auto g = std::make_shared<graph::Graph>();
  auto f32 = [](std::initializer_list<int64_t> d) { return TensorDesc{DType::kF32, Shape(d)}; };
  auto weight = [&](const char* name, int64_t n, int64_t k) {
    graph::ParameterOptions o;
    o.init = graph::Init::kNormal;
    o.init_scale = 0.5;
    return g->parameter(name, f32({n, k}), o);
  };
  graph::ParameterOptions no_decay;
  no_decay.decay = false;
  const ValueId x = g->input("x", f32({rows, kIn})), t = g->input("t", f32({rows, kOut})),
                w = g->input("w", f32({rows}));
  const ValueId w1 = weight("w1", 8, kIn), b1 = g->parameter("b1", f32({8}), no_decay),
                w2 = weight("w2", kOut, 8);
  const ValueId h = g->op("gelu", {g->op("linear", {x, w1, b1})[0]})[0];
  const auto loss = g->op("mse", {g->op("linear", {h, w2})[0], t, w});
  g->freeze(loss[0], graph::kNone, {});
  return g;
}

struct Rig {
  std::shared_ptr<engine::Session> session;
  std::unique_ptr<Stepper> stepper;

  explicit Rig(int64_t rows, Options options = {}, const char* device_name = "cpu",
               graph::AmpMode amp = graph::AmpMode::kOff) {
    device::DeviceOptions device_options;
    device_options.threads = 1;
    auto device = device::open(device_name, device_options);
    engine::PlanOptions plan;
    plan.amp = amp;
    session = std::make_shared<engine::Session>(engine::compile(mlp(rows), *device, plan), device);
    initialise(*session, 7);
    stepper = std::make_unique<Stepper>(session, options);
  }
  int32_t id(const char* name) const { return session->plan().joint->find(name); }
  void feed(const std::vector<float>& x, const std::vector<float>& t, const std::vector<float>& w) {
    session->write(id("x"), x.data(), static_cast<int64_t>(x.size() * 4));
    session->write(id("t"), t.data(), static_cast<int64_t>(t.size() * 4));
    session->write(id("w"), w.data(), static_cast<int64_t>(w.size() * 4));
  }
  std::vector<float> get(const char* name) const {
    std::vector<float> out(
        static_cast<size_t>(session->plan().joint->values[id(name)].desc.shape.elements()));
    session->read(id(name), out.data(), static_cast<int64_t>(out.size() * 4));
    return out;
  }
};

// Twelve rows of data; weights are ragged, rows 4..7 are masked out whole.
struct Data {
  std::vector<float> x, t, w;
  explicit Data(int rows = 12) {
    for (int i = 0; i < rows * kIn; ++i) x.push_back(std::sin(0.7f * static_cast<float>(i)));
    for (int i = 0; i < rows * kOut; ++i) t.push_back(std::cos(0.3f * static_cast<float>(i)));
    for (int i = 0; i < rows; ++i) w.push_back(i >= 4 && i < 8 ? 0.0f : 0.25f * static_cast<float>(i % 5));
  }
  static std::vector<float> part(const std::vector<float>& v, int width, int begin, int rows) {
    return {v.begin() + begin * width, v.begin() + (begin + rows) * width};
  }
  void feed(Rig& rig, int begin, int rows) const {
    rig.feed(part(x, kIn, begin, rows), part(t, kOut, begin, rows), part(w, 1, begin, rows));
  }
};

Options options(uint32_t micro_steps) {
  Options o;
  o.micro_steps = micro_steps;
  o.schedule.rate = 0.01;
  return o;
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b, float tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << i;
}

TEST(Stepper, RaggedMicroBatchesEqualOneLargeBatch) {
  const Data data;
  Rig large(12, options(1)), small(4, options(3));
  for (int step = 0; step < 5; ++step) {
    data.feed(large, 0, 12);
    const Report whole = large.stepper->micro();
    Report report;
    for (int m = 0; m < 3; ++m) {
      data.feed(small, 4 * m, 4);
      report = small.stepper->micro();
      if (m == 1) {
        EXPECT_EQ(report.weight, 0.0);  // all masked: contributes nothing
        EXPECT_EQ(report.loss, 0.0);
        EXPECT_EQ(report.outcome, Outcome::kAccumulated);
      }
    }
    EXPECT_EQ(report.outcome, Outcome::kApplied);
    EXPECT_NEAR(report.step_loss, whole.step_loss, 1e-6);
    EXPECT_NEAR(report.gradient_norm, whole.gradient_norm, 1e-5);
    EXPECT_EQ(report.step_weight, whole.step_weight);
  }
  for (const char* name : {"w1", "b1", "w2"}) expect_near(large.get(name), small.get(name), 2e-6f);
}

TEST(Stepper, RemainderHasItsOwnDenominator) {
  const Data data;
  Rig rig(4, options(3)), exact(4, options(1));
  data.feed(rig, 0, 4);
  EXPECT_EQ(rig.stepper->micro().outcome, Outcome::kAccumulated);
  const Report applied = rig.stepper->apply();
  EXPECT_EQ(applied.outcome, Outcome::kApplied);
  data.feed(exact, 0, 4);
  exact.stepper->micro();
  EXPECT_EQ(parameter_digest(*rig.session), parameter_digest(*exact.session));
}

TEST(Stepper, WrongOrderNamesBothStates) {
  const Data data;
  Rig rig(4, options(2));
  try {
    rig.stepper->apply();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kWrongState);
    EXPECT_NE(std::string(e.what()).find("EMPTY"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("ACCUMULATED"), std::string::npos);
  }
  data.feed(rig, 0, 4);
  rig.stepper->micro();
  EXPECT_THROW(rig.stepper->configure(options(1)), Error);
  rig.stepper->discard();
  rig.stepper->configure(options(1));
  EXPECT_EQ(rig.stepper->state().micro, 0u);
}

TEST(Stepper, DiscardedBatchLeavesNoTrace) {
  const Data data;
  Rig rig(4, options(2)), fresh(4, options(2));
  data.feed(rig, 4, 4);
  rig.stepper->micro();
  data.feed(rig, 8, 4);
  rig.stepper->discard();
  for (Rig* r : {&rig, &fresh})
    for (int m = 0; m < 2; ++m) {
      data.feed(*r, 8 * m, 4);
      r->stepper->micro();
    }
  EXPECT_EQ(parameter_digest(*rig.session), parameter_digest(*fresh.session));
}

TEST(Stepper, NonFiniteBatchIsSkippedWhole) {
  Data data;
  Rig rig(4, options(2)), clean(4, options(2));
  auto run = [&](Rig& r, const Data& d) {
    Report report;
    for (int m = 0; m < 2; ++m) {
      d.feed(r, 8 * m, 4);
      report = r.stepper->micro();
    }
    return report;
  };
  run(rig, data);
  run(clean, data);
  Data bad = data;
  bad.x[8 * kIn] = std::numeric_limits<float>::quiet_NaN();  // in the second micro-batch
  const std::vector<float> m_before = rig.get("w1/m"), v_before = rig.get("w1/v");
  const std::string before = parameter_digest(*rig.session);
  const Report report = run(rig, bad);
  EXPECT_EQ(report.outcome, Outcome::kSkippedNonFinite);
  EXPECT_EQ(report.skipped_steps, 1u);
  EXPECT_EQ(parameter_digest(*rig.session), before);
  EXPECT_EQ(rig.get("w1/m"), m_before);
  EXPECT_EQ(rig.get("w1/v"), v_before);
  EXPECT_EQ(rig.stepper->state().updates, 1u);
  // The next step is what it would have been without the bad batch.
  EXPECT_EQ(run(rig, data).outcome, Outcome::kApplied);
  run(clean, data);
  EXPECT_EQ(parameter_digest(*rig.session), parameter_digest(*clean.session));
}

// AdamW with global-norm clipping, written out in double for one parameter.
TEST(Stepper, UpdateIsAdamWOnTheClippedMean) {
  const Data data;
  Options o = options(1);
  o.clip_norm = 0.05;
  Rig rig(12, o);
  const double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;  // as optimizers.def has them
  const std::vector<float> before = rig.get("w2");
  data.feed(rig, 0, 12);
  const Report report = rig.stepper->micro();
  EXPECT_GT(report.gradient_norm, o.clip_norm);
  const std::vector<float> gradient = rig.get("w2/gradient"), after = rig.get("w2");
  const double factor = o.clip_norm / (report.gradient_norm + 1e-6) / report.step_weight;
  for (size_t i = 0; i < before.size(); ++i) {
    const double g = gradient[i] * factor, m = (1 - beta1) * g, v = (1 - beta2) * g * g;
    const double p =
        before[i] * (1 - 0.01 * weight_decay) - 0.01 * (m / (1 - beta1)) / (std::sqrt(v / (1 - beta2)) + eps);
    EXPECT_NEAR(after[i], p, 1e-6);
  }
}

TEST(Stepper, InitialNumbersAreTheSameOnEveryBackend) {
  Rig cpu(4), reference(4, {}, "reference");
  EXPECT_EQ(parameter_digest(*cpu.session), parameter_digest(*reference.session));
  initialise(*reference.session, 8);
  EXPECT_NE(parameter_digest(*cpu.session), parameter_digest(*reference.session));
}

TEST(Stepper, OptionsAreChecked) {
  auto refused = [](auto change) {
    Options o;
    change(o);
    EXPECT_THROW(Rig(4, o), Error);
  };
  refused([](Options& o) { o.micro_steps = 0; });
  refused([](Options& o) { o.schedule.rate = std::numeric_limits<double>::quiet_NaN(); });
  refused([](Options& o) { o.hypers = {{{}, "beta1", 1.0}}; });
  refused([](Options& o) { o.hypers = {{{}, "momentum", 0.5}}; });
  refused([](Options& o) { o.hypers = {{"w*", "beta1", 0.5}}; });
  refused([](Options& o) { o.clip_norm = -1; });
  refused([](Options& o) { o.schedule.stages = {Stage("cosine")}; });
}

TEST(Stepper, AStateGoesOnInAnotherPrecisionBetweenEffectiveBatchesOnly) {
  const Options two{.micro_steps = 2, .loss_scale = {.initial = 64}};
  Rig narrow(4, two, "cpu", graph::AmpMode::kFp16), wide(4, two);
  const Data data;
  data.feed(narrow, 0, 4);
  EXPECT_EQ(narrow.stepper->micro().loss_scale, 64);
  const State middle = narrow.stepper->state();
  try {
    wide.stepper->restore(middle);
    ADD_FAILURE() << "gradients times 64 were taken as they are";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("fp16"), std::string::npos);
  }
  narrow.stepper->apply();
  wide.stepper->restore(narrow.stepper->state());
  EXPECT_FALSE(wide.stepper->state().loss_scale);
  narrow.stepper->restore(wide.stepper->state());
  EXPECT_EQ(narrow.stepper->state().loss_scale->scale, 64);
}

}  // namespace
}  // namespace cairn::step
