// The op `update` as Adafactor. A tensor is cut into blocks of rows, or a vector into blocks of elements, by its
// shape alone; all sums are made by block and added up in order, so that any number of threads gives the same
// bits. Of a matrix: squares of g by row and column, and of p (pass 1); means, and from them what stands for
// 1 / sqrt(v) as one factor a row and one a column; the squares of all updates (pass 2); p (pass 3).
#include "runtime/base/optimizers/adafactor.h"

#include "kernels/cpu/optimizers/parameter.h"
#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#ifndef CAIRN_KERNELS_CPU_ADAFACTOR_BLOCK_
#define CAIRN_KERNELS_CPU_ADAFACTOR_BLOCK_
namespace cairn::kernels::cpu {

// Rows and columns that are summed in float32 before the sum goes on in float64.
inline constexpr int64_t kSumRows = 64, kSumColumns = 512;

// Rows of a matrix, and what they are multiplied by. A vector is one row.
struct AdafactorBlock {
  ParameterPlace p;
  int64_t rows = 0, columns = 0;
  const float* grad = nullptr;
  float* state = nullptr;  // the row means of these rows, or a vector's v
  const float *by_row = nullptr, *by_column = nullptr;
  float* column_sums = nullptr;                      // of squares, of these rows
  float gradient = 0, share = 0, eps = 0, most = 0;  // most: 1 / eps
  float decay = 0, step = 0;
};

}  // namespace cairn::kernels::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optimizers/adafactor.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/parameter-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// 1 / sqrt(v) of an element whose factors are these, at most 1 / eps1. A factor may be infinite, never 0.
HWY_INLINE V inverse_root(V by_row, V by_column, V most) { return hn::Min(hn::Mul(by_row, by_column), most); }

HWY_INLINE V zero() { return hn::Zero(DF()); }

// Sums of squares of `count` elements, in parts of kSumColumns: of a g, or of a p where gradient is 1.
HWY_INLINE double squares_of(const float* x, int64_t count) {
  double total = 0;
  for (int64_t begin = 0; begin < count; begin += kSumColumns) {
    V sum = zero();
    for_each_vector(begin, begin + kSumColumns < count ? begin + kSumColumns : count, [&](auto t, int64_t j) {
      const V v = get(t, x + j);
      sum = hn::MulAdd(v, v, sum);
    });
    total += static_cast<double>(sum_lanes(sum));
  }
  return total;
}

// Computes the new second moments of the rows, and the sums of squares of the columns.
void factors(const AdafactorBlock& b) {
  double row_sums[kSumRows] = {};
  for (int64_t begin = 0; begin < b.columns; begin += kSumColumns) {
    const int64_t end = begin + kSumColumns < b.columns ? begin + kSumColumns : b.columns;
    for (int64_t i = 0; i < b.rows; ++i) {
      const float* const g = b.grad + i * b.columns;
      V sum = zero();
      for_each_vector(begin, end, [&](auto t, int64_t j) {
        const V v = hn::Mul(get(t, g + j), set(b.gradient));
        const V square = hn::Mul(v, v);
        sum = hn::Add(sum, square);
        put(t, i == 0 ? square : hn::Add(get(t, b.column_sums + j), square), b.column_sums + j);
      });
      row_sums[i] += static_cast<double>(sum_lanes(sum));
    }
  }
  for (int64_t i = 0; i < b.rows; ++i) {
    const auto mean = static_cast<float>(row_sums[i] / static_cast<double>(b.columns));
    b.state[i] += b.share * (mean - b.state[i]);
  }
}

// Of p, by the same parts whether it is widened or not.
double squares(const AdafactorBlock& b) {
  double total = 0;
  for_each_part<false>(b.p, 0, b.rows * b.columns, [&](const float* p, int64_t begin, int64_t end) {
    total += squares_of(p, end - begin);
  });
  return total;
}

// Of all updates of the rows.
double update_squares(const AdafactorBlock& b) {
  double total = 0;
  for (int64_t i = 0; i < b.rows; ++i) {
    const float* const g = b.grad + i * b.columns;
    const V by_row = set(b.by_row[i]);
    for (int64_t begin = 0; begin < b.columns; begin += kSumColumns) {
      const int64_t end = begin + kSumColumns < b.columns ? begin + kSumColumns : b.columns;
      V sum = zero();
      for_each_vector(begin, end, [&](auto t, int64_t j) {
        const V v = hn::Mul(get(t, g + j), set(b.gradient));
        // Beyond the end a factor of 0 may meet an infinite one.
        const V u = keep(t, hn::Mul(v, inverse_root(by_row, get(t, b.by_column + j), set(b.most))), zero());
        sum = hn::MulAdd(u, u, sum);
      });
      total += static_cast<double>(sum_lanes(sum));
    }
  }
  return total;
}

