// Shape rules: what comes out.
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

TEST(Shapes, EveryRuleHasACase) {
  // With tests of their own, in the other files here.
  std::set<ShapeRule> covered;
  std::istringstream apart(
      "custom custom_grad mse embedding_part embedding_part_grad linear_cross_entropy_max "
      "linear_cross_entropy_sum linear_cross_entropy_loss linear_cross_entropy_part clamp where "
      "greater_grad matmul reduce_axes glu glu_grad softcap relative_bias relative_bias_grad route "
      "route_grad group_rows count_choices gather_rows combine_rows combine_rows_grad grouped_linear "
      "grouped_linear_grad_input grouped_linear_grad_weight pair_loss pair_loss_grad average ");
#define OP(id, ...) covered.insert(row(OpCode::k_##id).shape);
#include "runtime/ops/pictures.def"
#undef OP
  for (std::string name; apart >> name;) covered.insert(find(name)->shape);
  for (const Good& g : good()) covered.insert(find(g.op)->shape);
  for (const OpRow& r : all()) EXPECT_TRUE(covered.contains(r.shape)) << r.name;
}

}  // namespace
}  // namespace cairn::ops
