// A small model with layers, planned so that updates run elsewhere than behind backward: what tests of deferred updates and of
// updates beside backward train.
#pragma once
#include <gtest/gtest.h>

#include <map>

#include "runtime/step/stepper.h"
#include "tests/runtime/compile/host_room.h"
#include "trained.h"

namespace cairn::step::elsewhere {

using graph::ValueId;
using Defer = engine::ForcedChoices::When;

inline constexpr int64_t kBatch = 2, kTime = 16, kWidth = 64, kVocabulary = 48;
inline constexpr int kLayers = 4;
// Four times the largest update's weight, gradient and moments; all of them take twice as much.
inline constexpr int64_t kBudget = 1100 << 10;

inline std::shared_ptr<graph::Graph> model() {
  auto g = std::make_shared<graph::Graph>();
  graph::ParameterOptions normal, ones;
  normal.init = graph::Init::kNormal;
  normal.init_scale = 0.2;
  ones.init_scale = 1;
  ones.decay = false;
  const auto f32 = [](std::initializer_list<int64_t> d) { return TensorDesc{DType::kF32, Shape(d)}; };
  const ValueId ids = g->input("ids", {DType::kI32, {kBatch, kTime}});
  const ValueId targets = g->input("targets", {DType::kI32, {kBatch, kTime}});
  const ValueId scale = g->input("scale", f32({kWidth}));
  const ValueId table = g->parameter("table", f32({kVocabulary, kWidth}), normal);
  ValueId x = g->op("mul", {g->op("embedding", {table, ids})[0], scale})[0];
  for (int i = 0; i < kLayers; ++i) {
    const auto region = g->region_begin(cat("h", i), Policy::kPlannerDecides);
    const ValueId n = g->op("layernorm", {x, g->parameter(cat("g", i), f32({kWidth}), ones),
                                          g->parameter(cat("b", i), f32({kWidth}), {})})[0];
    const ValueId up = g->op("linear", {n, g->parameter(cat("up", i), f32({4 * kWidth, kWidth}), normal)})[0];
    const ValueId h = g->op("dropout", {g->op("gelu", {up})[0]}, {{"rate", 0.1}})[0];
    x = g->op("add", {x, g->op("linear",
                               {h, g->parameter(cat("down", i), f32({kWidth, 4 * kWidth}), normal)})[0]})[0];
    g->region_end(region);
  }
  const auto loss = g->op("linear_cross_entropy", {x, table, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

struct Case {
  std::string device;
  Tier tier = Tier::kDisk;
  std::string optimizer = "adamw";
  graph::AmpMode amp = graph::AmpMode::kOff;
  DType parameters = DType::kF32;
  double clip_norm = 1;
  double on_host = 0;     // share that its processors make, beside a device that does not reach it
  int64_t host_room = 0;  // bytes: what they use beyond that lives on the disk
  bool fused = false;     // updates within backward
  double deferred = 0;    // of those on the host, where updates are fused
};

inline std::string name_of(const Case& c) {
  return c.device + "_" + std::string(kTierNames[static_cast<size_t>(c.tier)]) + "_" + c.optimizer +
         (c.amp == graph::AmpMode::kOff    ? "_f32"
          : c.amp == graph::AmpMode::kFp16 ? "_fp16"
                                           : "_bf16") +
         (c.parameters == DType::kSplit ? "_split" : "") +
         (c.on_host > 0 ? cat("_host_", static_cast<int>(c.on_host * 100)) : "") +
         (c.host_room > 0 ? cat("_room_", c.host_room >> 10) : "") + (c.fused ? "_fused" : "") +
         (c.deferred > 0 ? cat("_deferred_", static_cast<int>(c.deferred * 100)) : "");
}

inline engine::PlanOptions options_for(const Case& c, Defer defer) {
  engine::PlanOptions o;
  o.optimizer.name = c.optimizer;
  o.amp = c.amp;
  o.parameters = c.parameters;
  o.tiers = {c.tier};
  o.micro_steps = 1;
  o.fuse_update = c.fused;
  o.forced.update_on_device = true;
  o.forced.defer_updates = c.on_host > 0 ? Defer::kNever : defer;
  o.forced.host_updates = c.on_host > 0 ? defer : Defer::kNever;
  o.forced.host_update_share = c.on_host;
  o.forced.host_deferred_share = c.deferred;
  o.budget_bytes = kBudget;
  if (c.host_room == 0) return o;
  o.tiers = {Tier::kHost, Tier::kDisk};
  o.costs = engine::with_host_room(c.host_room);
  o.force_costs = true;
  return o;
}

// Made once.
inline std::shared_ptr<const engine::CompiledPlan> plan_for(const Case& c, Defer defer) {
  static std::map<std::string, std::shared_ptr<const engine::CompiledPlan>> plans;
  auto& plan = plans[cat(c.device, kTierNames[static_cast<size_t>(c.tier)], c.optimizer,
                         static_cast<int>(c.amp), dtype_name(c.parameters), static_cast<int>(defer),
                         c.on_host, ' ', c.host_room, c.fused, c.deferred)];
  if (plan == nullptr)
    plan = engine::compile(model(), *device::open(c.device, {.threads = 1}), options_for(c, defer));
  return plan;
}

class Training {
 public:
  Training(const Case& c, Defer defer, device::DeviceOptions device_options = {}) {
    device_options.threads = 1;
    const auto device = device::checked(device::open(c.device, device_options));
    session = std::make_shared<engine::Session>(plan_for(c, defer), device);
    initialise(*session, 11);
    Options step;
    step.schedule.rate = 0.01;
    step.clip_norm = c.clip_norm;
    stepper = std::make_unique<Stepper>(session, step);
  }
  const graph::JointGraph& joint() const { return *session->plan().joint; }
  int32_t id(const std::string& name) const { return joint().find(name); }
  void feed(float scale = 1) {
    feed_words(*session, stepper->state().step, kBatch * kTime, kVocabulary);
    std::vector<float> scales(kWidth, scale);
    session->write(id("scale"), scales.data(), static_cast<int64_t>(scales.size() * 4));
  }
  Report micro(float scale = 1) {
    feed(scale);
    return stepper->micro();
  }
  std::vector<float> read(const std::string& name) const {
    std::vector<float> numbers(
        static_cast<size_t>(joint().values[static_cast<size_t>(id(name))].desc.shape.elements()));
    session->read(id(name), numbers.data(), static_cast<int64_t>(numbers.size() * 4));
    return numbers;
  }
  Values values() const { return trained(*session); }
  int64_t deferred() const { return session->plan().deferred_updates(); }

  // Of states that deferred updates fetch.
  int64_t fetched_bytes() const {
    int64_t sum = 0;
    for (const graph::ParameterSlot& slot : joint().parameters)
      for (const int32_t state : joint().owned(slot.value, graph::Role::kOptimizer))
        if (slot.deferred && session->plan().homes.contains(state))
          sum += joint().values[static_cast<size_t>(state)].desc.bytes();
    return sum;
  }

  std::shared_ptr<engine::Session> session;
  std::unique_ptr<Stepper> stepper;
};

}  // namespace cairn::step::elsewhere
