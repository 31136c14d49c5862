#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "runtime/ops/functions.h"
#include "runtime/ops/ops.h"

namespace cairn::ops {
namespace {

TEST(Table, RowsStandAtTheirCodes) {
  ASSERT_EQ(all().size(), static_cast<size_t>(OpCode::kCount));
  std::set<std::string_view> names;
  for (size_t i = 0; i < all().size(); ++i) {
    const OpRow& r = all()[i];
    EXPECT_EQ(static_cast<size_t>(r.code), i);
    EXPECT_EQ(find(r.name), &r);
    EXPECT_EQ(&row(r.code), &r);
    EXPECT_TRUE(names.insert(r.name).second) << r.name;
  }
  EXPECT_EQ(find("no_such_op"), nullptr);
  EXPECT_EQ(find(""), nullptr);
}

TEST(Table, OperandsAndAttributesAreParsed) {
  const OpRow& r = row(OpCode::k_linear_grad_weight);
  ASSERT_EQ(r.outputs.size(), 2u);
  EXPECT_EQ(r.outputs[0].name, "dw");
  EXPECT_TRUE(r.outputs[0].accumulates);
  EXPECT_FALSE(r.outputs[0].optional);
  EXPECT_EQ(r.outputs[1].name, "db");
  EXPECT_TRUE(r.outputs[1].accumulates);
  EXPECT_TRUE(r.outputs[1].optional);
  const OpRow& attention = row(OpCode::k_attention);
  ASSERT_EQ(attention.attrs.size(), 6u);
  EXPECT_EQ(attention.attrs[0].name, "heads");
  EXPECT_EQ(attention.attrs[0].type, 'i');
  EXPECT_TRUE(attention.attrs[0].required);
  EXPECT_EQ(attention.attrs[3].name, "scale");
  EXPECT_EQ(attention.attrs[3].type, 'f');
  EXPECT_FALSE(attention.attrs[3].required);
  const Operand& sinks = row(OpCode::k_attention_grad).outputs[3];
  EXPECT_TRUE(sinks.name == "dsinks" && sinks.optional && sinks.accumulates && sinks.later);
  EXPECT_TRUE(row(OpCode::k_fill).inputs.empty());
  const OpRow& gradient = row(OpCode::k_gelu_grad);
  EXPECT_EQ(gradient.inputs[0].name, "dy");
  EXPECT_TRUE(gradient.inputs[0].in_place);
  EXPECT_FALSE(row(OpCode::k_softmax).inputs[0].in_place);
  const Operand& more = row(OpCode::k_rmsnorm_grad).inputs[4];
  EXPECT_EQ(more.name, "da");
  EXPECT_TRUE(more.optional && more.in_place);
}

// The planner and the engine rely on these without looking at single ops.
TEST(Table, ColumnsFitTogether) {
  for (const OpRow& r : all()) {
    SCOPED_TRACE(r.name);
    EXPECT_LE(r.inputs.size(), 16u);
    EXPECT_LE(r.outputs.size(), 16u);
    EXPECT_FALSE(r.outputs.empty());
    EXPECT_TRUE(r.shape != nullptr || r.code == OpCode::k_custom);
    EXPECT_NE(r.is(PURE), r.is(EFFECT));
    EXPECT_TRUE(!r.is(RECOMPUTE) || r.is(PURE));
    EXPECT_TRUE(r.gradient != nullptr || r.saves == 0u);
    EXPECT_TRUE(!r.is(FUSED_LOSS) || (r.is(LOSS) && r.gradient != nullptr));
    for (const AttrSchema& a : r.attrs)
      EXPECT_NE(std::string_view("ifslr").find(a.type), std::string_view::npos);
    for (const Operand& o : r.inputs) {
      EXPECT_FALSE(o.accumulates) << o.name;
      EXPECT_FALSE(o.in_place && !r.is(PURE)) << o.name;
    }
    for (const Operand& o : r.outputs) EXPECT_FALSE(o.in_place) << o.name;
    // What may be added to may not be recomputed: it would count twice.
    for (const Operand& o : r.outputs) EXPECT_FALSE(o.accumulates && r.is(RECOMPUTE)) << o.name;
    const size_t saved_inputs = r.inputs.size(), saved_outputs = r.outputs.size();
    EXPECT_EQ((r.saves & 0xffffu) >> saved_inputs, 0u);
    EXPECT_EQ((r.saves >> 16) >> saved_outputs, 0u);
  }
}

// Operands by role, for those that know only rows.
TEST(Table, CostsOfAnOpStandInItsRow) {
  for (const Trait trait : {PRODUCTS, STREAMS, UPDATES}) {
    int rows = 0;
    for (const OpRow& row : all()) rows += row.is(trait) ? 1 : 0;
    EXPECT_EQ(rows, 1) << trait;
    EXPECT_TRUE(with(trait).is(trait));
  }
  for (const OpRow& row : all()) EXPECT_GE(row.gpu, 1) << row.name;
  EXPECT_EQ(find("attention")->gpu, 2);
  EXPECT_EQ(find("gelu")->gpu, 1) << "a column that is left out";
}

TEST(Table, OperandsHaveRoles) {
  const OpRow& linear = row(OpCode::k_linear);
  EXPECT_EQ(linear.inputs[0].role, OperandRole::kData);
  EXPECT_EQ(linear.inputs[1].role, OperandRole::kWeight);
  EXPECT_EQ(linear.inputs[1].pack, "forward");
  EXPECT_EQ(linear.inputs[2].name, "b");
  EXPECT_EQ(linear.inputs[2].role, OperandRole::kWide);
  EXPECT_TRUE(linear.inputs[2].optional);
  const OpRow& add = row(OpCode::k_add);
  EXPECT_TRUE(add.inputs[1].in_place && add.inputs[1].stays_full());
  EXPECT_FALSE(add.inputs[0].stays_full());
  for (const OpRow& r : all()) {
    SCOPED_TRACE(r.name);
    for (size_t i = 0; i < r.inputs.size(); ++i) {
      const Operand& o = r.inputs[i];
      EXPECT_NE(o.role, OperandRole::kState) << o.name;
      EXPECT_TRUE(o.pack.empty() || o.role == OperandRole::kWeight) << o.name;
      // What another op's operand takes the place of has to be free, and of output 0's kind.
      const bool fused = o.role == OperandRole::kAddend || o.role == OperandRole::kArgument;
      EXPECT_TRUE(!fused || (o.optional && i > 0)) << o.name;
    }
    for (const Operand& o : r.outputs) {
      EXPECT_TRUE(o.role == OperandRole::kData || o.role == OperandRole::kState) << o.name;
      EXPECT_TRUE(o.role != OperandRole::kState || r.is(EFFECT)) << o.name;
    }
    bool updates = false;  // of whole parameters or caches
    for (const Operand& o : r.outputs)
      updates = updates || (o.role == OperandRole::kState && r.code != OpCode::k_move_mean &&
                            r.code != OpCode::k_average);
    EXPECT_EQ(r.work != nullptr, r.tolerance == Tolerance::GEMM || updates || r.code == OpCode::k_embedding ||
                                     r.code == OpCode::k_embedding_part)
        << "only products, lookups and updates count their work in a way of their own";
  }
}

TEST(Table, WeightsMayStandPacked) {
  const auto uses = [](OpCode code) {
    std::string text;
    for (const PackedUse& u : packed_uses(row(code)))
      text += cat(u.weight, "->", u.into, ' ', u.use, ' ', u.only_with, "; ");
    return text;
  };
  EXPECT_EQ(uses(OpCode::k_linear), "1->1 forward -1; ");
  EXPECT_EQ(uses(OpCode::k_linear_grad_input), "1->1 input_grad -1; ");
  EXPECT_EQ(uses(OpCode::k_linear_cross_entropy), "1->1 forward -1; ");
  // The gradient's own product first, while operand 1 is still the weight.
  EXPECT_EQ(uses(OpCode::k_linear_cross_entropy_grad), "1->4 input_grad -1; 1->1 forward 4; ");
  EXPECT_EQ(uses(OpCode::k_embedding), "");
  EXPECT_EQ(uses(OpCode::k_linear_grad_weight), "");
  EXPECT_EQ(uses(OpCode::k_grouped_linear), "");
}

TEST(Table, LookupsNameTheirVocabulary) {
  const auto found = [](OpCode code) {
    const auto l = lookup(row(code));
    return l ? cat(l->numbers, ' ', l->table, ' ', l->axis, ' ', l->ignores ? "ignores" : "") : std::string();
  };
  EXPECT_EQ(found(OpCode::k_embedding), "1 0 0 ");
  EXPECT_EQ(found(OpCode::k_linear_cross_entropy), "2 1 0 ignores");
  EXPECT_EQ(found(OpCode::k_cross_entropy), "1 0 -1 ignores");
  EXPECT_EQ(found(OpCode::k_accuracy), "1 0 -1 ignores");
  EXPECT_EQ(found(OpCode::k_linear), "");
  EXPECT_EQ(found(OpCode::k_grouped_linear), "");
  EXPECT_EQ(found(OpCode::k_attention), "");       // its numbers are of sequences and rows
  EXPECT_EQ(found(OpCode::k_embedding_grad), "");  // what a graph is built of alone
}

TEST(Functions, AreWhatElementwiseOpsApply) {
  std::set<std::string_view> names;
  for (const Function& f : functions()) {
    SCOPED_TRACE(f.name);
    EXPECT_TRUE(names.insert(f.name).second);
    EXPECT_EQ(find_function(f.name), &f);
    EXPECT_EQ(name(f.gradient), cat(name(f.op), "_grad"));
    EXPECT_EQ(f.choice.empty(), !row(f.op).has_attr("approximate"));
    const Attrs attrs = f.choice.empty() ? Attrs{} : Attrs{{"approximate", std::string(f.choice)}};
    EXPECT_EQ(differentiated(f.gradient, attrs), &f);
    EXPECT_TRUE(row(f.op).saves == IN(0) || row(f.op).saves == OUT(0));
  }
  EXPECT_EQ(find_function(""), nullptr);
  EXPECT_EQ(find_function("gelu"), nullptr);  // an op of two functions
  EXPECT_EQ(differentiated(OpCode::k_gelu_grad, {})->name, "gelu_tanh");
  EXPECT_EQ(differentiated(OpCode::k_add, {}), nullptr);
  EXPECT_FALSE(find_function("relu")->reads_argument());
  EXPECT_TRUE(find_function("silu")->reads_argument());
  EXPECT_TRUE(activation_words().starts_with("gelu_tanh, gelu_erf, ")) << activation_words();
  EXPECT_TRUE(activation_words().ends_with(functions().back().name)) << activation_words();
}

std::string message(const OpRow& r, const Attrs& attrs) {
  try {
    check_attrs(r, attrs);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInvalidArgument);
    return e.what();
  }
  return "";
}

TEST(Attributes, AreCheckedAgainstTheRow) {
  const OpRow& dropout = row(OpCode::k_dropout);
  EXPECT_EQ(message(dropout, {{"rate", 0.5}}), "");
  EXPECT_EQ(message(dropout, {{"rate", int64_t{0}}}), "");
  EXPECT_EQ(message(dropout, {}), "dropout: attribute 'rate' is missing (known: rate rng first)");
  EXPECT_EQ(message(dropout, {{"rate", 0.5}, {"ratio", 0.1}}),
            "dropout: unknown attribute 'ratio' (known: rate rng first)");
  EXPECT_EQ(message(dropout, {{"rate", std::string("half")}}),
            "dropout: attribute 'rate' must be a real number");
  EXPECT_EQ(message(dropout, {{"rate", HUGE_VAL}}), "dropout: attribute 'rate' is inf, it must be finite");
  EXPECT_EQ(message(row(OpCode::k_silu), {{"x", 1.0}}), "silu: unknown attribute 'x' (it has none)");
  EXPECT_EQ(message(row(OpCode::k_transpose), {{"perm", int64_t{1}}}),
            "transpose: attribute 'perm' must be a list of integers");
  EXPECT_EQ(message(row(OpCode::k_rope), {{"heads", 2.0}}), "rope: attribute 'heads' must be an integer");
  const auto rope = [](AttrValue frequencies) {
    return message(row(OpCode::k_rope), {{"heads", int64_t{1}}, {"frequencies", std::move(frequencies)}});
  };
  EXPECT_EQ(rope(std::vector<double>{1, 0.5}), "");
  EXPECT_EQ(rope(std::vector<int64_t>{1, 0}), "");
  EXPECT_EQ(rope(0.5), "rope: attribute 'frequencies' must be a list of real numbers");
  EXPECT_EQ(rope(std::vector<double>{1, HUGE_VAL}),
            "rope: number 1 of attribute 'frequencies' is inf, it must be finite");
  EXPECT_EQ(message(row(OpCode::k_transpose), {{"perm", std::vector<double>{1, 0}}}),
            "transpose: attribute 'perm' must be a list of integers");
  EXPECT_EQ(message(row(OpCode::k_cast), {{"dtype", int64_t{1}}}), "cast: attribute 'dtype' must be a word");
}

}  // namespace
}  // namespace cairn::ops
