// Small models and what a run leaves behind, to the bit.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

#include "runtime/exec/session.h"

namespace cairn::engine {

using graph::Graph;
using graph::ValueId;

inline ValueId parameter(Graph& g, const std::string& name, std::initializer_list<int64_t> shape) {
  return g.parameter(name, {DType::kF32, Shape(shape)}, {});
}

// Blocks of two linear layers with gelu between, each in a region of its own.
inline std::shared_ptr<Graph> mlp(int layers = 4, bool regions = true,
                                  Policy policy = Policy::kPlannerDecides, const std::string& tier = {}) {
  auto g = std::make_shared<Graph>();
  ValueId x = g->input("x", {DType::kF32, {32, 24}});
  const ValueId targets = g->input("targets", {DType::kI32, {32}});
  for (int i = 0; i < layers; ++i) {
    const std::string name = "l" + std::to_string(i);
    const graph::RegionId region = regions ? g->region_begin(name, policy, tier) : -1;
    const ValueId up = parameter(*g, name + ".up", {48, 24}), bias = parameter(*g, name + ".bias", {48});
    const ValueId h = g->op("gelu", {g->op("linear", {x, up, bias})[0]})[0];
    const ValueId y = g->op("linear", {h, parameter(*g, name + ".down", {24, 48})})[0];
    x = g->op("add", {x, g->op("dropout", {y}, {{"rate", 0.1}})[0]})[0];
    if (regions) g->region_end(region);
  }
  const ValueId logits = g->op("linear", {x, parameter(*g, "head", {10, 24})})[0];
  const auto loss = g->op("cross_entropy", {logits, targets});
  g->freeze(loss[0], loss[1], {x});
  return g;
}

// Pre-norm blocks with nested regions, dropout, a tied embedding and the fused loss. segment > 0: every so many blocks
// lie in a region that is recomputed, "s0", "s1", ...
inline std::shared_ptr<Graph> transformer(int layers = 3, int segment = 0) {
  constexpr int64_t kBatch = 2, kTime = 12, kWidth = 32, kVocabulary = 40;
  auto g = std::make_shared<Graph>();
  const ValueId tokens = g->input("tokens", {DType::kI32, {kBatch, kTime}});
  const ValueId targets = g->input("targets", {DType::kI32, {kBatch, kTime}});
  const ValueId table = parameter(*g, "table", {kVocabulary, kWidth});
  ValueId x = g->op("embedding", {table, tokens})[0];
  graph::RegionId around = -1;
  const auto norm = [&](ValueId v, const std::string& name) {
    return g->op("layernorm",
                 {v, parameter(*g, name + ".g", {kWidth}), parameter(*g, name + ".b", {kWidth})})[0];
  };
  for (int i = 0; i < layers; ++i) {
    const std::string name = "h" + std::to_string(i);
    if (segment > 0 && i % segment == 0)
      around = g->region_begin("s" + std::to_string(i / segment), Policy::kRecompute);
    const auto block = g->region_begin(name, Policy::kPlannerDecides);
    const auto attention = g->region_begin("attn", Policy::kPlannerDecides);
    const ValueId qkv =
        g->op("linear", {norm(x, name + ".ln1"), parameter(*g, name + ".qkv", {3 * kWidth, kWidth}),
                         parameter(*g, name + ".qkv_bias", {3 * kWidth})})[0];
    const ValueId y = g->op("attention", {qkv}, {{"heads", int64_t{4}}})[0];
    const ValueId o = g->op("linear", {y, parameter(*g, name + ".o", {kWidth, kWidth})})[0];
    x = g->op("add", {x, g->op("dropout", {o}, {{"rate", 0.2}})[0]})[0];
    g->region_end(attention);
    const auto feed = g->region_begin("mlp", Policy::kPlannerDecides);
    const ValueId up = g->op("linear",
                             {norm(x, name + ".ln2"), parameter(*g, name + ".up", {4 * kWidth, kWidth}),
                              parameter(*g, name + ".up_bias", {4 * kWidth})},
                             {{"activation", std::string("gelu_tanh")}})[0];
    x = g->op("add", {x, g->op("linear", {up, parameter(*g, name + ".down", {kWidth, 4 * kWidth})})[0]})[0];
    g->region_end(feed);
    g->region_end(block);
    if (segment > 0 && ((i + 1) % segment == 0 || i + 1 == layers)) g->region_end(around);
  }
  const auto loss = g->op("linear_cross_entropy", {norm(x, "ln"), table, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

// One thread, with every access to memory checked.
inline std::shared_ptr<device::Device> cpu() {
  device::DeviceOptions options;
  options.threads = 1;
  return device::checked(device::open("cpu", options));
}

// Parameters and inputs, the same for every plan of a graph.
inline void fill(Session& session, uint32_t seed = 1) {
  const graph::JointGraph& joint = *session.plan().joint;
  for (size_t v = 0; v < joint.values.size(); ++v) {
    const graph::JointValue& value = joint.values[v];
    if (value.role != graph::Role::kInput && value.role != graph::Role::kParameter) continue;
    std::mt19937 random(seed + static_cast<uint32_t>(value.source) * 977);
    const auto count = static_cast<size_t>(value.desc.shape.elements());
    const int32_t id = static_cast<int32_t>(v);
    if (value.desc.dtype == DType::kI32) {
      std::vector<int32_t> words(count);
      for (int32_t& w : words) w = static_cast<int32_t>(random() % 10);
      session.write(id, words.data(), value.desc.bytes());
    } else {
      std::vector<float> numbers(count);
      for (float& f : numbers) f = static_cast<float>(random() % 2001) / 5000.0f - 0.2f;
      session.write(id, numbers.data(), value.desc.bytes());
    }
  }
}

// The smallest budget that a refusal names.
inline int64_t smallest_budget(const std::shared_ptr<Graph>& graph, device::Device& device,
                               PlanOptions options) {
  options.budget_bytes = 1;
  try {
    compile(graph, device, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kOverBudget) << error.what();
    return static_cast<int64_t>(error.fault()->smallest_budget_bytes);
  }
  ADD_FAILURE() << "a budget of one byte was met";
  return 0;
}

inline std::vector<char> bytes_of(const Session& session, int32_t value) {
  std::vector<char> bytes(
      static_cast<size_t>(session.plan().joint->values[static_cast<size_t>(value)].desc.bytes()));
  session.read(value, bytes.data(), static_cast<int64_t>(bytes.size()));
  return bytes;
}

// Gradients and outputs by name.
using Result = std::map<std::string, std::vector<char>>;

inline Result result(const Session& session) {
  Result found;
  const graph::JointGraph& joint = *session.plan().joint;
  for (size_t v = 0; v < joint.values.size(); ++v)
    if (joint.values[v].role == graph::Role::kGradient || joint.values[v].role == graph::Role::kOutput)
      found[joint.values[v].name] = bytes_of(session, static_cast<int32_t>(v));
  return found;
}

inline double loss_of(const Session& session) {
  double loss = 0;
  session.read(session.plan().joint->loss, &loss, sizeof loss);
  return loss;
}

// Planned = measured: blocks, heights and live bytes, on every tier.
inline void expect_exact_memory(const Session& session) {
  const plan::Plan& plan = session.plan().plan;
  const device::TierCount arena = session.count(Tier::kDevice);
  EXPECT_EQ(arena.peak_reserved_bytes, plan.arena_bytes);
  EXPECT_EQ(arena.peak_height_bytes, plan.arena_bytes);
  EXPECT_EQ(arena.peak_live_bytes, plan.device_peak_bytes);
  int64_t persistent = 0;
  for (const plan::Value& v : session.plan().problem.values) persistent += v.persistent ? v.bytes : 0;
  EXPECT_EQ(arena.live_bytes, persistent) << "something lived on after the run";
  for (size_t link = 0; link < session.plan().link_tier.size(); ++link) {
    const Tier which = session.plan().link_tier[link];
    const device::TierCount tier = session.count(which);
    const int64_t offloaded = session.plan().offloaded_bytes[static_cast<size_t>(which)];
    EXPECT_EQ(tier.peak_reserved_bytes, offloaded + plan.tier_arena_bytes[link]);
    EXPECT_EQ(tier.peak_height_bytes, offloaded + plan.tier_arena_bytes[link]);
    EXPECT_EQ(tier.peak_live_bytes, offloaded + plan.tier_peak_bytes[link]);
    EXPECT_EQ(tier.live_bytes, session.plan().resident_bytes(which));
  }
}

}  // namespace cairn::engine
