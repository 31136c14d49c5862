// What the shape rule of attention says of masks that do not fit.
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/runtime/ops/descs.h"

namespace cairn::ops {
namespace {

TEST(AttentionShapes, MistakesAreNamed) {
  const Attrs heads2{{"heads", int64_t{2}}};
  struct Bad {
    std::string op;
    std::vector<TensorDesc> in;
    Attrs attrs;
    std::string message;
  };
  const Bad bad[] = {
      {"attention",
       {f32({1, 2, 8}), f32({1, 3, 8}), f32({1, 3, 8})},
       heads2,
       "attention: k is f32[1, 3, 8], but q is f32[1, 2, 8]: with causal = 1 (the default), another number "
       "of keys than of "
       "rows needs the operand position, which says where the rows stand"},
      {"attention",
       {f32({1, 2, 8}), f32({1, 3, 6}), f32({1, 3, 6})},
       heads2,
       "attention: k is f32[1, 3, 6], but q is f32[1, 2, 8]: it must be of shape [1, 3, 8]"},
      {"attention",
       {f32({1, 2, 8}), f32({1, 3, 8}), f32({1, 2, 8})},
       heads2,
       "attention: v is f32[1, 2, 8], but q is f32[1, 2, 8]: it must be of shape [1, 3, 8]"},
      {"attention",
       {f32({1, 2, 8}), f32({1, 3, 8}), f32({1, 3, 8})},
       {{"heads", int64_t{2}}, {"causal", int64_t{0}}, {"window", int64_t{2}}},
       "attention: k is f32[1, 3, 8], but q is f32[1, 2, 8]: with a window, another number of keys than of "
       "rows needs the "
       "operand position, which says where the rows stand"},
      {"attention",
       {f32({1, 2, 12})},
       {{"heads", int64_t{2}}, {"window", int64_t{0}}},
       "attention: window is 0: it counts the keys that a row sees, its own among them, and must be "
       "positive"},
      {"attention",
       {f32({1, 2, 12})},
       {{"heads", int64_t{2}}, {"softcap", 0.0}},
       "attention: softcap is 0: it must be positive and finite"},
      {"attention",
       {bf({1, 2, 12}), none(), none(), f32({3})},
       heads2,
       "attention: sinks is f32[3], but q is bf16[1, 2, 12]: it must be of shape [2], one number per head"},
      {"attention",
       {bf({1, 2, 12}), none(), none(), bf({2})},
       heads2,
       "attention: sinks is bf16[2], but q is bf16[1, 2, 12]: it must be f32 there"},
      {"attention",
       {f32({1, 2, 12}), none(), none(), none(), f32({1, 2})},
       heads2,
       "attention: sequences is f32[1, 2]: it must be i32"},
      {"attention",
       {f32({1, 2, 12}), none(), none(), none(), i32({2})},
       heads2,
       "attention: sequences is i32[2], but q is f32[1, 2, 12]: it must be of shape [1, 2]"},
      {"attention",
       {f32({3, 2, 12}), none(), none(), none(), none(), i32({2})},
       heads2,
       "attention: lengths is i32[2], but q is f32[3, 2, 12]: it must be of shape [3]"},
      {"attention",
       {f32({3, 2, 12}), none(), none(), none(), none(), none(), i32({3, 2})},
       heads2,
       "attention: position is i32[3, 2], but q is f32[3, 2, 12]: it must be of shape [3]"},
      {"attention",
       {f32({1, 2, 12}), none(), none(), none(), i32({1, 2}), none(), i32({1})},
       heads2,
       "attention: sequences is i32[1, 2]: it does not go together with position, which says that rows stand "
       "elsewhere"},
      {"attention",
       {f32({1, 2, 8}), f32({1, 3, 8}), f32({1, 3, 8}), none(), i32({1, 2})},
       {{"heads", int64_t{2}}, {"causal", int64_t{0}}},
       "attention: sequences is i32[1, 2], but k is f32[1, 3, 8]: sequences are of rows that attend to each "
       "other: as many "
       "keys as rows of q, 2"},
      {"attention",
       {bf({1, 2, 12}), none(), none(), none(), none(), none(), none(), f32({2, 4})},
       heads2,
       "attention: distances is f32[2, 4], but q is bf16[1, 2, 12]: it must be of shape [2, 3], a number per "
       "head and distance of 2 rows from 2 keys"},
      {"attention",
       {f32({1, 2, 8}), f32({1, 3, 8}), f32({1, 3, 8}), none(), none(), none(), i32({1}), f32({2, 4})},
       heads2,
       "attention: distances is f32[2, 4]: it does not go together with position, which says that rows stand "
       "elsewhere"},
      {"relative_bias",
       {f32({3, 2})},
       {{"queries", int64_t{2}}, {"keys", int64_t{2}}},
       "relative_bias: buckets is 3: it must be from 4 to 512"},
      {"relative_bias",
       {f32({32, 2})},
       {{"queries", int64_t{2}}, {"keys", int64_t{2}}, {"farthest", int64_t{8}}},
       "relative_bias: farthest is 8: it must be more than the distances that have a bucket of their own, 8, "
       "and at most 1073741824"},
      {"relative_bias",
       {f32({32, 2})},
       {{"queries", int64_t{0}}, {"keys", int64_t{2}}},
       "relative_bias: queries is 0: it must be positive, and at most 1073741824"},
  };
  for (const Bad& b : bad) try {
      infer(b.op, b.in, b.attrs);
      ADD_FAILURE() << "accepted: " << b.message;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kInvalidArgument);
      EXPECT_EQ(e.what(), b.message);
    }
}

TEST(AttentionShapes, OfDistances) {
  const Attrs sizes{{"queries", int64_t{3}}, {"keys", int64_t{5}}, {"buckets", int64_t{8}}};
  EXPECT_EQ(infer("relative_bias", {bf({8, 2})}, sizes), std::vector<TensorDesc>{f32({2, 7})});
  EXPECT_EQ(infer("relative_bias_grad", {f32({2, 7})}, sizes), std::vector<TensorDesc>{f32({8, 2})});
  const std::vector<TensorDesc> made = infer("attention_grad",
                                             {bf({1, 2, 8}), bf({1, 2, 24}), none(), none(), bf({1, 2, 8}),
                                              f32({1, 2, 2}), none(), none(), none(), none(), f32({2, 3})},
                                             {{"heads", int64_t{2}}});
  EXPECT_EQ(made, (std::vector<TensorDesc>{bf({1, 2, 24}), {}, {}, {}, f32({2, 3})}));
}

}  // namespace
}  // namespace cairn::ops
