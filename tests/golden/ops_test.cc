// Values and gradients of the reference kernels and gradient rules against PyTorch (fixtures of make_ops.py).
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/registry.h"
#include "runtime/ops/optimizers.h"
#include "tests/conformance/interpreter.h"
#include "tests/golden/fixture.h"

namespace cairn::golden {
namespace {

using conformance::get;
using conformance::Interpreter;
using graph::ValueId;

std::string path(const std::string& family) {
  return cat(CAIRN_SOURCE_DIR, "/tests/golden/data/ops/", family, ".txt");
}

void write(const Tensor& t, const Item& item) {
  for (size_t i = 0; i < item.values.size(); ++i)
    conformance::set(t, static_cast<int64_t>(i), item.values[i]);
}

// Relative to the largest element.
void expect_close(const Tensor& t, const Item& item, double tolerance, const std::string& what) {
  ASSERT_EQ(t.desc.shape, item.desc.shape) << what;
  double largest = 0;
  for (double v : item.values) largest = std::max(largest, std::fabs(v));
  for (size_t i = 0; i < item.values.size(); ++i)
    ASSERT_NEAR(get(t, static_cast<int64_t>(i)), item.values[i], tolerance * largest)
        << what << ", element " << i;
}

// The op as a graph; parameters are called p<operand>, inputs i<operand>, outputs y<index>.
void check_case(const FixtureCase& c, int number) {
  const std::string what = cat(c.op, ", case ", number);
  SCOPED_TRACE(what);
  auto g = std::make_shared<graph::Graph>();
  const std::vector<const Item*> operands = c.all("in");
  std::vector<ValueId> in;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Item& item = *operands[i];
    const bool parameter = item.qualifier == "T" || item.qualifier == "P";
    if (item.qualifier == "-")
      in.push_back(graph::kNone);
    else
      in.push_back(parameter ? g->parameter(cat("p", i), item.desc, {}) : g->input(cat("i", i), item.desc));
  }
  const std::vector<ValueId> out = g->op(c.op, in, c.attrs);
  std::vector<ValueId> outputs;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == graph::kNone) continue;
    g->name_value(out[i], cat("y", i));
    outputs.push_back(out[i]);
  }
  const std::vector<const Item*> target = c.all("target");
  ValueId loss = out[0];
  if (!target.empty()) loss = g->op("mse", {out[0], g->input("target", target[0]->desc)})[0];
  if (ops::find(c.op)->gradient == nullptr) loss = graph::kNone;
  g->freeze(loss, graph::kNone, outputs);
  graph::JointOptions options;
  options.optimizer.name = "";
  Interpreter interpreter(graph::derive(g, options));
  const graph::JointGraph& joint = interpreter.joint();
  const auto tensor = [&](const std::string& name) {
    const int32_t id = joint.find(name);
    require(id >= 0, Code::kNotFound, what, ": no value ", name);
    return interpreter.tensor(id);
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string& kind = operands[i]->qualifier;
    if (kind != "-") write(tensor(cat(kind == "T" || kind == "P" ? "p" : "i", i)), *operands[i]);
  }
  if (!target.empty()) write(tensor("target"), *target[0]);
  interpreter.run(true, {});
  for (const Item* item : c.all("out"))
    expect_close(tensor("y" + item->qualifier), *item, 1e-6, cat(what, " output ", item->qualifier));
  for (const Item* item : c.all("grad"))
    for (const graph::ParameterSlot& slot : joint.parameters)
      if (joint.values[static_cast<size_t>(slot.value)].name == "p" + item->qualifier)
        expect_close(interpreter.tensor(slot.gradient), *item, 1e-6,
                     cat(what, " gradient ", item->qualifier));
  EXPECT_EQ(joint.parameters.size(), c.all("grad").size());
}

class GoldenOps : public testing::TestWithParam<const char*> {};

