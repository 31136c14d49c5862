// Frozen parameters in formats that ops do not read: runs are, to the bit, those of the numbers that the format stores.
#include <algorithm>
#include <cmath>
#include <set>

#include "runtime/compile/derived_weights.h"
#include "tests/runtime/compile/update_check.h"

namespace cairn::engine {
namespace {

constexpr int kLayers = 4;
constexpr int64_t kDecoded = 256 * 64 * 4;  // bytes of a weight as ops read it

// Products that read blocks, or those of ops that read what is decoded.
enum class Layers : uint8_t { kLinear, kMatmul };

// Frozen layers, under one that trains and so hands gradients through all of them, and one above.
std::shared_ptr<Graph> model(bool evaluation = false, Layers layers = Layers::kMatmul, int64_t rows = 32) {
  auto g = std::make_shared<Graph>();
  const ValueId ids = g->input("ids", {DType::kI32, {rows}}), t = g->input("t", {DType::kF32, {rows, 64}});
  const auto product = [&](ValueId of, ValueId w) {
    return layers == Layers::kLinear ? g->op("linear", {of, w})[0]
                                     : g->op("matmul", {of, w}, {{"transpose_b", int64_t{1}}})[0];
  };
  ValueId x = g->op("embedding", {parameter(*g, "table", {10, 64}), ids})[0];
  for (int i = 0; i < kLayers; ++i) {
    const std::string name = cat("h.", i);
    const ValueId up = g->parameter(name + ".up", {DType::kF32, {256, 64}}, {.frozen = true}),
                  down = g->parameter(name + ".down", {DType::kF32, {64, 256}}, {.frozen = true});
    x = g->op("add", {x, product(g->op("gelu", {product(x, up)})[0], down)})[0];
  }
  x = g->op("linear", {x, parameter(*g, "head", {64, 64})})[0];
  if (evaluation) {
    g->freeze(graph::kNone, graph::kNone, {g->op("mse", {x, t})[0]});
    return g;
  }
  const auto loss = g->op("mse", {x, t});
  g->freeze(loss[0], loss[1], {});
  return g;
}

PlanOptions stored_as(const std::string& format, graph::AmpMode amp = graph::AmpMode::kOff) {
  PlanOptions options;
  options.amp = amp;
  options.formats = {{"h.*", format}};
  return options;
}

std::vector<float> numbers_of(const Session& session, std::string_view name) {
  const int32_t value = session.plan().joint->find(name);
  std::vector<float> numbers(static_cast<size_t>(session.declared(value).shape.elements()));
  session.read_declared(value, numbers.data());
  return numbers;
}

// Parameters from `from`, or drawn; inputs.
void fill_declared(Session& session, const Session* from = nullptr) {
  const graph::JointGraph& joint = *session.plan().joint;
  for (size_t v = 0; v < joint.values.size(); ++v) {
    const graph::JointValue& value = joint.values[v];
    const auto id = static_cast<int32_t>(v);
    if (value.role != graph::Role::kInput && value.role != graph::Role::kParameter) continue;
    std::mt19937 random(17 + static_cast<uint32_t>(value.source));
    std::vector<float> numbers(static_cast<size_t>(session.declared(id).shape.elements()));
    std::vector<int32_t> words(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) {
      words[i] = static_cast<int32_t>(random() % 10);
      numbers[i] = static_cast<float>(random() % 2001) / 8000.0f - 0.125f;
    }
    if (from != nullptr && value.role == graph::Role::kParameter) numbers = numbers_of(*from, value.name);
    if (value.desc.dtype == DType::kI32)
      session.write_declared(id, words.data());
    else
      session.write_declared(id, numbers.data());
  }
  set_hyper(session);
}

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> parameters;
  bool operator==(const Trained&) const = default;
};
Trained train(Session& session) {
  Trained found;
  for (uint64_t i = 0; i < 3; ++i) {
    step(session, i);
    found.losses.push_back(loss_of(session));
  }
  for (const char* name : {"table", "head", "h.0.up", "h.3.down"})
    found.parameters[name] = numbers_of(session, name);
  return found;
}

// In a micro-batch.
int64_t times_decoded(const CompiledPlan& plan) {
  std::set<int32_t> kernels;
  for (size_t i = 0; i < plan.joint->ops().size(); ++i)
    if (plan.joint->ops()[i].code == ops::OpCode::k_dequantise)
      kernels.insert(plan.op_kernel[graph::kMicroBatch][i]);
  return std::ranges::count_if(plan.program().launches,
                               [&](const Launch& launch) { return kernels.contains(launch.kernel); });
}

TEST(Formats, ARunIsThatOfTheNumbersThatAreStored) {
  for (const char* name : {"reference", "cpu"})
    for (const graph::AmpMode amp : {graph::AmpMode::kOff, graph::AmpMode::kBf16}) {
      SCOPED_TRACE(cat(name, amp == graph::AmpMode::kOff ? "" : " bf16"));
      const auto device = device::checked(device::open(name, {.threads = 1}));
      const auto stored = compile(model(), *device, stored_as("int8", amp));
      const auto plain =
          compile(model(), *device, stored_as(amp == graph::AmpMode::kOff ? "f32" : "bf16", amp));
      Session one(stored, device), two(plain, device);
      fill_declared(one);
      fill_declared(two, &one);
      const std::vector<float> drawn = numbers_of(one, "h.0.up");
      EXPECT_GT(std::ranges::count_if(drawn, [](float f) { return f != 0; }), 16000);
      const Trained found = train(one);
      EXPECT_EQ(found.losses, train(two).losses);
      EXPECT_EQ(found.parameters.at("h.0.up"), drawn);
      for (const char* trained : {"table", "head"})
        EXPECT_EQ(found.parameters.at(trained), numbers_of(two, trained)) << trained;
      expect_exact_memory(one);
      const int64_t fewer = plain->memory_at_peak().parameters - stored->memory_at_peak().parameters;
      if (amp == graph::AmpMode::kOff)  // else there are packed weights, too
        EXPECT_EQ(fewer, 2 * kLayers * 256 * (64 * 4 - 68));
      else
        EXPECT_GT(fewer, 0);
    }
}

// Those of 16 bits, which ops read as they lie or through a cast, too.
TEST(Formats, EveryOneTrainsAsItsNumbersDo) {
  for (const DType type : kDTypes) {
    const Format& row = format(type);
    const bool of_parameters = row.read == Read::kDequantised || type == DType::kBF16 || type == DType::kF16;
    if (!of_parameters || 64 % row.row != 0) continue;
    for (const graph::AmpMode amp : {graph::AmpMode::kOff, graph::AmpMode::kBf16, graph::AmpMode::kFp16}) {
      SCOPED_TRACE(cat(row.name, " amp ", static_cast<int>(amp)));
      const auto device = cpu();
      Session one(compile(model(), *device, stored_as(std::string(row.name), amp)), device),
          two(compile(model(), *device, stored_as("f32", amp)), device);
      fill_declared(one);
      fill_declared(two, &one);
      EXPECT_EQ(train(one), train(two));
      expect_exact_memory(one);
    }
  }
}

// Forward and backward, in formats whose blocks are rows, parts of rows and several rows.
TEST(Formats, ProductsReadBlocksThemselves) {
  for (const char* name : {"reference", "cpu"})
    for (const graph::AmpMode amp : {graph::AmpMode::kOff, graph::AmpMode::kBf16})
      for (const char* format : {"int8", "nf4", "q4_0", "mxfp4"}) {
        SCOPED_TRACE(cat(name, ' ', format, amp == graph::AmpMode::kOff ? "" : " bf16"));
        const auto device = device::checked(device::open(name, {.threads = 1}));
        const auto stored = compile(model(false, Layers::kLinear), *device, stored_as(format, amp));
        const auto plain = compile(model(false, Layers::kLinear), *device,
                                   stored_as(amp == graph::AmpMode::kOff ? "f32" : "bf16", amp));
        EXPECT_EQ(times_decoded(*stored), 0);
        Session one(stored, device), two(plain, device);
        fill_declared(one);
        fill_declared(two, &one);
        const Trained found = train(one);
        EXPECT_EQ(found.losses, train(two).losses);
        for (const char* trained : {"table", "head"})
          EXPECT_EQ(found.parameters.at(trained), numbers_of(two, trained)) << trained;
        expect_exact_memory(one);
      }
}

// With many rows a decoded copy pays; without room for it there is none, and the bits are the same.
TEST(Formats, PlansKeepDecodedCopiesOfBlocksOrNone) {
  const auto device = cpu();
  for (const graph::AmpMode amp : {graph::AmpMode::kOff, graph::AmpMode::kBf16}) {
    const auto graph = model(false, Layers::kLinear, 256);
    PlanOptions options = stored_as("nf4", amp);
    const auto whole = compile(graph, *device, options);
    if (amp == graph::AmpMode::kOff) EXPECT_GT(kept_bytes(*whole, graph::Role::kDecoded), 0);
    EXPECT_EQ(
        kept_bytes(*compile(model(true, Layers::kLinear, 256), *device, options), graph::Role::kDecoded), 0)
        << "nothing is trained";
    Session first(whole, device);
    fill_declared(first);
    const Trained expected = train(first);
    expect_exact_memory(first);
    const int64_t least = smallest_budget(graph, *device, options);
    for (const double share : {0.5, 0.0}) {
      options.budget_bytes =
          least + static_cast<int64_t>(share * static_cast<double>(whole->plan.arena_bytes - least));
      const auto plan = compile(graph, *device, options);
      if (share == 0) EXPECT_EQ(kept_bytes(*plan, graph::Role::kDecoded), 0);
      Session session(plan, device);
      fill_declared(session);
      EXPECT_EQ(train(session), expected) << share;
      expect_exact_memory(session);
    }
    options.budget_bytes = 0;
  }
}

TEST(Formats, PlansKeepWhatIsDecodedOrDecodeItAgainAndTheBitsAreTheSame) {
  const auto device = cpu();
  const auto graph = model();
  const PlanOptions options = stored_as("int8");
  const auto whole = compile(graph, *device, options);
  EXPECT_EQ(times_decoded(*whole), 0) << "what is kept is decoded when the parameters changed";
  EXPECT_EQ(kept_bytes(*whole, graph::Role::kDecoded), 2 * kLayers * kDecoded);
  Session first(whole, device);
  fill_declared(first);
  const Trained expected = train(first);
  for (const std::vector<Tier>& tiers :
       {std::vector<Tier>{}, {Tier::kHost}, {Tier::kDisk}, {Tier::kHost, Tier::kDisk}}) {
    PlanOptions tight = options;
    tight.tiers = tiers;
    tight.forced.update_on_device = true;
    tight.budget_bytes = smallest_budget(graph, *device, tight);
    const auto plan = compile(graph, *device, tight);
    if (tiers.empty()) {
      EXPECT_GT(times_decoded(*plan), 2 * kLayers);
      EXPECT_EQ(kept_bytes(*plan, graph::Role::kDecoded), 0);
    }
    Session session(plan, device);
    fill_declared(session);
    EXPECT_EQ(train(session), expected) << tiers.size() << " tiers";
    expect_exact_memory(session);
  }
}

// A budget keeps as many decoded weights as it has room for; with more of it, plans are no slower. Bits and bytes hold.
TEST(Formats, ABudgetKeepsAsManyDecodedWeightsAsItHasRoomFor) {
  const auto device = cpu();
  const auto graph = model();
  PlanOptions options = stored_as("int8");
  options.micro_steps = 4;
  const auto whole = compile(graph, *device, options);
  Session first(whole, device);
  fill_declared(first);
  const Trained expected = train(first);
  const int64_t least = smallest_budget(graph, *device, options);
  int64_t most = kept_bytes(*whole, graph::Role::kDecoded), between = 0;
  double fastest = 0;
  for (const double share : {1.0, 0.75, 0.5, 0.25, 0.0}) {
    options.budget_bytes =
        least + static_cast<int64_t>(share * static_cast<double>(whole->plan.arena_bytes - least));
    const auto plan = compile(graph, *device, options);
    const int64_t kept = kept_bytes(*plan, graph::Role::kDecoded);
    EXPECT_EQ(kept + not_kept_bytes(*plan, graph::Role::kDecoded), 2 * kLayers * kDecoded);
    EXPECT_LE(kept, most) << share;
    between += kept > 0 && kept < most ? 1 : 0;
    EXPECT_GE(plan->plan.predicted_seconds, fastest) << share;
    EXPECT_EQ(plan::violation(plan->problem, plan->plan), "");
    Session session(plan, device);
    fill_declared(session);
    EXPECT_EQ(train(session), expected) << share;
    expect_exact_memory(session);
    most = kept;
    fastest = plan->plan.predicted_seconds;
  }
  EXPECT_GT(between, 0) << "never some and not all";
  EXPECT_EQ(most, 0) << "the smallest budget keeps none";
}

// A derived weight is made of its parameter whenever the host changed that, and only then.
TEST(Formats, WhatIsKeptIsDecodedAgainWhereTheHostWritesTheParameter) {
  const auto device = cpu();
  const auto plan = compile(model(), *device, stored_as("int8"));
  Session session(plan, device), fresh(plan, device);
  fill_declared(session);
  train(session);
  std::vector<float> numbers = numbers_of(session, "h.1.up");
  for (float& number : numbers) number = -number;
  session.write_declared(plan->joint->find("h.1.up"), numbers.data());
  fill_declared(fresh, &session);
  session.run({7, 9, 0});
  fresh.run({7, 9, 0});
  EXPECT_EQ(loss_of(session), loss_of(fresh));
}

// Policies for activations hold for what is decoded, and without a backward part and a budget nothing is kept.
TEST(Formats, WhatAPolicyWantsRecomputedIsNotKept) {
  const auto device = cpu();
  PlanOptions options = stored_as("int8");
  for (const Policy policy : {Policy::kPlannerDecides, Policy::kKeep, Policy::kRecompute}) {
    options.policy = policy;
    EXPECT_EQ(kept_bytes(*compile(model(), *device, options), graph::Role::kDecoded) > 0,
              policy != Policy::kRecompute);
  }
  options.policy = Policy::kPlannerDecides;
  const auto lean = compile(model(true), *device, options);
  EXPECT_EQ(times_decoded(*lean), 2 * kLayers);
  options.budget_bytes = int64_t{1} << 30;
  const auto wide = compile(model(true), *device, options);
  EXPECT_EQ(times_decoded(*wide), 0);
  EXPECT_LT(lean->plan.arena_bytes, wide->plan.arena_bytes);
}

TEST(Formats, ProgramsOfOneStoreReadTheSameBytes) {
  const auto device = cpu();
  const ProgramGraph graphs[] = {{"training", model()}, {"evaluation", model(true)}};
  const auto plans = compile_set(graphs, *device, stored_as("int8"));
  for (const auto& plan : plans) EXPECT_EQ(times_decoded(*plan), 0) << "one copy serves both";
  const auto sessions = Session::open({plans[0], plans[1]}, device);
  fill_declared(*sessions[0]);
  EXPECT_EQ(numbers_of(*sessions[1], "h.2.up"), numbers_of(*sessions[0], "h.2.up"));
  for (const char* input : {"ids", "t"}) {
    std::vector<int32_t> words(
        static_cast<size_t>(sessions[0]->declared(sessions[0]->plan().joint->find(input)).shape.elements()));
    sessions[0]->read_declared(sessions[0]->plan().joint->find(input), words.data());
    sessions[1]->write_declared(sessions[1]->plan().joint->find(input), words.data());
  }
  sessions[0]->run({7, 0, 0});
  sessions[1]->run({7, 0, 0});
  double loss = 0;
  const graph::JointGraph& joint = *plans[1]->joint;
  for (size_t v = 0; v < joint.values.size(); ++v)
    if (joint.values[v].role == graph::Role::kOutput && joint.values[v].desc.dtype == DType::kF64)
      sessions[1]->read(static_cast<int32_t>(v), &loss, sizeof loss);
  EXPECT_EQ(loss, loss_of(*sessions[0]));
}

TEST(Formats, NumbersThatTheFormatCannotStoreAreRefused) {
  const auto device = cpu();
  Session session(compile(model(), *device, stored_as("int8")), device);
  fill_declared(session);
  std::vector<float> numbers = numbers_of(session, "h.0.up");
  numbers[77] = std::nanf("");
  try {
    session.write_declared(session.plan().joint->find("h.0.up"), numbers.data());
    ADD_FAILURE() << "a NaN is stored";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    for (const char* word : {"h.0.up", "int8", "finite"})
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace cairn::engine
