// A small GPT-2, 20 steps from PyTorch's initial weights on PyTorch's batches: losses must agree to 1e-5
// (tests/golden/make_gpt2_losses.py wrote the fixtures).
#include <simdjson.h>

#include <fstream>

#include "runtime/io/safetensors/names.h"
#include "runtime/step/stepper.h"
#include "tests/support/gpt2.h"

namespace cairn {
namespace {

const std::string kData = std::string(CAIRN_SOURCE_DIR) + "/tests/golden/data/";

struct Golden {
  std::vector<double> losses, norms;
  std::vector<int32_t> tokens;
};

Golden read_golden() {
  Golden golden;
  simdjson::dom::parser parser;
  simdjson::dom::element json = parser.load(kData + "gpt2_small_losses.json");
  for (double loss : json["loss_float64"].get_array()) golden.losses.push_back(loss);
  for (double norm : json["gradient_norm_float64"].get_array()) golden.norms.push_back(norm);
  std::ifstream file(kData + "gpt2_small_batches.bin", std::ios::binary);
  int32_t token;
  while (file.read(reinterpret_cast<char*>(&token), sizeof token)) golden.tokens.push_back(token);
  return golden;
}

struct Curve {
  std::vector<double> losses, norms;
  std::string digest;
};

Curve train(const Golden& golden, const std::string& device_name, graph::AmpMode amp, Policy policy,
            uint32_t micro_steps = 1) {
  test::Gpt2 shape;
  const int batch = shape.batch;
  shape.batch = batch / static_cast<int>(micro_steps);
  device::DeviceOptions device_options;
  device_options.threads = 2;
  auto device = device::open(device_name, device_options);
  engine::PlanOptions plan_options;
  plan_options.amp = amp;
  plan_options.policy = policy;
  auto plan = engine::compile(test::gpt2_graph(shape), *device, plan_options);
  auto session = std::make_shared<engine::Session>(plan, device);
  io::import_safetensors(*session, test::gpt2_names(shape), kData + "gpt2_small.safetensors");
  step::Options options;
  options.schedule.rate = 3e-3;
  options.clip_norm = 1.0;
  options.micro_steps = micro_steps;
  step::Stepper stepper(session, options);
  const int32_t tokens = plan->joint->find("tokens"), targets = plan->joint->find("targets");
  const int window = shape.length + 1;
  Curve run;
  const int32_t* next = golden.tokens.data();
  for (size_t s = 0; s < golden.losses.size(); ++s) {
    step::Report report;
    for (uint32_t m = 0; m < micro_steps; ++m) {
      std::vector<int32_t> x, y;
      for (int row = 0; row < shape.batch; ++row, next += window) {
        x.insert(x.end(), next, next + shape.length);
        y.insert(y.end(), next + 1, next + window);
      }
      session->write(tokens, x.data(), static_cast<int64_t>(x.size() * 4));
      session->write(targets, y.data(), static_cast<int64_t>(y.size() * 4));
      report = stepper.micro();
    }
    EXPECT_EQ(report.outcome, step::Outcome::kApplied);
    run.losses.push_back(report.step_loss);
    run.norms.push_back(report.gradient_norm);
  }
  run.digest = step::parameter_digest(*session);
  return run;
}

void expect_close(const std::vector<double>& got, const std::vector<double>& want, double tolerance,
                  const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << what << " at step " << i;
}

TEST(Gpt2Losses, FollowPyTorchInFloat32) {
  const Golden golden = read_golden();
  ASSERT_EQ(golden.losses.size(), 20u);
  for (const char* device : {"reference", "cpu"}) {
    SCOPED_TRACE(device);
    const Curve run = train(golden, device, graph::AmpMode::kOff, Policy::kPlannerDecides);
    expect_close(run.losses, golden.losses, 1e-5, "loss");
    expect_close(run.norms, golden.norms, 1e-4, "gradient norm");
  }
}

TEST(Gpt2Losses, AccumulationFollowsTheLargeBatch) {
  const Golden golden = read_golden();
  const Curve run = train(golden, "cpu", graph::AmpMode::kOff, Policy::kPlannerDecides, 4);
  expect_close(run.losses, golden.losses, 1e-5, "loss");
}

TEST(Gpt2Losses, MixedPrecisionStaysNear) {
  const Golden golden = read_golden();
  for (const graph::AmpMode amp : {graph::AmpMode::kBf16, graph::AmpMode::kFp16}) {
    const Curve run = train(golden, "cpu", amp, Policy::kPlannerDecides);
    expect_close(run.losses, golden.losses, amp == graph::AmpMode::kBf16 ? 2e-2 : 3e-3, "loss");
  }
}

TEST(Gpt2Losses, PlansNeverChangeNumbers) {
  const Golden golden = read_golden();
  for (graph::AmpMode amp : {graph::AmpMode::kOff, graph::AmpMode::kBf16, graph::AmpMode::kFp16}) {
    const Curve keep = train(golden, "cpu", amp, Policy::kKeep);
    EXPECT_EQ(train(golden, "cpu", amp, Policy::kRecompute).digest, keep.digest);
    EXPECT_EQ(train(golden, "cpu", amp, Policy::kOffload).digest, keep.digest);
  }
}

}  // namespace
}  // namespace cairn
