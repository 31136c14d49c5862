// What the tests of the C ABI share: an error object that says what was expected, and small models.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "cairn/cairn.hpp"

namespace cairn_test {

// An error object with checks. Use as `error` argument, then ask.
struct Failure {
  cairn_error_t* error = cairn_error_create();
  ~Failure() { cairn_error_release(error); }
  operator cairn_error_t*() const { return error; }
  std::string message() const { return cairn_error_message(error); }
};

// The call failed with this status, the error object says the same, and the message holds all of `words`.
inline void expect_failure(cairn_status_t got, cairn_status_t wanted, const Failure& failure,
                           const std::vector<std::string>& words = {}) {
  EXPECT_EQ(got, wanted) << cairn_status_name(got) << ", not " << cairn_status_name(wanted) << ": "
                         << failure.message();
  if (got != CAIRN_STATUS_OK) {
    EXPECT_EQ(cairn_error_status(failure), got);
    EXPECT_FALSE(failure.message().empty());
  }
  for (const std::string& word : words)
    EXPECT_NE(failure.message().find(word), std::string::npos)
        << "'" << word << "' is not in: " << failure.message();
}

// A fresh folder, gone afterwards.
struct Folder {
  Folder() {
    static int number = 0;
    path = std::filesystem::temp_directory_path() /
           ("cairn-capi-" + std::to_string(::getpid()) + "-" + std::to_string(++number));
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
  std::filesystem::path path;
};

struct Devices {
  explicit Devices(const cairn_instance_options_t& options = CAIRN_INSTANCE_OPTIONS_INIT)
      : instance(cairn::Instance::create(options)) {
    cairn_device_options_t one = CAIRN_DEVICE_OPTIONS_INIT;
    one.threads = 1;
    device = cairn::Device::open(instance, "cpu", one);
  }
  cairn::Instance instance;
  cairn::Device device;
};

inline constexpr int64_t kBatch = 64, kWidth = 32;
inline constexpr int kLayers = 4;

// x[64, 32] through four gelu layers, one region each, squared error against target[64, 32].
inline cairn::Graph perceptron(const cairn::Instance& instance,
                               uint32_t policy = CAIRN_REGION_PLANNER_DECIDES, bool trains = true) {
  auto graph = cairn::Graph::create(instance);
  cairn::Value x = graph.input("x", {kBatch, kWidth});
  for (int i = 0; i < kLayers; ++i) {
    const std::string name = "layer" + std::to_string(i);
    const cairn::Value w = graph.parameter(name + ".weight", {kWidth, kWidth}, cairn::init_normal(0.2));
    graph.region(name, policy, [&] { x = graph.op("linear", {x, w}, {{"activation", "gelu_tanh"}}); });
  }
  graph.name(x, "y");
  if (!trains) {
    graph.freeze(0, {x});
    return graph;
  }
  const cairn::Value target = graph.input("target", {kBatch, kWidth});
  graph.freeze(graph.op("mse", {x, target}), {x});
  return graph;
}

inline constexpr int64_t kRows = 2, kLength = 6, kVocabulary = 11;

// ids[2, 6] -> embedding -> tied linear + cross-entropy against targets[2, 6].
inline cairn::Graph language(const cairn::Instance& instance) {
  auto graph = cairn::Graph::create(instance);
  const cairn::Value ids = graph.input("ids", {kRows, kLength}, CAIRN_I32);
  const cairn::Value targets = graph.input("targets", {kRows, kLength}, CAIRN_I32);
  const cairn::Value table = graph.parameter("table", {kVocabulary, 8}, cairn::init_normal(0.5));
  const cairn::Value x = graph.op("embedding", {table, ids});
  graph.freeze(graph.op("linear_cross_entropy", {x, table, targets}));
  return graph;
}

// A session with a stepper, ready to train.
struct Trainer {
  Trainer(const Devices& devices, const cairn::Graph& graph,
          const cairn_plan_options_t& options = CAIRN_PLAN_OPTIONS_INIT, uint32_t micro_steps = 1)
      : plan(cairn::Plan::create(graph, devices.device, options)),
        session(cairn::Session::create(plan, devices.device)) {
    session.initialise(1);
    cairn_stepper_options_t o = CAIRN_STEPPER_OPTIONS_INIT;
    o.rate = 1e-2;
    o.micro_steps = micro_steps;
    stepper = cairn::Stepper::create(session, o);
  }
  void write(float number) {
    session.write("x", std::vector<float>(kBatch * kWidth, number));
    session.write("target", std::vector<float>(kBatch * kWidth, 0.25f));
  }
  cairn::Plan plan;
  cairn::Session session;
  cairn::Stepper stepper;
};

inline std::vector<int32_t> numbers(int32_t number) { return std::vector<int32_t>(kRows * kLength, number); }

}  // namespace cairn_test
