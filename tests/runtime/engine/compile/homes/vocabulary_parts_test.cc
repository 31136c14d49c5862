// A vocabulary in parts: the bits of one in one piece, in less memory.
#include "runtime/engine/compile/homes/vocabulary_parts.h"

#include <cmath>
#include <limits>

#include "tests/runtime/engine/support.h"

namespace cairn::engine {
namespace {

struct Model {
  int64_t vocab = 1536, width = 32, rows = 40;
  bool tied = true, weights = false, accuracy = false, frozen = false;
  int64_t chunk = 0;
  bool trains = true;
};

std::shared_ptr<Graph> graph_of(const Model& m) {
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
  std::vector<ValueId> in = {g->op("add", {g->op("gelu", {h})[0], x})[0], head, targets};
  if (m.weights) in.push_back(g->input("weights", {DType::kF32, {m.rows}}));
  Attrs attrs = {{"ignore_index", int64_t{3}}, {"chunk", m.chunk}};
  if (m.accuracy) attrs.set("accuracy", int64_t{1});
  const auto out = g->op("linear_cross_entropy", in, attrs);
  std::vector<ValueId> read;
  if (m.accuracy) read = {out[2], out[3]};
  if (m.trains)
    g->freeze(out[0], out[1], read);
  else
    read.insert(read.end(), {out[0], out[1]}), g->freeze(graph::kNone, graph::kNone, read);
  return g;
}

PlanOptions in_parts(int64_t parts, uint32_t micro_steps = 1) {
  PlanOptions o;
  o.micro_steps = micro_steps;
  if (parts == 1) return o;
  o.tiers = {Tier::kHost};
  o.vocabulary_parts = parts;
  return o;
}

// What the host gives, by name: ids over all of the vocabulary and beyond.
void give(Session& s, const Model& m, uint32_t seed) {
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
  for (const char* name : {"table", "head", "w", "bias"}) draw(name, number);
}

// Everything that the host sees: states, outputs, the norm's square.
Result seen(const Session& s) {
  Result found;
  const graph::JointGraph& joint = *s.plan().joint;
  for (const graph::State& state : joint.states) found[state.name] = bytes_of(s, state.value);
  for (size_t v = 0; v < joint.values.size(); ++v)
    if (joint.values[v].role == graph::Role::kOutput)
      found[joint.values[v].name] = bytes_of(s, static_cast<int32_t>(v));
  return found;
}

void set_hypers(Session& s) {
  const double row[8] = {0.01, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05, 1.0};
  for (const graph::HyperBlock& hyper : s.plan().joint->hypers) s.write(hyper.value, row, sizeof row);
}

// Steps of both, which must not differ in a bit.
void expect_same_steps(const Model& m, PlanOptions whole, PlanOptions parts,
                       const std::shared_ptr<device::Device>& device) {
  const auto g = graph_of(m);
  const auto plan = compile(g, *device, parts);
  EXPECT_GE(plan->joint->slices.size(), m.frozen ? 1u : 2u);
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
bool possible(const Model& m, const PlanOptions& parts, const std::shared_ptr<device::Device>& device) {
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

TEST(VocabularyParts, HaveTheBitsOfOnePiece) {
  const auto device = cpu();
  int ran = 0;
  for (const graph::AmpMode amp : {graph::AmpMode::kOff, graph::AmpMode::kBf16})
    for (const Model& m :
         {Model{}, Model{.tied = false}, Model{.weights = true, .accuracy = true, .chunk = 16},
          Model{.vocab = 1311, .width = 40, .rows = 33}, Model{.frozen = true},
          Model{.vocab = 9000, .width = 64, .rows = 300, .accuracy = true}})
      for (const int64_t parts : {2, 5}) {
        if (m.vocab == 9000 && parts == 2) continue;
        SCOPED_TRACE(cat(m.vocab, " x ", m.width, ", ", m.rows, " rows, ", parts, " parts, amp ",
                         static_cast<int>(amp)));
        PlanOptions whole = in_parts(1), split = in_parts(parts);
        whole.amp = split.amp = amp;
        const bool can = possible(m, split, device);
        if (m.vocab == 1536 && parts == 2) EXPECT_TRUE(can);
        if (can) expect_same_steps(m, whole, split, device);
        ran += can ? 1 : 0;
      }
  EXPECT_GE(ran, 6);
}

TEST(VocabularyParts, AccumulateOverMicroBatches) {
  const auto device = cpu();
  for (const char* optimizer : {"adamw", "sgd", "adafactor", "adamw8", "lion"}) {
    SCOPED_TRACE(optimizer);
    PlanOptions whole = in_parts(1, 3), split = in_parts(2, 3);
    whole.optimizer.name = split.optimizer.name = optimizer;
    expect_same_steps({.tied = false}, whole, split, device);
  }
}

TEST(VocabularyParts, OfSplitParametersAndUnderALossScale) {
  const auto device = cpu();
  for (const DType stored : {DType::kF32, DType::kBF16, DType::kSplit}) {
    PlanOptions whole = in_parts(1), split = in_parts(2);
    whole.amp = split.amp = graph::AmpMode::kBf16;
    whole.parameters = split.parameters = stored;
    expect_same_steps({.width = 64}, whole, split, device);
  }
  PlanOptions whole = in_parts(1), split = in_parts(2);
  whole.amp = split.amp = graph::AmpMode::kFp16;
  expect_same_steps({}, whole, split, device);
}

// The fused loss needs the head whole, and its gradient: parts are what meets a budget below that, and only that.
TEST(VocabularyParts, AreWhatMeetsABudgetBelowTheHead) {
  const auto device = cpu();
  const Model m{.vocab = 3072, .width = 64};
  constexpr int64_t kWeight = int64_t{3072} * 64 * 4;
  PlanOptions options = in_parts(1);
  options.tiers = {Tier::kHost};
  options.budget_bytes = 1;
  int64_t smallest = 0;
  try {
    compile(graph_of(m), *device, options);
    FAIL() << "a budget of one byte was met";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kOverBudget);
    smallest = static_cast<int64_t>(error.fault()->smallest_budget_bytes);
    EXPECT_LT(smallest, kWeight);
    EXPECT_NE(std::string(error.what()).find("'table' is in "), std::string::npos) << error.what();
  }
  options.budget_bytes = smallest;
  expect_same_steps(m, in_parts(1), options, device);
  options.budget_bytes = 4 * kWeight;
  EXPECT_TRUE(compile(graph_of(m), *device, options)->joint->slices.empty());
}

// Whatever the number of words, a part is small: sums in blocks end where parts do, and the steps of a block are no odd number.
TEST(VocabularyParts, AreSmallInAnyVocabulary) {
  const auto device = device::open("cpu", {.threads = 1});
  for (const int64_t vocab : {50257, 50304, 50000, 151936}) {
    // A width and rows in whole panels, with which sums on the tiles need not end in some blocks alone.
    const Model m{.vocab = vocab, .width = 64, .rows = 64};
    const auto joint = compile(graph_of(m), *device, {})->joint;
    const PartUnits units = part_units({&joint, 1}, device->kernels(), 1);
    ASSERT_EQ(units.size(), 1u) << vocab;
    EXPECT_LE(units.begin()->second, 1024) << vocab;
  }
}

TEST(VocabularyParts, AreSharedByProgramsOnOneStore) {
  const auto device = cpu();
  const Model trains, longer{.rows = 56}, evaluates{.rows = 72, .accuracy = true, .trains = false};
  const std::vector<ProgramGraph> graphs = {
      {"train", graph_of(trains)}, {"long", graph_of(longer)}, {"eval", graph_of(evaluates)}};
  std::vector<std::vector<Result>> results;
  for (const int64_t parts : {1, 2}) {
    const auto plans = compile_set(graphs, *device, in_parts(parts, 2));
    for (const auto& plan : plans) {
      EXPECT_EQ(plan::violation(plan->problem, plan->plan), "");
      EXPECT_EQ(plan->joint->slices.empty(), parts == 1);
    }
    const auto sessions = Session::open(plans, device);
    give(*sessions[2], evaluates, 7);
    give(*sessions[1], longer, 6);
    give(*sessions[0], trains, 5);
    std::vector<Result> found;
    for (uint32_t step = 0; step < 2; ++step) {
      set_hypers(*sessions[0]);
      sessions[0]->run({1, step, 0});
      sessions[1]->run({1, step, 1});
      sessions[0]->update({1, step, 0});
      sessions[2]->run({1, step, 0});
      for (const auto& session : sessions) found.push_back(seen(*session));
    }
    results.push_back(std::move(found));
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  for (size_t i = 0; i < results[0].size(); ++i)
    for (const auto& [name, bytes] : results[0][i]) EXPECT_TRUE(results[1][i].at(name) == bytes) << name;
}

TEST(VocabularyParts, RefuseWhatCannotBe) {
  const auto device = cpu();
  const auto refused = [&](const std::shared_ptr<Graph>& g, PlanOptions options, Code code,
                           const std::string& why) {
    try {
      compile(g, *device, options);
      ADD_FAILURE() << "no error that says: " << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  };
  const auto g = graph_of({});
  refused(g, in_parts(1537), Code::kInvalidArgument, "it goes in at most ");
  PlanOptions nowhere = in_parts(2);
  nowhere.tiers.clear();
  refused(g, nowhere, Code::kInvalidArgument, "parts of a vocabulary live in a tier: name one (host, disk)");
  PlanOptions fused = in_parts(2);
  fused.fuse_update = true;
  refused(g, fused, Code::kInvalidArgument, "does not go with an update fused into backward");
  refused(mlp(), in_parts(2), Code::kUnsupported, "no weight goes in parts");
}

}  // namespace
}  // namespace cairn::engine
