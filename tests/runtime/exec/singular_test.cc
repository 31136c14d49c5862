// The largest singular values: what they are of matrices that are made of known ones.
#include "runtime/exec/singular.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/random.h"

namespace cairn {
namespace {

std::vector<float> random_matrix(int64_t rows, int64_t columns, uint64_t seed) {
  std::vector<float> m(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < m.size(); ++i) m[i] = uniform(random_block({seed, 0, 0, 0}, i)[0]) - 0.5f;
  return m;
}

// The largest distance between matrix^T left_i and value_i right_i, and of the vectors from being orthonormal.
double residual(const std::vector<float>& m, int64_t rows, int64_t columns, const SingularTriples& s) {
  double worst = 0;
  const auto count = static_cast<int64_t>(s.values.size());
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < columns; ++c) {
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r) sum += double{m[r * columns + c]} * s.left[i * rows + r];
      worst = std::max(worst, std::abs(sum - s.values[i] * s.right[i * columns + c]));
    }
    for (int64_t k = 0; k < count; ++k) {
      double left = 0, right = 0;
      for (int64_t r = 0; r < rows; ++r) left += s.left[i * rows + r] * s.left[k * rows + r];
      for (int64_t c = 0; c < columns; ++c) right += s.right[i * columns + c] * s.right[k * columns + c];
      worst = std::max({worst, std::abs(left - (i == k)), std::abs(right - (i == k))});
    }
  }
  return worst;
}

TEST(LargestSingular, AreThoseOfRandomMatricesOnAnyNumberOfThreads) {
  for (const auto& [rows, columns, count] :
       std::vector<std::array<int64_t, 3>>{{7, 7, 7}, {40, 9, 3}, {9, 40, 9}, {300, 260, 8}, {1, 5, 1}}) {
    const auto m = random_matrix(rows, columns, 3);
    const SingularTriples s = largest_singular(m, rows, columns, count, 1);
    ASSERT_EQ(s.values.size(), static_cast<size_t>(count));
    EXPECT_LT(residual(m, rows, columns, s), 1e-9) << rows << " " << columns;
    EXPECT_TRUE(std::is_sorted(s.values.rbegin(), s.values.rend()));
    const SingularTriples other = largest_singular(m, rows, columns, count, 3);
    EXPECT_EQ(s.left, other.left);
    EXPECT_EQ(s.right, other.right);
  }
}

// All of them together have the sum of squares that the matrix has.
TEST(LargestSingular, NoneIsLeftOut) {
  const auto m = random_matrix(20, 30, 5);
  double squares = 0, found = 0;
  for (const float v : m) squares += double{v} * v;
  for (const double v : largest_singular(m, 20, 30, 20, 1).values) found += v * v;
  EXPECT_NEAR(found, squares, 1e-10 * squares);
}

TEST(LargestSingular, EqualOnesAndZeros) {
  std::vector<float> unit(36), zeros(36);
  for (int i = 0; i < 6; ++i) unit[static_cast<size_t>(7 * i)] = 2;
  for (const double v : largest_singular(unit, 6, 6, 4, 1).values) EXPECT_NEAR(v, 2, 1e-12);
  EXPECT_LT(residual(unit, 6, 6, largest_singular(unit, 6, 6, 4, 1)), 1e-9);
  for (const double v : largest_singular(zeros, 6, 6, 2, 1).values) EXPECT_EQ(v, 0);
}

}  // namespace
}  // namespace cairn
