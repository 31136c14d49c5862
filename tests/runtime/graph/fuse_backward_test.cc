// Pairs of backward ops that one op does: which, and which stay apart.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/graph/joint.h"

namespace cairn::graph {
namespace {

using ops::OpCode;

using Shared = std::shared_ptr<Graph>;

TensorDesc f32(std::initializer_list<int64_t> dims) { return {DType::kF32, Shape(dims)}; }

ValueId weight(Graph& g, const std::string& name, int64_t n, int64_t k) {
  return g.parameter(name, f32({n, k}), {});
}
ValueId linear(Graph& g, ValueId x, const std::string& name, int64_t n, int64_t k, const Attrs& attrs = {}) {
  return g.op("linear", {x, weight(g, name, n, k)}, attrs)[0];
}

std::shared_ptr<const JointGraph> derived(const Shared& g, ValueId y, const JointOptions& options = {}) {
  const auto loss = g->op("mse", {y, g->input("target", g->values()[static_cast<size_t>(y)].desc)});
  g->freeze(loss[0], loss[1], {});
  return derive(g, options);
}

std::vector<const JointOp*> all(const JointGraph& joint, OpCode code, bool backward = true) {
  std::vector<const JointOp*> list;
  for (const JointOp& op : joint.ops())
    if (op.code == code && op.backward == backward) list.push_back(&op);
  return list;
}

// Every value of backward is made once and before it is read; none is left that nothing names.
void check_whole(const JointGraph& joint) {
  std::vector<int> made(joint.values.size());
  for (const JointOp& op : joint.ops()) {
    for (const int32_t v : op.in)
      if (v >= 0 && joint.values[v].role == Role::kBackward)
        EXPECT_EQ(made[v], 1) << op.name << " reads " << joint.values[v].name;
    for (const int32_t v : op.out)
      if (v >= 0) ++made[v];
  }
  for (size_t v = 0; v < made.size(); ++v)
    if (joint.values[v].role == Role::kBackward) EXPECT_EQ(made[v], 1) << joint.values[v].name;
}

struct Form {
  const char *op, *attribute, *value, *activation;
  OpCode gradient;
};
constexpr Form kForms[] = {{"gelu", nullptr, nullptr, "gelu_tanh", OpCode::k_gelu_grad},
                           {"gelu", "approximate", "erf", "gelu_erf", OpCode::k_gelu_grad},
                           {"silu", nullptr, nullptr, "silu", OpCode::k_silu_grad},
                           {"relu", nullptr, nullptr, "relu", OpCode::k_relu_grad},
                           {"", "activation", "gelu_tanh", "gelu_tanh", OpCode::k_gelu_grad},
                           {"", "activation", "gelu_erf", "gelu_erf", OpCode::k_gelu_grad},
                           {"", "activation", "silu", "silu", OpCode::k_silu_grad},
                           {"", "activation", "relu", "relu", OpCode::k_relu_grad}};

TEST(FuseBackward, TheDerivativeOfAnActivationGoesIntoTheProduct) {
  for (const Form& f : kForms)
    for (const AmpMode amp : {AmpMode::kOff, AmpMode::kBf16}) {
      SCOPED_TRACE(cat(f.op, ' ', f.activation));
      auto g = std::make_shared<Graph>();
      const ValueId x = g->parameter("x", f32({3, 4}), {});
      Attrs attrs;
      if (f.attribute != nullptr) attrs = {{f.attribute, std::string(f.value)}};
      const bool apart = *f.op != '\0';
      const RegionId first = g->region_begin("up", Policy::kPlannerDecides);
      ValueId h = linear(*g, x, "up.w", 6, 4, apart ? Attrs{} : attrs);
      if (apart) h = g->op(f.op, {h}, attrs)[0];
      g->region_end(first);
      const RegionId second = g->region_begin("down", Policy::kPlannerDecides);
      const ValueId y = linear(*g, h, "down.w", 2, 6);
      g->region_end(second);
      JointOptions options;
      options.amp = amp;
      const auto joint = derived(g, y, options);
      check_whole(*joint);
      EXPECT_TRUE(all(*joint, f.gradient).empty());
      const auto products = all(*joint, OpCode::k_linear_grad_input);
      ASSERT_EQ(products.size(), 2u);
      const JointOp &down = *products[0], &up = *products[1];
      EXPECT_EQ(down.attrs.word("activation"), f.activation);
      EXPECT_EQ(down.region, second);
      const JointOp& forward = *all(*joint, OpCode::k_linear, false)[0];
      const bool by_result = std::string_view(f.activation) == "relu";
      const int32_t result = apart ? all(*joint, ops::find(f.op)->code, false)[0]->out[0] : forward.out[0];
      EXPECT_EQ(down.in[2], by_result ? result : apart ? forward.out[0] : forward.out[1]);
      EXPECT_EQ(up.in[0], down.out[0]);
      EXPECT_EQ(up.in[2], -1);
      EXPECT_TRUE(up.attrs.word("activation").empty());
      EXPECT_EQ(all(*joint, OpCode::k_linear_grad_weight)[1]->in[1], down.out[0]);
      const DType wanted = amp == AmpMode::kOff ? DType::kF32 : DType::kBF16;
      EXPECT_EQ(joint->values[down.out[0]].desc.dtype, wanted);
    }
}

// x + f(norm(x)), twice, then a norm whose input nothing else reads.
Shared residuals(const char* norm, ValueId* y) {
  auto g = std::make_shared<Graph>();
  ValueId x = linear(*g, g->input("x", f32({3, 4})), "first", 4, 4);
  for (int i = 0; i < 2; ++i) {
    const ValueId h = g->op(norm, {x, g->parameter(cat("gamma", i), f32({4}), {})})[0];
    x = g->op("add", {x, linear(*g, h, cat("w", i), 4, 4)})[0];
  }
  *y = g->op(norm, {x})[0];
  return g;
}

TEST(FuseBackward, ASumOfGradientsGoesIntoTheNorm) {
  for (const auto& [norm, gradient, da] : {std::tuple{"layernorm", OpCode::k_layernorm_grad, size_t{5}},
                                           std::tuple{"rmsnorm", OpCode::k_rmsnorm_grad, size_t{4}}}) {
    ValueId y = 0;
    const Shared g = residuals(norm, &y);
    const auto joint = derived(g, y);
    check_whole(*joint);
    EXPECT_TRUE(all(*joint, OpCode::k_add).empty());
    const auto norms = all(*joint, gradient);
    ASSERT_EQ(norms.size(), 3u);
    EXPECT_EQ(norms[0]->in[da], -1);
    EXPECT_EQ(norms[1]->in[da], norms[0]->out[0]);
    EXPECT_EQ(norms[2]->in[da], norms[1]->out[0]);
    const auto weights = all(*joint, OpCode::k_linear_grad_weight);
    EXPECT_EQ(weights.back()->in[1], norms[2]->out[0]);
  }
}

TEST(FuseBackward, UpdatesInBackwardSeeTheFusedOps) {
  ValueId y = 0;
  const Shared g = residuals("layernorm", &y);
  JointOptions options;
  options.fuse_update = true;
  const auto joint = derived(g, y, options);
  EXPECT_TRUE(all(*joint, OpCode::k_add).empty());
  EXPECT_EQ(all(*joint, OpCode::k_update).size(), 5u);
}

// Two branches, each behind a norm of its own, beside the residual: a chain of two sums.
TEST(FuseBackward, ChainsAreFusedOneByOne) {
  auto g = std::make_shared<Graph>();
  const ValueId x = linear(*g, g->input("x", f32({3, 4})), "first", 4, 4);
  const ValueId a = linear(*g, g->op("rmsnorm", {x})[0], "a", 4, 4);
  const ValueId b = linear(*g, g->op("rmsnorm", {x})[0], "b", 4, 4);
  const auto joint = derived(g, g->op("add", {g->op("add", {x, a})[0], b})[0]);
  check_whole(*joint);
  EXPECT_TRUE(all(*joint, OpCode::k_add).empty());
  const auto norms = all(*joint, OpCode::k_rmsnorm_grad);
  ASSERT_EQ(norms.size(), 2u);
  EXPECT_EQ(norms[0]->in[4], all(*joint, OpCode::k_linear_grad_input)[0]->in[0]);
  EXPECT_EQ(norms[1]->in[4], norms[0]->out[0]);
}

TEST(FuseBackward, WhatHasOtherReadersStays) {
  auto g = std::make_shared<Graph>();
  const ValueId h = linear(*g, g->parameter("x", f32({3, 4}), {}), "up", 4, 4);
  // gelu's result is read twice: what reaches its gradient is a sum, and no product.
  const ValueId r = g->op("gelu", {h})[0];
  const auto joint = derived(g, g->op("add", {linear(*g, r, "down", 4, 4), r})[0]);
  check_whole(*joint);
  EXPECT_EQ(all(*joint, OpCode::k_gelu_grad).size(), 1u);
  EXPECT_EQ(all(*joint, OpCode::k_add).size(), 1u);
  for (const JointOp* op : all(*joint, OpCode::k_linear_grad_input)) EXPECT_EQ(op->in[2], -1);
}

TEST(FuseBackward, WhatHasAnotherShapeStays) {
  auto g = std::make_shared<Graph>();
  const ValueId h = linear(*g, g->parameter("x", f32({2, 3, 4}), {}), "up", 4, 4);
  const ValueId r = g->op("reshape", {g->op("silu", {h})[0]}, {{"shape", std::vector<int64_t>{6, 4}}})[0];
  const auto joint = derived(g, linear(*g, r, "down", 4, 4));
  check_whole(*joint);
  EXPECT_EQ(all(*joint, OpCode::k_silu_grad).size(), 1u);
}

// The norm's gradient comes first, what is to be added to it later.
TEST(FuseBackward, NothingIsReadBeforeItIsThere) {
  auto g = std::make_shared<Graph>();
  const ValueId x = linear(*g, g->input("x", f32({3, 4})), "first", 4, 4);
  const ValueId early = g->op("scale", {x}, {{"factor", 0.5}})[0];
  const auto joint = derived(g, g->op("mul", {early, g->op("layernorm", {x})[0]})[0]);
  check_whole(*joint);
  const auto norms = all(*joint, OpCode::k_layernorm_grad);
  ASSERT_EQ(norms.size(), 1u);
  EXPECT_EQ(norms[0]->in[5], -1);
  EXPECT_EQ(all(*joint, OpCode::k_add).size(), 1u);
}

}  // namespace
}  // namespace cairn::graph
