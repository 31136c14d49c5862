// Shapes of the ops on a part of a vocabulary.
#include <gtest/gtest.h>

#include "tests/runtime/ops/descs.h"

namespace cairn::ops {
namespace {

TEST(Vocabulary, PartsHaveTheirShapes) {
  const Attrs part{{"first", int64_t{7}}, {"vocab", int64_t{20}}};
  const auto expect = [&](std::string_view op, const std::vector<TensorDesc>& in, const Attrs& attrs,
                          const std::vector<TensorDesc>& out) { EXPECT_EQ(infer(op, in, attrs), out) << op; };
  const TensorDesc x = bf({2, 3, 4}), w = f32({7, 4}), ids = i32({2, 3}), seen = f32({6, 4}), sum = f64({6}),
                   open = f32({6, 64}), one = f64({});
  expect("embedding_part", {w, ids, x},
         {{"first", int64_t{13}}, {"vocab", int64_t{20}}, {"dtype", std::string("bf16")}}, {x});
  expect("embedding_part_grad", {ids, x}, {{"first", int64_t{5}}, {"rows", int64_t{9}}}, {f32({9, 4})});
  expect("linear_cross_entropy_max", {x, w, ids, seen}, part, {seen});
  expect("linear_cross_entropy_sum", {x, w, seen, sum, open}, part, {sum, open});
  expect("linear_cross_entropy_loss", {seen, sum, ids}, {{"vocab", int64_t{20}}, {"accuracy", int64_t{1}}},
         {one, one, one, one});
  expect("linear_cross_entropy_part", {x, w, ids, none(), seen, sum, one, f32({2, 3, 4})}, part,
         {f32({2, 3, 4}), w});
}

TEST(Vocabulary, MistakesAreNamed) {
  const auto refused = [](std::string_view op, const std::vector<TensorDesc>& in, const Attrs& attrs,
                          const std::string& message) {
    try {
      infer(op, in, attrs);
      ADD_FAILURE() << "no error: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      EXPECT_EQ(std::string(error.what()), message);
    }
  };
  const Attrs begin{{"first", int64_t{0}}, {"vocab", int64_t{20}}};
  refused(
      "linear_cross_entropy_max", {f32({2, 4}), f32({7, 4}), i32({2})},
      {{"first", int64_t{14}}, {"vocab", int64_t{20}}},
      "linear_cross_entropy_max: first is 14: rows [14, 14 + 7) are not all among the 20 of the vocabulary");
  refused("linear_cross_entropy_sum", {f32({2, 4}), f32({7, 4}), f32({3, 4})}, begin,
          "linear_cross_entropy_sum: seen is f32[3, 4]: it must be f32[2, 4]");
  refused("embedding_part", {f32({9, 4}), i32({3}), f32({2, 4})}, begin,
          "embedding_part: y is f32[2, 4]: it must be f32[3, 4]");
  refused("embedding_part_grad", {i32({3}), f32({3, 4})}, {{"first", int64_t{-1}}, {"rows", int64_t{9}}},
          "embedding_part_grad: first is -1: it must not be negative");
}

}  // namespace
}  // namespace cairn::ops
