// Shape rules at their limits: sizes that overflow, calls without operands, custom ops.
#include <gtest/gtest.h>

#include "tests/runtime/ops/descs.h"

namespace cairn::ops {
namespace {

TEST(Shapes, SizesThatOverflowAreRefused) {
  const int64_t big = int64_t{1} << 40;
  const Attrs huge{{"vocab", big}};
  EXPECT_THROW(infer("embedding_grad", {i32({1}), {DType::kF32, Shape{1, big}, 0}}, huge), Error);
  EXPECT_THROW(infer("expand", {f32({})}, {{"shape", List{big, big}}}), Error);
  EXPECT_THROW(infer("fill", {}, {{"shape", List{big, big}}}), Error);
  EXPECT_THROW(infer("reshape", {f32({2})}, {{"shape", List{big, big, -1}}}), Error);
  EXPECT_THROW(infer("reshape", {f32({1})}, {{"shape", List{1, 1, 1, 1, 1, 1, 1, 1, 1}}}), Error);
}

// Every rule refuses packed weights as activations, and calls without operands, instead of reading past them.
TEST(Shapes, EveryRuleSurvivesMissingOperands) {
  for (const OpRow& r : all()) {
    if (r.shape == nullptr || r.inputs.empty()) continue;
    std::vector<TensorDesc> out;
    const Attrs attrs;
    if (!r.inputs[0].optional) {
      EXPECT_THROW(r.shape({r.name, {}, 0, &attrs, &out}), Error) << r.name;
    }
  }
}

TEST(Shapes, CustomGradientsHaveTheShapesOfTheirInputs) {
  const Attrs attrs{{"custom", int64_t{0}}, {"inputs", int64_t{2}}, {"outputs", int64_t{1}}};
  std::vector<TensorDesc> in(12, none());
  in[0] = f32({2, 3});
  in[1] = bf({4});
  in[4] = in[8] = f32({5});
  const std::vector<TensorDesc> out = infer("custom_grad", in, attrs);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0], in[0]);
  EXPECT_EQ(out[1], in[1]);
  in[1] = none();
  EXPECT_THROW(infer("custom_grad", in, attrs), Error);
}

}  // namespace
}  // namespace cairn::ops
