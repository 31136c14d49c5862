// Shape rules of pictures, norms by channel, layers that step through time, and losses of pairs.
#include <gtest/gtest.h>

#include <limits>

#include "tests/runtime/ops/descs.h"

namespace cairn::ops {
namespace {

Attrs word(const char* name, const char* value) { return {{name, std::string(value)}}; }
Attrs list(const char* name, List value) { return {{name, std::move(value)}}; }
Attrs number(const char* name, int64_t value) { return {{name, value}}; }

TEST(Pictures, ShapesAreInferred) {
  const auto expect = [](std::string_view op, const std::vector<TensorDesc>& in, const Attrs& attrs,
                         const std::vector<TensorDesc>& out) { EXPECT_EQ(infer(op, in, attrs), out) << op; };
  const TensorDesc x = bf({2, 8, 9, 6}), l = f32({2, 9, 6});
  const Attrs strided{{"stride", List{2}}, {"padding", List{1}}, {"groups", int64_t{2}}};
  expect("conv", {x, f32({4, 3, 3, 3}), f32({4})}, strided, {bf({2, 4, 5, 4})});
  expect("conv", {x, bf({4, 1, 1, 6})}, {}, {bf({2, 8, 9, 4})});
  expect("conv", {l, f32({4, 3, 6})}, {{"padding", List{4, 0}}, {"dilation", List{2}}}, {f32({2, 9, 4})});
  expect("conv", {x, f32({4, 3, 2, 6})}, {{"stride", List{1, 3}}, {"padding", List{1, 0, 2, 1}}},
         {bf({2, 7, 4, 4})});
  expect("conv_transpose", {bf({2, 4, 5, 4}), f32({4, 3, 3, 3})}, strided, {bf({2, 7, 9, 6})});
  Attrs larger = strided;
  larger.set("size", List{8, 10});
  expect("conv_transpose", {bf({2, 4, 5, 4}), f32({4, 3, 3, 3})}, larger, {bf({2, 8, 10, 6})});
  Attrs kernel = strided;
  kernel.set("kernel", List{3, 3});
  expect("conv_grad_weight", {x, bf({2, 4, 5, 4})}, kernel, {f32({4, 3, 3, 3}), f32({4})});
  expect("max_pool", {x}, list("kernel", {2}), {bf({2, 4, 4, 6}), i32({2, 4, 4, 6})});
  expect("max_pool", {l}, {{"kernel", List{3}}, {"stride", List{2}}, {"padding", List{1}}},
         {f32({2, 5, 6}), i32({2, 5, 6})});
  expect("max_pool", {x}, list("size", {1}), {bf({2, 1, 1, 6}), i32({2, 1, 1, 6})});
  expect("max_pool_grad", {bf({2, 4, 4, 6}), i32({2, 4, 4, 6})}, list("input", {8, 9}), {x});
  expect("average_pool", {x}, list("size", {3, 12}), {bf({2, 3, 12, 6})});
  expect("average_pool_grad", {f32({2, 4, 6})}, {{"kernel", List{2}}, {"input", List{9}}}, {l});
  expect("resize", {x}, list("size", {16, 3}), {bf({2, 16, 3, 6})});
  expect("resize_grad", {bf({2, 16, 3, 6})}, list("input", {8, 9}), {x});
  expect("pad", {l}, {{"before", List{0, 1, 2}}, {"after", List{3, 0, 0}}}, {f32({5, 10, 8})});
  expect("patches", {x}, {{"kernel", List{4, 3}}, {"stride", List{4, 3}}}, {bf({2, 2, 3, 72})});
  expect("patches_grad", {bf({2, 2, 3, 72})},
         {{"kernel", List{4, 3}}, {"stride", List{4, 3}}, {"input", List{8, 9}}}, {x});
  const TensorDesc c = f32({6});
  expect("batchnorm", {x, c, c}, {}, {x, c, c});
  expect("batchnorm", {f64({2, 6})}, {}, {f64({2, 6}), f64({6}), f64({6})});
  expect("batchnorm_grad", {x, x, none(), c, c}, number("fixed", 1), {x, c, c});
  expect("normalize", {x, c, c, none(), c}, {}, {x});
  expect("groupnorm", {x, c, c}, number("groups", 3), {x, f32({2, 3}), f32({2, 3})});
  expect("groupnorm_grad", {x, x, c, f32({2, 3}), f32({2, 3})}, number("groups", 3), {x, c, c});
  expect("l2_normalize", {l}, {}, {l, f32({2, 9})});
  expect("l2_normalize_grad", {x, x, f32({2, 8, 9})}, {}, {x});
}

TEST(Pictures, ShapesOfLayersInTimeAndPairsAreInferred) {
  const auto expect = [](std::string_view op, const std::vector<TensorDesc>& in, const Attrs& attrs,
                         const std::vector<TensorDesc>& out) { EXPECT_EQ(infer(op, in, attrs), out) << op; };
  const TensorDesc y = bf({2, 5, 3}), c = f32({2, 5, 3}), four = bf({2, 5, 12}), three = bf({2, 5, 9});
  expect("lstm", {four, f32({12, 3}), bf({2, 3}), f32({2, 3})}, number("reverse", 1), {y, c, four});
  expect("lstm", {four, bf({12, 3})}, {}, {y, c, four});
  expect("lstm_grad", {y, none(), four, c, f32({12, 3}), f32({2, 3})}, {}, {four, bf({2, 3}), f32({2, 3})});
  expect("gru", {three, f32({9, 3}), f32({9}), bf({2, 3})}, {}, {y, four});
  expect("gru_grad", {y, four, y, f32({9, 3})}, {}, {three, three, bf({2, 3})});
  const TensorDesc a = bf({4, 3}), one = f32({1}), loss = f64({});
  expect("pair_loss", {a, a, one}, word("kind", "triplet"), {loss, loss});
  expect("pair_loss_grad", {a, a, one, one, loss}, word("kind", "sigmoid"), {loss, loss, a, a, one, one});
}

TEST(Pictures, MistakesOfWindowsAreNamed) {
  const TensorDesc x = f32({2, 8, 9, 6}), w = f32({4, 3, 3, 6}), l = f32({2, 9, 6});
  expect_refused({
      {"conv", {f32({8, 6}), w}, {}, "conv: x is f32[8, 6]: it must be [N, L, C] or [N, H, W, C]"},
      {"conv", {i32({2, 9, 6}), w}, {}, "conv: x is i32[2, 9, 6]: it must be of a float type"},
      {"conv",
       {l, w},
       {},
       "conv: w is f32[4, 3, 3, 6], but x is f32[2, 9, 6]: it must be [O, k, C / groups]"},
      {"conv",
       {x, f32({4, 3, 6})},
       {},
       "conv: w is f32[4, 3, 6], but x is f32[2, 8, 9, 6]: it must be [O, kh, kw, C / groups]"},
      {"conv",
       {x, f32({4, 3, 3, 3})},
       {},
       "conv: w is f32[4, 3, 3, 3], but x is f32[2, 8, 9, 6]: its last dimension must be 6 / 1, the channels "
       "of a "
       "group"},
      {"conv",
       {x, f32({4, 3, 3, 2})},
       number("groups", 4),
       "conv: groups is 4: it must divide the 6 channels of x and the 4 outputs"},
      {"conv",
       {x, f32({4, 3, 3, 2})},
       number("groups", 3),
       "conv: groups is 3: it must divide the 6 channels of x and the 4 outputs"},
      {"conv",
       {x, w, f32({6})},
       {},
       "conv: b is f32[6], but w is f32[4, 3, 3, 6]: it must have one element for each output"},
      {"conv",
       {x, bf({4, 3, 3, 6})},
       {},
       "conv: w is bf16[4, 3, 3, 6], but x is f32[2, 8, 9, 6]: it must be f32 there"},
      {"conv",
       {x, w},
       list("stride", {1, 2, 3}),
       "conv: stride is a list of 3: it has one number, or one for each of 2 spatial axes"},
      {"conv",
       {x, w},
       list("padding", {1, 2, 3}),
       "conv: padding is a list of 3: it has one number, or one for each of 2 spatial axes, or two for each"},
      {"conv", {x, w}, list("stride", {0}), "conv: stride is 0: it must be in 1 .. 2147483647"},
      {"conv",
       {x, w},
       list("dilation", {int64_t{1} << 40}),
       "conv: dilation is 1099511627776: it must be in 1 .. 2147483647"},
      {"conv", {x, w}, list("padding", {-1}), "conv: padding is -1: it must be in 0 .. 2147483647"},
      {"conv",
       {x, w},
       list("dilation", {4, 1}),
       "conv: kernel is 9: it is wider than the 8 elements of x and its padding"},
      {"conv_transpose",
       {x, w},
       {},
       "conv_transpose: w is f32[4, 3, 3, 6], but x is f32[2, 8, 9, 6]: it must be [6, kh, kw, C / groups]"},
      {"conv_transpose",
       {l, f32({6, 3, 2})},
       list("size", {30}),
       "conv_transpose: x is f32[2, 9, 6]: a convolution of [2, 30, 2] has another shape"},
      {"conv_transpose",
       {f32({2, 1, 6}), f32({6, 2, 2})},
       list("padding", {1}),
       "conv_transpose: padding is 0: nothing is left of y"},
      {"conv_grad_weight",
       {l, f32({2, 9, 4})},
       list("kernel", {3}),
       "conv_grad_weight: dy is f32[2, 9, 4], but x is f32[2, 9, 6]: the convolution has another shape"},
      {"max_pool",
       {x},
       {},
       "max_pool: kernel is a list of 0: either kernel or size, the sizes of y, must be there"},
      {"max_pool",
       {x},
       {{"size", List{2}}, {"stride", List{2}}},
       "max_pool: size is a list of 1: it does not go together with stride or padding"},
      {"max_pool",
       {x},
       {{"kernel", List{2}}, {"padding", List{2}}},
       "max_pool: padding is 2: it must be less than the kernel of 2"},
      {"max_pool",
       {{DType::kF32, Shape{1, 1 << 16, 1 << 16, 1}, 0}},
       list("kernel", {2}),
       "max_pool: x is f32[1, 65536, 65536, 1]: it has more places than an i32 can number"},
      {"max_pool_grad",
       {x, i32({2, 8, 8, 6})},
       list("input", {9, 9}),
       "max_pool_grad: places is i32[2, 8, 8, 6], but dy is f32[2, 8, 9, 6]: the shapes differ"},
      {"average_pool_grad",
       {x},
       {{"kernel", List{2}}, {"input", List{8, 9}}},
       "average_pool_grad: dy is f32[2, 8, 9, 6]: windows over [2, 8, 9, 6] make another shape"},
      {"average_pool_grad",
       {x},
       {{"kernel", List{2}}, {"input", List{8}}},
       "average_pool_grad: input is a list of 1: it has one number for each spatial axis"},
      {"average_pool",
       {x},
       {{"kernel", List{2}}, {"count_padding", int64_t{2}}},
       "average_pool: count_padding is 2: it must be 0 or 1"},
      {"resize",
       {x},
       {{"size", List{4}}, {"mode", std::string("cubic")}},
       "resize: mode is cubic: it must be nearest or bilinear"},
      {"resize",
       {x},
       {{"size", List{4}}, {"align_corners", int64_t{1}}},
       "resize: align_corners is 1: it must be 0, or 1 with mode bilinear"},
      {"resize", {x}, list("size", {0}), "resize: size is 0: it must be in 1 .. 2147483647"},
      {"resize",
       {x},
       list("size", {}),
       "resize: size is a list of 0: it has one number, or one for each of 2 spatial axes"},
      {"pad",
       {l},
       {{"before", List{1}}, {"after", List{0, 0, 0}}},
       "pad: x is f32[2, 9, 6]: before has 1 numbers and after 3; both have one for each axis"},
      {"pad",
       {l},
       {{"before", List{0, -1, 0}}, {"after", List{0, 0, 0}}},
       "pad: before is -1: neither it nor after may be negative"},
      {"patches",
       {l},
       list("kernel", {10}),
       "patches: kernel is 10: it is wider than the 9 elements of x and its padding"},
      {"patches",
       {l},
       list("kernel", {}),
       "patches: kernel is a list of 0: it has one number, or one for each of 1 spatial axes"},
      {"patches_grad",
       {f32({2, 3, 7})},
       {{"kernel", List{3}}, {"input", List{9}}},
       "patches_grad: dy is f32[2, 3, 7]: its last dimension is no multiple of the kernel's 3 elements"},
  });
}

TEST(Pictures, MistakesOfNormsAreNamed) {
  const TensorDesc x = f32({2, 8, 6}), c = f32({6});
  expect_refused({
      {"batchnorm",
       {f32({1, 6})},
       {},
       "batchnorm: x is f32[1, 6]: a channel has one element alone, which has no variance"},
      {"batchnorm", {f32({6})}, {}, "batchnorm: x is f32[6]: it must have at least rank 2"},
      {"batchnorm",
       {x, f32({8})},
       {},
       "batchnorm: gamma is f32[8], but x is f32[2, 8, 6]: it must be of shape [6]"},
      {"batchnorm",
       {bf({2, 6}), bf({6})},
       {},
       "batchnorm: gamma is bf16[6], but x is bf16[2, 6]: it must be f32 there"},
      {"batchnorm", {x}, {{"eps", -1.0}}, "batchnorm: eps is -1: it must not be negative"},
      {"batchnorm_grad",
       {f32({2, 6}), x, c, c, c},
       {},
       "batchnorm_grad: dy is f32[2, 6], but x is f32[2, 8, 6]: the shapes differ"},
      {"batchnorm_grad",
       {x, x, c, c, c},
       number("fixed", 2),
       "batchnorm_grad: fixed is 2: it must be 0 or 1"},
      {"normalize",
       {x, c, f32({2})},
       {},
       "normalize: variance is f32[2], but x is f32[2, 8, 6]: it must be of shape [6]"},
      {"groupnorm", {x}, number("groups", 4), "groupnorm: groups is 4: it must divide the 6 channels of x"},
      {"groupnorm_grad",
       {x, x, c, c, f32({2, 3})},
       number("groups", 3),
       "groupnorm_grad: mean is f32[6], but x is f32[2, 8, 6]: it must be of shape [2, 3]"},
      {"l2_normalize", {x}, {{"eps", -0.5}}, "l2_normalize: eps is -0.5: it must not be negative"},
      {"l2_normalize_grad",
       {x, x, f32({2, 6})},
       {},
       "l2_normalize_grad: norm is f32[2, 6], but dy is f32[2, 8, 6]: it must have one element per row"},
  });
}

TEST(Pictures, MistakesOfLayersInTimeAndPairsAreNamed) {
  const TensorDesc four = f32({2, 5, 12}), w = f32({12, 3}), y = f32({2, 5, 3}), a = f32({4, 3}),
                   one = f32({1});
  expect_refused({
      {"lstm", {f32({5, 12}), w}, {}, "lstm: gates is f32[5, 12]: it must have rank 3"},
      {"lstm", {four, f32({9, 3})}, {}, "lstm: w is f32[9, 3]: it must be [4 H, H]"},
      {"lstm",
       {f32({2, 5, 8}), w},
       {},
       "lstm: gates is f32[2, 5, 8], but w is f32[12, 3]: its last dimension must be 4 * 3"},
      {"lstm", {four, w, f32({3, 3})}, {}, "lstm: h0 is f32[3, 3]: it must be [2, 3]"},
      {"lstm",
       {bf({2, 5, 12}), w, bf({2, 3}), bf({2, 3})},
       {},
       "lstm: c0 is bf16[2, 3], but gates is bf16[2, 5, 12]: it must be f32 there"},
      {"lstm", {four, w}, number("reverse", 2), "lstm: reverse is 2: it must be 0 or 1"},
      {"lstm_grad",
       {none(), none(), four, y, w},
       {},
       "lstm_grad: saved is f32[2, 5, 12]: neither dy nor dc is there"},
      {"lstm_grad",
       {f32({2, 4, 3}), none(), four, y, w},
       {},
       "lstm_grad: dy is f32[2, 4, 3]: it must be [2, 5, 3]"},
      {"gru", {four, w}, {}, "gru: w is f32[12, 3]: it must be [3 H, H]"},
      {"gru", {f32({2, 5, 9}), f32({9, 3}), f32({3})}, {}, "gru: b is f32[3]: it must be [9]"},
      {"gru_grad",
       {y, f32({2, 5, 9}), y, f32({9, 3})},
       {},
       "gru_grad: saved is f32[2, 5, 9], but w is f32[9, 3]: its last dimension must be 4 * 3"},
      {"pair_loss",
       {f32({1, 3}), f32({1, 3}), one},
       word("kind", "sigmoid"),
       "pair_loss: a is f32[1, 3]: a pair alone has nothing to be compared with; at least 2 rows are needed"},
      {"pair_loss",
       {a, f32({5, 3}), one},
       word("kind", "sigmoid"),
       "pair_loss: b is f32[5, 3], but a is f32[4, 3]: the shapes differ"},
      {"pair_loss",
       {a, a, f32({2})},
       word("kind", "sigmoid"),
       "pair_loss: scale is f32[2]: it must be of shape [1]"},
      {"pair_loss",
       {a, a, one},
       word("kind", "cosine"),
       "pair_loss: kind is cosine: it must be sigmoid or triplet"},
      {"pair_loss",
       {a, a, one},
       {{"kind", std::string("triplet")}, {"margin", -1.0}},
       "pair_loss: margin is -1: it must not be negative"},
      {"accuracy", {a, i32({4})}, number("top", 0), "accuracy: top is 0: it must be at least 1"},
  });
}

// Sizes of 64 bits wrap nowhere.
TEST(Pictures, SizesThatOverflowAreRefused) {
  const int64_t big = int64_t{1} << 40, most = std::numeric_limits<int32_t>::max();
  const auto wide = [](std::initializer_list<int64_t> shape) {
    return TensorDesc{DType::kF32, Shape(shape), 0};
  };
  EXPECT_THROW(infer("conv", {wide({1, 4, 1}), wide({1, big, 1})}, list("dilation", {most})), Error);
  EXPECT_THROW(infer("conv_transpose", {wide({1, big, 1}), wide({1, 2, 1})}, list("stride", {most})), Error);
  EXPECT_THROW(infer("average_pool", {wide({1, big, 1})}, list("size", {most})), Error);
  EXPECT_THROW(infer("patches", {wide({1, 1, big})}, {{"kernel", List{most}}, {"padding", List{most}}}),
               Error);
  EXPECT_THROW(
      infer("pad", {f32({1})}, {{"before", List{std::numeric_limits<int64_t>::max()}}, {"after", List{1}}}),
      Error);
}

}  // namespace
}  // namespace cairn::ops
