// Shape rules of what models of some families have: rotary positions of several kinds, gated units, norms with an offset, capped
// logits.
#include <gtest/gtest.h>

#include "tests/runtime/ops/descs.h"

namespace cairn::ops {
namespace {

struct Call {
  const char* op;
  std::vector<TensorDesc> in;
  Attrs attrs;
};

TEST(Families, ShapesAreInferred) {
  struct Good : Call {
    std::vector<TensorDesc> out;
  };
  const std::vector<Good> good = {
      {{"rope",
        {bf({2, 5, 14}), i32({2, 5})},
        {{"heads", int64_t{2}}, {"columns", int64_t{4}}, {"frequencies", std::vector<double>{1, 0.5}}}},
       {bf({2, 5, 14})}},
      {{"glu", {bf({3}), bf({3})}, {{"activation", std::string("relu")}}}, {bf({3})}},
      {{"glu_grad", {bf({3}), bf({3}), bf({3})}, {}}, {bf({3}), bf({3})}},
      {{"softcap", {bf({3})}, {{"cap", 30.0}}}, {bf({3})}},
  };
  for (const Good& g : good) EXPECT_EQ(infer(g.op, g.in, g.attrs), g.out) << g.op;
}

TEST(Families, MistakesAreNamed) {
  const Attrs heads2{{"heads", int64_t{2}}};
  const std::vector<Bad> bad = {
      {"rope",
       {f32({1, 2, 8})},
       {{"heads", int64_t{2}}, {"columns", int64_t{3}}},
       "rope: columns is 3: it must be even, positive and at most a head's width, 4"},
      {"rope",
       {f32({1, 2, 8})},
       {{"heads", int64_t{2}}, {"columns", int64_t{6}}},
       "rope: columns is 6: it must be even, positive and at most a head's width, 4"},
      {"rope",
       {f32({1, 2, 8})},
       {{"heads", int64_t{2}}, {"frequencies", std::vector<double>{1, 2, 3}}},
       "rope: frequencies is a list of 3: it must have 2 numbers, one for each pair of columns"},
      {"rope",
       {f32({1, 2, 8}), i32({2})},
       heads2,
       "rope: positions is i32[2], but x is f32[1, 2, 8]: it must be of shape [1, 2], a position for "
       "each "
       "row"},
      {"rope",
       {f32({1, 2, 8})},
       {{"heads", int64_t{2}}, {"factor", 0.0}},
       "rope: factor is 0: it must be positive"},
      {"rope",
       {f32({1, 2, 8})},
       {{"heads", int64_t{2}}, {"interleaved", int64_t{2}}},
       "rope: interleaved is 2: it must be 0 or 1"},
      {"rmsnorm",
       {f32({2, 3})},
       {{"offset", 1.0}},
       "rmsnorm: offset is 1: there is no gamma that it is added to"},
      {"softcap", {f32({2})}, {{"cap", 0.0}}, "softcap: cap is 0: it must be positive"},
      {"glu",
       {f32({2}), f32({2})},
       {{"activation", std::string("tanh")}},
       "glu: activation is 'tanh': it must be one of silu, gelu, gelu_tanh, relu, swish_clamped"},
      {"glu",
       {f32({2}), f32({2})},
       {{"limit", 7.0}},
       "glu: limit is 7: the activation 'silu' has no limit, swish_clamped has"},
      {"glu",
       {f32({2}), f32({2})},
       {{"activation", std::string("swish_clamped")}, {"limit", -1.0}},
       "glu: limit is -1: it must be positive"},
      {"linear_cross_entropy",
       {f32({2, 4}), f32({7, 4}), i32({2})},
       {{"softcap", 0.0}},
       "linear_cross_entropy: softcap is 0: it must be positive"},
      {"linear_cross_entropy",
       {f32({2, 4}), f32({7, 4}), i32({2})},
       {{"scale", -1.0}},
       "linear_cross_entropy: scale is -1: it must be positive"},
  };
  expect_refused(bad);
}

}  // namespace
}  // namespace cairn::ops
