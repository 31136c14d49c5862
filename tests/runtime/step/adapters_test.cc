// Adapters at work: how they start, what they compute, what they leave as it is.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/exec/adapter_start.h"
#include "runtime/step/stepper.h"
#include "tests/runtime/step/trained.h"

namespace cairn::step {
namespace {

constexpr int64_t kRows = 6, kIn = 10, kOut = 8;
using Numbers = std::vector<float>;

TensorDesc f32(std::initializer_list<int64_t> dims) { return {DType::kF32, Shape(dims)}; }

struct Rig {
  std::shared_ptr<graph::Graph> g = std::make_shared<graph::Graph>();
  std::shared_ptr<device::Device> device;
  std::shared_ptr<engine::Session> session;

  Rig(std::optional<graph::AdapterRule> rule, const std::vector<graph::FormatRule>& formats = {}) {
    if (rule) g->adapt(*rule);
    const graph::ValueId x = g->input("x", f32({kRows, kIn})), t = g->input("t", f32({kRows, kOut}));
    const graph::ParameterOptions normal{.init = graph::Init::kNormal, .init_scale = 0.5};
    const graph::ValueId y = g->op("linear", {x, g->parameter("m.weight", f32({kOut, kIn}), normal),
                                              g->parameter("m.bias", f32({kOut}), normal)})[0];
    g->name_value(y, "y");
    g->freeze(g->op("mse", {y, t})[0], graph::kNone, {y});
    device::DeviceOptions options;
    options.threads = 1;
    device = device::open("cpu", options);
    engine::PlanOptions plan;
    plan.formats = formats;
    session = std::make_shared<engine::Session>(engine::compile(g, *device, plan), device);
    initialise(*session, 3);
    write("x", wave(kRows * kIn, 1));
    write("t", wave(kRows * kOut, 2));
  }
  static Numbers wave(int64_t count, double phase) {
    Numbers v(static_cast<size_t>(count));
    for (size_t i = 0; i < v.size(); ++i)
      v[i] = static_cast<float>(std::sin(phase + 0.7 * static_cast<double>(i)));
    return v;
  }
  int32_t id(const std::string& name) const { return session->plan().joint->find(name); }
  Numbers read(const std::string& name) const {
    Numbers v(static_cast<size_t>(session->declared(id(name)).shape.elements()));
    session->read_declared(id(name), v.data());
    return v;
  }
  void write(const std::string& name, const Numbers& v) {
    session->write_declared(id(name), v.data());
    session->parameters_changed();
  }
  Numbers run() {
    session->run({});
    return read("y");
  }
  double loss() {
    const Numbers y = run(), t = read("t");
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += (double{y[i]} - t[i]) * (double{y[i]} - t[i]);
    return sum;
  }
};

// W + s B A, by rows.
std::vector<double> merged(const Rig& rig, int64_t rank, double s) {
  const Numbers w = rig.read("m.weight"), a = rig.read("m.lora_A.weight"), b = rig.read("m.lora_B.weight");
  std::vector<double> sum(w.begin(), w.end());
  for (int64_t o = 0; o < kOut; ++o)
    for (int64_t i = 0; i < kIn; ++i)
      for (int64_t k = 0; k < rank; ++k) sum[o * kIn + i] += s * b[o * rank + k] * a[k * kIn + i];
  return sum;
}
double norm(const std::vector<double>& w, int64_t row) {
  double sum = 0;
  for (int64_t i = 0; i < kIn; ++i) sum += w[row * kIn + i] * w[row * kIn + i];
  return std::sqrt(sum);
}

TEST(Adapters, BeginAsTheModelThatTheyAdapt) {
  Rig plain(std::nullopt), lora({{.rank = 3}}), dora({{.kind = graph::AdapterKind::kDora, .rank = 3}});
  for (Rig* rig : {&lora, &dora}) {
    for (const char* name : {"m.weight", "m.bias"}) rig->write(name, plain.read(name));
    engine::AdapterStarts(*rig->session).all_stored();
    rig->session->parameters_changed();
    const Numbers a = rig->read("m.lora_A.weight");
    for (const float v : a) EXPECT_LE(std::abs(v), 1 / std::sqrt(static_cast<double>(kIn)));
    EXPECT_NE(a[0], a[1]);
    EXPECT_EQ(rig->read("m.lora_B.weight"), Numbers(kOut * 3));
  }
  EXPECT_EQ(lora.run(), plain.run());
  const Numbers ours = dora.run(), wanted = plain.run();  // the bias is added later
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], wanted[i], 1e-6);
}

