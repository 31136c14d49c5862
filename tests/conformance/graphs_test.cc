// Gradients through graphs of several ops: values used twice, tied weights, sums of broadcasts, custom ops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/conformance/gradient_cases.h"

namespace cairn::conformance {
namespace {

using graph::Graph;
using graph::ValueId;

TensorDesc f64(std::initializer_list<int64_t> shape) { return {DType::kF64, Shape(shape), 0}; }

// Freezes with mse of y against random targets (or with `y` itself, if it is the loss), fills every parameter
// and input, and compares all gradients with central differences.
void check(const std::shared_ptr<Graph>& g, ValueId y, bool is_loss = false, int64_t classes = 0,
           ValueId weight = graph::kNone) {
  ValueId loss = y;
  if (!is_loss) {
    const TensorDesc desc = g->values()[static_cast<size_t>(y)].desc;
    loss = g->op("mse", {y, g->input("target", desc)})[0];
  }
  g->freeze(loss, weight, {});
  graph::JointOptions options;
  options.optimizer.name = "";
  Interpreter interpreter(graph::derive(g, options));
  const graph::JointGraph& joint = interpreter.joint();
  for (size_t v = 0; v < joint.values.size(); ++v) {
    if (joint.values[v].role != graph::Role::kInput && joint.values[v].role != graph::Role::kParameter)
      continue;
    const Tensor t = interpreter.tensor(static_cast<int32_t>(v));
    fill(t, v + 100, t.desc.dtype == DType::kI32 ? I({}, classes) : T({}));
  }
  const RandomKey key;
  interpreter.run(true, key);
  std::vector<std::vector<double>> gradients;
  for (const graph::ParameterSlot& slot : joint.parameters) {
    ASSERT_GE(slot.gradient, 0);
    const Tensor t = interpreter.tensor(slot.gradient);
    for (gradients.emplace_back(); gradients.back().size() < static_cast<size_t>(t.desc.shape.elements());)
      gradients.back().push_back(get(t, static_cast<int64_t>(gradients.back().size())));
  }
  for (size_t p = 0; p < joint.parameters.size(); ++p) {
    const Tensor t = interpreter.tensor(joint.parameters[p].value);
    for (int64_t i = 0; i < t.desc.shape.elements(); ++i) {
      const double x = get(t, i), h = 1e-5;
      set(t, i, x + h);
      interpreter.run(true, key);
      const double up = interpreter.loss();
      set(t, i, x - h);
      interpreter.run(true, key);
      const double down = interpreter.loss();
      set(t, i, x);
      const double expected = (up - down) / (2 * h);
      ASSERT_NEAR(gradients[p][static_cast<size_t>(i)], expected, 1e-7 * std::max(1.0, std::fabs(expected)))
          << joint.values[static_cast<size_t>(joint.parameters[p].value)].name << ", element " << i;
    }
  }
}

TEST(GraphGradients, AValueUsedTwice) {
  auto g = std::make_shared<Graph>();
  const ValueId p = g->parameter("p", f64({3, 4}), {});
  const ValueId h = g->op("silu", {p})[0];
  check(g, g->op("add", {g->op("mul", {h, h})[0], g->op("gelu", {h})[0]})[0]);
}

TEST(GraphGradients, AParameterAddedToItself) {
  auto g = std::make_shared<Graph>();
  const ValueId p = g->parameter("p", f64({5}), {});
  check(g, g->op("mul", {g->op("add", {p, p})[0], p})[0]);
}

// The sum over the broadcast belongs to both summands: neither may swallow it.
TEST(GraphGradients, ASumOfParametersThatIsBroadcast) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->parameter("x", f64({3, 4}), {}), a = g->parameter("a", f64({4}), {}),
                b = g->parameter("b", f64({4}), {});
  check(g, g->op("add", {x, g->op("add", {a, b})[0]})[0]);
}

TEST(GraphGradients, AWeightMadeOfParameters) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->input("x", f64({3, 4})), a = g->parameter("a", f64({2, 4}), {}),
                b = g->parameter("b", f64({2, 4}), {});
  check(g, g->op("linear", {x, g->op("add", {a, b})[0]})[0]);
}

TEST(GraphGradients, PreActivationIsAValueToo) {
  for (const char* act : {"gelu_tanh", "silu"}) {
    auto g = std::make_shared<Graph>();
    const ValueId x = g->parameter("x", f64({3, 4}), {}), w = g->parameter("w", f64({5, 4}), {});
    const std::vector<ValueId> out = g->op("linear", {x, w}, word("activation", act));
    check(g, g->op("mul", {out[0], out[1]})[0]);
  }
}

int64_t count(const std::shared_ptr<Graph>& g, ops::OpCode code) {
  const auto joint = graph::derive(g, {});
  return std::count_if(joint->ops().begin(), joint->ops().end(),
                       [&](const graph::JointOp& op) { return op.code == code; });
}

