#include <atomic>
#include <chrono>
#include <thread>

#include "tests/runtime/exec/custom_op.h"

namespace cairn::engine {
namespace {

TEST(Session, TheFirstMicroBatchOverwritesLaterOnesAdd) {
  const auto device = reference();
  Session session(compile(mlp(), *device, {}), device);
  fill(session);
  const int32_t gradient = session.plan().joint->parameters.at(0).gradient;
  const auto numbers = [&] {
    const auto bytes = bytes_of(session, gradient);
    return std::vector<float>(reinterpret_cast<const float*>(bytes.data()),
                              reinterpret_cast<const float*>(bytes.data() + bytes.size()));
  };
  session.run({1, 1, 0});
  const auto first = numbers();
  session.run({1, 1, 0});
  EXPECT_EQ(numbers(), first) << "micro-batch 0 must overwrite";
  fill(session, 99);
  session.run({1, 1, 0});
  const auto other = numbers();
  fill(session, 1);
  session.run({1, 1, 0});
  fill(session, 99);
  // Dropout differs between micro-batches, so take the second one alone for comparison.
  session.run({1, 1, 1});
  const auto sum = numbers();
  EXPECT_NE(sum, other);
  EXPECT_NE(sum, first);
}

TEST(Session, ACancelBetweenRunsIsSeenByTheNext) {
  const auto device = reference();
  Session session(compile(mlp(), *device, {}), device);
  fill(session);
  session.cancel();
  EXPECT_EQ(code_of([&] { session.run({0, 0, 0}); }), Code::kCancelled);
  EXPECT_EQ(code_of([&] { session.run({0, 0, 0}); }), Code::kOk);
}

TEST(Session, ReadsAndWritesCheckSizes) {
  const auto device = reference();
  Session session(compile(mlp(), *device, {}), device);
  const int32_t head = session.plan().joint->find("head");
  std::vector<float> numbers(240, 1.5f), back(240);
  std::string message;
  EXPECT_EQ(code_of([&] { session.write(head, numbers.data(), 956); }, &message), Code::kInvalidArgument);
  EXPECT_NE(message.find("head"), std::string::npos);
  EXPECT_NE(message.find("960"), std::string::npos);
  EXPECT_NE(message.find("956"), std::string::npos);
  session.write(head, numbers.data(), 960);
  session.write_at(head, 8, back.data(), 4);
  EXPECT_EQ(code_of([&] { session.write_at(head, 956, back.data(), 8); }), Code::kInvalidArgument);
  EXPECT_EQ(code_of([&] { session.read_at(head, -4, back.data(), 8); }), Code::kInvalidArgument);
  EXPECT_EQ(code_of([&] { session.read(-1, back.data(), 8); }), Code::kInvalidArgument);
  EXPECT_EQ(code_of([&] { session.read(1 << 20, back.data(), 8); }), Code::kInvalidArgument);
  session.read(head, back.data(), 960);
  numbers[2] = 0;
  EXPECT_EQ(back, numbers);
  int32_t activation = -1;
  const auto& values = session.plan().joint->values;
  for (size_t v = 0; v < values.size(); ++v)
    if (values[v].role == graph::Role::kActivation) activation = static_cast<int32_t>(v);
  EXPECT_EQ(code_of([&] {
              session.read(activation, back.data(), values[static_cast<size_t>(activation)].desc.bytes());
            }),
            Code::kInvalidArgument);
}

TEST(Session, TooMuchForTheMachineIsOutOfMemoryWithAFault) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->input("x", {DType::kF32, {1, 1 << 20}});
  const ValueId y = g->op("linear", {x, parameter(*g, "w", {1 << 22, 1 << 20})})[0];
  const auto loss = g->op("mse", {y, g->input("t", {DType::kF32, {1, 1 << 22}})});
  g->freeze(loss[0], loss[1], {});
  const auto device = reference();
  const auto plan = compile(g, *device, {});
  try {
    Session session(plan, device);
    FAIL() << "48 TiB were found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kOutOfMemory);
    ASSERT_NE(error.fault(), nullptr);
    EXPECT_EQ(error.fault()->requested_bytes, static_cast<uint64_t>(plan->plan.arena_bytes));
  }
  EXPECT_EQ(device->ledger().count(Tier::kDevice).reserved_bytes, 0);
}

TEST(Session, SharesItsPlanWithOthersAtTheSameTime) {
  const auto device = reference(false);
  const auto plan = compile(transformer(2), *device, {});
  Session alone(plan, device);
  fill(alone);
  alone.run({3, 1, 0});
  const Result expected = result(alone);
  const auto other_device = device::open("reference", {.threads = 1});
  const auto one_device = device;
  std::vector<std::unique_ptr<Session>> sessions;
  sessions.push_back(std::make_unique<Session>(plan, one_device));
  sessions.push_back(std::make_unique<Session>(plan, one_device));
  sessions.push_back(std::make_unique<Session>(plan, other_device));
  std::vector<std::thread> threads;
  for (auto& session : sessions)
    threads.emplace_back([&session] {
      fill(*session);
      for (int i = 0; i < 5; ++i) session->run({3, 1, 0});
    });
  for (auto& thread : threads) thread.join();
  for (auto& session : sessions) {
    EXPECT_EQ(result(*session), expected);
    expect_exact_memory(*session);
  }
}

TEST(Session, MemoryAtPeakSumsToTheArena) {
  const auto device = reference();
  for (const auto policy : {Policy::kKeep, Policy::kRecompute, Policy::kOffload}) {
    PlanOptions options;
    options.policy = policy;
    const auto plan = compile(transformer(), *device, options);
    const auto m = plan->memory_at_peak();
    EXPECT_EQ(m.parameters + m.gradients + m.optimizer + m.activations + m.workspace, plan->plan.arena_bytes);
    EXPECT_GT(m.parameters, 0);
    EXPECT_GE(m.gradients, m.parameters - 64 * 64);
    EXPECT_EQ(m.optimizer, 2 * m.gradients);
    EXPECT_GT(m.activations, 0);
    EXPECT_GE(m.workspace, 0);
  }
}

TEST(Session, TracesLaunchesAndCopiesInsideTheRun) {
  const auto device = reference();
  PlanOptions options;
  options.policy = Policy::kOffload;
  Session session(compile(mlp(), *device, options), device);
  fill(session);
  session.run({0, 0, 0});
  EXPECT_TRUE(session.spans().empty());
  session.trace(true);
  const RunReport report = session.run({0, 0, 0});
  const Program& program = session.plan().program();
  const auto works = std::count_if(program.code.begin(), program.code.end(), [](const Instruction& i) {
    return i.opcode == Opcode::kLaunch || i.opcode == Opcode::kCopy;
  });
  EXPECT_EQ(session.spans().size(), static_cast<size_t>(works));
  for (const Span& span : session.spans()) {
    EXPECT_GE(span.begin, 0);
    EXPECT_LE(span.begin, span.end);
    EXPECT_LE(span.end, report.seconds + 1e-3);
    ASSERT_GE(span.instruction, 0);
    const Instruction& i = program.code.at(static_cast<size_t>(span.instruction));
    EXPECT_EQ(i.opcode, span.lane == device::Lane::kCompute ? Opcode::kLaunch : Opcode::kCopy);
    EXPECT_EQ(i.lane, span.lane);
  }
}

TEST(Session, SumsTheSquaresOfAllGradientsAgainAndAgain) {
  const auto device = device::checked(reference());
  Session session(compile(mlp(), *device, {}), device);
  fill(session);
  session.run({0, 0, 0});
  double expected = 0;
  for (const graph::ParameterSlot& slot : session.plan().joint->parameters) {
    const auto bytes = bytes_of(session, slot.gradient);
    for (size_t i = 0; i < bytes.size() / 4; ++i) {
      const float f = reinterpret_cast<const float*>(bytes.data())[i];
      expected += static_cast<double>(f) * f;
    }
  }
  const double sum = session.gradient_squares();
  EXPECT_NEAR(sum, expected, 1e-12 * expected);
  EXPECT_EQ(session.gradient_squares(), sum) << "the first gradient overwrites what was there";
  expect_exact_memory(session);
  PlanOptions none;
  none.optimizer.name = "";
  Session plain(compile(mlp(), *device, none), device);
  EXPECT_EQ(code_of([&] { plain.gradient_squares(); }), Code::kWrongState);
  EXPECT_EQ(code_of([&] { plain.update({}); }), Code::kWrongState);
}

TEST(Session, NewParametersAreSeenByTheNextRun) {
  const auto device = device::checked(device::open("cpu", {.threads = 1}));
  PlanOptions options;
  options.amp = graph::AmpMode::kBf16;
  options.micro_steps = 4;  // weights are packed, if the backend packs any
  const auto plan = compile(transformer(1), *device, options);
  Session changed(plan, device), fresh(plan, device);
  fill(changed, 1);
  changed.run({0, 0, 0});
  const Result before = result(changed);
  fill(changed, 2);
  changed.run({0, 0, 0});
  fill(fresh, 2);
  fresh.run({0, 0, 0});
  EXPECT_EQ(result(changed), result(fresh));
  EXPECT_NE(result(changed), before);
  // In place, as the optimizer does: the session must be told.
  const int32_t table = plan->joint->find("table");
  std::memset(changed.address(table), 0, static_cast<size_t>(changed.tensor(table).desc.bytes()));
  std::memset(fresh.address(table), 0, static_cast<size_t>(fresh.tensor(table).desc.bytes()));
  changed.parameters_changed();
  fresh.parameters_changed();
  changed.run({0, 0, 0});
  fresh.run({0, 0, 0});
  EXPECT_EQ(result(changed), result(fresh));
}

TEST(Session, PacksBeforeARunThatThenPacksNothing) {
  const auto device = device::checked(device::open("cpu", {.threads = 1}));
  PlanOptions options;
  options.amp = graph::AmpMode::kBf16;
  options.micro_steps = 4;
  const auto plan = compile(transformer(1), *device, options);
  Session before(plan, device), within(plan, device);
  size_t packed[2] = {};
  for (Session* session : {&before, &within}) {
    fill(*session, 1);
    session->trace(true);
    if (session == &before) session->pack();
    session->run({0, 0, 0});
    for (const Span& span : session->spans()) packed[session == &within] += span.phase == graph::kRepack;
  }
  EXPECT_EQ(packed[0], 0U);
  EXPECT_EQ(packed[1], plan->joint->ops(graph::kRepack).size());
  EXPECT_EQ(result(before), result(within));
  fill(before, 2);
  fill(within, 2);
  before.run({0, 0, 0});
  within.run({0, 0, 0});
  EXPECT_EQ(result(before), result(within));
  expect_exact_memory(before);
}

TEST(Session, RunsGraphsWithoutALoss) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->input("x", {DType::kF32, {2, 3}});
  const ValueId y = g->op("scale", {g->op("scale", {x}, {{"factor", 3.0}})[0]}, {{"factor", 2.0}})[0];
  g->freeze(graph::kNone, graph::kNone, {y});
  const auto device = reference();
  Session session(compile(g, *device, {}), device);
  const float numbers[6] = {1, 2, 3, 4, 5, 6};
  float out[6] = {};
  const auto& values = session.plan().joint->values;
  int32_t output = -1;
  for (size_t v = 0; v < values.size(); ++v)
    if (values[v].role == graph::Role::kOutput) output = static_cast<int32_t>(v);
  ASSERT_GE(output, 0);
  session.write(session.plan().joint->find("x"), numbers, sizeof numbers);
  session.run({0, 0, 0});
  session.read(output, out, sizeof out);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(out[i], 6 * numbers[i]);
  expect_exact_memory(session);
}

}  // namespace
}  // namespace cairn::engine
