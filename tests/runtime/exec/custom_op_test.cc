// Ops of the host's in sessions: their failures, and cancelling while one runs.
#include "tests/runtime/exec/custom_op.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace cairn::engine {
namespace {

TEST(SessionCustomOp, SumsGradientsOverMicroBatches) {
  Doubler doubler;
  const auto device = reference();
  Session session(compile(doubler.graph(), *device, {}), device);
  fill(session);
  const int32_t gradient = session.plan().joint->parameters.at(0).gradient;
  float once[8], thrice[8];
  session.run({0, 0, 0});
  session.read(gradient, once, sizeof once);
  session.run({0, 0, 1});
  session.run({0, 0, 2});
  session.read(gradient, thrice, sizeof thrice);
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(thrice[i], 3 * once[i], 1e-5f * std::fabs(once[i]) + 1e-7f);
}

TEST(SessionCustomOp, CustomOpsRunForwardAndBackward) {
  Doubler doubler;
  const auto device = reference();
  Session session(compile(doubler.graph(), *device, {}), device);
  float x[32], t[32] = {}, w[8], y[32], gradient[8];
  for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(i) / 32;
  for (int i = 0; i < 8; ++i) w[i] = 1 + static_cast<float>(i) / 8;
  const graph::JointGraph& joint = *session.plan().joint;
  session.write(joint.find("x"), x, sizeof x);
  session.write(joint.find("t"), t, sizeof t);
  session.write(joint.find("w"), w, sizeof w);
  session.run({0, 0, 0});
  int32_t output = -1;
  for (size_t v = 0; v < joint.values.size(); ++v)
    if (joint.values[v].role == graph::Role::kOutput && joint.values[v].desc.shape.rank == 2)
      output = static_cast<int32_t>(v);
  ASSERT_GE(output, 0);
  session.read(output, y, sizeof y);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(y[i], 2 * x[i] * w[i % 8]);
  // d sum((2xw)^2) / dw = sum 8 x^2 w, by whatever factor mse takes: proportional.
  session.read(joint.parameters.at(0).gradient, gradient, sizeof gradient);
  const auto expected = [&](int i) {
    float sum = 0;
    for (int r = 0; r < 4; ++r) sum += x[r * 8 + i] * x[r * 8 + i] * w[i];
    return sum;
  };
  for (int i = 1; i < 8; ++i) EXPECT_NEAR(gradient[i] / gradient[0], expected(i) / expected(0), 1e-3) << i;
  expect_exact_memory(session);
}

TEST(SessionCustomOp, AFailingCallbackPoisonsAndNamesTheOp) {
  Doubler doubler;
  const auto device = reference();
  Session session(compile(doubler.graph(), *device, {}), device);
  fill(session);
  session.run({0, 0, 0});
  doubler.fails = true;
  std::string message, again;
  EXPECT_EQ(code_of([&] { session.run({0, 0, 0}); }, &message), Code::kInvalidArgument);
  EXPECT_NE(message.find("doubler"), std::string::npos) << message;
  EXPECT_TRUE(session.poisoned());
  doubler.fails = false;
  EXPECT_EQ(code_of([&] { session.run({0, 0, 0}); }, &again), Code::kInvalidArgument);
  EXPECT_EQ(again, message) << "the original error is kept";
  float w[8];
  EXPECT_EQ(code_of([&] { session.read(session.plan().joint->find("w"), w, sizeof w); }),
            Code::kInvalidArgument);
}

TEST(SessionCustomOp, OneSessionsFailureIsNoneOfAnothersOnTheSameDevice) {
  Doubler failing, sound;
  const auto device = reference();
  Session first(compile(failing.graph(), *device, {}), device),
      second(compile(sound.graph(), *device, {}), device);
  fill(first);
  fill(second);
  second.run({0, 0, 0});
  const Result expected = result(second);
  failing.fails = true;
  EXPECT_EQ(code_of([&] { first.run({0, 0, 0}); }), Code::kInvalidArgument);
  EXPECT_TRUE(first.poisoned());
  EXPECT_FALSE(second.poisoned());
  second.run({0, 0, 0});
  EXPECT_EQ(result(second), expected);
  Session third(compile(sound.graph(), *device, {}), device);
  fill(third);
  third.run({0, 0, 0});
  EXPECT_EQ(result(third), expected);
}

TEST(SessionCustomOp, FailuresOfSessionsThatRunAtOnceStayApart) {
  constexpr int kSessions = 4, kRuns = 30;
  std::vector<Doubler> doublers(kSessions);
  const auto device = reference(false);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int s = 0; s < kSessions; ++s)
    threads.emplace_back([&, s] {
      Session session(compile(doublers[s].graph(3), *device, {}), device);
      fill(session);
      for (int i = 0; i < kRuns; ++i) {
        doublers[s].fails = s % 2 == 0 && i >= kRuns / 2;
        const Code code = code_of([&] { session.run({0, 0, 0}); });
        wrong += (code != Code::kOk) != doublers[s].fails;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(SessionCustomOp, CancelStopsWithinAnOpAndTheNextRunIsWhole) {
  Doubler doubler;
  const auto device = reference();
  PlanOptions options;
  options.policy = Policy::kOffload;
  Session session(compile(doubler.graph(6), *device, options), device);
  fill(session);
  session.run({0, 0, 0});
  const Result expected = result(session);
  doubler.forwards = 0;
  doubler.in_forward = [&] {
    if (doubler.forwards == 3) session.cancel();
  };
  EXPECT_EQ(code_of([&] { session.run({0, 0, 0}); }), Code::kCancelled);
  EXPECT_EQ(doubler.forwards, 3) << "work queued behind the cancel still ran";
  EXPECT_FALSE(session.poisoned());
  doubler.in_forward = [] {};
  session.run({0, 0, 0});
  EXPECT_EQ(result(session), expected);
  expect_exact_memory(session);
}

TEST(SessionCustomOp, CancelFromAnotherThread) {
  Doubler doubler;
  const auto device = reference();
  Session session(compile(doubler.graph(50), *device, {}), device);
  fill(session);
  doubler.in_forward = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  std::thread other([&] {
    while (doubler.forwards == 0) std::this_thread::yield();
    session.cancel();
  });
  EXPECT_EQ(code_of([&] { session.run({0, 0, 0}); }), Code::kCancelled);
  other.join();
  EXPECT_LT(doubler.forwards, 50);
  doubler.in_forward = [] {};
  EXPECT_EQ(code_of([&] { session.run({0, 0, 0}); }), Code::kOk);
}

}  // namespace
}  // namespace cairn::engine
