// The table of kinds, the list of what persists, and the two kinds that hosts declare: statistics and caches.
#include <gtest/gtest.h>

#include <set>

#include "runtime/graph/joint.h"

namespace cairn::graph {
namespace {

TensorDesc f32(std::initializer_list<int64_t> dims) { return {DType::kF32, Shape(dims)}; }

// A linear layer whose input has its mean taken; with a loss, or the layer's result alone.
std::shared_ptr<Graph> model(bool trains) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->input("x", f32({4, 6}));
  const ValueId mean = g->resident("mean", ValueKind::kStatistic, f32({6}), 0.5);
  g->op("running_mean", {x, mean}, {{"momentum", 0.25}});
  const ValueId y = g->op("linear", {g->op("sub", {x, mean})[0], g->parameter("w", f32({3, 6}), {})})[0];
  if (!trains) {
    g->freeze(kNone, kNone, {y});
    return g;
  }
  const auto loss = g->op("mse", {y, g->input("t", f32({4, 3}))});
  g->freeze(loss[0], loss[1], {});
  return g;
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(Residents, RowsAgreeWithThemselves) {
  std::set<std::string_view> names;
  for (const KindRow& row : residents::kRows) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    if (row.is(PERSISTS)) continue;
    EXPECT_EQ(row.traits, 0u) << row.name << ": what does not persist is nobody's";
    EXPECT_EQ(row.saved, Saved::kNever) << row.name;
  }
  for (const KindRow& row : residents::kRows) {
    EXPECT_EQ(row.saved == Saved::kInStep, row.lifetime == Lifetime::kStep && row.saved != Saved::kNever)
        << row.name;
    EXPECT_TRUE(row.saved != Saved::kWithOwner || row.is(OWNED)) << row.name;
    EXPECT_TRUE(!row.is(DERIVED) || (row.is(OWNED) && row.saved == Saved::kNever)) << row.name;
    EXPECT_TRUE(!row.is(SPLITS) || (row.is(OWNED) && row.is(LEAVES))) << row.name;
    EXPECT_TRUE(!row.is(LEAVES) || row.counted != Counted::kActivations || row.is(APPENDED))
        << row.name << ": tiers count by its kind what lives there, and caches with activations";
  }
}

TEST(Residents, AreListedByOwnerThenKind) {
  JointOptions options;
  options.amp = AmpMode::kBf16;
  options.one_packed_form = true;
  options.packed_bytes = [](const TensorDesc& w, std::string_view, int64_t, DType, int) {
    return 2 * w.shape.elements();
  };
  const auto joint = derive(model(true), options);
  std::string names;
  for (const Resident& resident : joint->residents) {
    const JointValue& value = joint->values[static_cast<size_t>(resident.value)];
    if (kind(value.role).lifetime != Lifetime::kMicroBatch && resident.role != Role::kScratch)
      names += resident.name + ' ';
    EXPECT_EQ(resident.role, value.role);
    EXPECT_EQ(resident.owner >= 0, kind(value.role).is(OWNED)) << resident.name;
    ASSERT_EQ(resident.op >= 0, kind(value.role).is(DERIVED)) << resident.name;
    if (resident.op >= 0)
      EXPECT_EQ(
          joint->phases[static_cast<size_t>(resident.phase)].ops[static_cast<size_t>(resident.op)].out[0],
          resident.value);
  }
  EXPECT_EQ(names, "w w/m w/v w/packed.forward w/gradient mean mean/sum ");
  const int32_t w = joint->find("w");
  EXPECT_EQ(joint->owned(w, Role::kOptimizer),
            (std::vector<int32_t>{joint->find("w/m"), joint->find("w/v")}));
  EXPECT_TRUE(joint->owned(joint->find("mean"), Role::kSum).empty()) << "it belongs to no parameter";
}

TEST(Residents, AStatisticMovesInTrainingAlone) {
  const auto joint = derive(model(true), {});
  ASSERT_EQ(joint->ops(kStatistics).size(), 1u);
  const JointOp& move = joint->ops(kStatistics)[0];
  EXPECT_EQ(joint->phases[kStatistics].when, When::kStepIfFinite);
  EXPECT_EQ(move.in, std::vector<int32_t>{joint->find("mean/sum")});
  EXPECT_EQ(move.out, std::vector<int32_t>{joint->find("mean")});
  EXPECT_EQ(move.attrs.real("momentum"), 0.25);
  int64_t sums = 0;
  for (const JointOp& op : joint->ops()) {
    if (op.code != ops::OpCode::k_running_mean) continue;
    ++sums;
    EXPECT_EQ(op.out, move.in);
    EXPECT_EQ(op.accumulates, 1u);
    EXPECT_EQ(op.first_writer, 1u);
  }
  EXPECT_EQ(sums, 1);

  const auto evaluation = derive(model(false), {});
  EXPECT_TRUE(evaluation->ops(kStatistics).empty());
  EXPECT_EQ(evaluation->find("mean/sum"), -1);
  for (const JointOp& op : evaluation->ops()) EXPECT_NE(op.code, ops::OpCode::k_running_mean);
  EXPECT_GE(evaluation->find("mean"), 0) << "it is read";
}

TEST(Residents, WhatFollowsAnAppendReadsTheCache) {
  auto g = std::make_shared<Graph>();
  const ValueId cache = g->resident("cache", ValueKind::kCache, f32({8, 2}));
  const ValueId x = g->input("x", f32({3, 2})), at = g->input("at", {DType::kI32, {1}});
  const ValueId filled = g->op("append", {cache, x, at})[0];
  const ValueId y = g->op("reduce_sum", {filled})[0];
  g->freeze(kNone, kNone, {y});
  const auto joint = derive(g, {});
  const int32_t value = joint->find("cache");
  ASSERT_EQ(joint->ops().size(), 2u);
  EXPECT_EQ(joint->ops()[0].out, std::vector<int32_t>{value});
  EXPECT_EQ(joint->ops()[0].in[0], -1) << "it is changed in place";
  EXPECT_EQ(joint->ops()[1].in[0], value);
  const auto found = std::find_if(joint->residents.begin(), joint->residents.end(),
                                  [&](const Resident& r) { return r.value == value; });
  ASSERT_NE(found, joint->residents.end());
  EXPECT_EQ(found->saved, Saved::kNever);
  EXPECT_EQ(found->lifetime, Lifetime::kSession);
}

TEST(Residents, WhatIsRefusedIsNamed) {
  Graph g;
  const ValueId x = g.input("x", f32({4, 6})), at = g.input("at", {DType::kI32, {1}});
  const ValueId w = g.parameter("w", f32({6}), {});
  const ValueId mean = g.resident("mean", ValueKind::kStatistic, f32({6}));
  const ValueId cache = g.resident("cache", ValueKind::kCache, f32({3, 6}));
  const auto expect = [](const std::string& said, std::initializer_list<const char*> words) {
    for (const char* word : words) EXPECT_NE(said.find(word), said.npos) << "'" << word << "' in: " << said;
  };
  expect(message_of([&] { g.resident("a", ValueKind::kParameter, f32({6})); }),
         {"'a'", "statistic or a cache"});
  expect(message_of([&] {
           g.resident("a", ValueKind::kStatistic, {DType::kI32, {6}});
         }),
         {"statistic 'a'", "i32"});
  expect(message_of([&] {
           g.resident("a", ValueKind::kStatistic, {DType::kBF16, {6}});
         }),
         {"statistic 'a'", "f32"});
  expect(message_of([&] { g.resident("a", ValueKind::kCache, f32({6}), 0.0 / 0.0); }),
         {"cache 'a'", "finite"});
  expect(message_of([&] { g.resident("w", ValueKind::kCache, f32({6})); }), {"'w' exists already"});
  expect(message_of([&] { g.op("running_mean", {x, w}); }), {"running_mean", "'w' is no statistic"});
  expect(message_of([&] { g.op("append", {w, x, at}); }), {"append"});
  expect(message_of([&] { g.op("append", {mean, w, at}); }), {"append", "'mean' is no cache"});
  expect(message_of([&] { g.op("append", {cache, x, at}); }), {"append", "more rows"});
  expect(message_of([&] { g.op("running_mean", {x, mean}, {{"momentum", 1.5}}); }), {"momentum is 1.5"});
  EXPECT_TRUE(g.op("running_mean", {x, mean})[0] == kNone) << "its sums are nobody's";
  expect(message_of([&] { g.op("running_mean", {x, mean}); }), {"moves 'mean' already"});
}

}  // namespace
}  // namespace cairn::graph
