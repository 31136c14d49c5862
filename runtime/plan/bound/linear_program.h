// Small linear programs: least cost . x with 0 <= x <= limit and row . x >= right for each row, by the dual simplex
// method on a dense table. Costs are not negative.
#pragma once
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace cairn::plan {

class LinearProgram {
 public:
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

  int32_t add_variable(double cost, double limit = kUnlimited);
  void add_row(std::vector<std::pair<int32_t, double>> factors, double right);

  struct Answer {
    // At most the program's value, whatever rounding did to the search: for any multipliers m >= 0 of the rows, each
    // x that holds them has cost . x >= m . right + (cost - m . rows) . x, and the last product is least at one end
    // of each variable's range. Where nothing holds all rows it is finite and means nothing.
    double bound = 0;
    std::vector<double> x;  // the variables where the search ended
    int64_t work = 0;       // numbers of the table that were changed
  };
  Answer solve() const;

 private:
  struct Row {
    std::vector<std::pair<int32_t, double>> factors;
    double right;
  };
  double bound(std::vector<double> multipliers) const;

  std::vector<double> cost_, limit_;
  std::vector<Row> rows_;
};

}  // namespace cairn::plan