// The derivative of the activation goes into the product behind it.
TEST(GraphGradients, AnActivationBetweenProducts) {
  using enum ops::OpCode;
  struct Form {
    const char *op, *attribute, *value;
    ops::OpCode gradient;
  };
  for (const Form& f : {Form{"gelu", "approximate", "tanh", k_gelu_grad},
                        {"gelu", "approximate", "erf", k_gelu_grad},
                        {"silu", nullptr, nullptr, k_silu_grad},
                        {"relu", nullptr, nullptr, k_relu_grad},
                        {nullptr, "activation", "gelu_tanh", k_gelu_grad},
                        {nullptr, "activation", "gelu_erf", k_gelu_grad},
                        {nullptr, "activation", "silu", k_silu_grad},
                        {nullptr, "activation", "relu", k_relu_grad}}) {
    SCOPED_TRACE(cat(f.op == nullptr ? "linear" : f.op, ' ', f.value == nullptr ? "" : f.value));
    auto g = std::make_shared<Graph>();
    const ValueId x = g->parameter("x", f64({3, 4}), {}), up = g->parameter("up", f64({6, 4}), {}),
                  bias = g->parameter("bias", f64({6}), {}), down = g->parameter("down", f64({2, 6}), {});
    const Attrs attrs = f.attribute == nullptr ? Attrs{} : word(f.attribute, f.value);
    ValueId h = g->op("linear", {x, up, bias}, f.op == nullptr ? attrs : Attrs{})[0];
    if (f.op != nullptr) h = g->op(f.op, {h}, attrs)[0];
    check(g, g->op("linear", {h, down})[0]);
    EXPECT_EQ(count(g, f.gradient), 0);
  }
}

// What flows past a norm is added by the norm's gradient.
TEST(GraphGradients, ResidualsAroundNorms) {
  for (const bool centered : {true, false}) {
    auto g = std::make_shared<Graph>();
    ValueId x = g->parameter("x", f64({3, 4}), {});
    for (int i = 0; i < 2; ++i) {
      std::vector<ValueId> in = {x, g->parameter(cat("gamma", i), f64({4}), {})};
      if (centered) in.push_back(g->parameter(cat("beta", i), f64({4}), {}));
      const ValueId y = g->op(centered ? "layernorm" : "rmsnorm", in)[0];
      x = g->op("add", {x, g->op("linear", {y, g->parameter(cat("w", i), f64({4, 4}), {})})[0]})[0];
    }
    check(g, x);
    // The first x is a parameter, whose gradient has two parts that add up where it lies.
    EXPECT_EQ(count(g, ops::OpCode::k_add), 2) << "in forward only";
  }
}

// Lookup, block, tied projection: the shape of a language model.
TEST(GraphGradients, TiedEmbedding) {
  auto g = std::make_shared<Graph>();
  const ValueId table = g->parameter("table", f64({6, 4}), {}),
                position = g->parameter("position", f64({3, 4}), {});
  const ValueId ids = g->input("ids", {DType::kI32, Shape{2, 3}, 0});
  const ValueId targets = g->input("targets", {DType::kI32, Shape{2, 3}, 0});
  ValueId h = g->op("add", {g->op("embedding", {table, ids})[0], position})[0];
  const ValueId norm =
      g->op("layernorm", {h, g->parameter("gamma", f64({4}), {}), g->parameter("beta", f64({4}), {})})[0];
  const ValueId qkv =
      g->op("linear", {norm, g->parameter("qkv", f64({12, 4}), {}), g->parameter("bias", f64({12}), {})})[0];
  const ValueId mixed = g->op("attention", {qkv}, with("heads", int64_t{2}))[0];
  h = g->op("add", {h, g->op("dropout", {mixed}, with("rate", 0.25))[0]})[0];
  check(g, g->op("linear_cross_entropy", {h, table, targets})[0], true, 6);
}

TEST(GraphGradients, SplitHeadsWithRope) {
  auto g = std::make_shared<Graph>();
  const ValueId qkv = g->parameter("qkv", f64({1, 4, 16}), {});
  const auto part = [&](int64_t begin, int64_t end) {
    return g->op("slice", {qkv}, {{"axis", int64_t{-1}}, {"begin", begin}, {"end", end}})[0];
  };
  const ValueId q = g->op("rope", {part(0, 8)}, with("heads", int64_t{2}))[0];
  const ValueId k = g->op("rope", {part(8, 12)}, with("heads", int64_t{1}))[0];
  check(g, g->op("attention", {q, k, part(12, 16)}, {{"heads", int64_t{2}}, {"kv_heads", int64_t{1}}})[0]);
}

TEST(GraphGradients, AScalarThatIsNoLossOp) {
  auto g = std::make_shared<Graph>();
  const ValueId p = g->parameter("p", f64({3, 4}), {});
  check(g, g->op("reduce_mean", {g->op("mul", {p, p})[0]})[0], true);
}

