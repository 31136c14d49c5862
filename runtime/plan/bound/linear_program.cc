#include "runtime/plan/bound/linear_program.h"

#include <algorithm>
#include <cmath>

namespace cairn::plan {
namespace {

constexpr double kTiny = 1e-11;  // compared with numbers near one
constexpr size_t kPivots = 20;   // per row and variable: beyond that, pivots only follow rounding errors

// Basic variables as sums of those at zero: value + factors . others. The last row is the cost.
class Tableau {
 public:
  Tableau(size_t rows, size_t columns) : columns_(columns), data_((rows + 1) * (columns + 1), 0) {}
  double& at(size_t row, size_t column) { return data_[row * (columns_ + 1) + column]; }
  double& value(size_t row) { return at(row, columns_); }
  size_t rows() const { return data_.size() / (columns_ + 1) - 1; }

  void exchange(size_t row, size_t column) {
    const double pivot = at(row, column);
    for (size_t j = 0; j <= columns_; ++j) at(row, j) /= -pivot;
    at(row, column) = 1 / pivot;
    for (size_t i = 0; i <= rows(); ++i) {
      const double factor = at(i, column);
      if (i == row || factor == 0) continue;
      at(i, column) = 0;
      for (size_t j = 0; j <= columns_; ++j) at(i, j) += factor * at(row, j);
    }
  }

 private:
  size_t columns_;
  std::vector<double> data_;
};

}  // namespace

int32_t LinearProgram::add_variable(double cost, double limit) {
  cost_.push_back(cost);
  limit_.push_back(limit);
  return static_cast<int32_t>(cost_.size()) - 1;
}

void LinearProgram::add_row(std::vector<std::pair<int32_t, double>> factors, double right) {
  rows_.push_back({std::move(factors), right});
}

double LinearProgram::bound(std::vector<double> multipliers) const {
  std::vector<double> taken(cost_.size(), 0);
  double sum = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    for (const auto& [v, factor] : rows_[i].factors) taken[static_cast<size_t>(v)] += multipliers[i] * factor;
    sum += multipliers[i] * rows_[i].right;
  }
  // A variable without limit must not have a negative reduced cost. The multipliers may be scaled by any share, as
  // all of them are valid.
  double share = 1;
  for (size_t v = 0; v < cost_.size(); ++v)
    if (limit_[v] == kUnlimited && taken[v] > cost_[v]) share = std::min(share, cost_[v] / taken[v]);
  sum *= share;
  for (size_t v = 0; v < cost_.size(); ++v)
    if (limit_[v] < kUnlimited) sum += std::min(0.0, cost_[v] - share * taken[v]) * limit_[v];
  return sum;
}

LinearProgram::Answer LinearProgram::solve() const {
  const size_t variables = cost_.size();
  std::vector<size_t> limited;
  for (size_t v = 0; v < variables; ++v)
    if (limit_[v] < kUnlimited) limited.push_back(v);
  const size_t rows = rows_.size() + limited.size();
  Tableau table(rows, variables);
  for (size_t i = 0; i < rows_.size(); ++i) {
    for (const auto& [v, factor] : rows_[i].factors) table.at(i, static_cast<size_t>(v)) += factor;
    table.value(i) = -rows_[i].right;
  }
  for (size_t k = 0; k < limited.size(); ++k) {
    table.at(rows_.size() + k, limited[k]) = -1;
    table.value(rows_.size() + k) = limit_[limited[k]];
  }
  for (size_t v = 0; v < variables; ++v) table.at(rows, v) = cost_[v];
  // Numbers below `variables` are variables, the others rows.
  std::vector<size_t> basic(rows), zero(variables);
  for (size_t i = 0; i < rows; ++i) basic[i] = variables + i;
  for (size_t v = 0; v < variables; ++v) zero[v] = v;
  Answer answer;
  for (size_t pivots = 0; pivots < kPivots * (rows + variables); ++pivots) {
    size_t row = 0;
    for (size_t i = 1; i < rows; ++i)
      if (table.value(i) < table.value(row)) row = i;
    if (rows == 0 || !(table.value(row) < -kTiny)) break;
    size_t column = variables;
    for (size_t j = 0; j < variables; ++j) {
      if (!(table.at(row, j) > kTiny)) continue;
      if (column == variables ||
          table.at(rows, j) * table.at(row, column) < table.at(rows, column) * table.at(row, j))
        column = j;
    }
    if (column == variables) break;  // no point satisfies this row
    table.exchange(row, column);
    std::swap(basic[row], zero[column]);
    answer.work += static_cast<int64_t>((rows + 1) * (variables + 1));
  }
  std::vector<double> multipliers(rows_.size(), 0);
  for (size_t j = 0; j < variables; ++j)
    if (zero[j] >= variables && zero[j] - variables < rows_.size())
      multipliers[zero[j] - variables] = std::max(0.0, table.at(rows, j));
  answer.bound = bound(std::move(multipliers));
  answer.x.assign(variables, 0);
  for (size_t i = 0; i < rows; ++i)
    if (basic[i] < variables) answer.x[basic[i]] = std::max(0.0, table.value(i));
  return answer;
}

}  // namespace cairn::plan