void move(const AdafactorBlock& b) {
  for (int64_t i = 0; i < b.rows; ++i) {
    const float* const g = b.grad + i * b.columns;
    const V by_row = set(b.by_row[i]);
    for_each_part(b.p.from(i * b.columns), 0, b.columns, [&](float* p, int64_t begin, int64_t end) {
      for_each_vector(begin, end, [&](auto t, int64_t j) {
        const V v = hn::Mul(get(t, g + j), set(b.gradient));
        const V u = hn::Mul(v, inverse_root(by_row, get(t, b.by_column + j), set(b.most)));
        float* const own = p + (j - begin);
        put(t, hn::NegMulAdd(set(b.step), u, hn::Mul(get(t, own), set(b.decay))), own);
      });
    });
  }
}

// Of a vector: g and the root of its v.
template <class T>
HWY_INLINE V vector_update(const AdafactorBlock& b, T t, int64_t j, V v) {
  const V g = hn::Mul(get(t, b.grad + j), set(b.gradient));
  return hn::Div(g, hn::Max(hn::Sqrt(v), set(b.eps)));
}
// The new v, and the squares of the updates.
double vector_factors(const AdafactorBlock& b) {
  double total = 0;
  for (int64_t begin = 0; begin < b.columns; begin += kSumColumns) {
    V sum = zero();
    for_each_vector(begin, begin + kSumColumns < b.columns ? begin + kSumColumns : b.columns,
                    [&](auto t, int64_t j) {
                      const V g = hn::Mul(get(t, b.grad + j), set(b.gradient)), old = get(t, b.state + j);
                      const V v = hn::MulAdd(hn::Sub(hn::Mul(g, g), old), set(b.share), old);
                      put(t, v, b.state + j);
                      const V u = vector_update(b, t, j, v);
                      sum = hn::MulAdd(u, u, sum);
                    });
    total += static_cast<double>(sum_lanes(sum));
  }
  return total;
}
void vector_move(const AdafactorBlock& b) {
  for_each_part(b.p, 0, b.columns, [&](float* p, int64_t begin, int64_t end) {
    for_each_vector(begin, end, [&](auto t, int64_t j) {
      const V u = vector_update(b, t, j, get(t, b.state + j));
      float* const own = p + (j - begin);
      put(t, hn::NegMulAdd(set(b.step), u, hn::Mul(get(t, own), set(b.decay))), own);
    });
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {

HWY_EXPORT(factors);
HWY_EXPORT(squares);
HWY_EXPORT(update_squares);
HWY_EXPORT(move);
HWY_EXPORT(vector_factors);
HWY_EXPORT(vector_move);

namespace {

class Adafactor : public Kernel {
 public:
  Adafactor(const AdafactorShape& shape, const ParameterForm& form)
      : shape_(shape),
        form_(form),
        per_matrix_((shape.factored ? shape.rows + kSumRows - 1 : shape.columns + kElements - 1) /
                    (shape.factored ? kSumRows : kElements)),
        blocks_(shape.batch * per_matrix_) {
    if (shape.factored) {
      column_sums_at_ = space_.add(blocks_ * shape.columns * 4);
      by_row_at_ = space_.add(shape.all_rows() * 4);
      by_column_at_ = space_.add(shape.all_columns() * 4);
    }
    p_squares_at_ = space_.add(blocks_ * 8);
    squares_at_ = space_.add(blocks_ * 8);
  }
  int64_t workspace_bytes() const override { return space_.bytes(); }

  void run(const Call& call) const override {
    const std::optional<double> factor = gradient_factor(call);
    if (!factor) return;
    const AdafactorStep step(input<const double>(call, update_op::kHyper));
    AdafactorBlock whole{ParameterPlace(call, form_)};
    whole.columns = shape_.columns;
    whole.gradient = static_cast<float>(*factor);
    whole.share = static_cast<float>(step.share);
    whole.eps = static_cast<float>(step.eps1);
    whole.most = static_cast<float>(1 / step.eps1);
    whole.decay = static_cast<float>(step.decay);
    auto *const p_squares = at<double>(call, p_squares_at_), *const squares = at<double>(call, squares_at_);
    each_block(call, whole, [&](const AdafactorBlock& b, int64_t i) {
      p_squares[i] = CAIRN_DISPATCH(squares)(b);
      if (shape_.factored)
        CAIRN_DISPATCH(factors)(b);
      else
        squares[i] = CAIRN_DISPATCH(vector_factors)(b);
    });
    if (shape_.factored) {
      make_factors(call, step);
      each_block(call, whole,
                 [&](const AdafactorBlock& b, int64_t i) { squares[i] = CAIRN_DISPATCH(update_squares)(b); });
    }
    double p_total = 0, total = 0;
    for (int64_t i = 0; i < blocks_; ++i) {
      p_total += p_squares[i];
      total += squares[i];
    }
    whole.step = static_cast<float>(step.step(p_total, total, shape_.all_rows() * shape_.columns));
    each_block(call, whole, [&](const AdafactorBlock& b, int64_t) {
      shape_.factored ? CAIRN_DISPATCH(move)(b) : CAIRN_DISPATCH(vector_move)(b);
    });
  }

 private:
  static constexpr int64_t kElements = kSumRows * kSumColumns;  // of a block of a vector

  template <class T>
  static T* at(const Call& call, int64_t offset) {
    return Workspace::at<T>(call.workspace, offset);
  }

  // body(block, its number): of every matrix in turn, by all threads.
  template <class Body>
  void each_block(const Call& call, const AdafactorBlock& whole, const Body& body) const {
    const auto* const grad = input<const float>(call, update_op::kGrad);
    auto* const state = output<float>(call, update_op::kFirstState);
    const int64_t size = shape_.factored ? std::min(shape_.rows, kSumRows) * shape_.columns : kElements;
    parallel_for(blocks_, std::max<int64_t>(1, kGrain / size), [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        AdafactorBlock b = whole;
        const int64_t matrix = i / per_matrix_,
                      first = i % per_matrix_ * (shape_.factored ? kSumRows : kElements);
        if (shape_.factored) {
          const int64_t row = matrix * shape_.rows + first;
          b.rows = std::min(kSumRows, shape_.rows - first);
          b.grad = grad + row * shape_.columns;
          b.p = whole.p.from(row * shape_.columns);
          b.state = state + row;
          b.by_row = at<float>(call, by_row_at_) + row;
          b.by_column = at<float>(call, by_column_at_) + matrix * shape_.columns;
          b.column_sums = at<float>(call, column_sums_at_) + i * shape_.columns;
        } else {
          b.rows = 1;
          b.columns = std::min(kElements, shape_.columns - first);
          b.grad = grad + first;
          b.p = whole.p.from(first);
          b.state = state + first;
        }
        body(b, i);
      }
    });
  }

  // The columns' new means, and the factors of 1 / sqrt(v): 1 / sqrt(row) and sqrt(max(mean row, eps1) / column).
  void make_factors(const Call& call, const AdafactorStep& step) const {
    const auto* const row = output<const float>(call, update_op::kFirstState);
    auto* const column = output<float>(call, update_op::kFirstState + 1);
    const auto* const sums = at<const float>(call, column_sums_at_);
    auto *const by_row = at<float>(call, by_row_at_), *const by_column = at<float>(call, by_column_at_);
    const int64_t rows = shape_.rows, columns = shape_.columns;
    const int64_t strips = (columns + kSumColumns - 1) / kSumColumns;
    const auto share = static_cast<float>(step.share);
    parallel_for(shape_.batch * strips, std::max<int64_t>(1, kGrain / std::min(columns, kSumColumns)),
                 [&](int64_t begin, int64_t end, int) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t matrix = i / strips, first = i % strips * kSumColumns;
                     // Every strip adds the rows' means up for itself: few, and in one order.
                     double mean = 0;
                     for (int64_t r = matrix * rows; r < (matrix + 1) * rows; ++r)
                       mean += static_cast<double>(row[r]);
                     const double least = std::max(mean / static_cast<double>(rows), step.eps1);
                     if (first == 0)
                       for (int64_t r = matrix * rows; r < (matrix + 1) * rows; ++r)
                         by_row[r] = 1.0f / std::sqrt(row[r]);
                     for (int64_t j = first; j < std::min(columns, first + kSumColumns); ++j) {
                       double sum = 0;
                       for (int64_t b = 0; b < per_matrix_; ++b)
                         sum += static_cast<double>(sums[(matrix * per_matrix_ + b) * columns + j]);
                       const int64_t at = matrix * columns + j;
                       column[at] +=
                           share * (static_cast<float>(sum / static_cast<double>(rows)) - column[at]);
                       by_column[at] = static_cast<float>(std::sqrt(least / static_cast<double>(column[at])));
                     }
                   }
                 });
  }

  AdafactorShape shape_;
  ParameterForm form_;
  int64_t per_matrix_, blocks_;
  Workspace space_;
  int64_t column_sums_at_ = 0, by_row_at_ = 0, by_column_at_ = 0, p_squares_at_ = 0, squares_at_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_adafactor(const Signature& s) {
  const auto shape = adafactor_shape(s, DType::kF32);
  return shape ? std::make_unique<Adafactor>(*shape, ParameterForm(s)) : nullptr;
}

}  // namespace cairn::kernels::cpu
#endif
