#include "tests/fault/device/training.h"

#include "runtime/io/checkpoint.h"
#include "tests/runtime/io/rig.h"

namespace cairn::test {
namespace {

constexpr int64_t kBatch = 32, kWidth = 48;

std::shared_ptr<graph::Graph> network(const Kind& kind) {
  auto g = std::make_shared<graph::Graph>();
  graph::ValueId x = g->input("x", {DType::kF32, {kBatch, kWidth}});
  for (int i = 0; i < kind.layers; ++i) {
    const std::string name = cat("layer", i);
    const auto w = g->parameter(name, {DType::kF32, {kWidth, kWidth}},
                                {.init = graph::Init::kNormal, .init_scale = 0.2});
    const auto region =
        kind.tiers.empty()
            ? g->region_begin(name, Policy::kKeep)
            : g->region_begin(name, Policy::kOffload, kind.tiers[static_cast<size_t>(i) % kind.tiers.size()]);
    x = g->op("linear", {x, w}, {{"activation", std::string("gelu_tanh")}})[0];
    g->region_end(region);
  }
  const auto loss = g->op("mse", {x, g->input("target", {DType::kF32, {kBatch, kWidth}})});
  g->freeze(loss[0], loss[1], {});
  return g;
}

step::Options step_options(const Kind& kind) {
  step::Options options = rig_options();
  if (kind.fused) {
    options.micro_steps = 1;
    options.clip_norm = 0;
  }
  return options;
}

std::shared_ptr<device::Device> open_device(const Kind& kind) {
  return device::open("cpu", {.threads = kind.threads, .disk_directory = kind.memory ? "/dev/shm" : ""});
}

}  // namespace

std::shared_ptr<const engine::CompiledPlan> Training::plan(const Kind& kind) {
  const auto device = open_device(kind);
  const auto graph = network(kind);
  engine::PlanOptions options;
  if (!kind.tiers.empty()) options.tiers = {Tier::kHost, Tier::kDisk};
  options.fuse_update = kind.fused;
  if (!kind.state) return engine::compile(graph, *device, options);
  options.tiers = {Tier::kDisk};
  options.amp = graph::AmpMode::kBf16;
  options.budget_bytes = 1;
  try {
    return engine::compile(graph, *device, options);
  } catch (const Error& error) {
    options.budget_bytes = static_cast<int64_t>(error.fault()->smallest_budget_bytes);
  }
  auto plan = engine::compile(graph, *device, options);
  require(plan->offloaded_bytes[static_cast<size_t>(Tier::kDisk)] > 0, Code::kInternal,
          "no state is on disk");
  return plan;
}

std::string Training::all() {
  if (device_ == nullptr) device_ = open_device(kind_);
  load();
  train();
  if (!kind_.saves) return step::parameter_digest(*session_);
  if (first_.empty()) first_ = step::parameter_digest(*session_);
  if (!restored_) {
    io::Checkpoint(scratch_ / "saved").restore(*stepper_);
    restored_ = true;
  }
  train();
  return first_ + step::parameter_digest(*session_);
}

void Training::load() {
  if (session_ != nullptr) return;
  auto made = std::make_shared<engine::Session>(plan_, device_);
  step::initialise(*made, 7);
  stepper_ = std::make_unique<step::Stepper>(made, step_options(kind_));
  session_ = std::move(made);
}

void Training::close() {
  stepper_.reset();
  session_.reset();
  saved_ = restored_ = false;
  first_.clear();
}

int64_t Training::reserved_bytes() const {
  int64_t sum = 0;
  for (int tier = 0; tier < kTierCount; ++tier)
    sum += device_->ledger().count(static_cast<Tier>(tier)).reserved_bytes;
  return sum;
}

uint64_t Training::done() const {
  const step::State state = stepper_->state();
  return state.step * state.options.micro_steps + state.micro;
}

void Training::train() {
  for (uint64_t index = done(); index < kind_.micros; index = done()) {
    if (kind_.saves && !saved_ && index >= kind_.micros / 2) {
      io::save(*stepper_, scratch_ / "saved", {});
      saved_ = true;
    }
    feed("x", index);
    feed("target", index + 100);
    stepper_->micro();
  }
}

void Training::feed(const char* name, uint64_t index) {
  std::vector<float> numbers(kBatch * kWidth);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>((i * 7 + index * 13) % 31) / 31;
  session_->write(session_->plan().joint->find(name), numbers.data(),
                  static_cast<int64_t>(numbers.size() * 4));
}

}  // namespace cairn::test
