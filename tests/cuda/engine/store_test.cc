// Several programs on one store of an (emulated) GPU: recorded and replayed in turns.
#include "runtime/step/stepper.h"
#include "tests/runtime/compile/support.h"
#include "tests/support/gpt2.h"

namespace cairn::engine {
namespace {

constexpr int kLengths[] = {16, 8};

test::Gpt2 shape(int length) {
  test::Gpt2 o;
  o.layers = 1;
  o.length = length;
  o.positions = kLengths[0];
  return o;
}

// The digest after three steps, each of a micro-batch of either length.
std::string digest(bool together, graph::AmpMode amp) {
  const auto device = device::open("cuda:0", {});
  PlanOptions options;
  options.amp = amp;
  std::vector<ProgramGraph> graphs;
  for (const int length : kLengths) graphs.push_back({cat(length), test::gpt2_graph(shape(length))});
  if (!together) graphs.pop_back();
  const auto sessions = Session::open(compile_set(graphs, *device, options), device);
  step::initialise(*sessions[0], 3);
  step::Stepper stepper(sessions[0], {.micro_steps = 2, .schedule = {.rate = 1e-2}});
  for (int step = 0; step < 3; ++step)
    for (size_t i = 0; i < 2; ++i) {
      Session& session = *sessions[together ? i : 0];
      const int window = together ? kLengths[i] : kLengths[0], length = kLengths[i];
      std::vector<int32_t> tokens(static_cast<size_t>(4 * window)), targets(tokens.size(), -100);
      for (int row = 0; row < 4; ++row)
        for (int t = 0; t < length; ++t) {
          tokens[static_cast<size_t>(row * window + t)] = (step * 17 + row * 5 + t) % 64;
          targets[static_cast<size_t>(row * window + t)] = (step * 17 + row * 5 + t + 1) % 64;
        }
      const graph::JointGraph& joint = *session.plan().joint;
      session.write(joint.find("tokens"), tokens.data(), static_cast<int64_t>(tokens.size() * 4));
      session.write(joint.find("targets"), targets.data(), static_cast<int64_t>(targets.size() * 4));
      const step::Report report = stepper.micro(session);
      EXPECT_EQ(report.weight, 4.0 * length);
    }
  EXPECT_EQ(stepper.state().updates, 3u);
  std::vector<float> w(64 * 32);
  sessions[0]->read(sessions[0]->plan().joint->find("wte.weight"), w.data(),
                    static_cast<int64_t>(w.size() * 4));
  double sum = 0;
  for (const float x : w) sum += x * x;
  EXPECT_GT(sum, 0);
  return cat(step::parameter_digest(*sessions[0]), ' ', together);
}

TEST(Store, ProgramsThatAreReplayedInTurns) {
  for (const auto amp : {graph::AmpMode::kOff, graph::AmpMode::kBf16}) {
    EXPECT_EQ(digest(true, amp), digest(true, amp));
    EXPECT_NE(digest(false, amp), "");
  }
}

}  // namespace
}  // namespace cairn::engine
