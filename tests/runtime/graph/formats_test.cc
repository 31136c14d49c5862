// What rules store parameters as: which ones, what reads them, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/graph/joint.h"

namespace cairn::graph {
namespace {

TensorDesc f32(std::initializer_list<int64_t> dims) { return {DType::kF32, Shape(dims)}; }

// A table at both ends that trains, and a frozen layer and norm between them.
std::shared_ptr<Graph> model() {
  auto g = std::make_shared<Graph>();
  const ValueId ids = g->input("ids", {DType::kI32, {4, 8}}),
                targets = g->input("targets", {DType::kI32, {4, 8}});
  const ValueId table = g->parameter("table", f32({19, 64}), {});
  ValueId x = g->op("embedding", {table, ids})[0];
  x = g->op("linear", {x, g->parameter("h.0.weight", f32({64, 64}), {.frozen = true}),
                       g->parameter("h.0.bias", f32({64}), {.frozen = true})})[0];
  x = g->op("linear", {x, g->parameter("h.1.weight", f32({64, 64}), {.frozen = true})})[0];
  x = g->op("matmul", {x, g->parameter("narrow", f32({64, 32}), {.frozen = true})})[0];
  x = g->op("linear", {x, g->parameter("head", f32({64, 32}), {})})[0];
  const auto loss = g->op("linear_cross_entropy", {x, table, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

std::shared_ptr<const JointGraph> derived(std::vector<FormatRule> rules, AmpMode amp = AmpMode::kOff,
                                          std::set<DerivedUse> not_kept = {}) {
  JointOptions options;
  options.amp = amp;
  options.not_kept = std::move(not_kept);
  options.formats = std::move(rules);
  return derive(model(), options);
}

const TensorDesc& desc_of(const JointGraph& joint, std::string_view name) {
  return joint.values[static_cast<size_t>(joint.find(name))].desc;
}

std::string refusal(std::vector<FormatRule> rules, AmpMode amp = AmpMode::kOff) {
  try {
    const auto graph = model();
    const Graph* const all[] = {graph.get()};
    check_format_rules(all, rules);
    derived(rules, amp);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  ADD_FAILURE() << "nothing is refused";
  return "";
}

TEST(FormatRules, ProductsReadBlocksAndTheLastRuleCounts) {
  for (const AmpMode amp : {AmpMode::kOff, AmpMode::kBf16, AmpMode::kFp16}) {
    const auto joint = derived({{"h.*", "int8"}, {"h.1.*", "f32"}, {"narrow", "f32"}}, amp);
    EXPECT_EQ(desc_of(*joint, "h.0.weight"), (TensorDesc{DType::kInt8, {64, 64}}));
    EXPECT_EQ(desc_of(*joint, "h.0.weight").bytes(), 64 * 68);
    for (const char* name : {"h.0.bias", "h.1.weight", "narrow", "table", "head"})
      EXPECT_EQ(desc_of(*joint, name).dtype, DType::kF32) << name;
    const int32_t weight = joint->find("h.0.weight");
    std::vector<ops::OpCode> readers;
    for (const JointOp& op : joint->ops())
      if (std::ranges::find(op.in, weight) != op.in.end()) readers.push_back(op.code);
    EXPECT_EQ(readers, (std::vector{ops::OpCode::k_linear, ops::OpCode::k_linear_grad_input}));
    EXPECT_EQ(joint->find("h.0.weight/gradient"), -1);
    EXPECT_EQ(joint->find("h.0.weight/m"), -1);
  }
}

// Rows of a table in blocks have the type of the activations.
TEST(FormatRules, LookupsAndHeadsReadBlocks) {
  auto g = std::make_shared<Graph>();
  const ValueId ids = g->input("ids", {DType::kI32, {4, 8}}),
                targets = g->input("targets", {DType::kI32, {4, 8}});
  const ValueId table = g->parameter("table", f32({19, 64}), {.frozen = true});
  const ValueId x = g->op("embedding", {table, ids})[0];
  const ValueId y = g->op("linear", {x, g->parameter("w", f32({64, 64}), {})})[0];
  const auto loss = g->op("linear_cross_entropy", {y, table, targets});
  g->freeze(loss[0], loss[1], {});
  for (const AmpMode amp : {AmpMode::kOff, AmpMode::kBf16, AmpMode::kFp16}) {
    JointOptions options;
    options.amp = amp;
    options.formats = {{"table", "nf4"}};
    const auto joint = derive(g, options);
    const DType type = amp == AmpMode::kOff    ? DType::kF32
                       : amp == AmpMode::kBf16 ? DType::kBF16
                                               : DType::kF16;
    int found = 0;
    for (const JointOp& op : joint->ops()) {
      EXPECT_NE(op.code, ops::OpCode::k_dequantise);
      if (op.code == ops::OpCode::k_embedding) {
        EXPECT_EQ(joint->values[static_cast<size_t>(op.out[0])].desc.dtype, type);
        ++found;
      }
      if (op.code == ops::OpCode::k_linear_cross_entropy_grad) {
        EXPECT_EQ(op.in[1], joint->find("table"));
        ++found;
      }
    }
    EXPECT_EQ(found, 2);
  }
}

// Of other ops: decoded whenever the parameter changed, and kept, unless the options say that micro-batches decode it.
TEST(FormatRules, WhatIsDequantisedIsDerivedLikeAPackedWeight) {
  for (const AmpMode amp : {AmpMode::kOff, AmpMode::kBf16}) {
    const std::string type = amp == AmpMode::kBf16 ? "bf16" : "f32";
    const std::vector<FormatRule> rules = {{"narrow", "mxfp4"}};
    const auto kept = derived(rules, amp), some = derived(rules, amp, {{"narrow", type}});
    ASSERT_EQ(kept->ops(kRepack).size(), 1u);
    EXPECT_TRUE(kept->not_kept.empty());
    EXPECT_TRUE(some->ops(kRepack).empty());
    EXPECT_EQ(some->ops().size(), kept->ops().size() + 1);
    EXPECT_EQ(some->backward_begin, kept->backward_begin + 1);
    ASSERT_EQ(some->not_kept.size(), 1u);
    EXPECT_EQ(use_of(*some, some->not_kept[0].node), DerivedUse("narrow", type));
    const JointOp& op = kept->ops(kRepack)[0];
    EXPECT_EQ(use_of(*kept, op), DerivedUse("narrow", type));
    EXPECT_EQ(kept->values[static_cast<size_t>(op.out[0])].name, "narrow/decoded." + type);
    EXPECT_EQ(kept->owned(kept->find("narrow"), Role::kDecoded), op.out);
    EXPECT_TRUE(some->owned(some->find("narrow"), Role::kDecoded).empty());
    for (const Resident& resident : kept->residents)
      if (resident.role == Role::kDecoded) {
        EXPECT_EQ(resident.saved, Saved::kNever);
        EXPECT_EQ(resident.op, 0);
        EXPECT_FALSE(kept->updated(op.in[0]));
      }
    EXPECT_TRUE(kept->updated(kept->find("head")));
  }
}

// A convolution and a layer in time read no blocks: both, and their gradients, are handed decoded weights.
TEST(FormatRules, SomeOpsReadWeightsDecodedAlone) {
  for (const AmpMode amp : {AmpMode::kOff, AmpMode::kBf16}) {
    auto g = std::make_shared<Graph>();
    ValueId x = g->op("linear", {g->input("x", f32({2, 5, 8})), g->parameter("first", f32({64, 8}), {})})[0];
    x = g->op("conv", {x, g->parameter("conv", f32({256, 1, 64}), {.frozen = true})})[0];
    x = g->op("lstm", {x, g->parameter("lstm", f32({256, 64}), {.frozen = true})})[0];
    g->freeze(g->op("mse", {x, g->input("y", f32({2, 5, 64}))})[0], kNone, {});
    JointOptions options;
    options.amp = amp;
    options.formats = {{"conv", "int8"}, {"lstm", "nf4"}};
    const auto joint = derive(g, options);
    EXPECT_EQ(joint->ops(kRepack).size(), 2u);
    int readers = 0;
    for (const char* name : {"conv", "lstm"}) {
      const int32_t stored = joint->find(name),
                    decoded = joint->find(cat(name, "/decoded.", amp == AmpMode::kOff ? "f32" : "bf16"));
      ASSERT_GE(decoded, 0) << name;
      for (const JointOp& op : joint->ops()) {
        EXPECT_EQ(std::ranges::find(op.in, stored), op.in.end()) << op.name;
        readers += std::ranges::find(op.in, decoded) != op.in.end() ? 1 : 0;
      }
    }
    EXPECT_EQ(readers, 4);
  }
}

TEST(FormatRules, TrainedOnesMayBeNarrowByName) {
  const auto joint = derived({{"table", "bf16"}, {"head", "split"}}, AmpMode::kBf16);
  EXPECT_EQ(desc_of(*joint, "table").dtype, DType::kBF16);
  EXPECT_EQ(desc_of(*joint, "head").dtype, DType::kBF16);
  EXPECT_EQ(desc_of(*joint, "head/low").dtype, DType::kSplit);
  EXPECT_EQ(joint->find("table/low"), -1);
  EXPECT_EQ(desc_of(*joint, "h.0.weight").dtype, DType::kF32);
}

TEST(FormatRules, FrozenOnesOf16BitsGoWithEveryAmp) {
  for (const AmpMode amp : {AmpMode::kOff, AmpMode::kBf16, AmpMode::kFp16})
    for (const DType type : {DType::kBF16, DType::kF16}) {
      const auto joint = derived({{"h.0.weight", std::string(dtype_name(type))}}, amp);
      EXPECT_EQ(desc_of(*joint, "h.0.weight").dtype, type);
      const bool as_it_lies =
          (amp == AmpMode::kBf16 && type == DType::kBF16) || (amp == AmpMode::kFp16 && type == DType::kF16);
      const int32_t weight = joint->find("h.0.weight");
      for (const JointOp& op : joint->ops())
        if (std::ranges::find(op.in, weight) != op.in.end())
          EXPECT_EQ(op.code == ops::OpCode::k_cast, !as_it_lies) << op.name;
    }
}

TEST(FormatRules, GraphsThatTrainNothingTakeAnyParameter) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->input("x", f32({2, 64}));
  const ValueId y = g->op("linear", {x, g->parameter("w", f32({8, 64}), {})})[0];
  g->freeze(kNone, kNone, {y});
  JointOptions options;
  options.formats = {{"w", "int8"}};
  EXPECT_EQ(desc_of(*derive(g, options), "w").dtype, DType::kInt8);
}

TEST(FormatRules, WhatIsRefusedIsNamed) {
  struct Row {
    std::vector<FormatRule> rules;
    std::vector<const char*> words;
  };
  for (const Row& row :
       std::vector<Row>{{{{"table", "int8"}}, {"'table'", "int8", "trained", "f32, bf16 or split"}},
                        {{{"narrow", "int8"}}, {"'narrow'", "[64, 32]", "64", "int8", "narrow=f32"}},
                        {{{"nothing*", "int8"}}, {"nothing*=int8", "no parameter", "h.0.weight"}},
                        {{{"*.bias", "int8"}}, {"*.bias=int8", "vectors", "h.0.weight"}},
                        {{{"h.*", "int3"}}, {"int3", "no such format", "f32, bf16 or split", "int8"}},
                        {{{"h.*", "dynamic8"}}, {"dynamic8", "no format of parameters", "int8"}},
                        {{{"table", "f16"}}, {"'table'", "f16", "trained"}},
                        {{{"table", "bf16"}}, {"bf16", "amp bf16"}}}) {
    const std::string message = refusal(row.rules);
    for (const char* word : row.words)
      EXPECT_NE(message.find(word), std::string::npos) << word << ": " << message;
  }
}

}  // namespace
}  // namespace cairn::graph
