#include "runtime/exec/rate_probe.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "runtime/base/os/clock.h"
#include "runtime/base/os/proc.h"
#include "runtime/costs/probe/link_probe.h"
#include "runtime/exec/measure.h"

namespace cairn::engine {
namespace {

using graph::Graph;
using graph::ValueId;

// A model with the ops that people train: both norms, products with and without an activation, attention, a gated
// unit, rotary positions, a head over a vocabulary.
struct Size {
  int64_t width, length, batch, vocabulary;

  int64_t heads() const { return std::max<int64_t>(1, width / 64); }
  int64_t hidden() const { return 2 * width; }
  // FLOPs of a step's products.
  double flops() const {
    return 6 * static_cast<double>(length * batch) * static_cast<double>(width) *
           static_cast<double>(4 * width + 3 * hidden() + vocabulary);
  }
};

// The smallest model computes little: it shows what each op, update and submission costs by itself.
constexpr Size kLeast{16, 16, 1, 32}, kTiny{64, 64, 1, 256}, kSmall{192, 128, 2, 768};
constexpr Size kOfProcessors[] = {kLeast, kTiny, kSmall};
// Products reach their full rate with many rows that are long.
constexpr int64_t kLargeLength = 512, kLargeBatch = 2, kWidths[] = {256, 384, 512, 768};
constexpr double kLargeSeconds = 0.1;  // of a step of the largest model
// An op of a GPU takes a time to begin and a time that grows with its size: two sizes tell both.
constexpr Size kLargeOfGpus{1536, 1024, 8, 8192};
constexpr double kLongestOfGpus =
    2;  // seconds of a step of the largest model; slower GPUs are not measured with it
// Rounds of one model: at least kFewestRounds, and more until kRoundsSeconds have passed.
constexpr int kFewestRounds = 2, kMostRounds = 5;
constexpr double kRoundsSeconds = 0.06;
constexpr graph::AmpMode kPrecisions[] = {graph::AmpMode::kOff, graph::AmpMode::kBf16};
constexpr uint32_t kMicroSteps = 8;  // so many that packed weights are worth their bytes
constexpr costs::ProbeEffort kLinkEffort{int64_t{32} << 20, 3};

std::shared_ptr<const Graph> graph_of(const Size& size) {
  auto g = std::make_shared<Graph>();
  const int64_t c = size.width;
  int count = 0;
  const auto parameter = [&](const Shape& shape, bool gain = false) {
    const graph::ParameterOptions options{.init = gain ? graph::Init::kConstant : graph::Init::kNormal,
                                          .init_scale = gain ? 1.0 : 0.02};
    return g->parameter(cat('p', count++), {DType::kF32, shape}, options);
  };
  const auto linear = [&](ValueId x, int64_t out, int64_t in, const char* activation = nullptr) {
    Attrs attrs;
    if (activation != nullptr) attrs = {{"activation", std::string(activation)}};
    return g->op("linear", {x, parameter({out, in}), parameter({out})}, std::move(attrs))[0];
  };
  const ValueId tokens = g->input("tokens", {DType::kI32, {size.batch, size.length}});
  const ValueId targets = g->input("targets", {DType::kI32, {size.batch, size.length}});
  const ValueId table = parameter({size.vocabulary, c});
  ValueId x = g->op("add", {g->op("embedding", {table, tokens})[0], parameter({size.length, c})})[0];
  const ValueId normed = g->op("layernorm", {x, parameter({c}, true), parameter({c})})[0];
  const ValueId attended = g->op("attention", {linear(normed, 3 * c, c)}, {{"heads", size.heads()}})[0];
  x = g->op("add", {x, linear(attended, c, c)})[0];
  const ValueId turned = g->op("rope", {x}, {{"heads", size.heads()}})[0];
  const ValueId again = g->op("rmsnorm", {turned, parameter({c}, true)})[0];
  const ValueId gate = linear(again, size.hidden(), c), up = linear(again, size.hidden(), c, "gelu_tanh");
  const ValueId gated = g->op("gelu", {g->op("swiglu", {gate, up})[0]})[0];
  x = g->op("add", {x, linear(gated, c, size.hidden())})[0];
  const auto loss = g->op("linear_cross_entropy", {x, table, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

// Numbers as in a trained model: a processor computes zeros faster.
void fill(Session& session) {
  const graph::JointGraph& joint = *session.plan().joint;
  uint32_t random = 1;
  for (size_t v = 0; v < joint.values.size(); ++v) {
    const graph::JointValue& value = joint.values[v];
    if (!graph::kind(value.role).is(graph::WRITTEN)) continue;
    const auto count = static_cast<size_t>(value.desc.shape.elements());
    const auto next = [&] { return random = random * 1664525u + 1013904223u; };
    const int32_t id = static_cast<int32_t>(v);
    if (value.desc.dtype == DType::kI32) {
      std::vector<int32_t> words(count);
      for (int32_t& w : words) w = static_cast<int32_t>(next() >> 24);
      session.write(id, words.data(), value.desc.bytes());
    } else {
      std::vector<float> numbers(count);
      for (float& f : numbers) f = static_cast<float>(next() >> 8) * 0x1p-28f;
      session.write_declared(id, numbers.data());
    }
  }
}

class RateProbe {
 public:
  RateProbe(const device::DeviceInfo& info, double most_waiting)
      : device_(device::open(info.name, {.threads = info.threads})), most_waiting_(most_waiting) {}

  std::optional<costs::Rates> run() {
    const double began = now(), waited = waited_seconds();
    disturbed_ = [=, this] { return waited_seconds() - waited > most_waiting_ * (now() - began); };
    costs::Rates rates;
    rates.machine = costs::machine_of(device_->info());
    if (device_->info().host_reaches ? !processor(rates) : !gpu(rates)) return {};
    rates.measuring_seconds = now() - began;
    return rates;
  }

 private:
  // False: other programs disturb the measurement.
  bool processor(costs::Rates& rates) {
    std::vector<Measured> models;
    double seconds_per_flop[std::size(kPrecisions)];
    for (size_t i = 0; i < std::size(kPrecisions); ++i) {
      for (const Size& size : kOfProcessors) measure(models.emplace_back(size, kPrecisions[i]));
      if (disturbed_()) return false;
      seconds_per_flop[i] = models.back().step_seconds / kSmall.flops();
    }
    for (size_t i = 0; i < std::size(kPrecisions); ++i) {
      Measured largest(large(seconds_per_flop[i]), kPrecisions[i]);
      measure(largest);
      add(largest, rates);
      if (disturbed_()) return false;
    }
    // A processor's clock and its neighbours' load change within tenths of a second: the fastest of two times counts.
    for (Measured& again : models) {
      measure(again);
      add(again, rates, false);
    }
    if (disturbed_()) return false;
    rates.host = costs::measure_link(*device_, Tier::kHost, kLinkEffort).link;
    return true;
  }

  // A model that the device has no memory for is left out.
  bool gpu(costs::Rates& rates) {
    const auto added = [&](const Size& size, graph::AmpMode precision) {
      Measured model(size, precision);
      if (fits([&] { measure(model); })) add(model, rates);
      return model.step_seconds;
    };
    const double tiny = added(kTiny, kPrecisions[0]), small = added(kSmall, kPrecisions[0]);
    const double seconds_per_flop = (small - tiny) / (kSmall.flops() - kTiny.flops());
    for (const graph::AmpMode precision : kPrecisions) {
      if (precision != kPrecisions[0]) added(kTiny, precision);
      if (seconds_per_flop * kLargeOfGpus.flops() <= kLongestOfGpus) added(kLargeOfGpus, precision);
      if (disturbed_()) return false;
    }
    fits([&] { rates.host = costs::measure_link(*device_, Tier::kHost, kLinkEffort).link; });
    return !rates.classes.empty();
  }

  // True: there is memory for the model.
  template <typename Work>
  static bool fits(const Work& work) {
    try {
      work();
      return true;
    } catch (const Error& error) {
      if (error.code() != Code::kOutOfMemory) throw;
      return false;
    }
  }

  struct Measured {
    Measured(const Size& of, graph::AmpMode precision)
        : size(of), amp(precision), recorder(std::make_unique<costs::Recorder>()) {}
    Size size;
    graph::AmpMode amp;
    std::unique_ptr<costs::Recorder> recorder;
    double step_seconds = std::numeric_limits<double>::infinity();  // of the fastest step
  };

  // A model whose step takes kLargeSeconds; with more threads it has more rows.
  Size large(double seconds_per_flop) const {
    Size size{kWidths[0], kLargeLength, kLargeBatch, 2 * kWidths[0]};
    for (const int64_t width : kWidths) {
      const Size wider{width, kLargeLength, std::max<int64_t>(kLargeBatch, device_->info().threads / 4),
                       2 * width};
      if (wider.flops() * seconds_per_flop <= kLargeSeconds) size = wider;
    }
    return size;
  }

  void measure(Measured& model) {
    PlanOptions options;
    options.amp = model.amp;
    options.micro_steps = kMicroSteps;
    Session session(compile(graph_of(model.size), *device_, options), device_);
    fill(session);
    const bool large = model.size.width >= kWidths[0];
    if (!large) step(session);
    const double began = now();
    for (int round = 0; round < kMostRounds && (round < kFewestRounds || now() - began < kRoundsSeconds);
         ++round) {
      StepSeconds whole =
          {};  // for small models only: the host's share of a large model's step is lost in noise
      if (!large) whole = step(session);
      session.trace(true);
      const StepSeconds traced = step(session);
      session.trace(false);
      model.step_seconds = std::min(model.step_seconds, traced.step);
      record_run(*model.recorder, session, {whole.step, traced.optimizer});
    }
  }

  StepSeconds step(Session& session) {
    const double began = now();
    session.run({.seed = 1, .step = step_++});
    const double ran = now();
    session.gradient_squares();
    session.update({.seed = 1, .step = step_});
    return {now() - began, now() - ran};
  }

  // launches: the time between ops counts for larger models, too.
  static void add(const Measured& model, costs::Rates& rates, bool launches = true) {
    costs::Profile profile;
    model.recorder->merge_into(profile, costs::Recorder::Estimate::kLeast);
    if (launches) rates.launch_seconds = profile.launch_seconds;
    std::map<std::pair<std::string, std::string>, costs::ClassRate> classes;
    for (const auto& [signature, cost] : profile.ops) {
      if (!(cost.median_seconds > 0) || !(cost.modelled_seconds > 0)) continue;
      costs::ClassRate& sum = classes[{cost.op, cost.dtype}];
      const auto count = static_cast<double>(cost.count);
      sum.seconds += count * cost.median_seconds;
      sum.modelled_seconds += count * cost.modelled_seconds;
      sum.count += cost.count;
    }
    for (auto& [name, sum] : classes) {
      std::tie(sum.op, sum.dtype) = name;
      sum.seconds /= static_cast<double>(sum.count);
      sum.modelled_seconds /= static_cast<double>(sum.count);
      rates.classes.push_back(sum);
    }
  }

  const std::shared_ptr<device::Device> device_;
  const double most_waiting_;
  std::function<bool()> disturbed_;
  uint64_t step_ = 0;
};

}  // namespace

std::optional<costs::Rates> measure_rates(const device::DeviceInfo& info, double most_waiting) {
  return RateProbe(info, most_waiting).run();
}

}  // namespace cairn::engine
