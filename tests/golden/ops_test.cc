// Values and gradients of the reference kernels and gradient rules against PyTorch (fixtures of make_ops.py).
#include <gtest/gtest.h>

#include <cmath>

#include "tests/conformance/interpreter.h"
#include "tests/golden/fixture.h"

namespace cairn::golden {
namespace {

using conformance::get;
using conformance::Interpreter;
using graph::ValueId;

std::string path(const std::string& family) {
  return cat(CAIRN_SOURCE_DIR, "/tests/golden/data/ops_", family, ".txt");
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
  g->freeze(loss, graph::kNone, outputs);
  graph::JointOptions options;
  options.optimizer = graph::Optimizer::kNone;
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
                         testing::Values("products", "norms", "attention", "elementwise", "losses", "layout"),
                         [](const auto& test) { return std::string(test.param); });

// Five steps each, in float64: p, m and v after every one.
TEST(GoldenOptimizer, AdamWAgreesWithPyTorch) {
  const std::vector<FixtureCase> cases = read_fixture(path("optimizer"));
  ASSERT_FALSE(cases.empty());
  for (const FixtureCase& c : cases) {
    const Item& start = *c.all("start").at(0);
    const std::vector<double>& h = c.all("hyper").at(0)->values;
    const std::vector<const Item*> steps = c.all("step"), results = c.all("result");
    ASSERT_EQ(results.size(), 3 * steps.size());
    const size_t n = start.values.size();
    std::vector<double> p = start.values, m(n), v(n), gradient(n), hyper(8);
    const TensorDesc desc = start.desc, hyper_desc{DType::kF64, Shape{8}, 0};
    const TensorDesc in[] = {desc, hyper_desc}, out[] = {desc, desc, desc};
    const Attrs none;
    const auto kernel = kernels::select(kernels::reference_registry(), {"adamw", in, out, 3, 7, &none, 1});
    for (size_t s = 0; s < steps.size(); ++s) {
      // The fixture's gradient is twice what the step sees: the factor halves it.
      for (size_t i = 0; i < n; ++i) gradient[i] = 2 * steps[s]->values[i];
      const double t = static_cast<double>(s + 1);
      hyper = {h[0], h[1], h[2], h[3], h[4], 1 - std::pow(h[1], t), 1 - std::pow(h[2], t), 0.5};
      const Tensor in_tensors[] = {{desc, gradient.data()}, {hyper_desc, hyper.data()}};
      const Tensor out_tensors[] = {{desc, p.data()}, {desc, m.data()}, {desc, v.data()}};
      kernel->run({in_tensors, out_tensors, nullptr, 0, {}});
      for (size_t o = 0; o < 3; ++o)
        expect_close(out_tensors[o], *results[3 * s + o], 1e-12, cat("step ", s, " output ", o));
    }
  }
}

}  // namespace
}  // namespace cairn::golden