TEST_P(GoldenOps, AgreeWithPyTorch) {
  const std::vector<FixtureCase> cases = read_fixture(path(GetParam()));
  ASSERT_FALSE(cases.empty());
  int number = 0;
  for (const FixtureCase& c : cases) check_case(c, number++);
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenOps,
                         testing::Values("products", "norms", "attention", "elementwise", "losses",
                                         "accuracy", "layout", "arithmetic", "smoothing", "families",
                                         "attention_masks", "distances", "convolutions", "pools",
                                         "channel_norms", "recurrent", "pairs", "top"),
                         [](const auto& test) { return std::string(test.param); });

// The case's steps by one backend's kernel; the results are the parameter and its states after some of them.
void check_updates(const FixtureCase& c, const kernels::Registry& registry, DType dtype, double tolerance) {
  const ops::OptimizerRow& row = ops::optimizer(c.op);
  const std::vector<double>& numbers =
      c.all("hyper").at(0)->values;  // the rate, and the row's but rate_scale
  ASSERT_EQ(numbers.size(), row.hypers.size());
  std::vector<double> values(numbers);
  values[0] = 1;
  const Item& start = *c.all("start").at(0);
  const TensorDesc desc{dtype, start.desc.shape, 0},
      hyper_desc{DType::kF64, Shape{update_op::kHyperSlots}, 0};
  const std::vector<TensorDesc> in = {desc, hyper_desc};
  std::vector<TensorDesc> out = {desc};
  for (const ops::OptimizerState& state : row.states)
    if (const auto tensor = row.tensor_of(state, values, desc)) out.push_back(*tensor);
  std::vector<conformance::Buffer> buffers;
  buffers.emplace_back(desc.bytes());
  for (const TensorDesc& d : out) buffers.emplace_back(d.bytes());
  std::vector<double> hyper(update_op::kHyperSlots);
  const Tensor gradient{desc, buffers[0].data()};
  const Tensor inputs[] = {gradient, {hyper_desc, hyper.data()}};
  std::vector<Tensor> outputs;
  for (size_t o = 0; o < out.size(); ++o) {
    outputs.push_back({out[o], buffers[1 + o].data()});
    for (int64_t i = 0; i < out[o].shape.elements(); ++i) conformance::set(outputs[o], i, 0);
  }
  write(outputs[0], start);
  const Attrs attrs = row.attrs(values);
  const auto kernel = registry.find({"update", in, out, 3, (1u << out.size()) - 1, &attrs, 1});
  ASSERT_NE(kernel, nullptr);
  conformance::Buffer workspace(kernel->workspace_bytes());
  uint64_t t = 0;
  size_t output = 0, compared = 0;
  for (const Item& item : c.items) {
    if (item.word == "step") {
      // The fixture's gradient is half of what the kernel gets: the factor halves it.
      for (size_t i = 0; i < item.values.size(); ++i)
        conformance::set(gradient, static_cast<int64_t>(i), 2 * item.values[i]);
      row.rule(values, {.rate = numbers[0], .t = ++t}, hyper.data());
      hyper[update_op::kFactorSlot] = 0.5;
      kernel->run({inputs, outputs, workspace.data(), 0, {}});
      output = 0;
    } else if (item.word == "result") {
      ASSERT_LT(output, outputs.size());
      expect_close(outputs[output], item, tolerance, cat(c.op, " step ", t, " output ", output));
      ++output, ++compared;
    }
  }
  EXPECT_GE(compared, 5 * outputs.size());
  EXPECT_EQ(compared % outputs.size(), 0u);
}

class GoldenOptimizer : public testing::TestWithParam<const char*> {};

TEST_P(GoldenOptimizer, Steps) {
  const std::vector<FixtureCase> cases = read_fixture(path(GetParam()));
  ASSERT_GE(cases.size(), 2u);
  int number = 0;
  for (const FixtureCase& c : cases) {
    SCOPED_TRACE(cat("case ", number++));
    check_updates(c, kernels::reference_registry(), DType::kF64, 1e-12);
    check_updates(c, kernels::reference_registry(), DType::kF32, 2e-6);
    check_updates(c, kernels::cpu_registry(), DType::kF32, 2e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, GoldenOptimizer,
                         testing::Values("adamw", "sgd", "lion", "adam", "adafactor", "muon"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace cairn::golden
