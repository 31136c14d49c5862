// Initial weights are a function of seed, parameter and element, whoever draws them.
#include "runtime/step/stepper.h"

namespace cairn::step {
namespace {

// A parameter that many threads share, and one that none does.
std::string digest_of(int threads) {
  auto g = std::make_shared<graph::Graph>();
  const auto f32 = [](std::initializer_list<int64_t> d) { return TensorDesc{DType::kF32, Shape(d)}; };
  graph::ParameterOptions normal;
  normal.init = graph::Init::kNormal;
  const graph::ValueId x = g->input("x", f32({2, 1201})), t = g->input("t", f32({2, 3}));
  const graph::ValueId wide = g->parameter("wide", f32({701, 1201}), normal),
                       narrow = g->parameter("narrow", f32({3, 701}), normal);
  const graph::ValueId y = g->op("linear", {g->op("linear", {x, wide})[0], narrow})[0];
  g->freeze(g->op("mse", {y, t})[0], graph::kNone, {});
  device::DeviceOptions options;
  options.threads = threads;
  const auto device = device::open("cpu", options);
  engine::Session session(engine::compile(g, *device, {}), device);
  initialise(session, 3);
  return parameter_digest(session);
}

TEST(Parameters, TheirFirstBitsAreTheSameByAnyNumberOfThreads) {
  const std::string alone = digest_of(1);
  EXPECT_EQ(digest_of(2), alone);
  EXPECT_EQ(digest_of(5), alone);
}

}  // namespace
}  // namespace cairn::step
