// Shapes that broadcast by NumPy's rules, and the ops whose operands they are.
#include "runtime/base/broadcast.h"

#include <gtest/gtest.h>

#include "tests/runtime/ops/descs.h"

namespace cairn::ops {
namespace {

std::string shape_of(std::string_view op, const std::vector<TensorDesc>& in, const Attrs& attrs = {}) {
  return to_string(infer(op, in, attrs).at(0));
}
std::string refusal(std::string_view op, const std::vector<TensorDesc>& in, const Attrs& attrs = {}) {
  try {
    return shape_of(op, in, attrs);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInvalidArgument);
    return e.what();
  }
}

TEST(Broadcasting, EveryOpOfTwoValuesRepeatsEither) {
  for (const char* op : {"add", "sub", "mul", "div", "minimum", "maximum", "less", "less_equal", "greater",
                         "greater_equal", "equal", "not_equal"}) {
    EXPECT_EQ(shape_of(op, {f32({2, 1, 4}), f32({3, 1})}), "f32[2, 3, 4]") << op;
    EXPECT_EQ(shape_of(op, {f32({}), f32({2, 3})}), "f32[2, 3]") << op;
    EXPECT_EQ(shape_of(op, {bf({4}), f32({3, 1})}), "bf16[3, 4]") << op << ": the first's type";
    EXPECT_EQ(
        refusal(op, {f32({2, 3}), f32({2, 4})}),
        cat(op,
            ": b is f32[2, 4], but a is f32[2, 3]: the shapes do not broadcast: sizes must be equal, or "
            "one of them 1 (4, 3)"));
    EXPECT_EQ(refusal(op, {f32({2}), bf({2})}),
              cat(op, ": b is bf16[2], but a is f32[2]: the dtypes do not go together"));
  }
}

TEST(Broadcasting, Where) {
  EXPECT_EQ(shape_of("where", {f32({3, 1}), f32({4}), f32({2, 1, 1})}), "f32[2, 3, 4]");
  EXPECT_EQ(shape_of("where", {f32({3, 1}), bf({4}), bf({})}), "bf16[3, 4]");
  EXPECT_EQ(refusal("where", {i32({3}), f32({3}), f32({3})}),
            "where: cond is i32[3]: it must be of a float type");
  EXPECT_EQ(refusal("where", {f32({2}), f32({3}), f32({3})}),
            "where: cond is f32[2], but a is f32[3]: the shapes do not broadcast: sizes must be equal, or "
            "one of them "
            "1 (2, 3)");
}

TEST(Broadcasting, GradientsHaveTheWholeShape) {
  EXPECT_EQ(shape_of("div_grad", {f32({2, 3}), f32({2, 3}), f32({3})}), "f32[2, 3]");
  EXPECT_EQ(shape_of("greater_grad", {bf({2, 3}), f32({2, 1}), bf({})}), "bf16[2, 3]");
  EXPECT_EQ(shape_of("where_grad", {f32({2, 3}), f32({2, 1})}, {{"other", int64_t{1}}}), "f32[2, 3]");
  EXPECT_EQ(refusal("where_grad", {f32({3}), f32({2, 1})}),
            "where_grad: cond is f32[2, 1], but dy is f32[3]: it is not repeated to that shape");
  EXPECT_EQ(shape_of("reduce_axes", {bf({2, 3, 4})}, {{"axes", List{1, 2}}, {"shape", List{2, 1}}}),
            "f32[2, 1]");
  EXPECT_EQ(refusal("reduce_axes", {f32({2, 3, 4})}, {{"axes", List{0, 2}}, {"shape", List{3}}}),
            "reduce_axes: x is f32[2, 3, 4]: axes = [0, 2] are no neighbours");
  EXPECT_EQ(refusal("reduce_axes", {f32({2, 3})}, {{"axes", List{0}}, {"shape", List{2}}}),
            "reduce_axes: shape is [2]: there are 3 sums");
}

TEST(Broadcasting, Clamp) {
  EXPECT_EQ(shape_of("clamp", {bf({2, 3})}, {{"min", int64_t{0}}}), "bf16[2, 3]");
  EXPECT_EQ(shape_of("clamp_grad", {f32({3}), f32({3})}, {{"max", 1.5}}), "f32[3]");
  EXPECT_EQ(refusal("clamp", {f32({3})}), "clamp: x is f32[3]: clamp needs min, max or both");
  EXPECT_EQ(refusal("clamp", {f32({3})}, {{"min", 2.0}, {"max", 1.0}}),
            "clamp: min is 2: it is above max, which is 1");
}

TEST(Broadcasting, Matmul) {
  const Attrs a{{"transpose_a", int64_t{1}}}, b{{"transpose_b", int64_t{1}}};
  EXPECT_EQ(shape_of("matmul", {f32({3, 4}), f32({4, 5})}), "f32[3, 5]");
  EXPECT_EQ(shape_of("matmul", {bf({2, 1, 3, 4}), bf({6, 4, 5})}), "bf16[2, 6, 3, 5]");
  EXPECT_EQ(shape_of("matmul", {f32({2, 4, 3}), f32({4, 5})}, a), "f32[2, 3, 5]");
  EXPECT_EQ(shape_of("matmul", {f32({3, 4}), f32({2, 5, 4})}, b), "f32[2, 3, 5]");
  EXPECT_EQ(refusal("matmul", {f32({3, 4}), f32({5, 4})}),
            "matmul: b is f32[5, 4], but a is f32[3, 4]: a's matrices have 4 columns and b's 5 rows");
  EXPECT_EQ(refusal("matmul", {f32({2, 3, 4}), f32({3, 4, 5})}),
            "matmul: b is f32[3, 4, 5], but a is f32[2, 3, 4]: the shapes do not broadcast: sizes must be "
            "equal, or one "
            "of them 1 (3, 2)");
  EXPECT_EQ(refusal("matmul", {f32({4}), f32({4, 5})}), "matmul: a is f32[4]: it must have at least rank 2");
  EXPECT_EQ(refusal("matmul", {f32({3, 4}), f32({4, 5})}, {{"transpose_a", int64_t{2}}}),
            "matmul: transpose_a is 2: it must be 0 or 1");
  EXPECT_EQ(
      work(row(OpCode::k_matmul), std::vector{f32({2, 4, 3}), f32({4, 5})}, std::vector{f32({2, 3, 5})}, &a)
          .flops,
      2 * 2 * 3 * 5 * 4);
}

// Axes that are one in every operand are walked as one.
TEST(Broadcasting, NeighboursThatGoTogetherAreOneAxis) {
  const std::vector<TensorDesc> same{f32({2, 3, 4}), f32({2, 3, 4})}, column{f32({2, 3, 4}), f32({3, 1})};
  EXPECT_EQ(make_broadcast(Shape{2, 3, 4}, same).rank, 1);
  EXPECT_EQ(make_broadcast(Shape{1, 1}, std::vector{f32({1}), f32({})}).rank, 1);
  const Broadcast walk = make_broadcast(Shape{2, 3, 4}, column);
  ASSERT_EQ(walk.rank, 3);
  for (int64_t i = 0; i < 24; ++i) {
    EXPECT_EQ(place(walk, 0, i), i);
    EXPECT_EQ(place(walk, 1, i), i / 4 % 3);
  }
  EXPECT_TRUE(are_suffixes(same));
  EXPECT_FALSE(are_suffixes(column));
  EXPECT_FALSE(are_suffixes(std::vector{f32({4}), f32({3, 4})}));
}

TEST(Losses, SmoothingAndWeightsOfClasses) {
  const Attrs smooth{{"smoothing", 0.1}};
  EXPECT_EQ(shape_of("cross_entropy", {f32({3, 4}), i32({3}), none(), f32({4})}), "f64[]");
  EXPECT_EQ(shape_of("cross_entropy", {bf({3, 4}), i32({3})}, smooth), "f64[]");
  EXPECT_EQ(refusal("cross_entropy", {f32({3, 4}), i32({3}), none(), f32({3})}),
            "cross_entropy: class_weights is f32[3]: it must be of shape [4], a weight for each class");
  EXPECT_EQ(refusal("linear_cross_entropy", {f32({3, 4}), f32({7, 4}), i32({3}), none(), f32({7})}, smooth),
            "linear_cross_entropy: smoothing is 0.1: it does not go together with class_weights");
  EXPECT_EQ(refusal("cross_entropy", {f32({3, 4}), i32({3})}, {{"smoothing", 1.0}}),
            "cross_entropy: smoothing is 1: it must be in [0, 1)");
}

}  // namespace
}  // namespace cairn::ops
