// The same in C++: a small transformer learns to count, inside 70 % of the memory that keeping everything takes. It is saved
// half way, loaded into a new session, and goes on as if nothing had happened; losses and parameters are those of train.c, to
// the bit. Then, an op of the program's own.
//   c++ -std=c++17 train.cpp $(pkg-config --cflags --libs cairn) -o train && ./train [FOLDER for the checkpoint]
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "cairn/cairn.hpp"

namespace {

constexpr int64_t kBatch = 16, kLength = 32, kWidth = 32, kHeads = 4, kBlocks = 2, kVocabulary = 32;
constexpr unsigned kSteps = 60;

// ---- the model

const auto kWeight = cairn::ParameterOptions::normal(0.08);
const auto kGain = cairn::ParameterOptions::constant(1.0).no_decay();  // of norms

// One block is one region: the planner decides what of it to keep and what to compute again.
cairn::Value add_block(cairn::Graph& graph, const std::string& block, cairn::Value x) {
  return graph.region(block, CAIRN_REGION_PLANNER_DECIDES, [&] {
    cairn::Value h = graph.op("rmsnorm", {x, graph.parameter(block + ".norm1", {kWidth}, kGain)});
    h = graph.op("linear", {h, graph.parameter(block + ".qkv", {3 * kWidth, kWidth}, kWeight)});
    h = graph.op("attention", {h}, {{"heads", kHeads}});
    h = graph.op("linear", {h, graph.parameter(block + ".out", {kWidth, kWidth}, kWeight)});
    const cairn::Value y = graph.op("add", {x, h});
    h = graph.op("rmsnorm", {y, graph.parameter(block + ".norm2", {kWidth}, kGain)});
    h = graph.op("linear", {h, graph.parameter(block + ".up", {4 * kWidth, kWidth}, kWeight)},
                 {{"activation", "gelu_tanh"}});
    h = graph.op("linear", {h, graph.parameter(block + ".down", {kWidth, 4 * kWidth}, kWeight)});
    return graph.op("add", {y, h});
  });
}

cairn::Graph make_graph(const cairn::Instance& instance) {
  auto graph = cairn::Graph::create(instance);
  const cairn::Value tokens = graph.input("tokens", {kBatch, kLength}, CAIRN_I32);
  const cairn::Value targets = graph.input("targets", {kBatch, kLength}, CAIRN_I32);
  const cairn::Value table = graph.parameter("embedding", {kVocabulary, kWidth}, kWeight);
  cairn::Value x = graph.op("embedding", {table, tokens});
  x = graph.op("add", {x, graph.parameter("position", {kLength, kWidth}, kWeight)});
  for (int i = 0; i < kBlocks; ++i) x = add_block(graph, "h" + std::to_string(i), x);
  x = graph.op("rmsnorm", {x, graph.parameter("norm", {kWidth}, kGain)});
  // The table is the last layer, too: tied. Logits are never all in memory.
  graph.freeze(graph.op("linear_cross_entropy", {x, table, targets}));
  return graph;
}

// ---- the task: rows that count up by 1, 2 or 3 from anywhere

using Batch = std::array<int32_t, kBatch * kLength>;

void make_batch(unsigned step, Batch& tokens, Batch& targets) {
  unsigned state = 1u + 2654435761u * step;
  for (size_t row = 0; row < kBatch; ++row) {
    state = state * 1664525u + 1013904223u;
    const int start = static_cast<int>(state >> 16) % kVocabulary;
    const int stride = 1 + static_cast<int>(state >> 8) % 3;
    for (int i = 0; i < kLength; ++i) {
      tokens[row * kLength + static_cast<size_t>(i)] = (start + i * stride) % kVocabulary;
      targets[row * kLength + static_cast<size_t>(i)] = (start + (i + 1) * stride) % kVocabulary;
    }
  }
}

cairn_step_report_t train(cairn::Session& session, cairn::Stepper& stepper, unsigned from, unsigned to) {
  Batch tokens, targets;
  cairn_step_report_t report = CAIRN_STEP_REPORT_INIT;
  for (unsigned step = from; step < to; ++step) {
    make_batch(step, tokens, targets);
    session.write("tokens", tokens);
    session.write("targets", targets);
    report = stepper.micro();
    if (step % 10 == 9)
      std::printf("step %2llu: loss %.4f, gradient norm %.3f, rate %.4f, %.1f ms\n",
                  static_cast<unsigned long long>(report.step), report.loss, report.gradient_norm,
                  report.rate, 1e3 * (report.seconds + report.optimizer_seconds));
  }
  return report;
}

// ---- an op of the program's own: 1 / x, and no number where x is 0

bool divides(const cairn::Instance& instance, const cairn::Device& device) {
  auto graph = cairn::Graph::create(instance);
  graph.add(cairn::CustomOp("reciprocal", 1, 1, [](const cairn::Forward& run) {
    const auto x = run.input(0).data<const float>();
    const auto y = run.output(0).data<float>();
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] == 0) throw std::domain_error("there is no reciprocal of 0");
      y[i] = 1 / x[i];
    }
  }));
  const cairn::Value y = graph.op("reciprocal", {graph.input("x", {4})});
  graph.name(y, "y");
  graph.freeze(0, {y});
  auto session = cairn::Session::create(cairn::Plan::create(graph, device), device);
  session.write("x", {1.0f, 2.0f, 4.0f, 8.0f});
  session.run();
  const bool right = session.read<float>("y", 4) == std::vector<float>{1, 0.5f, 0.25f, 0.125f};
  session.write("x", {1.0f, 0.0f, 4.0f, 8.0f});
  const cairn::Result<void> refused = cairn::attempt([&] { session.run(); });
  if (!refused) std::printf("refused: %s\n", refused.error().what());
  return right && !refused;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string directory = std::string(argc > 1 ? argv[1] : ".") + "/example-train-cpp";
  const auto instance = cairn::Instance::create();
  const auto device = cairn::Device::open(instance, "cpu");
  const auto plan = cairn::Plan::create(make_graph(instance), device, cairn::PlanOptions().budget_share(0.7));
  const cairn_plan_summary_t summary = plan.summary();
  std::printf("planned: %.2f of %.2f MB\n", static_cast<double>(summary.peak_bytes[CAIRN_TIER_DEVICE]) / 1e6,
              static_cast<double>(summary.budget_bytes) / 1e6);
  for (const cairn_plan_value_t& value : plan.values())
    if (value.decision == CAIRN_DECISION_RECOMPUTE)
      std::printf("computed again: %s, %llu bytes\n", value.name,
                  static_cast<unsigned long long>(value.bytes));

  const auto options =
      cairn::StepperOptions().rate(1e-2).schedule(CAIRN_SCHEDULE_COSINE).warmup_steps(5).total_steps(kSteps);
  std::string digest;
  {
    auto session = cairn::Session::create(plan, device);
    auto stepper = cairn::Stepper::create(session, options);
    session.initialise(42);
    train(session, stepper, 0, kSteps / 2);
    stepper.save(directory, {{"task", "to count"}});
    if (train(session, stepper, kSteps / 2, kSteps).loss >= 1) return 1;
    digest = session.digest();
    if (session.usage().peak_bytes != summary.peak_bytes[CAIRN_TIER_DEVICE]) return 1;
  }

  std::printf("again, from the checkpoint\n");
  const auto checkpoint = cairn::Checkpoint::open(instance, directory);
  auto session = cairn::Session::create(plan, device);
  auto stepper = cairn::Stepper::create(session, options);
  stepper.restore(checkpoint);
  train(session, stepper, kSteps / 2, kSteps);
  const bool same = session.digest() == digest;
  std::printf("parameters %s, %s; peak as planned\n", digest.c_str(),
              same ? "the same to the bit" : "NOT the same");
  return same && checkpoint.metadata("task") == "to count" && divides(instance, device) ? 0 : 1;
} catch (const cairn::Error& e) {
  std::fprintf(stderr, "%s: %s\n", e.status_name(), e.what());
  return 1;
}
