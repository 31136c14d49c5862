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

TEST(FormatRules, OpsReadWhatIsDequantisedAndTheLastRuleCounts) {
  for (const AmpMode amp : {AmpMode::kOff, AmpMode::kBf16, AmpMode::kFp16}) {
    const std::string type = amp == AmpMode::kBf16 ? "bf16" : "f32";
    const auto joint =
        derived({{"h.*", "int8"}, {"h.1.*", "f32"}, {"narrow", "f32"}}, amp, {{"h.0.weight", type}});
    EXPECT_EQ(desc_of(*joint, "h.0.weight"), (TensorDesc{DType::kInt8, {64, 64}}));
    EXPECT_EQ(desc_of(*joint, "h.0.weight").bytes(), 64 * 68);
    for (const char* name : {"h.0.bias", "h.1.weight", "narrow", "table", "head"})
      EXPECT_EQ(desc_of(*joint, name).dtype, DType::kF32) << name;
    const int32_t weight = joint->find("h.0.weight");
    int made = 0, backward = 0;
    for (const JointOp& op : joint->ops()) {
      const bool reads = std::ranges::find(op.in, weight) != op.in.end();
      EXPECT_EQ(reads, op.code == ops::OpCode::k_dequantise) << op.name;
      if (!reads) continue;
      ++made;
      EXPECT_EQ(joint->values[static_cast<size_t>(op.out[0])].desc.dtype,
                amp == AmpMode::kBf16 ? DType::kBF16 : DType::kF32);
      for (const JointOp& reader : joint->ops())
        backward += reader.backward && std::ranges::find(reader.in, op.out[0]) != reader.in.end() ? 1 : 0;
    }
    EXPECT_EQ(made, 1);
    EXPECT_EQ(backward, 1);  // the input's gradient
    EXPECT_EQ(joint->find("h.0.weight/gradient"), -1);
    EXPECT_EQ(joint->find("h.0.weight/m"), -1);
  }
}

// Decoded whenever the parameter changed, and kept, unless the options say that micro-batches decode it.
TEST(FormatRules, WhatIsDequantisedIsDerivedLikeAPackedWeight) {
  for (const AmpMode amp : {AmpMode::kOff, AmpMode::kBf16}) {
    const std::string type = amp == AmpMode::kBf16 ? "bf16" : "f32";
    const std::vector<FormatRule> rules = {{"h.*", "int8"}};
    const auto kept = derived(rules, amp), some = derived(rules, amp, {{"h.1.weight", type}});
    EXPECT_EQ(kept->ops(kRepack).size(), 2u);
    EXPECT_TRUE(kept->not_kept.empty());
    ASSERT_EQ(some->ops(kRepack).size(), 1u);
    EXPECT_EQ(some->ops().size(), kept->ops().size() + 1);
    EXPECT_EQ(some->backward_begin, kept->backward_begin + 1);
    ASSERT_EQ(some->not_kept.size(), 1u);
    EXPECT_EQ(use_of(*some, some->not_kept[0].node), DerivedUse("h.1.weight", type));
    const JointOp& op = some->ops(kRepack)[0];
    EXPECT_EQ(use_of(*some, op), DerivedUse("h.0.weight", type));
    EXPECT_EQ(some->values[static_cast<size_t>(op.out[0])].name, "h.0.weight/decoded." + type);
    EXPECT_EQ(some->owned(some->find("h.0.weight"), Role::kDecoded), op.out);
    EXPECT_TRUE(some->owned(some->find("h.1.weight"), Role::kDecoded).empty());
    for (const Resident& resident : some->residents)
      if (resident.role == Role::kDecoded) {
        EXPECT_EQ(resident.saved, Saved::kNever);
        EXPECT_EQ(resident.op, 0);
        EXPECT_FALSE(some->updated(op.in[0]));
      }
    EXPECT_TRUE(some->updated(some->find("head")));
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
                        {{{"table", "bf16"}}, {"bf16", "amp bf16"}}}) {
    const std::string message = refusal(row.rules);
    for (const char* word : row.words)
      EXPECT_NE(message.find(word), std::string::npos) << word << ": " << message;
  }
}

}  // namespace
}  // namespace cairn::graph
