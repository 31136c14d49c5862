#include "tests/embedding/trainer.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "cairn/cairn.hpp"

namespace {

constexpr int64_t kBatch = 64, kWidth = 96;
constexpr int kLayers = 4;

cairn::Graph network(const cairn::Instance& instance) {
  auto graph = cairn::Graph::create(instance);
  cairn::Value x = graph.input("x", {kBatch, kWidth});
  for (int i = 0; i < kLayers; ++i) {
    const std::string name = "layer" + std::to_string(i);
    const cairn::Value w = graph.parameter(name + ".weight", {kWidth, kWidth}, cairn::init_normal(0.2));
    graph.region(name, CAIRN_REGION_OFFLOAD, [&] {
      x = graph.op("linear", {x, w}, {{"activation", "gelu_tanh"}});
    });
  }
  graph.freeze(graph.op("mse", {x, graph.input("target", {kBatch, kWidth})}));
  return graph;
}

cairn::Plan plan_of(const cairn::Graph& graph, const cairn::Device& device, bool disk) {
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.tier_count = 1;
  options.tiers[0] = disk ? CAIRN_TIER_DISK : CAIRN_TIER_HOST;
  return cairn::Plan::create(graph, device, options);
}

cairn::Device device_of(const cairn::Instance& instance, unsigned threads) {
  cairn_device_options_t options = CAIRN_DEVICE_OPTIONS_INIT;
  options.threads = threads;
  return cairn::Device::open(instance, "cpu", options);
}

void run(unsigned threads, bool disk, unsigned steps, void (*during)(), char* digest) {
  const auto instance = cairn::Instance::create();
  const auto device = device_of(instance, threads);
  auto session = cairn::Session::create(plan_of(network(instance), device, disk), device);
  session.initialise(1);
  cairn_stepper_options_t options = CAIRN_STEPPER_OPTIONS_INIT;
  options.rate = 1e-2;
  auto stepper = cairn::Stepper::create(session, options);
  for (unsigned step = 0; step < steps; ++step) {
    std::vector<float> x(kBatch * kWidth);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7 + step * 13) % 31) / 31 - 0.5f;
    session.write("x", x);
    session.write("target", std::vector<float>(x.size(), 0.25f));
    if (during != nullptr && step + 1 == steps) during();
    stepper.micro();
  }
  std::snprintf(digest, 33, "%s", session.digest().c_str());
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int embedded_run(unsigned threads, int disk, unsigned steps,
                                                                   void (*during)(), char digest[33],
                                                                   char message[1024]) {
  digest[0] = message[0] = '\0';
  try {
    run(threads, disk != 0, steps, during, digest);
    return CAIRN_STATUS_OK;
  } catch (const cairn::Error& error) {
    std::snprintf(message, 1024, "%s", error.what());
    return error.status();
  } catch (const std::bad_alloc&) {  // the host's own, of which this is a part
    std::snprintf(message, 1024, "the host itself has no memory");
    return CAIRN_STATUS_OUT_OF_MEMORY;
  }
}

extern "C" __attribute__((visibility("default"))) char* embedded_plan() {
  try {
    const auto instance = cairn::Instance::create();
    const auto plan = plan_of(network(instance), device_of(instance, 2), false);
    std::string json = plan.render(CAIRN_RENDER_PLAN_JSON) + plan.render(CAIRN_RENDER_PROBLEM_JSON);
    for (char& c : json) c = c == '\n' ? ' ' : c;
    return strdup(json.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return nullptr;
  }
}
