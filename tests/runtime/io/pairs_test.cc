// What may not change a bit does not, whatever it meets: every pair of policy, tier, accumulation, precision, parameters
// stored as bfloat16, optimizer, frozen parameters, resume at any micro-batch, skipped step, evaluation and updates on the host, against a run
// that keeps everything on the device, is never resumed and evaluates nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "runtime/compile/set.h"
#include "runtime/device/device.h"
#include "runtime/io/checkpoint.h"
#include "runtime/ops/optimizers.h"
#include "runtime/step/stepper.h"
#include "tests/runtime/compile/host_room.h"
#include "tests/runtime/io/scratch.h"
#include "tests/support/seeds.h"

namespace cairn::io {
namespace {

enum Factor : size_t {
  kPolicy,
  kTier,
  kMicroSteps,
  kAmp,
  kRounded,
  kOptimizer,
  kFrozen,
  kResume,
  kSkip,
  kEvaluation,
  kUpdates,
  kFactors
};

constexpr Policy kPolicies[] = {Policy::kKeep, Policy::kRecompute, Policy::kOffload, Policy::kPlannerDecides};
struct Tiers {
  std::vector<Tier> open;
  int64_t host_room = 0;  // bytes; 0: the machine's
};
const Tiers kTiers[] = {
    {{}}, {{Tier::kHost}}, {{Tier::kDisk, Tier::kHost}}, {{Tier::kHost, Tier::kDisk}, 110 << 10}};
constexpr graph::AmpMode kModes[] = {graph::AmpMode::kOff, graph::AmpMode::kBf16, graph::AmpMode::kFp16};
// Of what the host may update beside a device that does not reach it; 0: a device that does.
constexpr double kOnHost[] = {0, 1, 0.5};
enum { kNever, kBetweenSteps, kAnywhere, kResumeKinds };
constexpr uint64_t kSteps = 4, kSkippedStep = 1;
constexpr int64_t kRows = 4, kWidth = 64;  // wide enough for states of 8 bits

// Levels, by factor.
using Case = std::array<size_t, kFactors>;

std::array<size_t, kFactors> level_counts() {
  return {std::size(kPolicies),
          std::size(kTiers),
          3,
          std::size(kModes),
          2,
          ops::optimizers().size() + 1,
          2,
          kResumeKinds,
          2,
          2,
          std::size(kOnHost)};
}

std::string to_string(const Case& c) {
  std::string text;
  for (const size_t level : c) text += cat(text.empty() ? "" : " ", level);
  return text;
}

// x -> two regions of linear, gelu and dropout -> layernorm -> linear, squared error. Without a loss: what evaluates.
std::shared_ptr<graph::Graph> model(bool frozen, bool trains) {
  auto g = std::make_shared<graph::Graph>();
  const auto weight = [&](const std::string& name, int64_t out, bool is_frozen = false) {
    return g->parameter(name, {DType::kF32, {out, kWidth}},
                        {.frozen = is_frozen, .init = graph::Init::kNormal, .init_scale = 0.4});
  };
  auto x = g->input("x", {DType::kF32, {kRows, kWidth}});
  for (const char* name : {"a", "b"}) {
    const auto region = g->region_begin(name, Policy::kPlannerDecides);
    const auto w = weight(cat(name, ".weight"), kWidth, frozen && name[0] == 'a');
    const auto bias = g->parameter(cat(name, ".bias"), {DType::kF32, {kWidth}}, {.decay = false});
    x = g->op("linear", {x, w, bias}, {{"activation", std::string("gelu_tanh")}})[0];
    if (trains) x = g->op("dropout", {x}, {{"rate", 0.1}})[0];
    g->region_end(region);
  }
  x = g->op("layernorm",
            {x, g->parameter("norm", {DType::kF32, {kWidth}}, {.decay = false, .init_scale = 1})})[0];
  const auto y = g->op("linear", {x, weight("head", 3)})[0];
  if (!trains) {
    g->freeze(graph::kNone, graph::kNone, {y});
    return g;
  }
  g->freeze(g->op("mse", {y, g->input("target", {DType::kF32, {kRows, 3}})})[0], graph::kNone, {});
  return g;
}

class Training {
 public:
  Training(const Case& c, uint64_t draw) : case_(c), draw_(draw) {
    device::DeviceOptions options;
    options.threads = 1;
    device_ = device::open("cpu", options);
    engine::PlanOptions plan;
    plan.policy = kPolicies[c[kPolicy]];
    plan.tiers = kTiers[c[kTier]].open;
    if (const int64_t room = kTiers[c[kTier]].host_room; room > 0) {
      plan.costs = engine::with_host_room(room);
      plan.force_costs = true;
    }
    plan.amp = kModes[c[kAmp]];
    if (c[kRounded] != 0 && plan.amp == graph::AmpMode::kBf16) plan.parameters = DType::kBF16;
    plan.micro_steps = micro_steps();
    if (const double share = kOnHost[c[kUpdates]]; share > 0) {
      plan.forced.update_on_device = true;
      plan.forced.host_updates = engine::ForcedChoices::When::kAlways;
      plan.forced.host_update_share = share;
    }
    const auto rows = ops::optimizers();
    plan.optimizer.name = rows[std::min(c[kOptimizer], rows.size() - 1)].name;
    if (c[kOptimizer] == rows.size()) plan.optimizer = {"adamw", {{"*.weight", "lion"}, {"*.bias", "sgd"}}};
    // So that sgd has a state, which says more.
    if (plan.optimizer.name == "sgd") plan.optimizer.hypers = {{{}, "momentum", 0.9}};
    std::vector<engine::ProgramGraph> graphs = {{"train", model(c[kFrozen] != 0, true)}};
    if (c[kEvaluation] != 0) graphs.push_back({"evaluation", model(c[kFrozen] != 0, false)});
    plans_ = engine::compile_set(graphs, *device_, plan);
    open();
    step::initialise(*sessions_[0], 7);
  }

