// bench_experts [--tokens=N] [--width=N] [--hidden=N] [--experts=N] [--chosen=N] [--threads=N] [--repeats=N]: forward
// and backward of a gated layer of experts, and of a dense one with the same products for each token; best seconds, in
// turns.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <random>

#include "bench/arguments.h"
#include "runtime/base/os/clock.h"
#include "runtime/exec/session.h"

namespace cairn {
namespace {

using graph::ValueId;

struct Layer {
  int64_t tokens, width, hidden, experts, chosen;
};

// experts: else dense. half: what comes in is bfloat16, as in a model in mixed precision.
std::shared_ptr<graph::Graph> layer(const Layer& l, bool experts, bool half) {
  auto g = std::make_shared<graph::Graph>();
  const auto f32 = [](std::initializer_list<int64_t> d) { return TensorDesc{DType::kF32, Shape(d)}; };
  const ValueId x = g->input("x", f32({l.tokens, l.width})),
                target = g->input("target", f32({l.tokens, l.width}));
  const ValueId stream = half ? g->op("cast", {x}, {{"dtype", std::string("bf16")}})[0] : x;
  const ValueId n = g->op("rmsnorm", {stream, g->parameter("norm", f32({l.width}), {})})[0];
  const auto gated = [&](ValueId rows, const auto& product) {
    const ValueId gate = product(rows, "gate", l.hidden, l.width),
                  up = product(rows, "up", l.hidden, l.width);
    return product(g->op("swiglu", {gate, up})[0], "down", l.width, l.hidden);
  };
  ValueId y;
  if (experts) {
    const ValueId logits = g->op("linear", {n, g->parameter("router", f32({l.experts, l.width}), {})})[0];
    const auto routed = g->op("route", {logits}, {{"k", l.chosen}});
    const auto groups = g->op("group_rows", {routed[1]}, {{"experts", l.experts}});
    const ValueId rows = g->op("gather_rows", {n, groups[0], groups[1]})[0];
    const ValueId made = gated(rows, [&](ValueId of, const char* name, int64_t to, int64_t from) {
      return g->op("grouped_linear", {of, g->parameter(name, f32({l.experts, to, from}), {}), groups[2]})[0];
    });
    y = g->op("combine_rows", {made, groups[0], groups[1], routed[0]})[0];
  } else {
    y = gated(n, [&](ValueId of, const char* name, int64_t to, int64_t from) {
      (to == l.width ? from : to) *= l.chosen;
      return g->op("linear", {of, g->parameter(name, f32({to, from}), {})})[0];
    });
  }
  const auto loss = g->op("mse", {y, target});
  g->freeze(loss[0], loss[1], {});
  return g;
}

void fill(engine::Session& session) {
  const graph::JointGraph& joint = *session.plan().joint;
  for (size_t v = 0; v < joint.values.size(); ++v) {
    const graph::JointValue& value = joint.values[v];
    if (value.role != graph::Role::kInput && value.role != graph::Role::kParameter) continue;
    std::mt19937 random(static_cast<uint32_t>(v));
    std::normal_distribution<float> normal;
    std::vector<float> numbers(static_cast<size_t>(value.desc.shape.elements()));
    const float size = value.name == "norm" ? 0 : value.role == graph::Role::kInput ? 1 : 0.05f;
    for (float& f : numbers) f = (value.name == "norm" ? 1 : 0) + size * normal(random);
    session.write(static_cast<int32_t>(v), numbers.data(), value.desc.bytes());
  }
}

// With one thread the processor time, which others on the machine disturb less; else the time on the wall.
double seconds_now(int threads) {
  if (threads > 1) return now();
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void compare(const Layer& l, graph::AmpMode amp, DType parameters, int threads, int repeats) {
  device::DeviceOptions device_options;
  device_options.threads = threads;
  const auto device = device::open("cpu", device_options);
  std::vector<std::unique_ptr<engine::Session>> sessions;
  for (const bool experts : {true, false}) {
    engine::PlanOptions options;
    options.amp = amp;
    options.parameters = parameters;
    options.policy = Policy::kKeep;
    options.optimizer.name = "";
    sessions.push_back(std::make_unique<engine::Session>(
        engine::compile(layer(l, experts, amp == graph::AmpMode::kBf16), *device, options), device));
    fill(*sessions.back());
  }
  double seconds[2] = {1e30, 1e30};
  for (int i = 0; i < repeats + 2; ++i)
    for (size_t s = 0; s < 2; ++s) {
      const double start = seconds_now(threads);
      sessions[s]->run({1, 1, 0});
      if (i >= 2) seconds[s] = std::min(seconds[s], seconds_now(threads) - start);
    }
  const double experts = seconds[0], dense = seconds[1];
  const double flops =
      18.0 * static_cast<double>(l.tokens * l.chosen) * static_cast<double>(l.width * l.hidden);
  std::printf("%s, parameters %s: experts %.2f ms (%.0f GF/s), dense %.2f ms (%.0f GF/s), ratio %.2f\n",
              amp == graph::AmpMode::kOff ? "f32" : "bf16", std::string(dtype_name(parameters)).c_str(),
              experts * 1e3, flops / experts * 1e-9, dense * 1e3, flops / dense * 1e-9, dense / experts);
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  using namespace cairn;
  bench::Arguments arguments(argc, argv,
                             "bench_experts [--tokens=N] [--width=N] [--hidden=N] [--experts=N] [--chosen=N] "
                             "[--threads=N] [--repeats=N]");
  Layer l{};
  l.tokens = arguments.whole("tokens", 2048), l.width = arguments.whole("width", 512);
  l.hidden = arguments.whole("hidden", 256), l.experts = arguments.whole("experts", 64);
  l.chosen = arguments.whole("chosen", 8);
  const int threads = arguments.whole("threads", 2), repeats = arguments.whole("repeats", 9);
  arguments.words(0);
  if (l.chosen > l.experts)
    arguments.refuse("--chosen", std::to_string(l.chosen), "at most the number of experts");
  compare(l, graph::AmpMode::kOff, DType::kF32, threads, repeats);
  compare(l, graph::AmpMode::kBf16, DType::kF32, threads, repeats);
  compare(l, graph::AmpMode::kBf16, DType::kBF16, threads, repeats);
  return 0;
}