TEST(Adapters, ComputeWithTheMergedWeight) {
  for (const auto kind :
       {graph::AdapterKind::kLora, graph::AdapterKind::kRslora, graph::AdapterKind::kDora}) {
    Rig rig({{.kind = kind, .rank = 4, .alpha = 3}});
    const double s = kind == graph::AdapterKind::kRslora ? 1.5 : 0.75;
    rig.write("m.lora_A.weight", Rig::wave(4 * kIn, 3));
    rig.write("m.lora_B.weight", Rig::wave(4 * kOut, 4));
    const std::vector<double> w = merged(rig, 4, s);
    const Numbers x = rig.read("x"), bias = rig.read("m.bias"), y = rig.run();
    const Numbers magnitude =
        kind == graph::AdapterKind::kDora ? rig.read("m.lora_magnitude_vector") : Numbers(kOut, 0);
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t o = 0; o < kOut; ++o) {
        double sum = 0;
        for (int64_t i = 0; i < kIn; ++i) sum += w[o * kIn + i] * x[r * kIn + i];
        if (kind == graph::AdapterKind::kDora) sum *= magnitude[o] / norm(w, o);
        EXPECT_NEAR(y[r * kOut + o], sum + bias[o], 1e-5);
      }
  }
}

// By differences of the loss. The norm of DoRA is a constant: its matrices have another slope than the loss.
TEST(Adapters, GradientsAreSlopes) {
  for (const auto& [kind, names] : std::vector<std::pair<graph::AdapterKind, std::vector<std::string>>>{
           {graph::AdapterKind::kLora, {"m.lora_A.weight", "m.lora_B.weight"}},
           {graph::AdapterKind::kDora, {"m.lora_magnitude_vector"}}}) {
    Rig rig({{.kind = kind, .rank = 2, .alpha = 3}});
    rig.write("m.lora_B.weight", Rig::wave(2 * kOut, 4));
    for (const std::string& name : names) {
      rig.run();
      const Numbers gradient = rig.read(name + "/gradient"), begun = rig.read(name);
      for (const size_t i : {size_t{0}, begun.size() / 2, begun.size() - 1}) {
        constexpr float kStep = 1e-2F;
        Numbers moved = begun;
        moved[i] += kStep;
        rig.write(name, moved);
        const double above = rig.loss();
        moved[i] = begun[i] - kStep;
        rig.write(name, moved);
        EXPECT_NEAR(gradient[i], (above - rig.loss()) / (2 * kStep),
                    2e-3 * std::max(1.0, std::abs(double{gradient[i]})))
            << name << " " << i;
      }
      rig.write(name, begun);
    }
  }
}

TEST(Adapters, OfPissaTakeTheLargestSingularValuesOffTheWeight) {
  const Numbers before = Rig(std::nullopt).read("m.weight");
  Rig rig({{.kind = graph::AdapterKind::kPissa, .rank = 3, .alpha = 6}});
  rig.write("m.weight", before);
  engine::AdapterStarts(*rig.session).all_stored();
  const std::vector<double> w = merged(rig, 3, 2);
  const Numbers rest = rig.read("m.weight");
  double left = 0, all = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(w[i], before[i], 1e-7);
    left += rest[i] * rest[i];
    all += before[i] * before[i];
  }
  EXPECT_LT(left, 0.6 * all);
  // A and B have the same share of the values.
  const Numbers a = rig.read("m.lora_A.weight"), b = rig.read("m.lora_B.weight");
  double rows = 0, columns = 0;
  for (int64_t i = 0; i < kIn; ++i) rows += double{a[i]} * a[i];
  for (int64_t o = 0; o < kOut; ++o) columns += double{b[o * 3]} * b[o * 3];
  EXPECT_NEAR(rows, columns, 1e-6 * rows);
}

TEST(Adapters, StepsMoveNothingElse) {
  for (const auto kind : {graph::AdapterKind::kLora, graph::AdapterKind::kDora, graph::AdapterKind::kPissa}) {
    Rig rig({{.kind = kind, .rank = 2, .dropout = 0.1}});
    const Numbers weight = rig.read("m.weight"), bias = rig.read("m.bias"), b = rig.read("m.lora_B.weight");
    Options options;
    options.schedule.rate = 1e-2;
    Stepper stepper(rig.session, options);
    for (int step = 0; step < 3; ++step) {
      rig.session->write_declared(rig.id("x"), Rig::wave(kRows * kIn, 1).data());
      stepper.micro();
    }
    EXPECT_EQ(rig.read("m.weight"), weight);
    EXPECT_EQ(rig.read("m.bias"), bias);
    EXPECT_NE(rig.read("m.lora_B.weight"), b);
  }
}

}  // namespace
}  // namespace cairn::step
