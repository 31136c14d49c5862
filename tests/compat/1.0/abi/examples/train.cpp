// The same in C++: a perceptron learns the sum and the difference of two numbers inside a budget.
//   c++ -std=c++17 train.cpp $(pkg-config --cflags --libs cairn) -o train && ./train [FOLDER for the
//   checkpoint]
#include <cstdio>
#include <string>
#include <vector>

#include "cairn/cairn.hpp"

namespace {

constexpr int64_t kBatch = 64, kIn = 8, kWidth = 64, kOut = 2;

cairn::Graph make_graph(const cairn::Instance& instance) {
  auto graph = cairn::Graph::create(instance);
  cairn::Value x = graph.input("x", {kBatch, kIn});
  const cairn::Value target = graph.input("target", {kBatch, kOut});
  int64_t width = kIn;
  for (const std::string name : {"first", "second", "third"}) {
    const cairn::Value weight = graph.parameter(name + ".weight", {kWidth, width}, cairn::init_normal(0.3));
    const cairn::Value bias = graph.parameter(name + ".bias", {kWidth});
    graph.region(name, CAIRN_REGION_PLANNER_DECIDES, [&] {
      x = graph.op("linear", {x, weight, bias}, {{"activation", "gelu_tanh"}});
    });
    width = kWidth;
  }
  x = graph.op("linear", {x, graph.parameter("last.weight", {kOut, kWidth}, cairn::init_normal(0.1))});
  graph.name(x, "prediction");
  graph.freeze(graph.op("mse", {x, target}), {x});
  return graph;
}

void make_batch(unsigned index, std::vector<float>& x, std::vector<float>& target) {
  unsigned state = 12345u + 7919u * index;
  for (int64_t row = 0; row < kBatch; ++row) {
    for (int64_t i = 0; i < kIn; ++i) {
      state = state * 1664525u + 1013904223u;
      x[row * kIn + i] = static_cast<float>(state >> 8) / (1 << 24) - 0.5f;
    }
    target[row * kOut] = x[row * kIn] + x[row * kIn + 1];
    target[row * kOut + 1] = x[row * kIn] - x[row * kIn + 1];
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string directory = std::string(argc > 1 ? argv[1] : ".") + "/example-train-cpp";
  const auto instance = cairn::Instance::create();
  const auto device = cairn::Device::open(instance, "cpu");
  const auto graph = make_graph(instance);

  cairn_plan_options_t plan_options = CAIRN_PLAN_OPTIONS_INIT;
  try {
    plan_options.budget_bytes = 1;
    cairn::Plan::create(graph, device, plan_options);
    return 1;
  } catch (const cairn::Error& e) {
    std::printf("%s: %s\n", e.status_name(), e.what());
    plan_options.budget_bytes = e.fault().value().smallest_budget_bytes;
  }
  const auto plan = cairn::Plan::create(graph, device, plan_options);
  std::printf("planned: %llu bytes\n", static_cast<unsigned long long>(plan.summary().peak_bytes[0]));

  auto session = cairn::Session::create(plan, device);
  session.initialise(1);
  cairn_stepper_options_t options = CAIRN_STEPPER_OPTIONS_INIT;
  options.rate = 1e-2;
  auto stepper = cairn::Stepper::create(session, options);
  std::vector<float> x(kBatch * kIn), target(kBatch * kOut);
  double first = 0, last = 0;
  for (unsigned i = 0; i < 60; ++i) {
    make_batch(i, x, target);
    session.write("x", x);
    session.write("target", target);
    last = stepper.micro().loss;
    if (i == 0) first = last;
  }
  std::printf("loss %.4f -> %.4f\n", first, last);
  stepper.save(directory, {{"task", "sum and difference"}});
  const auto checkpoint = cairn::Checkpoint::open(instance, directory);
  session.initialise(2);
  session.load(checkpoint);
  session.read("prediction", target);
  return last < 0.1 * first && checkpoint.metadata("task") == "sum and difference" ? 0 : 1;
} catch (const cairn::Error& e) {
  std::fprintf(stderr, "%s: %s\n", e.status_name(), e.what());
  return 1;
}
