// Shape rules: what comes out, and what is refused with which words.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "tests/runtime/ops/descs.h"

namespace cairn::ops {
namespace {

Attrs by(const char* optimizer) { return {{"optimizer", std::string(optimizer)}}; }

struct Good {
  const char* op;
  std::vector<TensorDesc> in;
  Attrs attrs;
  std::vector<TensorDesc> out;
};

const std::vector<Good>& good() {
  static const Attrs heads{{"heads", int64_t{2}}};
  static const Attrs grouped{{"heads", int64_t{4}}, {"kv_heads", int64_t{2}}};
  static const Attrs gelu{{"activation", std::string("gelu_tanh")}},
      relu{{"activation", std::string("relu")}};
  static const std::vector<Good> list = {
      {"embedding", {f32({9, 4}), i32({2, 3})}, {}, {f32({2, 3, 4})}},
      {"embedding", {f32({9, 4}), i32({3})}, {{"dtype", std::string("bf16")}}, {bf({3, 4})}},
      {"embedding", {f64({9, 4}), i32({})}, {}, {f64({4})}},
      {"embedding_grad", {i32({2, 3}), bf({2, 3, 4})}, {{"vocab", int64_t{9}}}, {f32({9, 4})}},
      {"linear", {f32({2, 3, 4}), f32({5, 4}), f32({5})}, {}, {f32({2, 3, 5})}},
      {"linear", {bf({3, 4}), f32({5, 4}), f32({5})}, gelu, {bf({3, 5}), bf({3, 5})}},
      {"linear", {f32({4}), f32({5, 4})}, relu, {f32({5})}},
      {"linear", {bf({3, 4}), packed({5, 4})}, {}, {bf({3, 5})}},
      {"linear", {bf({3, 4}), bf({5, 4})}, {}, {bf({3, 5})}},
      {"linear_grad_input", {bf({3, 5}), packed({5, 4})}, {}, {bf({3, 4})}},
      {"linear_grad_input", {bf({2, 3, 5}), f32({5, 4}), bf({2, 3, 4})}, gelu, {bf({2, 3, 4})}},
      {"linear_grad_weight", {bf({3, 4}), bf({3, 5})}, {}, {f32({5, 4}), f32({5})}},
      {"layernorm", {bf({3, 4}), f32({4}), f32({4})}, {}, {bf({3, 4}), f32({3}), f32({3})}},
      {"layernorm", {f64({3, 4})}, {}, {f64({3, 4}), f64({3}), f64({3})}},
      {"layernorm_grad",
       {bf({3, 4}), bf({3, 4}), none(), f32({3}), f32({3})},
       {},
       {bf({3, 4}), f32({4}), f32({4})}},
      {"layernorm_grad",
       {bf({3, 4}), bf({3, 4}), f32({4}), f32({3}), f32({3}), bf({3, 4})},
       {},
       {bf({3, 4}), f32({4}), f32({4})}},
      {"rmsnorm", {bf({3, 4}), f32({4})}, {}, {bf({3, 4}), f32({3})}},
      {"rmsnorm_grad",
       {f64({3, 4}), f64({3, 4}), none(), f64({3}), f64({3, 4})},
       {},
       {f64({3, 4}), f64({4})}},
      {"rmsnorm_grad", {f32({3, 4}), f32({3, 4}), f32({4}), f32({3})}, {}, {f32({3, 4}), f32({4})}},
      {"attention", {bf({2, 5, 24})}, heads, {bf({2, 5, 8}), f32({2, 2, 5})}},
      {"attention",
       {f32({2, 5, 12}), f32({2, 5, 6}), f32({2, 5, 6})},
       grouped,
       {f32({2, 5, 12}), f32({2, 4, 5})}},
      {"attention_grad",
       {bf({2, 5, 8}), bf({2, 5, 24}), none(), none(), bf({2, 5, 8}), f32({2, 2, 5})},
       heads,
       {bf({2, 5, 24})}},
      {"attention",
       {bf({2, 5, 24}), none(), none(), f32({2}), i32({2, 5}), i32({2})},
       {{"heads", int64_t{2}}, {"window", int64_t{3}}, {"softcap", 30.0}},
       {bf({2, 5, 8}), f32({2, 2, 5})}},
      {"attention",
       {bf({2, 1, 8}), bf({2, 9, 8}), bf({2, 9, 8}), none(), none(), none(), i32({2})},
       heads,
       {bf({2, 1, 8}), f32({2, 2, 1})}},
      {"attention",
       {f32({2, 5, 8}), f32({2, 9, 8}), f32({2, 9, 8}), none(), none(), i32({2})},
       {{"heads", int64_t{2}}, {"causal", int64_t{0}}},
       {f32({2, 5, 8}), f32({2, 2, 5})}},
      {"attention_grad",
       {bf({2, 5, 8}), bf({2, 5, 24}), none(), none(), bf({2, 5, 8}), f32({2, 2, 5}), f32({2})},
       heads,
       {bf({2, 5, 24}), {}, {}, f32({2})}},
      {"rope", {bf({2, 5, 8})}, heads, {bf({2, 5, 8})}},
      {"softmax_grad", {f32({2, 3}), f32({2, 3})}, {}, {f32({2, 3})}},
      {"swiglu_grad", {bf({3}), bf({3}), bf({3})}, {}, {bf({3}), bf({3})}},
      {"add", {bf({2, 3}), f32({3})}, {}, {bf({2, 3})}},
      {"mul", {f32({2, 3}), f32({})}, {}, {f32({2, 3})}},
      {"cross_entropy", {bf({2, 3, 7}), i32({2, 3})}, {}, {f64({}), f64({})}},
      {"cross_entropy_grad", {bf({2, 7}), i32({2}), f32({2})}, {}, {f64({}), f64({}), bf({2, 7})}},
      {"accuracy", {bf({2, 3, 7}), i32({2, 3}), f32({2, 3})}, {}, {f64({}), f64({})}},
      {"linear_cross_entropy",
       {bf({2, 4}), packed({7, 4}), i32({2})},
       {{"accuracy", int64_t{1}}},
       {f64({}), f64({}), f64({}), f64({})}},
      {"linear_cross_entropy_grad",
       {bf({2, 4}), f32({7, 4}), i32({2})},
       {{"accuracy", int64_t{1}}},
       {f64({}), f64({}), bf({2, 4}), f32({7, 4}), f64({}), f64({})}},
      {"linear_cross_entropy", {bf({2, 4}), packed({7, 4}), i32({2})}, {}, {f64({}), f64({})}},
      {"linear_cross_entropy_grad",
       {bf({2, 4}), packed({7, 4}), i32({2}), none(), packed({7, 4})},
       {},
       {f64({}), f64({}), bf({2, 4}), f32({7, 4})}},
      {"mse_grad", {bf({2, 4}), f32({2, 4})}, {}, {f64({}), f64({}), bf({2, 4}), f32({2, 4})}},
      {"reshape", {f32({2, 6})}, {{"shape", List{3, -1}}}, {f32({3, 4})}},
      {"reshape", {f32({1})}, {{"shape", List{}}}, {f32({})}},
      {"transpose", {i32({2, 3, 4})}, {{"perm", List{2, 0, 1}}}, {i32({4, 2, 3})}},
      {"slice",
       {bf({2, 6})},
       {{"axis", int64_t{-1}}, {"begin", int64_t{2}}, {"end", int64_t{6}}},
       {bf({2, 4})}},
      {"slice_grad",
       {bf({2, 4})},
       {{"axis", int64_t{-1}}, {"begin", int64_t{2}}, {"size", int64_t{6}}},
       {bf({2, 6})}},
      {"concat", {f32({2, 1}), none(), f32({2, 4})}, {{"axis", int64_t{1}}}, {f32({2, 5})}},
      {"reduce_sum", {f32({2, 3, 4})}, {}, {f32({})}},
      {"reduce_mean", {f32({2, 3, 4})}, {{"axes", List{-1, 0}}, {"keep", int64_t{1}}}, {f32({1, 3, 1})}},
      {"expand", {f32({3})}, {{"shape", List{2, 3, 4}}, {"axes", List{0, 2}}}, {f32({2, 3, 4})}},
      {"reduce_leading", {bf({2, 3, 4})}, {{"rank", int64_t{1}}}, {f32({4})}},
      {"cast", {i32({2})}, {{"dtype", std::string("bf16")}}, {bf({2})}},
      {"dequantise", {{DType::kInt8, {2, 64}}}, {{"dtype", std::string("bf16")}}, {bf({2, 64})}},
      {"fill", {}, {{"shape", List{2}}, {"dtype", std::string("f64")}}, {f64({2})}},
      {"accumulate", {bf({2})}, {}, {f32({2})}},
      {"sum_squares", {f32({2, 2})}, {}, {f64({})}},
      {"squares_of_chunks", {f32({3, 7})}, {{"chunk", int64_t{8}}}, {f64({3})}},
      {"sum_of_chunks", {f64({3})}, {}, {f64({})}},
      {"running_mean", {bf({2, 3, 4}), f32({4})}, {}, {f64({5})}},
      {"move_mean", {f64({5})}, {}, {f32({4})}},
      {"effective", {bf({2, 3, 4})}, {{"micro_steps", int64_t{5}}}, {bf({10, 3, 4})}},
      {"effective_rows", {bf({10, 3, 4})}, {{"micro_steps", int64_t{5}}}, {bf({2, 3, 4})}},
      {"row_numbers", {bf({10, 3})}, {}, {i32({10})}},
      {"append", {bf({8, 4}), f32({3, 4}), i32({1})}, {}, {bf({8, 4})}},
      {"append", {bf({2, 8, 4}), f32({2, 3, 4}), i32({2}), i32({2})}, {}, {bf({2, 8, 4})}},
      {"append", {f32({2, 3, 4}), f32({2, 8, 4}), i32({2})}, {{"ring", int64_t{1}}}, {f32({2, 3, 4})}},
      {"update", {f32({2}), f64({8})}, by("adamw"), {f32({2}), f32({2}), f32({2})}},
      {"update", {f64({2}), f64({8})}, by("sgd"), {f64({2}), f64({2})}},
      {"update", {f32({2, 3}), f64({8})}, by("lion"), {f32({2, 3}), f32({2, 3})}},
      {"update",
       {f32({2}), f64({8}), f64({})},
       by("adamw"),
       {f32({2}), f32({2}), f32({2}), {}, {}, {}, f64({})}},
      {"grad_scale", {f64({})}, {}, {f64({})}},
      {"grad_scale", {f64({}), f64({})}, {}, {f64({})}},
      {"pack_weight",
       {f32({5, 4})},
       {{"use", std::string("forward")}, {"m", int64_t{3}}, {"dtype", std::string("bf16")}},
       {f32({5, 4})}},
  };
  return list;
}

TEST(Shapes, AreInferred) {
  for (const Good& g : good()) {
    SCOPED_TRACE(g.op);
    check_attrs(*find(g.op), g.attrs);
    const std::vector<TensorDesc> out = infer(g.op, g.in, g.attrs);
    ASSERT_EQ(out.size(), g.out.size());
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(to_string(out[i]), to_string(g.out[i])) << i;
  }
}

struct Bad {
  const char* op;
  std::vector<TensorDesc> in;
  Attrs attrs;
  const char* message;
};

TEST(Shapes, MistakesAreNamed) {
  const Attrs heads2{{"heads", int64_t{2}}};
  const Attrs ends{{"axis", int64_t{0}}, {"begin", int64_t{3}}, {"end", int64_t{3}}};
  const Bad bad[] = {
      {"linear",
       {f32({4, 8}), f32({10, 7})},
       {},
       "linear: w is f32[10, 7], but x is f32[4, 8]: the last dimensions differ (7, 8)"},
      {"linear",
       {f32({4, 8}), bf({10, 8})},
       {},
       "linear: w is bf16[10, 8], but x is f32[4, 8]: it must be f32 there"},
      {"linear",
       {f64({4, 8}), f32({10, 8})},
       {},
       "linear: w is f32[10, 8], but x is f64[4, 8]: it must be f64 there"},
      {"linear",
       {f32({4, 8}), f32({10, 8}), f32({9})},
       {},
       "linear: b is f32[9], but w is f32[10, 8]: it must be of shape [10]"},
      {"linear", {f32({4, 8}), f32({8})}, {}, "linear: w is f32[8]: it must have rank 2"},
      {"linear", {i32({4, 8}), f32({10, 8})}, {}, "linear: x is i32[4, 8]: it must be of a float type"},
      {"linear", {f32({4, 8})}, {}, "linear: operand 'w' is missing"},
      {"linear",
       {f32({4, 8}), f32({10, 8})},
       {{"activation", std::string("elu")}},
       "linear: activation is 'elu': it must be one of gelu_tanh, gelu_erf, relu, silu, sigmoid, tanh"},
      {"linear_grad_input",
       {f32({4, 10}), f32({10, 8}), f32({4, 8})},
       {},
       "linear_grad_input: activation is '': pre and activation belong together"},
      {"linear_grad_input",
       {f32({4, 10}), f32({10, 8})},
       {{"activation", std::string("silu")}},
       "linear_grad_input: activation is 'silu': pre and activation belong together"},
      {"linear_grad_input",
       {f32({4, 10}), f32({10, 8}), f32({4, 10})},
       {{"activation", std::string("silu")}},
       "linear_grad_input: pre is f32[4, 10]: dx is f32[4, 8]"},
      {"layernorm_grad",
       {bf({2, 4}), bf({2, 4}), none(), f32({2}), f32({2}), f32({2, 4})},
       {},
       "layernorm_grad: da is f32[2, 4], but x is bf16[2, 4]: the dtypes differ"},
      {"rmsnorm_grad",
       {bf({2, 4}), bf({2, 4}), none(), f32({2}), bf({4})},
       {},
       "rmsnorm_grad: da is bf16[4], but x is bf16[2, 4]: the shapes differ"},
      {"embedding", {f32({9, 4}), f32({2})}, {}, "embedding: ids is f32[2]: it must be i32"},
      {"embedding",
       {f32({9, 4}), i32({2})},
       {{"dtype", std::string("i32")}},
       "embedding: dtype is i32: it must be a float type"},
      {"layernorm",
       {f32({2, 4}), f32({3})},
       {},
       "layernorm: gamma is f32[3], but x is f32[2, 4]: it must be of shape [4]"},
      {"layernorm", {f32({2, 4})}, {{"eps", -1.0}}, "layernorm: eps is -1: it must not be negative"},
      {"attention",
       {f32({1, 2, 12})},
       {{"heads", int64_t{4}}, {"kv_heads", int64_t{3}}},
       "attention: kv_heads is 3: it must divide heads = 4"},
      {"attention",
       {f32({1, 2, 7})},
       heads2,
       "attention: q is f32[1, 2, 7]: its last dimension is no multiple of 6 = heads + 2 * kv_heads (q, k "
       "and v side by side, kv_heads = 2)"},
      {"attention",
       {f32({1, 2, 8}), f32({1, 2, 8})},
       heads2,
       "attention: q is f32[1, 2, 8]: k and v must be given both, or neither (q packed as q|k|v)"},
      {"attention",
       {f32({1, 2, 12})},
       {{"heads", int64_t{0}}},
       "attention: heads is 0: it must be positive, and at most the last dimension, 12"},
      {"attention",
       {f32({1, 2, 12})},
       {{"heads", int64_t{6989586621679009794}}},
       "attention: heads is 6989586621679009794: it must be positive, and at most the last dimension, 12"},
      {"rope",
       {f32({1, 2, 6})},
       heads2,
       "rope: x is f32[1, 2, 6]: its last dimension is no multiple of 2 * heads = 4"},
      {"dropout", {f32({2})}, {{"rate", 1.0}}, "dropout: rate is 1: it must be in [0, 1)"},
      {"gelu",
       {f32({2})},
       {{"approximate", std::string("none")}},
       "gelu: approximate is 'none': it must be tanh or erf"},
      {"swiglu",
       {f32({2, 3}), f32({2, 4})},
       {},
       "swiglu: up is f32[2, 4], but gate is f32[2, 3]: the shapes differ"},
      {"add",
       {f32({2, 3}), f32({2})},
       {},
       "add: b is f32[2], but a is f32[2, 3]: the shapes do not broadcast: sizes must be equal, or one of "
       "them 1 "
       "(2, 3)"},
      {"add",
       {f32({2, 3}), bf({3})},
       {},
       "add: b is bf16[3], but a is f32[2, 3]: the dtypes do not go together"},
      {"softmax", {f32({})}, {}, "softmax: x is f32[]: it must have at least rank 1"},
      {"cross_entropy",
       {f32({2, 7}), i32({3})},
       {},
       "cross_entropy: targets is i32[3], but logits is f32[2, 7]: it must have one element per row, of "
       "shape [2]"},
      {"linear_cross_entropy",
       {f32({2, 4}), f32({7, 4}), i32({2})},
       {{"chunk", int64_t{-1}}},
       "linear_cross_entropy: chunk is -1: it must not be negative"},
      {"linear_cross_entropy",
       {f32({2, 4}), f32({7, 4}), i32({2})},
       {{"accuracy", int64_t{2}}},
       "linear_cross_entropy: accuracy is 2: it must be 0 or 1"},
      {"accuracy", {f32({2, 7}), f32({2})}, {}, "accuracy: targets is f32[2]: it must be i32"},
      {"mse",
       {f32({2, 4}), f64({2, 4})},
       {},
       "mse: y is f64[2, 4], but x is f32[2, 4]: f64 goes with f64 only"},
      {"reshape",
       {f32({2, 6})},
       {{"shape", List{5, -1}}},
       "reshape: x is f32[2, 6]: its 12 elements do not fill shape [5, -1]"},
      {"reshape",
       {f32({2, 6})},
       {{"shape", List{-1, -1}}},
       "reshape: shape is [-1, -1]: only one dimension can be -1"},
      {"reshape",
       {f32({2, 6})},
       {{"shape", List{0, 12}}},
       "reshape: shape is [0, 12]: dimensions must be positive, or -1 once"},
      {"reshape",
       {packed({2, 6})},
       {{"shape", List{12}}},
       "reshape: x is opaque[2, 6]: packed bytes have no shape to work on"},
      {"transpose",
       {f32({2, 3})},
       {{"perm", List{0, 0}}},
       "transpose: x is f32[2, 3]: perm = [0, 0] is no permutation of its axes"},
      {"slice", {f32({5})}, ends, "slice: x is f32[5]: [3, 3) is no range within axis 0"},
      {"slice",
       {f32({5})},
       {{"axis", int64_t{1}}, {"begin", int64_t{0}}, {"end", int64_t{1}}},
       "slice: axis is 1, but x is f32[5]: out of range"},
      {"slice_grad",
       {f32({5})},
       {{"axis", int64_t{0}}, {"begin", int64_t{3}}, {"size", int64_t{7}}},
       "slice_grad: dy is f32[5]: begin = 3, size = 7 do not hold it on axis 0"},
      {"concat",
       {f32({2, 3}), f32({3, 3})},
       {{"axis", int64_t{1}}},
       "concat: x1 is f32[3, 3], but x0 is f32[2, 3]: they may differ on axis 1 only"},
      {"reduce_sum", {f32({2, 3})}, {{"axes", List{1, -1}}}, "reduce_sum: axes names an axis twice"},
      {"reduce_sum",
       {f32({2, 3})},
       {{"axes", List{2}}},
       "reduce_sum: axes is 2, but x is f32[2, 3]: out of range"},
      {"expand",
       {f32({4})},
       {{"shape", List{2, 3}}, {"axes", List{0}}},
       "expand: dy is f32[4]: it must have 3 elements to expand to [2, 3]"},
      {"reduce_leading",
       {f32({4})},
       {{"rank", int64_t{2}}},
       "reduce_leading: x is f32[4]: rank = 2 is out of range"},
      {"cast", {f32({4})}, {{"dtype", std::string("u8")}}, "cast: dtype is u8: it must be a float type"},
      {"dequantise",
       {f32({4})},
       {{"dtype", std::string("f32")}},
       "dequantise: x is f32[4]: it must be of a format that is dequantised"},
      {"dequantise",
       {{DType::kInt8, {64}}},
       {{"dtype", std::string("f64")}},
       "dequantise: dtype is f64: it must be f32, bf16 or f16"},
      {"squares_of_chunks",
       {f32({4})},
       {{"chunk", int64_t{12}}},
       "squares_of_chunks: chunk is 12: it must be a positive multiple of 8"},
      {"sum_of_chunks", {f32({4})}, {}, "sum_of_chunks: sums is f32[4]: it must be f64"},
      {"move_mean", {f32({5})}, {}, "move_mean: sums is f32[5]: it must be f64"},
      {"append",
       {f32({8, 4}), f32({3, 5}), i32({1})},
       {},
       "append: x is f32[3, 5], but cache is f32[8, 4]: dimensions differ, other than rows"},
      {"append",
       {f32({8, 4}), f32({3, 4}), i32({2})},
       {},
       "append: position is i32[2]: it must be one number"},
      {"append",
       {f32({2, 8, 4}), f32({2, 3, 4}), i32({2}), i32({1})},
       {},
       "append: count is i32[1]: it must be a number for each sample"},
      {"append",
       {f32({2, 3, 4}), f32({2, 8, 4}), i32({2})},
       {},
       "append: x is f32[2, 8, 4], but cache is f32[2, 3, 4]: it has more rows than the cache"},
      {"update", {f32({4}), f32({8})}, by("adamw"), "update: hyper is f32[8]: it must be f64[8]"},
      {"update", {f32({4}), f64({8}), f64({2})}, by("adamw"), "update: total is f64[2]: it must be one f64"},
      {"update", {bf({4}), f64({8})}, by("adamw"), "update: grad is bf16[4]: it must be f32 or f64"},
      {"update",
       {f32({4}), f64({8})},
       by("adamax"),
       "unknown optimizer 'adamax'; known: adamw, sgd, lion, adam, adamw8, adafactor, muon"},
      {"grad_scale", {f32({})}, {}, "grad_scale: loss is f32[]: it must be one f64"},
      {"silu", {f32({4}), f32({4})}, {}, "silu: 2 operands given, it takes at most 1"},
  };
  for (const Bad& b : bad) {
    try {
      infer(b.op, b.in, b.attrs);
      ADD_FAILURE() << "accepted: " << b.message;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kInvalidArgument);
      EXPECT_STREQ(e.what(), b.message);
    }
  }
}

TEST(Shapes, EveryRuleHasACase) {
  // With tests of their own: {vocabulary,broadcast,families,experts,attention_shapes,pictures}_test.cc.
  std::set<ShapeRule> covered;
  std::istringstream apart(
      "custom custom_grad mse embedding_part embedding_part_grad linear_cross_entropy_max "
      "linear_cross_entropy_sum linear_cross_entropy_loss linear_cross_entropy_part clamp where "
      "greater_grad matmul reduce_axes glu glu_grad softcap relative_bias relative_bias_grad route "
      "route_grad group_rows count_choices gather_rows combine_rows combine_rows_grad grouped_linear "
      "grouped_linear_grad_input grouped_linear_grad_weight conv conv_transpose conv_grad_weight max_pool "
      "max_pool_grad average_pool average_pool_grad resize resize_grad pad patches patches_grad batchnorm "
      "batchnorm_grad normalize groupnorm groupnorm_grad l2_normalize l2_normalize_grad lstm lstm_grad gru "
      "gru_grad pair_loss pair_loss_grad average ");
  for (std::string name; apart >> name;) covered.insert(find(name)->shape);
  for (const Good& g : good()) covered.insert(find(g.op)->shape);
  for (const OpRow& r : all()) EXPECT_TRUE(covered.contains(r.shape)) << r.name;
}

}  // namespace
}  // namespace cairn::ops
