// Initial weights are a function of seed, parameter and element, whoever draws them.
#include "runtime/step/stepper.h"

namespace cairn::step {
namespace {

const auto f32 = [](std::initializer_list<int64_t> d) { return TensorDesc{DType::kF32, Shape(d)}; };

// How a parameter starts that has the shape of a linear layer's weight.
std::vector<float> start_of(int64_t rows, int64_t columns, graph::Init init, double scale, int threads) {
  auto g = std::make_shared<graph::Graph>();
  const graph::ValueId x = g->input("x", f32({2, columns})), t = g->input("t", f32({2, rows})),
                       w = g->parameter("w", f32({rows, columns}), {.init = init, .init_scale = scale});
  g->freeze(g->op("mse", {g->op("linear", {x, w})[0], t})[0], graph::kNone, {});
  device::DeviceOptions options;
  options.threads = threads;
  const auto device = device::open("cpu", options);
  engine::Session session(engine::compile(g, *device, {}), device);
  initialise(session, 3);
  std::vector<float> numbers(static_cast<size_t>(rows * columns));
  session.read(session.plan().joint->parameters[0].value, numbers.data(),
               static_cast<int64_t>(numbers.size() * sizeof(float)));
  return numbers;
}

// A parameter that many threads share, and one that none does.
std::string digest_of(int threads) {
  auto g = std::make_shared<graph::Graph>();
  graph::ParameterOptions normal;
  normal.init = graph::Init::kNormal;
  const graph::ValueId x = g->input("x", f32({2, 1201})), t = g->input("t", f32({2, 3}));
  const graph::ValueId wide = g->parameter("wide", f32({701, 1201}), normal),
                       narrow = g->parameter("narrow", f32({3, 701}), normal);
  const graph::ValueId y = g->op("linear", {g->op("linear", {x, wide})[0], narrow})[0];
  g->freeze(g->op("mse", {y, t})[0], graph::kNone, {});
  device::DeviceOptions options;
  options.threads = threads;
  const auto device = device::open("cpu", options);
  engine::Session session(engine::compile(g, *device, {}), device);
  initialise(session, 3);
  return parameter_digest(session);
}

TEST(Parameters, TheirFirstBitsAreTheSameByAnyNumberOfThreads) {
  const std::string alone = digest_of(1);
  EXPECT_EQ(digest_of(2), alone);
  EXPECT_EQ(digest_of(5), alone);
}

TEST(Parameters, TruncatedNormalNumbersLieWithinTwoDeviations) {
  const std::vector<float> numbers = start_of(500, 400, graph::Init::kTruncatedNormal, 0.5, 2);
  EXPECT_EQ(start_of(500, 400, graph::Init::kTruncatedNormal, 0.5, 1), numbers);
  double sum = 0, squares = 0, below = 0;
  for (const float v : numbers) {
    EXPECT_LE(std::abs(v), 1.0F);
    sum += v;
    squares += static_cast<double>(v) * v;
    below += v < -0.5 ? 1 : 0;
  }
  const auto count = static_cast<double>(numbers.size());
  EXPECT_NEAR(sum / count, 0, 0.004);
  EXPECT_NEAR(squares / count, 0.25 * 0.7737413, 0.002);  // 1 - 4 phi(2) / (Phi(2) - Phi(-2)) of the variance
  EXPECT_NEAR(below / count, (0.1586553 - 0.0227501) / 0.9544997, 0.004);
}

TEST(Parameters, OrthogonalRowsOrColumnsAreOrthonormalTimesTheFactor) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{24, 60}, {60, 24}, {33, 33}, {700, 800}}) {
    const std::vector<float> w = start_of(rows, columns, graph::Init::kOrthogonal, 2, 3);
    EXPECT_EQ(start_of(rows, columns, graph::Init::kOrthogonal, 2, 1), w);
    const int64_t few = std::min(rows, columns), many = std::max(rows, columns);
    const auto at = [&, rows = rows, columns = columns](int64_t vector, int64_t k) {
      return static_cast<double>(rows <= columns ? w[vector * columns + k] : w[k * columns + vector]);
    };
    for (int64_t i = 0; i<few; i += few> 100 ? 97 : 1)
      for (int64_t j = 0; j <= i; ++j) {
        double product = 0;
        for (int64_t k = 0; k < many; ++k) product += at(i, k) * at(j, k);
        EXPECT_NEAR(product, i == j ? 4 : 0, 1e-5) << rows << " " << columns << " " << i << " " << j;
      }
  }
}

TEST(Parameters, AnOrthogonalStartIsOfMatrices) {
  graph::Graph g;
  EXPECT_THROW(g.parameter("b", f32({8}), {.init = graph::Init::kOrthogonal, .init_scale = 1}), Error);
}

}  // namespace
}  // namespace cairn::step
