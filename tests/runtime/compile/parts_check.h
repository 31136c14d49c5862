// A model whose vocabulary may go in parts, and steps of it in one piece and in parts: the same bits, on every backend.
#pragma once
#include <cmath>

#include "runtime/compile/residency/vocabulary_parts.h"
#include "tests/runtime/compile/support.h"

namespace cairn::engine {

struct PartsModel {
  int64_t vocab = 1536, width = 32, rows = 40;
  bool tied = true, weights = false, accuracy = false, frozen = false;
  int64_t chunk = 0;
  bool trains = true;
  double scale = 1, softcap = 0;  // of logits; 0: no cap
  int64_t experts = 0;            // of a layer with biases, of which a row takes two; 0: no such layer
};

// What two of the experts make of each row of x.
inline ValueId mixture(Graph& g, const PartsModel& m, ValueId x) {
  const auto routed = g.op("route", {g.op("linear", {x, parameter(g, "router", {m.experts, m.width})})[0]},
                           {{"k", int64_t{2}}});
  const auto groups = g.op("group_rows", {routed[1]}, {{"experts", m.experts}});
  const ValueId rows = g.op("gather_rows", {x, groups[0], groups[1]})[0];
  const ValueId up = parameter(g, "up", {m.experts, 2 * m.width, m.width}),
                down = parameter(g, "down", {m.experts, 2 * m.width, m.width}),
                bias = parameter(g, "up_bias", {m.experts, 2 * m.width});
  const ValueId h = g.op("gelu", {g.op("grouped_linear", {rows, up, groups[2], bias})[0]})[0];
  const ValueId y = g.op("grouped_linear", {h, down, groups[2]}, {{"transposed", int64_t{1}}})[0];
  return g.op("combine_rows", {y, groups[0], groups[1], routed[0]})[0];
}

inline std::shared_ptr<Graph> graph_of(const PartsModel& m) {
  auto g = std::make_shared<Graph>();
  const ValueId ids = g->input("ids", {DType::kI32, {m.rows}});
  const ValueId targets = g->input("targets", {DType::kI32, {m.rows}});
  const auto table_of = [&](const std::string& name) {
    return g->parameter(name, {DType::kF32, {m.vocab, m.width}}, {.frozen = m.frozen});
  };
  const ValueId bias = parameter(*g, "bias", {m.width}), table = table_of("table");
  const ValueId head = m.tied ? table : table_of("head");
  const ValueId x = g->op("embedding", {table, ids})[0];
  const ValueId h = g->op("linear", {x, parameter(*g, "w", {m.width, m.width}), bias})[0];
  ValueId hidden = g->op("add", {g->op("gelu", {h})[0], x})[0];
  if (m.experts > 0) hidden = g->op("add", {hidden, mixture(*g, m, hidden)})[0];
  std::vector<ValueId> in = {hidden, head, targets};
  if (m.weights) in.push_back(g->input("weights", {DType::kF32, {m.rows}}));
  Attrs attrs = {{"ignore_index", int64_t{3}}, {"chunk", m.chunk}};
  if (m.accuracy) attrs.set("accuracy", int64_t{1});
  if (m.scale != 1) attrs.set("scale", m.scale);
  if (m.softcap > 0) attrs.set("softcap", m.softcap);
  const auto out = g->op("linear_cross_entropy", in, attrs);
  std::vector<ValueId> read;
  if (m.accuracy) read = {out[2], out[3]};
  if (m.trains)
    g->freeze(out[0], out[1], read);
  else
    read.insert(read.end(), {out[0], out[1]}), g->freeze(graph::kNone, graph::kNone, read);
  return g;
}

inline PlanOptions in_parts(int64_t parts, uint32_t micro_steps = 1) {
  PlanOptions o;
  o.micro_steps = micro_steps;
  if (parts == 1) return o;
  o.tiers = {Tier::kHost};
  o.forced.vocabulary_parts = parts;
  return o;
}

// What the host gives, by name: ids over all of the vocabulary and beyond.
inline void give(Session& s, const PartsModel& m, uint32_t seed) {
  const graph::JointGraph& joint = *s.plan().joint;
  const auto draw = [&](const std::string& name, auto make) {
    const int32_t v = joint.find(name);
    if (v < 0) return;
    std::mt19937 random(seed + static_cast<uint32_t>(std::hash<std::string>()(name)));
    std::vector<decltype(make(random))> numbers(
        static_cast<size_t>(joint.values[static_cast<size_t>(v)].desc.shape.elements()));
    for (auto& n : numbers) n = make(random);
    if constexpr (std::is_same_v<decltype(make(random)), int32_t>)
      s.write(v, numbers.data(), static_cast<int64_t>(numbers.size()) * 4);
    else if (joint.values[static_cast<size_t>(v)].role == graph::Role::kParameter)
      s.write_declared(v, numbers.data());
    else
      s.write(v, numbers.data(), static_cast<int64_t>(numbers.size()) * 4);
  };
  const auto number = [](std::mt19937& r) { return static_cast<float>(r() % 2001) / 2500.0f - 0.4f; };
  const auto id = [&](std::mt19937& r) { return static_cast<int32_t>(r() % static_cast<uint32_t>(m.vocab)); };
  const auto target = [&](std::mt19937& r) { return r() % 7 == 0 ? 3 : id(r); };
  draw("ids", id);
  draw("targets", target);
  draw("weights", [](std::mt19937& r) { return static_cast<float>(r() % 4) / 2; });
  for (const char* name : {"table", "head", "w", "bias", "router", "up", "down", "up_bias"})
    draw(name, number);
}

// Everything that the host sees: states, outputs, the norm's square.
inline Result seen(const Session& s) {
  Result found;
  const graph::JointGraph& joint = *s.plan().joint;
  for (const graph::Resident& state : joint.residents)
    if (state.saved != graph::Saved::kNever) found[state.name] = bytes_of(s, state.value);
  for (size_t v = 0; v < joint.values.size(); ++v)
    if (joint.values[v].role == graph::Role::kOutput)
      found[joint.values[v].name] = bytes_of(s, static_cast<int32_t>(v));
  return found;
}

inline void set_hypers(Session& s) {
  const double row[8] = {0.01, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05, 1.0};
  for (const graph::HyperBlock& hyper : s.plan().joint->hypers) s.write(hyper.value, row, sizeof row);
}

// Steps of both, which must not differ in a bit.
inline void expect_same_steps(const PartsModel& m, PlanOptions whole, PlanOptions parts,
                              const std::shared_ptr<device::Device>& device) {
  const auto g = graph_of(m);
  const auto plan = compile(g, *device, parts);
  EXPECT_GE(plan->joint->slices.size(), (m.frozen ? 1u : 2u) + (m.experts > 0 ? 4 : 0));
  EXPECT_EQ(plan::violation(plan->problem, plan->plan), "");
  Session split(plan, device), one(compile(g, *device, whole), device);
  EXPECT_TRUE(one.plan().joint->slices.empty());
  for (Session* s : {&split, &one}) {
    give(*s, m, 5);
    set_hypers(*s);
  }
  for (uint32_t step = 0; step < 2; ++step) {
    for (uint32_t micro = 0; micro < whole.micro_steps; ++micro)
      for (Session* s : {&split, &one}) s->run({1, step, micro});
    EXPECT_EQ(split.gradient_squares(), one.gradient_squares());
    EXPECT_TRUE(std::isfinite(loss_of(one)));
    for (Session* s : {&split, &one}) s->update({1, step, 0});
    const Result a = seen(split), b = seen(one);
    EXPECT_EQ(a.size(), b.size());
    for (const auto& [name, bytes] : b) EXPECT_TRUE(a.at(name) == bytes) << name << ", step " << step;
  }
  expect_exact_memory(split);
}

// False: the processor's kernels cannot make the bits of the whole from so many parts.
inline bool possible(const PartsModel& m, const PlanOptions& parts,
                     const std::shared_ptr<device::Device>& device) {
  try {
    compile(graph_of(m), *device, parts);
    return true;
  } catch (const Error& error) {
    const std::string what = error.what();
    if (what.find(" parts, not ") == std::string::npos &&
        what.find("no weight goes in parts") == std::string::npos)
      throw;
    return false;
  }
}

inline int64_t weight_bytes(const PartsModel& m) { return m.vocab * m.width * 4; }

// The smallest budget with a host tier is below the weight alone, names the parts, and gives the bits of a run without one. Returns it.
inline int64_t expect_parts_below_the_head(const PartsModel& m,
                                           const std::shared_ptr<device::Device>& device) {
  PlanOptions options = in_parts(1);
  options.tiers = {Tier::kHost};
  options.budget_bytes = 1;
  int64_t smallest = 0;
  try {
    compile(graph_of(m), *device, options);
    ADD_FAILURE() << "a budget of one byte was met";
    return 0;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kOverBudget);
    smallest = static_cast<int64_t>(error.fault()->smallest_budget_bytes);
    EXPECT_LT(smallest, weight_bytes(m));
    EXPECT_NE(std::string(error.what()).find("'table' is in "), std::string::npos) << error.what();
  }
  options.budget_bytes = smallest;
  expect_same_steps(m, in_parts(1), options, device);
  return smallest;
}

}  // namespace cairn::engine