// Whatever becomes of losses: one goes on twice, one is multiplied by what depends on a parameter, and the denominator
// is a number like any other.
TEST(GraphGradients, LossesThatGoOn) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->parameter("x", f64({3, 4}), {}), w = g->parameter("w", f64({5, 4}), {}),
                s = g->parameter("s", f64({}), {});
  const ValueId targets = g->input("targets", {DType::kI32, Shape{3}, 0}), y = g->input("y", f64({3, 5}));
  const auto fused = g->op("linear_cross_entropy", {x, w, targets});
  const ValueId logits = g->op("linear", {x, w})[0];
  const auto entropy = g->op("cross_entropy", {logits, targets}), square = g->op("mse", {logits, y});
  const ValueId weighed = g->op("mul", {fused[0], g->op("exp", {s})[0]})[0];
  const ValueId mean = g->op("mul", {g->op("div", {square[0], square[1]})[0], fused[1]})[0];
  ValueId loss = g->op("add", {weighed, g->op("mul", {entropy[0], entropy[0]})[0]})[0];
  loss = g->op("sub", {loss, mean})[0];
  check(g, loss, true, 5, fused[1]);
}

// A comparison is constant but for its jumps.
TEST(GraphGradients, WhatAComparisonChooses) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->parameter("x", f64({3, 4}), {}), b = g->parameter("b", f64({3, 1}), {});
  const ValueId less = g->op("less", {x, b})[0];
  check(g,
        g->op("mul", {g->op("where", {less, g->op("mul", {x, x})[0], b})[0], g->op("add", {less, x})[0]})[0]);
}

// y0 = a * b, y1 = a + b, given by the host.
graph::CustomOp pair_op() {
  graph::CustomOp op;
  op.name = "pair";
  op.inputs = op.outputs = 2;
  op.shape = [](std::span<const TensorDesc> in, std::span<TensorDesc> out) {
    out[0] = out[1] = in[0];
    return in[0] == in[1];
  };
  op.forward = [](std::span<const Tensor> in, std::span<const Tensor> out, void*) {
    for (int64_t i = 0; i < in[0].desc.shape.elements(); ++i) {
      set(out[0], i, get(in[0], i) * get(in[1], i));
      set(out[1], i, get(in[0], i) + get(in[1], i));
    }
    return true;
  };
  op.backward = [](std::span<const Tensor> in, std::span<const Tensor> out, void*) {
    const auto dy = [&](size_t which, int64_t i) { return in[4 + which] ? get(in[4 + which], i) : 0.0; };
    for (int64_t i = 0; i < in[0].desc.shape.elements(); ++i)
      for (size_t o : {size_t{0}, size_t{1}})
        if (out[o]) set(out[o], i, dy(0, i) * get(in[1 - o], i) + dy(1, i));
    return true;
  };
  return op;
}

TEST(GraphGradients, CustomOp) {
  for (const bool both : {true, false}) {
    auto g = std::make_shared<Graph>();
    g->custom(pair_op());
    const ValueId a = g->parameter("a", f64({2, 3}), {}), b = g->parameter("b", f64({2, 3}), {});
    const std::vector<ValueId> out = g->op("pair", {a, b});
    check(g, both ? g->op("mul", {out[0], out[1]})[0] : out[0]);
  }
}

// The cells of an lstm are an output like its results: alone, and with these; in both directions, whose results stand side by side.
TEST(GraphGradients, CellsOfALayerInTime) {
  for (const bool both : {true, false})
    for (const bool start : {true, false}) {
      auto g = std::make_shared<Graph>();
      const ValueId x = g->parameter("x", f64({2, 3, 8}), {});
      std::vector<ValueId> parts;
      for (const int64_t reverse : {0, 1}) {
        std::vector<ValueId> in = {x, g->parameter(cat("w", reverse), f64({8, 2}), {})};
        if (start)
          for (const char* state : {"h", "c"})
            in.push_back(g->parameter(cat(state, reverse), f64({2, 2}), {}));
        const std::vector<ValueId> out = g->op("lstm", in, {{"reverse", reverse}});
        if (both) parts.push_back(out[0]);
        parts.push_back(out[1]);
      }
      check(g, g->op("concat", parts, {{"axis", int64_t{-1}}})[0]);
    }
}

// A block of a residual net: x is read by the convolution and by the sum.
TEST(GraphGradients, AResidualBlock) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->parameter("x", f64({2, 4, 4, 2}), {}), w = g->parameter("w", f64({2, 3, 3, 2}), {});
  const ValueId y = g->op("conv", {x, w}, {{"padding", std::vector<int64_t>{1}}})[0];
  const ValueId normed = g->op("batchnorm", {y, g->parameter("gamma", f64({2}), {})})[0];
  check(g, g->op("add", {g->op("silu", {normed})[0], x})[0]);
}

TEST(GraphGradients, WeightsOfALossGetNone) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->parameter("x", f64({3, 4}), {}), w = g->parameter("w", f64({3}), {});
  const ValueId y = g->input("y", f64({3, 4}));
  g->freeze(g->op("mse", {x, y, w})[0], graph::kNone, {});
  graph::JointOptions options;
  options.optimizer.name = "";
  try {
    graph::derive(g, options);
    FAIL() << "weights got a gradient";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUnsupported);
    EXPECT_NE(std::string(e.what()).find("weights get no gradient"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace cairn::conformance
