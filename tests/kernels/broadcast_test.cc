// Operands that are repeated, and the sums that their gradients are: the same bits whatever the number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/registry.h"
#include "runtime/base/parallel.h"

namespace cairn::kernels::broadcasting {
namespace {

TensorDesc f32(std::initializer_list<int64_t> shape) { return {DType::kF32, Shape(shape), 0}; }

std::vector<float> run(const char* op, const std::vector<TensorDesc>& in, const TensorDesc& out,
                       const Attrs& attrs, int threads) {
  std::vector<std::vector<float>> numbers;
  std::vector<Tensor> operands;
  for (const TensorDesc& d : in) {
    numbers.emplace_back(static_cast<size_t>(d.shape.elements()));
    for (size_t i = 0; i < numbers.back().size(); ++i)
      numbers.back()[i] = std::sin(static_cast<float>(i) * 0.37f + static_cast<float>(numbers.size())) + 1.5f;
  }
  for (size_t i = 0; i < in.size(); ++i) operands.push_back({in[i], numbers[i].data()});
  std::vector<float> y(static_cast<size_t>(out.shape.elements()));
  const Tensor result{out, y.data()};
  const auto kernel = cpu_registry().find({op, in, {&out, 1}, ~0u, ~0u, &attrs, threads});
  EXPECT_NE(kernel, nullptr) << op;
  if (kernel == nullptr) return y;
  EXPECT_EQ(kernel->workspace_bytes(), 0);
  set_thread_count(threads);
  kernel->run({operands, {&result, 1}, nullptr, 0, {}});
  set_thread_count(1);
  return y;
}

void expect_same(const char* op, const std::vector<TensorDesc>& in, const TensorDesc& out,
                 const Attrs& attrs = {}) {
  const std::vector<float> one = run(op, in, out, attrs, 1);
  for (const int threads : {2, 3, 7})
    EXPECT_EQ(run(op, in, out, attrs, threads), one) << op << ", threads " << threads;
}

TEST(Broadcasting, BitsDoNotDependOnThreads) {
  const TensorDesc whole = f32({30, 41, 52});
  for (const char* op : {"add", "sub", "mul", "div", "minimum", "maximum", "less"})
    for (const TensorDesc& b : {f32({41, 1}), f32({30, 1, 52}), f32({1}), whole})
      expect_same(op, {whole, b}, whole);
  expect_same("where", {f32({41, 1}), f32({30, 1, 1}), f32({52})}, whole);
  using List = std::vector<int64_t>;
  expect_same("reduce_axes", {whole}, f32({30, 41, 1}), {{"axes", List{2}}, {"shape", List{30, 41, 1}}});
  expect_same("reduce_axes", {whole}, f32({30, 1, 52}), {{"axes", List{1}}, {"shape", List{30, 1, 52}}});
  expect_same("reduce_axes", {whole}, f32({1, 52}), {{"axes", List{0, 1}}, {"shape", List{1, 52}}});
}

// Within a row, at its ends, and over several rows at once.
TEST(Broadcasting, EveryElementIsWhereItBelongs) {
  const std::vector<float> y = run("sub", {f32({3, 1}), f32({2, 1, 700})}, f32({2, 3, 700}), {}, 3);
  const auto number = [](int64_t i, int operand) {
    return std::sin(static_cast<float>(i) * 0.37f + static_cast<float>(operand)) + 1.5f;
  };
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t r = 0; r < 3; ++r)
      for (int64_t c = 0; c < 700; ++c)
        ASSERT_EQ(y[static_cast<size_t>((b * 3 + r) * 700 + c)], number(r, 1) - number(b * 700 + c, 2));
}

}  // namespace
}  // namespace cairn::kernels::broadcasting
