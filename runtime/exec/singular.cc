#include "runtime/exec/singular.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/base/os/thread.h"
#include "runtime/base/random.h"

namespace cairn {
namespace {

using Vector = std::vector<double>;
constexpr double kTolerance = 1e-8;  // of the residuals, by the largest value
constexpr double kNothing = 1e-14;   // what is left of a vector that the others span
constexpr int kSweeps = 60;

double dot(const double* a, const double* b, int64_t n) {
  double four[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; ++k) four[k] += a[i + k] * b[i + k];
  for (; i < n; ++i) four[0] += a[i] * b[i];
  return four[0] + four[1] + (four[2] + four[3]);
}

class Matrix {
 public:
  Matrix(std::span<const float> numbers, int64_t rows, int64_t columns, int threads)
      : numbers_(numbers.data()), rows_(rows), columns_(columns), threads_(threads) {}
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }

  Vector times(const Vector& x) const {
    Vector y(static_cast<size_t>(rows_));
    in_bands(rows_, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const float* const row = numbers_ + r * columns_;
        double eight[8] = {};
        int64_t c = 0;
        for (; c + 8 <= columns_; c += 8)
          for (int k = 0; k < 8; ++k)
            eight[k] += static_cast<double>(row[c + k]) * x[static_cast<size_t>(c + k)];
        for (; c < columns_; ++c) eight[0] += static_cast<double>(row[c]) * x[static_cast<size_t>(c)];
        y[static_cast<size_t>(r)] = std::accumulate(eight, eight + 8, 0.0);
      }
    });
    return y;
  }
  Vector transposed_times(const Vector& x) const {
    Vector y(static_cast<size_t>(columns_));
    in_bands(columns_, [&](int64_t begin, int64_t end) {
      for (int64_t r = 0; r < rows_; ++r) {
        const float* const row = numbers_ + r * columns_;
        const double factor = x[static_cast<size_t>(r)];
        for (int64_t c = begin; c < end; ++c)
          y[static_cast<size_t>(c)] += factor * static_cast<double>(row[c]);
      }
    });
    return y;
  }

 private:
  template <class Work>
  void in_bands(int64_t count, const Work& work) const {
    const bool few = rows_ * columns_ < (1 << 16);  // threads would take longer to start than to work
    const int64_t parts = few ? 1 : threads_, band = (count + parts - 1) / parts;
    spread("cairn/svd", parts, static_cast<int>(parts),
           [&](int64_t i) { work(std::min(count, i * band), std::min(count, (i + 1) * band)); });
  }

  const float* numbers_;
  int64_t rows_, columns_;
  int threads_;
};

void subtract(Vector& x, const std::vector<Vector>& basis) {
  for (int twice = 0; twice < 2; ++twice)
    for (const Vector& b : basis) {
      const double along = dot(x.data(), b.data(), static_cast<int64_t>(x.size()));
      for (size_t i = 0; i < x.size(); ++i) x[i] -= along * b[i];
    }
}

// Divides by the norm, which it returns.
double normalise(Vector& x) {
  const double norm = std::sqrt(dot(x.data(), x.data(), static_cast<int64_t>(x.size())));
  if (norm > 0)
    for (double& v : x) v /= norm;
  return norm;
}

// A unit vector that is orthogonal to all of them, of which there are fewer than it has elements.
Vector fresh(int64_t length, const std::vector<Vector>& basis, uint64_t number) {
  Vector x(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i)
    x[static_cast<size_t>(i)] = uniform(random_block({number, 0, 0, 0}, static_cast<uint64_t>(i))[0]) - 0.5;
  normalise(x);
  subtract(x, basis);
  normalise(x);
  subtract(x, basis);
  normalise(x);
  return x;
}

// Makes the columns of a [size, size], column by column, orthogonal by rotations (Hestenes, 1958), and applies these to `turned`.
void orthogonalise(std::vector<Vector>& a, std::vector<Vector>& turned) {
  const auto rotate = [](Vector& x, Vector& y, double c, double s) {
    for (size_t i = 0; i < x.size(); ++i) {
      const double old = x[i];
      x[i] = c * old - s * y[i];
      y[i] = s * old + c * y[i];
    }
  };
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool turns = false;
    for (size_t p = 0; p + 1 < a.size(); ++p)
      for (size_t q = p + 1; q < a.size(); ++q) {
        const auto n = static_cast<int64_t>(a[p].size());
        const double pp = dot(a[p].data(), a[p].data(), n), qq = dot(a[q].data(), a[q].data(), n),
                     pq = dot(a[p].data(), a[q].data(), n);
        if (!(std::abs(pq) > 1e-15 * std::sqrt(pp * qq)) || pq == 0) continue;
        turns = true;
        const double zeta = (qq - pp) / (2 * pq);
        const double t = (zeta >= 0 ? 1 : -1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const double c = 1 / std::sqrt(1 + t * t), s = c * t;
        rotate(a[p], a[q], c, s);
        rotate(turned[p], turned[q], c, s);
      }
    if (!turns) return;
  }
}

}  // namespace

