// A small training run on the CPU device, for checkpoints: deterministic batches, losses and digests.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/random.h"
#include "runtime/device/device.h"
#include "runtime/step/stepper.h"
#include "tests/runtime/io/samples.h"

namespace cairn::test {

inline step::Options rig_options() {
  step::Options o;
  o.micro_steps = 3;
  o.seed = 5;
  o.schedule = {{step::Stage("cosine")}, 1e-2, 2, 20, 1e-4};
  return o;
}

struct Rig {
  std::shared_ptr<engine::Session> session;
  std::unique_ptr<step::Stepper> stepper;

  static engine::PlanOptions two_tiers() {
    engine::PlanOptions options;
    options.tiers = {Tier::kHost, Tier::kDisk};
    return options;
  }
  explicit Rig(std::shared_ptr<graph::Graph> graph = sample_graph(), uint64_t seed = 7,
               const engine::PlanOptions& plan_options = two_tiers()) {
    device::DeviceOptions device_options;
    device_options.threads = 1;
    auto device = device::open("cpu", device_options);
    session = std::make_shared<engine::Session>(engine::compile(graph, *device, plan_options), device);
    step::initialise(*session, seed);
    stepper = std::make_unique<step::Stepper>(session, rig_options());
  }
  void feed(const char* name, uint64_t index, uint32_t salt) {
    const int32_t id = session->plan().joint->find(name);
    std::vector<int32_t> tokens(8);
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = static_cast<int32_t>(random_block({1, index, 0, salt}, i)[0] % 11);
    session->write(id, tokens.data(), static_cast<int64_t>(tokens.size() * 4));
  }
  // Micro-batches first..last-1 of the run; their losses.
  std::vector<double> train(uint64_t first, uint64_t last) {
    std::vector<double> losses;
    for (uint64_t index = first; index < last; ++index) {
      feed("ids", index, 1);
      feed("targets", index, 2);
      losses.push_back(stepper->micro().loss);
    }
    return losses;
  }
  std::string digest() const { return step::parameter_digest(*session); }
};

}  // namespace cairn::test
