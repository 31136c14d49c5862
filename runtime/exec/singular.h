// The largest singular values of a matrix and their vectors.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace cairn {

// matrix [rows, columns] ~ sum over i of values[i] left_i right_i^T, values in descending order.
struct SingularTriples {
  std::vector<double> values;
  std::vector<double> left;   // one after the other, `rows` numbers each
  std::vector<double> right;  // `columns` numbers each
};

// The `count` largest, count <= min(rows, columns), to about eight digits of the largest one, by the bidiagonalisation of
// Golub and Kahan (1965) with full reorthogonalisation, whose first vector is fixed. Every product with the matrix is split by
// rows or columns, so that any number of threads gives the same bits. Work: two passes over the matrix a step, some ten steps
// for each singular value; the steps' vectors of float64 are in memory. NaN in the matrix gives NaN.
SingularTriples largest_singular(std::span<const float> matrix, int64_t rows, int64_t columns, int64_t count,
                                 int threads);

}  // namespace cairn