SingularTriples largest_singular(std::span<const float> numbers, int64_t stored_rows, int64_t stored_columns,
                                 int64_t count, int threads) {
  const Matrix stored(numbers, stored_rows, stored_columns, threads);
  // With no fewer rows than columns, so that as many steps as there are columns end it.
  const bool turned_over = stored_rows < stored_columns;
  const int64_t rows = std::max(stored_rows, stored_columns), columns = std::min(stored_rows, stored_columns);
  std::vector<Vector> left, right;
  Vector alphas, betas;  // matrix right_j = alpha_j left_j + beta_(j-1) left_(j-1)
  double largest = 0;
  int64_t look = std::min(columns, 2 * count + 16);
  right.push_back(fresh(columns, {}, 1));
  while (true) {
    const auto j = static_cast<int64_t>(left.size());
    Vector u = turned_over ? stored.transposed_times(right.back()) : stored.times(right.back());
    subtract(u, left);
    double alpha = normalise(u);
    largest = std::max(largest, alpha);
    if (!(alpha > kNothing * largest)) {
      alpha = std::isnan(alpha) ? alpha : 0;
      u = fresh(rows, left, 2 * static_cast<uint64_t>(j) + 2);
    }
    left.push_back(std::move(u));
    alphas.push_back(alpha);
    Vector v = turned_over ? stored.times(left.back()) : stored.transposed_times(left.back());
    subtract(v, right);
    double beta = normalise(v);
    largest = std::max(largest, beta);
    const bool last = j + 1 == columns;
    if (!last && !(beta > kNothing * largest)) {
      beta = std::isnan(beta) ? beta : 0;
      v = fresh(columns, right, 2 * static_cast<uint64_t>(j) + 3);
    }
    betas.push_back(beta);
    if (j + 1 == look || last || std::isnan(alpha + beta)) {
      const auto size = static_cast<size_t>(j) + 1;
      // B y = s x, by the columns of B, which turn into s x, and the unit matrix, which turns into y.
      std::vector<Vector> bidiagonal(size, Vector(size)), turned = bidiagonal;
      for (size_t i = 0; i < size; ++i) {
        bidiagonal[i][i] = alphas[i];
        if (i > 0) bidiagonal[i][i - 1] = betas[i - 1];
        turned[i][i] = 1;
      }
      orthogonalise(bidiagonal, turned);
      Vector values(size);
      for (size_t i = 0; i < size; ++i) values[i] = normalise(bidiagonal[i]);
      std::vector<size_t> order(size);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] > values[b]; });
      bool done = last || std::isnan(alpha + beta);
      if (!done) {
        done = true;
        for (int64_t i = 0; i < count; ++i)
          done = done && beta * std::abs(bidiagonal[order[static_cast<size_t>(i)]].back()) <=
                             kTolerance * values[order[0]];
      }
      if (done) {
        SingularTriples made;
        made.left.assign(static_cast<size_t>(count * rows), 0);
        made.right.assign(static_cast<size_t>(count * columns), 0);
        for (int64_t i = 0; i < count; ++i) {
          const size_t from = order[static_cast<size_t>(i)];
          made.values.push_back(values[from]);
          for (size_t k = 0; k < size; ++k) {
            for (int64_t r = 0; r < rows; ++r)
              made.left[static_cast<size_t>(i * rows + r)] +=
                  bidiagonal[from][k] * left[k][static_cast<size_t>(r)];
            for (int64_t c = 0; c < columns; ++c)
              made.right[static_cast<size_t>(i * columns + c)] +=
                  turned[from][k] * right[k][static_cast<size_t>(c)];
          }
        }
        if (turned_over) std::swap(made.left, made.right);
        return made;
      }
      look = std::min(columns, look + look / 2);
    }
    right.push_back(std::move(v));
  }
}

}  // namespace cairn
