// Every gradient rule and reference kernel against central differences, in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/conformance/gradient_cases.h"

namespace cairn::conformance {
namespace {

constexpr int64_t kChecked = 24;  // elements per parameter

double evaluate(Interpreter& interpreter, const RandomKey& key) {
  interpreter.run(true, key);
  return interpreter.loss();
}

// Compares gradients of all parameters of the joint graph with central differences.
void check_gradients(Interpreter& interpreter, const std::string& what) {
  RandomKey key;
  key.seed = 11;
  key.step = 3;
  const double loss = evaluate(interpreter, key);
  ASSERT_TRUE(std::isfinite(loss)) << what;
  int compared = 0;
  for (const graph::ParameterSlot& slot : interpreter.joint().parameters) {
    if (slot.gradient < 0) continue;
    evaluate(interpreter, key);
    const Tensor value = interpreter.tensor(slot.value), gradient = interpreter.tensor(slot.gradient);
    const int64_t n = value.desc.shape.elements();
    std::vector<double> first(static_cast<size_t>(n));
    double largest = 1;
    for (int64_t i = 0; i < n; ++i) {
      first[static_cast<size_t>(i)] = get(gradient, i);
      largest = std::max(largest, std::fabs(get(gradient, i)));
    }
    interpreter.run(false, key);  // a second micro-batch adds the same again
    for (int64_t i = 0; i < n; ++i)
      ASSERT_DOUBLE_EQ(get(gradient, i), 2 * first[static_cast<size_t>(i)])
          << what << " accumulated, element " << i;
    const int64_t stride = std::max<int64_t>(1, n / kChecked);
    for (int64_t i = 0; i < n; i += stride) {
      const double x = get(value, i), h = 1e-5;
      set(value, i, x + h);
      const double up = evaluate(interpreter, key);
      set(value, i, x - h);
      const double down = evaluate(interpreter, key);
      set(value, i, x);
      ASSERT_NEAR(first[static_cast<size_t>(i)], (up - down) / (2 * h), 2e-8 * largest)
          << what << ": " << interpreter.joint().values[static_cast<size_t>(slot.value)].name << ", element "
          << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 0) << what;
}

void check_case(const Case& c, uint32_t trained, int64_t parts = 1) {
  const Built built = build(c, DType::kF64, trained, parts);
  Interpreter interpreter(built.joint);
  fill_leaves(interpreter, built);
  check_gradients(interpreter, cat(c.name(), " trained ", trained));
}

TEST(Gradients, AgreeWithCentralDifferences) {
  int graphs = 0;
  for (const Case& c : gradient_cases()) {
    SCOPED_TRACE(c.name());
    const uint32_t all = trainable(c);
    // All operands together, and each alone: what is not wanted must not be needed.
    std::set<uint32_t> choices{all};
    for (uint32_t i = 0; i < 16; ++i)
      if (all >> i & 1u) choices.insert(1u << i);
    for (uint32_t trained : choices) {
      check_case(c, trained);
      if (HasFatalFailure()) return;
      ++graphs;
    }
  }
  EXPECT_GT(graphs, 150);
}

TEST(Gradients, AgreeWhereAVocabularyIsInParts) {
  int graphs = 0;
  for (const Case& c : gradient_cases()) {
    if (build(c, DType::kF64, trainable(c), 3).joint->slices.empty()) continue;
    SCOPED_TRACE(c.name());
    for (const int64_t parts : {2, 3}) check_case(c, trainable(c), parts);
    if (HasFatalFailure()) return;
    ++graphs;
  }
  EXPECT_GE(graphs, 10);
}

TEST(Gradients, EveryOpWithARuleHasACase) {
  std::set<std::string> covered{"custom"};  // in graphs_test.cc
  for (const Case& c : gradient_cases()) covered.insert(c.op);
  for (const ops::OpRow& row : ops::all())
    EXPECT_TRUE(row.gradient == nullptr || covered.contains(std::string(row.name))) << row.name;
}

}  // namespace
}  // namespace cairn::conformance
