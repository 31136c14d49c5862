// Parameters stored as bfloat16 or split: which ones, what reads them as they lie, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/graph/joint.h"

namespace cairn::graph {
namespace {

TensorDesc f32(std::initializer_list<int64_t> dims) { return {DType::kF32, Shape(dims)}; }

// A table at both ends, a layer, a norm, and a table of positions that is added.
std::shared_ptr<Graph> model(bool frozen = false) {
  auto g = std::make_shared<Graph>();
  const ValueId ids = g->input("ids", {DType::kI32, {4, 8}}),
                targets = g->input("targets", {DType::kI32, {4, 8}});
  const ValueId table = g->parameter("table", f32({19, 16}), {});
  ValueId x = g->op("embedding", {table, ids})[0];
  x = g->op("add", {x, g->parameter("positions", f32({8, 16}), {})})[0];
  x = g->op("linear", {x, g->parameter("weight", f32({16, 16}), {.frozen = frozen}),
                       g->parameter("bias", f32({16}), {})})[0];
  x = g->op("rmsnorm", {x, g->parameter("norm", f32({16}), {})})[0];
  const auto loss = g->op("linear_cross_entropy", {x, table, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

JointOptions narrow(AmpMode amp = AmpMode::kBf16) {
  JointOptions options;
  options.amp = amp;
  options.parameters = DType::kBF16;
  return options;
}

const TensorDesc& desc_of(const JointGraph& joint, std::string_view name) {
  return joint.values[static_cast<size_t>(joint.find(name))].desc;
}
// Ops of a kind that read the value.
int64_t readers(const JointGraph& joint, std::string_view name, std::string_view op) {
  const int32_t value = joint.find(name);
  return std::count_if(joint.ops().begin(), joint.ops().end(), [&](const JointOp& each) {
    return ops::name(each.code) == op && std::find(each.in.begin(), each.in.end(), value) != each.in.end();
  });
}

TEST(StoredParameters, WeightsAreNarrowAndTheRestOfTheStepIsWide) {
  const auto joint = derive(model(), narrow());
  for (const char* name : {"table", "positions", "weight"}) {
    EXPECT_EQ(desc_of(*joint, name).dtype, DType::kBF16) << name;
    for (const char* state : {"/gradient", "/m", "/v"})
      EXPECT_EQ(desc_of(*joint, cat(name, state)).dtype, DType::kF32) << name << state;
  }
  for (const char* name : {"bias", "norm"}) EXPECT_EQ(desc_of(*joint, name).dtype, DType::kF32) << name;
  std::vector<int64_t> streams;
  for (const JointOp& update : joint->ops(kUpdate)) {
    const bool rounds = joint->values[static_cast<size_t>(update.out[0])].desc.dtype == DType::kBF16;
    EXPECT_EQ(update.attrs.has("rng"), rounds) << update.name;
    if (rounds) streams.push_back(update.attrs.integer("rng"));
  }
  std::sort(streams.begin(), streams.end());
  EXPECT_EQ(std::unique(streams.begin(), streams.end()), streams.end()) << "each has a stream of its own";
  EXPECT_EQ(streams.size(), 3u);
}

TEST(StoredParameters, HalfOpsReadThemAsTheyLie) {
  const auto joint = derive(model(), narrow());
  for (const char* name : {"table", "weight"}) EXPECT_EQ(readers(*joint, name, "cast"), 0) << name;
  EXPECT_EQ(readers(*joint, "positions", "cast"), 1) << "a term that is added stays wide";
  EXPECT_EQ(readers(*joint, "weight", "linear"), 1);
  EXPECT_EQ(readers(*joint, "weight", "linear_grad_input"), 1);
  EXPECT_EQ(readers(*joint, "table", "embedding"), 1);
  EXPECT_EQ(readers(*joint, "table", "linear_cross_entropy_grad"), 1);
}

// Their gradient is float32 all the way.
TEST(StoredParameters, OthersReadAFloat32Copy) {
  JointOptions options = narrow();
  options.amp_rules = {{"linear", "", "full"}, {"embedding", "", "full"}};
  const auto joint = derive(model(), options);
  EXPECT_EQ(readers(*joint, "weight", "cast"), 1);
  EXPECT_EQ(readers(*joint, "weight", "linear"), 0);
  EXPECT_EQ(readers(*joint, "table", "cast"), 1);
  const int32_t gradient = joint->find("weight/gradient");
  for (const JointOp& op : joint->ops())
    if (std::find(op.out.begin(), op.out.end(), gradient) != op.out.end())
      for (const int32_t in : op.in)
        EXPECT_EQ(in < 0 ? DType::kF32 : joint->values[static_cast<size_t>(in)].desc.dtype, DType::kF32)
            << op.name;
  EXPECT_EQ(desc_of(*joint, "weight/gradient").dtype, DType::kF32);
}

TEST(StoredParameters, FrozenOnesAreNarrowToo) {
  const auto joint = derive(model(true), narrow());
  EXPECT_EQ(desc_of(*joint, "weight").dtype, DType::kBF16);
  EXPECT_EQ(joint->find("weight/gradient"), -1);
}

TEST(StoredParameters, OneThatIsAnOutputKeepsItsName) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->input("x", f32({4, 16})), w = g->parameter("w", f32({16, 16}), {});
  g->freeze(g->op("mse", {g->op("linear", {x, w})[0], x})[0], kNone, {w});
  const auto joint = derive(g, narrow());
  EXPECT_EQ(joint->values[static_cast<size_t>(joint->find("w"))].role, Role::kParameter);
}

TEST(SplitParameters, OnlyThoseThatNothingReadsWide) {
  JointOptions options = narrow();
  options.parameters = DType::kSplit;
  const auto joint = derive(model(), options);
  for (const char* name : {"table", "weight"}) {
    EXPECT_EQ(desc_of(*joint, name).dtype, DType::kBF16) << name;
    EXPECT_EQ(desc_of(*joint, cat(name, "/low")), (TensorDesc{DType::kSplit, desc_of(*joint, name).shape}));
  }
  for (const char* name : {"positions", "bias", "norm"}) {
    EXPECT_EQ(desc_of(*joint, name).dtype, DType::kF32) << name;
    EXPECT_EQ(joint->find(cat(name, "/low")), -1) << name;
  }
  options.amp_rules = {{"linear", "", "full"}};
  const auto other = derive(model(), options);
  EXPECT_EQ(desc_of(*other, "weight").dtype, DType::kF32) << "an op reads it in float32";
}

TEST(SplitParameters, UpdatesAloneTouchTheLowerHalf) {
  JointOptions options = narrow();
  options.parameters = DType::kSplit;
  const auto joint = derive(model(), options);
  for (const char* name : {"table", "weight"}) {
    const int32_t value = joint->find(name), low = joint->find(cat(name, "/low"));
    EXPECT_EQ(joint->low_of(value), low);
    for (const JointOp& op : joint->ops()) {
      EXPECT_EQ(std::count(op.in.begin(), op.in.end(), low), 0) << op.name;
      EXPECT_EQ(std::count(op.out.begin(), op.out.end(), low), 0) << op.name;
    }
    int64_t updates = 0;
    for (const JointOp& update : joint->ops(kUpdate)) {
      if (update.out[0] != value) continue;
      ++updates;
      EXPECT_EQ(update.out.back(), low);
      EXPECT_TRUE(update.attrs.has("split"));
      EXPECT_FALSE(update.attrs.has("rng"));
    }
    EXPECT_EQ(updates, 1);
  }
  for (const Resident& state : joint->residents)
    EXPECT_EQ(state.saved == Saved::kWithOwner, state.name.ends_with("/low"))
        << state.name << ": what is saved is whole";
}

TEST(SplitParameters, FrozenOnesKeepTheirLowerHalf) {
  JointOptions options = narrow();
  options.parameters = DType::kSplit;
  const auto joint = derive(model(true), options);
  EXPECT_GE(joint->low_of(joint->find("weight")), 0);
  EXPECT_EQ(joint->find("weight/gradient"), -1);
}

TEST(StoredParameters, WhatIsRefused) {
  const auto refused = [](const JointOptions& options, std::string_view why) {
    try {
      derive(model(), options);
      ADD_FAILURE() << "made: " << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      EXPECT_NE(std::string_view(error.what()).find(why), std::string_view::npos) << error.what();
    }
  };
  refused(narrow(AmpMode::kOff), "go with amp bf16");
  refused(narrow(AmpMode::kFp16), "go with amp bf16");
  JointOptions options = narrow();
  options.parameters = DType::kF16;
  refused(options, "f32, bf16 or split");
  options = narrow(AmpMode::kOff);
  options.parameters = DType::kSplit;
  refused(options, "stored as split go with amp bf16");
}

}  // namespace
}  // namespace cairn::graph
