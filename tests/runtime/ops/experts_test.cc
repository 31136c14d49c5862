// Shape rules of the ops of mixtures of experts.
#include <gtest/gtest.h>

#include <limits>

#include "tests/runtime/ops/descs.h"

namespace cairn::ops {
namespace {

const Attrs kTransposed{{"transposed", int64_t{1}}};

TEST(Experts, ShapesAreInferred) {
  const Attrs three{{"experts", int64_t{3}}};
  const auto expect = [](std::string_view op, const std::vector<TensorDesc>& in, const Attrs& attrs,
                         const std::vector<TensorDesc>& out) { EXPECT_EQ(infer(op, in, attrs), out) << op; };
  expect("route", {bf({2, 5, 8})}, {{"k", int64_t{3}}}, {f32({2, 5, 3}), i32({2, 5, 3})});
  expect("route", {f64({8})}, {{"k", int64_t{8}}, {"normalise", int64_t{0}}}, {f64({8}), i32({8})});
  expect("route_grad", {f32({5, 2}), f32({5, 2}), i32({5, 2})}, three, {f32({5, 3})});
  expect("route_grad", {f32({2}), f32({2}), i32({2}), bf({3})},
         {{"experts", int64_t{3}}, {"normalise", int64_t{0}}}, {f32({3})});
  expect("group_rows", {i32({2, 5, 2})}, three, {i32({20}), i32({2, 5, 2}), i32({4})});
  expect("count_choices", {i32({2, 5, 2})}, three, {f32({3})});
  expect("gather_rows", {bf({2, 5, 4}), i32({20}), i32({2, 5, 2})}, {}, {bf({20, 4})});
  expect("gather_rows", {bf({4}), i32({2}), i32({2}), f32({2})}, {}, {bf({2, 4})});
  expect("combine_rows", {bf({20, 4}), i32({20}), i32({2, 5, 2}), f32({2, 5, 2})}, {}, {bf({2, 5, 4})});
  expect("combine_rows_grad", {bf({2, 5, 4}), bf({20, 4}), i32({2, 5, 2})}, {}, {f32({2, 5, 2})});
  expect("grouped_linear", {bf({20, 4}), f32({3, 6, 4}), i32({4}), f32({3, 6})}, {}, {bf({20, 6})});
  expect("grouped_linear", {bf({20, 4}), bf({3, 4, 6}), i32({4})}, kTransposed, {bf({20, 6})});
  expect("grouped_linear_grad_input", {f64({20, 6}), f64({3, 6, 4}), i32({4})}, {}, {f64({20, 4})});
  expect("grouped_linear_grad_input", {bf({20, 6}), f32({3, 4, 6}), i32({4})}, kTransposed, {bf({20, 4})});
  expect("grouped_linear_grad_weight", {bf({20, 4}), bf({20, 6}), i32({4})}, {},
         {f32({3, 6, 4}), f32({3, 6})});
  expect("grouped_linear_grad_weight", {bf({20, 4}), bf({20, 6}), i32({4})}, kTransposed,
         {f32({3, 4, 6}), f32({3, 6})});
}

TEST(Experts, MistakesAreNamed) {
  const Attrs three{{"experts", int64_t{3}}};
  const std::vector<Bad> bad = {
      {"route",
       {f32({2, 4})},
       {{"k", int64_t{5}}},
       "route: k is 5: it must be in 1 .. 4, the number of experts"},
      {"route",
       {f32({2, 4})},
       {{"k", int64_t{0}}},
       "route: k is 0: it must be in 1 .. 4, the number of experts"},
      {"route",
       {f32({2, 4})},
       {{"k", int64_t{1}}, {"normalise", int64_t{2}}},
       "route: normalise is 2: it must be 0 or 1"},
      {"route", {i32({2, 4})}, {{"k", int64_t{1}}}, "route: logits is i32[2, 4]: it must be of a float type"},
      {"route_grad",
       {f32({2}), f32({2}), i32({2})},
       {{"experts", int64_t{3}}, {"normalise", int64_t{0}}},
       "route_grad: normalise is 0: the operand 'logits' is missing"},
      {"group_rows", {f32({2, 4})}, three, "group_rows: experts is f32[2, 4]: it must be i32"},
      {"group_rows",
       {i32({2, 4})},
       {{"experts", int64_t{0}}},
       "group_rows: experts is 0: it must be in 1 .. 2147483646"},
      {"count_choices",
       {i32({2, 4})},
       {{"experts", std::numeric_limits<int64_t>::max()}},
       "count_choices: experts is 9223372036854775807: it must be in 1 .. 2147483646"},
      {"group_rows",
       {{DType::kI32, Shape{1 << 16, 1 << 16}, 0}},
       three,
       "group_rows: experts is i32[65536, 65536]: it has more choices than an i32 can number"},
      {"gather_rows",
       {f32({5, 4}), i32({9}), i32({5, 2})},
       {},
       "gather_rows: order is i32[9], but places is i32[5, 2]: it must be of shape [10]"},
      {"gather_rows",
       {f32({5, 4}), i32({8}), i32({4, 2})},
       {},
       "gather_rows: places is i32[4, 2], but x is f32[5, 4]: the leading dimensions differ"},
      {"gather_rows",
       {bf({5, 4}), i32({10}), i32({5, 2}), bf({5, 2})},
       {},
       "gather_rows: weights is bf16[5, 2], but x is bf16[5, 4]: it must be f32 there"},
      {"combine_rows",
       {f32({9, 4}), i32({10}), i32({5, 2})},
       {},
       "combine_rows: x is f32[9, 4], but places is i32[5, 2]: there must be a row for each of the 10 "
       "choices"},
      {"combine_rows",
       {f32({10, 4}), i32({10}), i32({5, 2}), f32({10})},
       {},
       "combine_rows: weights is f32[10], but places is i32[5, 2]: the shapes differ"},
      {"grouped_linear",
       {f32({9, 4}), f32({3, 4, 6}), i32({4})},
       {},
       "grouped_linear: w is f32[3, 4, 6], but x is f32[9, 4]: x has 4 columns, and w is for 6"},
      {"grouped_linear",
       {f32({9, 4}), f32({3, 6, 4}), i32({3})},
       {},
       "grouped_linear: starts is i32[3], but w is f32[3, 6, 4]: it must be of shape [4]"},
      {"grouped_linear",
       {f32({9, 4}), f32({3, 6, 4}), i32({4}), f32({3, 4})},
       {},
       "grouped_linear: b is f32[3, 4], but w is f32[3, 6, 4]: it must be of shape [3, 6]"},
      {"grouped_linear",
       {f32({9, 4}), f32({6, 4}), i32({7})},
       {},
       "grouped_linear: w is f32[6, 4]: it must have rank 3"},
      {"grouped_linear",
       {f32({9, 4}), f32({3, 6, 4}), i32({4})},
       {{"transposed", int64_t{2}}},
       "grouped_linear: transposed is 2: it must be 0 or 1"},
      {"grouped_linear_grad_input",
       {f32({9, 4}), f32({3, 6, 4}), i32({4})},
       {},
       "grouped_linear_grad_input: w is f32[3, 6, 4], but dy is f32[9, 4]: dy has 4 columns, and w gives 6"},
      {"grouped_linear_grad_weight",
       {f32({9, 4}), f32({8, 6}), i32({4})},
       {},
       "grouped_linear_grad_weight: dy is f32[8, 6], but x is f32[9, 4]: the leading dimensions differ"},
  };
  expect_refused(bad);
}

// Which experts a row goes to is decided once. What follows from it may be recomputed.
TEST(Experts, AChoiceIsNeverRecomputed) {
  EXPECT_FALSE(find("route")->is(RECOMPUTE));
  for (const char* op : {"group_rows", "gather_rows", "combine_rows", "grouped_linear"})
    EXPECT_TRUE(find(op)->is(RECOMPUTE)) << op;
}

}  // namespace
}  // namespace cairn::ops
