#include <gtest/gtest.h>

#include <cmath>
#include <set>

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
  ASSERT_EQ(attention.attrs.size(), 4u);
  EXPECT_EQ(attention.attrs[0].name, "heads");
  EXPECT_EQ(attention.attrs[0].type, 'i');
  EXPECT_TRUE(attention.attrs[0].required);
  EXPECT_EQ(attention.attrs[3].name, "scale");
  EXPECT_EQ(attention.attrs[3].type, 'f');
  EXPECT_FALSE(attention.attrs[3].required);
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
      EXPECT_NE(std::string_view("ifsl").find(a.type), std::string_view::npos);
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
  EXPECT_EQ(message(dropout, {}), "dropout: attribute 'rate' is missing (known: rate rng)");
  EXPECT_EQ(message(dropout, {{"rate", 0.5}, {"ratio", 0.1}}),
            "dropout: unknown attribute 'ratio' (known: rate rng)");
  EXPECT_EQ(message(dropout, {{"rate", std::string("half")}}),
            "dropout: attribute 'rate' must be a real number");
  EXPECT_EQ(message(dropout, {{"rate", HUGE_VAL}}), "dropout: attribute 'rate' is inf, it must be finite");
  EXPECT_EQ(message(row(OpCode::k_silu), {{"x", 1.0}}), "silu: unknown attribute 'x' (it has none)");
  EXPECT_EQ(message(row(OpCode::k_transpose), {{"perm", int64_t{1}}}),
            "transpose: attribute 'perm' must be a list of integers");
  EXPECT_EQ(message(row(OpCode::k_rope), {{"heads", 2.0}}), "rope: attribute 'heads' must be an integer");
  EXPECT_EQ(message(row(OpCode::k_cast), {{"dtype", int64_t{1}}}), "cast: attribute 'dtype' must be a word");
}

}  // namespace
}  // namespace cairn::ops
