// The disk fails in the middle of training: nothing that was learnt is lost, and nothing is wrong.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <vector>

#include "runtime/step/stepper.h"
#include "tests/support/seeds.h"

namespace cairn::step {
namespace {

using graph::ValueId;

constexpr int64_t kRows = 64, kWidth = 32;

std::shared_ptr<graph::Graph> deep() {
  auto g = std::make_shared<graph::Graph>();
  graph::ParameterOptions normal;
  normal.init = graph::Init::kNormal;
  normal.init_scale = 0.2;
  const TensorDesc rows{DType::kF32, {kRows, kWidth}}, square{DType::kF32, {kWidth, kWidth}};
  ValueId x = g->input("x", rows);
  const ValueId t = g->input("t", rows);
  for (int i = 0; i < 4; ++i)
    x = g->op("gelu", {g->op("linear", {x, g->parameter(cat("w", i), square, normal)})[0]})[0];
  const auto loss = g->op("mse", {x, t});
  g->freeze(loss[0], graph::kNone, {});
  return g;
}

// Trains for `steps` effective batches of three micro-batches, the disk failing at transfer `at`; an
// effective batch that is refused is repeated. Returns the digest.
struct Outcome {
  std::string digest;
  int fell_back = 0, refused = 0, transfers = 0;
};

Outcome train(int at, int steps) {
  Outcome outcome;
  std::atomic<int> seen{0};
  device::DeviceOptions device_options;
  device_options.threads = 1;
  device_options.disk_fault = [&](bool, int64_t, int64_t bytes) -> int64_t {
    return seen++ == at ? -ENOSPC : bytes;
  };
  const auto device = device::open("cpu", device_options);
  engine::PlanOptions plan_options;
  plan_options.policy = Policy::kOffload;
  plan_options.tiers = {Tier::kDisk};
  auto session = std::make_shared<engine::Session>(engine::compile(deep(), *device, plan_options), device);
  initialise(*session, 5);
  Options options;
  options.micro_steps = 3;
  Stepper stepper(session, options);
  const graph::JointGraph& joint = *session->plan().joint;
  std::vector<float> numbers(kRows * kWidth);
  const auto feed = [&](const char* name, uint64_t batch) {
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<float>((i * 7 + batch * 31 + 3) % 101) / 101.0f - 0.5f;
    session->write(joint.find(name), numbers.data(), static_cast<int64_t>(numbers.size() * 4));
  };
  while (stepper.state().step < static_cast<uint64_t>(steps)) {
    const uint64_t batch = stepper.state().step * 3 + stepper.state().micro;
    feed("x", batch);
    feed("t", batch + 1000);
    const uint64_t step = stepper.state().step;
    const std::string before = parameter_digest(*session);
    try {
      outcome.fell_back += stepper.micro().fell_back;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kIo) << error.what();
      EXPECT_EQ(parameter_digest(*session), before) << "parameters are as before";
      EXPECT_EQ(stepper.state().micro, 0u) << "the effective batch starts again";
      EXPECT_EQ(stepper.state().step, step);
      ++outcome.refused;
    }
  }
  outcome.digest = parameter_digest(*session);
  outcome.transfers = seen;
  return outcome;
}

TEST(StepperFallback, AFailingDiskNeverChangesANumber) {
  const Outcome sound = train(-1, 3);
  ASSERT_EQ(sound.fell_back + sound.refused, 0);
  ASSERT_GE(sound.transfers, 3 * 3 * 4);
  const int stride = 5 * support::stride(5);
  int fell_back = 0;
  for (int at = 0; at < sound.transfers; at += stride) {
    const Outcome outcome = train(at, 3);
    EXPECT_EQ(outcome.digest, sound.digest) << "transfer " << at;
    EXPECT_EQ(outcome.fell_back + outcome.refused, 1) << "transfer " << at;
    fell_back += outcome.fell_back;
  }
  EXPECT_GE(fell_back, sound.transfers / stride / 3) << "the first of three micro-batches always ends right";
}

}  // namespace
}  // namespace cairn::step
