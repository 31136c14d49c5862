// A disk that is full or fails in the midst of updates on the host of what lives there: a clear error, and the checkpoint from
// before loads.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cmath>

#include "runtime/io/checkpoint.h"
#include "runtime/step/stepper.h"
#include "tests/runtime/compile/host_room.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {

constexpr int64_t kRows = 4, kWidth = 64;

std::shared_ptr<graph::Graph> model() {
  auto g = std::make_shared<graph::Graph>();
  auto x = g->input("x", {DType::kF32, {kRows, kWidth}});
  for (const char* name : {"a", "b", "c"})
    x = g->op("linear",
              {x, g->parameter(name, {DType::kF32, {kWidth, kWidth}},
                               {.frozen = false, .init = graph::Init::kNormal, .init_scale = 0.4})},
              {{"activation", std::string("gelu_tanh")}})[0];
  g->freeze(g->op("mse", {x, g->input("target", {DType::kF32, {kRows, kWidth}})})[0], graph::kNone, {});
  return g;
}

class Training {
 public:
  explicit Training(device::DeviceOptions options = {}) {
    options.threads = 1;
    const auto device = device::open("cpu", options);
    engine::PlanOptions plan;
    plan.tiers = {Tier::kHost, Tier::kDisk};
    plan.costs = engine::with_host_room(110 << 10);
    plan.force_costs = true;
    plan.forced.update_on_device = true;
    plan.forced.host_updates = engine::ForcedChoices::When::kAlways;
    plan.micro_steps = 1;
    session = std::make_shared<engine::Session>(engine::compile(model(), *device, plan), device);
    step::initialise(*session, 7);
    stepper = std::make_unique<step::Stepper>(session, step::Options());
  }
  void step() {
    const uint64_t index = stepper->state().step;
    for (const char* name : {"x", "target"}) {
      std::vector<float> numbers(kRows * kWidth);
      for (size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(1 + i + 37 * index)));
      session->write(session->plan().joint->find(name), numbers.data(), kRows * kWidth * 4);
    }
    stepper->micro();
  }
  std::string digest() const { return step::parameter_digest(*session); }

  std::shared_ptr<engine::Session> session;
  std::unique_ptr<step::Stepper> stepper;
};

TEST(FailingDisk, LeavesACheckpointThatLoads) {
  Training undisturbed;
  ASSERT_TRUE(undisturbed.session->plan().streams_on_host());
  for (int i = 0; i < 4; ++i) undisturbed.step();
  for (const int why : {ENOSPC, EIO})
    for (const int at : {0, 3, 7}) {
      std::atomic<int> left{1 << 30};
      device::DeviceOptions options;
      options.disk_fault = [&](bool, int64_t, int64_t bytes) -> int64_t {
        return left.fetch_sub(1) == 0 ? -why : bytes;
      };
      const test::Scratch scratch;
      Training failing(options);
      failing.step();
      failing.step();
      save(*failing.stepper, scratch / "saved", {});
      failing.step();  // its update waits for the next one
      left = at;
      try {
        failing.step();
        FAIL() << "transfer " << at << " failed and nobody noticed";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::kIo);
        EXPECT_NE(std::string(error.what()).find("is lost since the last checkpoint"), std::string::npos)
            << error.what();
      }
      EXPECT_THROW(save(*failing.stepper, scratch / "saved", {}), Error);
      Training resumed;
      Checkpoint(scratch / "saved").restore(*resumed.stepper);
      EXPECT_EQ(resumed.stepper->state().step, 2u);
      while (resumed.stepper->state().step < undisturbed.stepper->state().step) resumed.step();
      EXPECT_EQ(resumed.digest(), undisturbed.digest());
    }
}

}  // namespace
}  // namespace cairn::io
