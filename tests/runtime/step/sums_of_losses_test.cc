// A loss that is made of several: sums that one denominator divides, which the controller owns.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/step/stepper.h"

namespace cairn::step::sums {
namespace {

using graph::ValueId;

constexpr int64_t kIn = 5, kClasses = 4;

// logits = x w: their cross entropy, and 0.3 times their mean square; rows whose target is ignored are in neither. And half
// of w's squares, however many rows there are.
std::shared_ptr<graph::Graph> model(int64_t rows, bool by_weight = true) {
  auto g = std::make_shared<graph::Graph>();
  const auto f32 = [](std::initializer_list<int64_t> d) { return TensorDesc{DType::kF32, Shape(d)}; };
  graph::ParameterOptions init;
  init.init = graph::Init::kNormal;
  init.init_scale = 0.5;
  const ValueId x = g->input("x", f32({rows, kIn})), mask = g->input("mask", f32({rows})),
                targets = g->input("targets", {DType::kI32, Shape{rows}}),
                w = g->parameter("w", f32({kClasses, kIn}), init);
  const ValueId logits = g->op("linear", {x, w})[0];
  const auto entropy = g->op("cross_entropy", {logits, targets});
  const ValueId zero = g->op("sub", {logits, logits})[0];
  const ValueId square = g->op("mse", {logits, zero, mask})[0];
  const ValueId size =
      g->op("cast", {g->op("reduce_sum", {g->op("mul", {w, w})[0]})[0]}, {{"dtype", std::string("f64")}})[0];
  const ValueId decay = g->op("mul", {g->op("scale", {size}, {{"factor", 0.5}})[0], entropy[1]})[0];
  ValueId loss = g->op("add", {entropy[0], g->op("scale", {square}, {{"factor", 0.3 / kClasses}})[0]})[0];
  loss = g->op("add", {loss, decay})[0];
  g->name_value(loss, "total");
  g->freeze(loss, by_weight ? entropy[1] : graph::kNone, {});
  return g;
}

struct SummedRun {
  std::shared_ptr<engine::Session> session;
  std::unique_ptr<Stepper> stepper;

  SummedRun(int64_t rows, uint32_t micro_steps) {
    device::DeviceOptions one;
    one.threads = 1;
    auto device = device::open("cpu", one);
    session = std::make_shared<engine::Session>(engine::compile(model(rows), *device, {}), device);
    initialise(*session, 7);
    Options options;
    options.micro_steps = micro_steps;
    options.schedule.rate = 0.01;
    stepper = std::make_unique<Stepper>(session, options);
  }
  template <class T>
  void write(const char* name, const std::vector<T>& from) {
    session->write(session->plan().joint->find(name), from.data(),
                   static_cast<int64_t>(from.size() * sizeof(T)));
  }
  template <class T>
  std::vector<T> read(const char* name, size_t count) const {
    std::vector<T> to(count);
    session->read(session->plan().joint->find(name), to.data(), static_cast<int64_t>(count * sizeof(T)));
    return to;
  }
  // Rows [first, first + count) of twelve; five of them are ignored, among them all of 4..7.
  Report feed(int64_t first, int64_t count) {
    std::vector<float> x, mask;
    std::vector<int32_t> targets;
    for (int64_t r = first; r < first + count; ++r) {
      const bool ignored = (r >= 4 && r < 8) || r == 9;
      for (int64_t i = 0; i < kIn; ++i) x.push_back(std::sin(0.7f * static_cast<float>(r * kIn + i)));
      mask.push_back(ignored ? 0.0f : 1.0f);
      targets.push_back(ignored ? -100 : static_cast<int32_t>(r % kClasses));
    }
    write("x", x);
    write("mask", mask);
    write("targets", targets);
    return stepper->micro();
  }
};

TEST(SumsOfLosses, RaggedMicroBatchesEqualOneLargeBatch) {
  SummedRun large(12, 1), small(4, 3);
  for (int step = 0; step < 5; ++step) {
    const Report whole = large.feed(0, 12);
    Report report;
    for (int64_t m = 0; m < 3; ++m) report = small.feed(4 * m, 4);
    EXPECT_EQ(whole.step_weight, 7.0);
    EXPECT_EQ(report.step_weight, 7.0);
    EXPECT_NEAR(report.step_loss, whole.step_loss, 1e-6);
    EXPECT_NEAR(report.gradient_norm, whole.gradient_norm, 1e-5);
  }
  const auto a = large.read<float>("w", kClasses * kIn), b = small.read<float>("w", kClasses * kIn);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-6f) << i;
}

TEST(SumsOfLosses, TheLossIsReadByItsName) {
  SummedRun run(12, 1);
  const Report report = run.feed(0, 12);
  EXPECT_DOUBLE_EQ(run.read<double>("total", 1)[0], report.step_loss * report.step_weight);
}

TEST(SumsOfLosses, WithoutADenominatorTheyAreRefused) {
  const auto device = device::open("cpu", {});
  try {
    engine::compile(model(4, false), *device, {});
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUnsupported);
    EXPECT_NE(std::string(e.what()).find("has no denominator: give freeze the weight"), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace cairn::step::sums