  bool updates_on_host() const { return !plans_[0]->host_updated.empty(); }
  bool streams_on_host() const { return plans_[0]->streams_on_host(); }

  // All that persists, after the last step.
  std::string trained() {
    std::mt19937_64 random(draw_);
    const uint64_t micro_batches = kSteps * micro_steps();
    const uint64_t at =
        case_[kResume] == kAnywhere ? 1 + random() % (micro_batches - 1) : micro_steps() * (1 + random() % 3);
    for (uint64_t m = 0; m < micro_batches; ++m) {
      if (case_[kResume] != kNever && m == at) resume();
      feed(m);
      stepper_->micro();
      if (case_[kEvaluation] != 0) sessions_[1]->run({});
    }
    EXPECT_EQ(stepper_->state().skipped, case_[kSkip]);
    std::string bytes;
    const graph::JointGraph& joint = *plans_[0]->joint;
    for (const graph::Resident& state : joint.residents) {
      if (state.saved == graph::Saved::kNever || state.lifetime == graph::Lifetime::kStep) continue;
      std::string value(static_cast<size_t>(joint.values[static_cast<size_t>(state.value)].desc.bytes()),
                        '\0');
      sessions_[0]->read(state.value, value.data(), static_cast<int64_t>(value.size()));
      bytes += state.name + value;
    }
    return bytes;
  }

 private:
  uint32_t micro_steps() const { return static_cast<uint32_t>(case_[kMicroSteps] + 1); }

  void open() {
    sessions_ = engine::Session::open({plans_.begin(), plans_.end()}, device_);
    step::Options options;
    options.micro_steps = micro_steps();
    options.seed = 5;
    options.schedule = {{step::Stage("cosine")}, 1e-2, 2, 20, 1e-4};
    options.loss_scale.initial = 1024;
    stepper_ = std::make_unique<step::Stepper>(sessions_[0], options);
  }
  void resume() {
    const test::Scratch scratch;
    save(*stepper_, scratch / "saved", {});
    stepper_.reset();
    sessions_.clear();
    open();
    Checkpoint(scratch / "saved").restore(*stepper_);
  }
  void feed(uint64_t micro_batch) {
    const auto fill = [&](engine::Session& session, const char* name, int64_t count, double factor) {
      std::vector<float> numbers(static_cast<size_t>(count));
      for (size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = static_cast<float>(std::sin(factor * static_cast<double>(1 + i + 37 * micro_batch)));
      if (case_[kSkip] != 0 && micro_batch == kSkippedStep * micro_steps() && name[0] == 'x')
        numbers[3] = std::numeric_limits<float>::infinity();
      session.write(session.plan().joint->find(name), numbers.data(), count * 4);
    };
    fill(*sessions_[0], "x", kRows * kWidth, 0.7);
    fill(*sessions_[0], "target", kRows * 3, 1.3);
    if (case_[kEvaluation] != 0) fill(*sessions_[1], "x", kRows * kWidth, 0.2);
  }

  const Case case_;
  const uint64_t draw_;
  std::shared_ptr<device::Device> device_;
  std::vector<std::shared_ptr<const engine::CompiledPlan>> plans_;
  std::vector<std::shared_ptr<engine::Session>> sessions_;
  std::unique_ptr<step::Stepper> stepper_;
};

// Every pair of levels of two factors twice, the other factors drawn.
std::vector<Case> all_pairs() {
  const auto counts = level_counts();
  std::mt19937_64 random(20);
  std::vector<Case> cases;
  for (size_t a = 0; a < kFactors; ++a)
    for (size_t b = a + 1; b < kFactors; ++b)
      for (size_t i = 0; i < 2 * counts[a] * counts[b]; ++i) {
        Case c;
        for (size_t f = 0; f < kFactors; ++f) c[f] = random() % counts[f];
        c[a] = i / 2 / counts[b];
        c[b] = i / 2 % counts[b];
        cases.push_back(c);
      }
  return cases;
}

constexpr int64_t kOneIn = support::kSanitized ? 96 : 1;  // planning takes a hundred times as long

TEST(Pairs, NothingChangesABit) {
  const std::vector<Case> cases = all_pairs();
  EXPECT_GE(cases.size(), 400u);
  std::map<Case, std::string> undisturbed;
  int resumed = 0, on_host = 0, from_disk = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!support::taken(static_cast<int64_t>(i), kOneIn)) continue;
    SCOPED_TRACE(to_string(cases[i]));
    Case plain = cases[i];
    plain[kPolicy] = plain[kTier] = plain[kResume] = plain[kEvaluation] = plain[kUpdates] = 0;
    auto [found, fresh] = undisturbed.try_emplace(plain);
    if (fresh) found->second = Training(plain, 0).trained();
    resumed += cases[i][kResume] != kNever;
    Training training(cases[i], i);
    on_host += training.updates_on_host();
    from_disk += training.streams_on_host();
    ASSERT_TRUE(training.trained() == found->second);
  }
  if (kOneIn == 1) {
    EXPECT_GE(resumed, 100);
    EXPECT_GE(on_host, 100);
    EXPECT_GE(from_disk, 8);
  }
  RecordProperty("resumed", resumed);
}

}  // namespace
}  // namespace cairn::io
