// A vocabulary in parts: the bits of one in one piece, in less memory.
#include "runtime/compile/residency/vocabulary_parts.h"

#include <numeric>

#include "runtime/compile/update/streamed.h"
#include "tests/runtime/compile/parts_check.h"

namespace cairn::engine {
namespace {

using Model = PartsModel;

TEST(VocabularyParts, HaveTheBitsOfOnePiece) {
  const auto device = cpu();
  int ran = 0;
  for (const graph::AmpMode amp : {graph::AmpMode::kOff, graph::AmpMode::kBf16})
    for (const Model& m :
         {Model{}, Model{.tied = false}, Model{.weights = true, .accuracy = true, .chunk = 16},
          Model{.weights = true, .chunk = 24, .scale = 1.7, .softcap = 2}, Model{.scale = 0.3},
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

TEST(VocabularyParts, AreThoseOfExpertsToo) {
  const auto device = cpu();
  const Model m{.vocab = 3072, .rows = 48, .experts = 8};
  int ran = 0;
  for (const graph::AmpMode amp : {graph::AmpMode::kOff, graph::AmpMode::kBf16})
    for (const uint32_t micro_steps : {1u, 2u}) {
      SCOPED_TRACE(cat("amp ", static_cast<int>(amp), ", ", micro_steps, " micro-batches"));
      PlanOptions whole = in_parts(1, micro_steps), split = in_parts(3, micro_steps);
      whole.amp = split.amp = amp;
      const bool can = possible(m, split, device);
      if (can) expect_same_steps(m, whole, split, device);
      ran += can ? 1 : 0;
    }
  EXPECT_GE(ran, 2);
}

// A budget below one matrix of all experts is met.
TEST(VocabularyParts, OfExpertsMeetABudgetBelowTheirWeights) {
  const auto device = cpu();
  const Model m{.vocab = 64, .width = 64, .rows = 8, .experts = 16};
  const int64_t weights = m.experts * 2 * m.width * m.width * 4;
  PlanOptions options = in_parts(1);
  options.tiers = {Tier::kHost};
  options.budget_bytes = 1;
  const int64_t smallest = smallest_budget(graph_of(m), *device, options);
  EXPECT_LT(smallest, weights);
  options.budget_bytes = smallest;
  const auto plan = compile(graph_of(m), *device, options);
  EXPECT_GE(plan->joint->slices.size(), 4u);
  Session split(plan, device), one(compile(graph_of(m), *device, in_parts(1)), device);
  for (Session* s : {&split, &one}) {
    give(*s, m, 5);
    set_hypers(*s);
    s->run({1, 0, 0});
    s->update({1, 0, 0});
  }
  EXPECT_EQ(seen(split), seen(one));
  expect_exact_memory(split);
}

// The fused loss needs the head whole, and its gradient: parts are what meets a budget below that, and only that.
TEST(VocabularyParts, AreWhatMeetsABudgetBelowTheHead) {
  const auto device = cpu();
  const Model m{.vocab = 3072, .width = 64};
  EXPECT_GT(expect_parts_below_the_head(m, device), 0);
  PlanOptions options = in_parts(1);
  options.tiers = {Tier::kHost};
  options.budget_bytes = 4 * weight_bytes(m);
  EXPECT_TRUE(compile(graph_of(m), *device, options)->joint->slices.empty());
}

// Parts hand sums on to one another, which takes room beside them: with enough parts that is none that another op does not take.
TEST(VocabularyParts, AreAsManyAsTheSmallestBudgetTakes) {
  const auto device = cpu();
  const Model m{.vocab = 20480, .width = 64, .rows = 256};
  for (const std::vector<Tier>& tiers :
       {std::vector{Tier::kHost}, {Tier::kDisk}, {Tier::kHost, Tier::kDisk}}) {
    const auto least = [&](int64_t parts) {
      PlanOptions options = in_parts(parts);
      options.tiers = tiers;
      options.budget_bytes = 1;
      return smallest_budget(graph_of(m), *device, options);
    };
    PlanOptions options;
    options.tiers = tiers;
    options.budget_bytes = 1;
    const int64_t chosen = smallest_budget(graph_of(m), *device, options);
    for (const int64_t parts : {4, 8, 16}) EXPECT_LE(chosen, least(parts) * 102 / 100) << parts;
  }
}

// Where kernels do not reach the tier. The first gradient writes the norm, the other one adds to it.
TEST(VocabularyParts, ComeToTheNormInPiecesOfWholeChunks) {
  const auto device = device::checked(cpu());
  const Model m{.vocab = 20480 + 512, .width = 64, .tied = false};
  for (const uint32_t micro_steps : {1u, 2u})
    for (const bool tight : {false, true}) {
      PlanOptions options = in_parts(12, micro_steps);  // a part has 1504 rows or more on the tiles
      options.forced.update_on_device = true;
      if (tight) {
        options.budget_bytes = 1;
        options.budget_bytes = smallest_budget(graph_of(m), *device, options);
      }
      const auto plan = compile(graph_of(m), *device, options);
      std::vector<int64_t> pieces;
      for (const CopyJob& job : plan->program(graph::kGradientNorm).copies)
        if (job.bytes > kPageBytes) pieces.push_back(job.bytes);
      EXPECT_GE(pieces.size(), 4u);
      EXPECT_GE(std::accumulate(pieces.begin(), pieces.end(), int64_t{0}), 2 * m.vocab * m.width * 4);
      EXPECT_LE(*std::max_element(pieces.begin(), pieces.end()), kPieceBytes);
      expect_same_steps(m, in_parts(1, micro_steps), options, device);
    }
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
