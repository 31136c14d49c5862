// The op `update` as Adafactor: several small kernels over one tensor. Of a matrix a warp has a row, for its mean
// of squares, for the squares of its updates and for the update itself; columns are summed by parts of the rows.
// All sums are made in a fixed order.
#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/optimizers/optimizer.h"
#include "kernels/cuda/products/columns.h"
#include "kernels/cuda/rows.h"
#include "runtime/base/optimizers/adafactor.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = kOptimizerThreads, kRows = kThreads / kWarp;  // rows of a block

// Of a step, in device memory.
struct Factors {
  float gradient, share, eps, most, decay, step;  // most: 1 / eps; step: of an update
  int open;
};

// Hyper-parameters as runtime/ops/optimizers.cc has them.
__global__ void prepare(const double* hyper, const double* total, double* grad_scale, Factors* factors) {
  const double factor = open_update(hyper, total, grad_scale);
  factors->open = std::isfinite(factor) ? 1 : 0;
  factors->gradient = static_cast<float>(factor);
  factors->share = static_cast<float>(hyper[1]);
  factors->eps = static_cast<float>(hyper[2]);
  factors->most = static_cast<float>(1 / hyper[2]);
  factors->decay = static_cast<float>(1 - hyper[5]);
}

// What p moves by in units of the update, from the sums of squares of all of p and of all updates.
__global__ void __launch_bounds__(kThreads)
    step_size(const double* hyper, const double* p_parts, int64_t p_count, const double* parts, int64_t count,
              double elements, Factors* factors) {
  CAIRN_SHARED double scratch[kWarp];
  const double p_squares = sum_of_parts(p_parts, static_cast<int>(p_count), scratch);
  __syncthreads();
  const double squares = sum_of_parts(parts, static_cast<int>(count), scratch);
  if (threadIdx.x != 0) return;
  const double size = fmax(hyper[3], sqrt(p_squares / elements));
  factors->step = static_cast<float>(hyper[0] * size / fmax(1.0, sqrt(squares / elements) / hyper[4]));
}

// ---- matrices

__device__ __forceinline__ int64_t own_row() {
  return static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kWarp;
}
__device__ __forceinline__ int own_lane() { return static_cast<int>(threadIdx.x) % kWarp; }

__global__ void __launch_bounds__(kThreads) row_means(const Factors* factors, const float* grad, int64_t rows,
                                                      int64_t columns, float* state, float* by_row) {
  const Factors f = *factors;
  const int64_t row = own_row();
  if (f.open == 0 || row >= rows) return;
  double sum = 0;
  for (int64_t j = own_lane(); j < columns; j += kWarp) {
    const float g = times(grad[row * columns + j], f.gradient);
    sum += times(g, g);
  }
  const auto mean = static_cast<float>(warp_sum(sum) / static_cast<double>(columns));
  if (own_lane() != 0) return;
  const float next = fmaf(f.share, mean - state[row], state[row]);
  state[row] = next;
  by_row[row] = 1.0f / sqrtf(next);
}

// A thread has a column, a block along y a part of the rows, one along z a matrix.
__global__ void __launch_bounds__(kThreads)
    column_parts(const Factors* factors, const float* grad, int64_t rows, int64_t columns,
                 int64_t rows_of_part, double* parts) {
  const Factors f = *factors;
  const int64_t j = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, matrix = blockIdx.z;
  if (f.open == 0 || j >= columns) return;
  const int64_t begin = blockIdx.y * rows_of_part;
  const int64_t end = begin + rows_of_part < rows ? begin + rows_of_part : rows;
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) {
    const float g = times(grad[(matrix * rows + i) * columns + j], f.gradient);
    sum += times(g, g);
  }
  parts[(matrix * gridDim.y + blockIdx.y) * columns + j] = sum;
}

// A block along y has a matrix. Every block adds up the means of the rows for itself.
__global__ void __launch_bounds__(kThreads)
    column_means(const Factors* factors, const double* parts, int64_t part_count, const float* row,
                 int64_t rows, int64_t columns, float* state, float* by_column) {
  CAIRN_SHARED double scratch[kWarp];
  const Factors f = *factors;
  if (f.open == 0) return;
  const int64_t matrix = blockIdx.y;
  double own = 0;
  for (int64_t i = threadIdx.x; i < rows; i += kThreads) own += row[matrix * rows + i];
  const double mean = block_sum(own, scratch) / static_cast<double>(rows);
  const int64_t j = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (j >= columns) return;
  double sum = 0;
  for (int64_t part = 0; part < part_count; ++part) sum += parts[(matrix * part_count + part) * columns + j];
  const int64_t at = matrix * columns + j;
  const float next =
      fmaf(f.share, static_cast<float>(sum / static_cast<double>(rows)) - state[at], state[at]);
  state[at] = next;
  by_column[at] = static_cast<float>(sqrt(fmax(mean, static_cast<double>(f.eps)) / next));
}

// What p moves by before its length is known. A factor may be infinite, never 0.
__device__ __forceinline__ float update_of(const Factors& f, float grad, float by_row, float by_column) {
  return times(times(grad, f.gradient), fminf(times(by_row, by_column), f.most));
}

__global__ void __launch_bounds__(kThreads)
    update_squares(const Factors* factors, const float* grad, int64_t rows, int64_t all_rows, int64_t columns,
                   const float* by_row, const float* by_column, double* parts) {
  CAIRN_SHARED double scratch[kWarp];
  const Factors f = *factors;
  if (f.open == 0) return;
  const int64_t row = own_row();
  double sum = 0;
  if (row < all_rows) {
    const float* const column = by_column + row / rows * columns;
    for (int64_t j = own_lane(); j < columns; j += kWarp) {
      const float u = update_of(f, grad[row * columns + j], by_row[row], column[j]);
      sum += times(u, u);
    }
  }
  const double total = block_sum(sum, scratch);
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

template <class P>
__global__ void __launch_bounds__(kThreads)
    move_rows(const Factors* factors, const float* grad, int64_t rows, int64_t all_rows, int64_t columns,
              const float* by_row, const float* by_column, typename P::Entry parameter, RandomSource random) {
  const Factors f = *factors;
  const P p = P::of(parameter, random);
  const int64_t row = own_row();
  if (f.open == 0 || row >= all_rows) return;
  const float* const column = by_column + row / rows * columns;
  for (int64_t j = own_lane(); j < columns; j += kWarp) {
    const int64_t at = row * columns + j;
    p.put(at, Group<1>{{fmaf(-f.step, update_of(f, grad[at], by_row[row], column[j]),
                             times(load(p.at + at), f.decay))}});
  }
}

// ---- vectors

__device__ __forceinline__ float update_of(const Factors& f, float grad, float v) {
  return times(grad, f.gradient) / fmaxf(sqrtf(v), f.eps);
}

__global__ void __launch_bounds__(kThreads)
    vector_factors(const Factors* factors, const float* grad, int64_t count, int64_t chunk, float* v,
                   double* parts) {
  CAIRN_SHARED double scratch[kWarp];
  const Factors f = *factors;
  if (f.open == 0) return;
  const int64_t begin = blockIdx.x * chunk, end = begin + chunk < count ? begin + chunk : count;
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const float g = times(grad[i], f.gradient), next = fmaf(times(g, g) - v[i], f.share, v[i]);
    v[i] = next;
    const float u = update_of(f, grad[i], next);
    sum += times(u, u);
  }
  const double total = block_sum(sum, scratch);
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

template <class P>
__global__ void __launch_bounds__(kThreads)
    move_vector(const Factors* factors, const float* grad, int64_t count, const float* v,
                typename P::Entry parameter, RandomSource random) {
  const Factors f = *factors;
  const P p = P::of(parameter, random);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (f.open == 0 || i >= count) return;
  p.put(i, Group<1>{{fmaf(-f.step, update_of(f, grad[i], v[i]), times(load(p.at + i), f.decay))}});
}

int64_t blocks_for(int64_t count, int64_t each) { return (count + each - 1) / each; }

template <class P>
class Adafactor : public Kernel {
 public:
  Adafactor(const AdafactorShape& shape, const ParameterForm& form)
      : shape_(shape), form_(form), chunks_(shape.all_rows() * shape.columns) {
    factors_at_ = space_.add(sizeof(Factors));
    p_parts_at_ = space_.add(chunks_.parts * 8);
    parts_ = shape.factored ? blocks_for(shape.all_rows(), kRows) : chunks_.parts;
    parts_at_ = space_.add(parts_ * 8);
    if (!shape.factored) return;
    const int64_t tiles = blocks_for(shape.columns, kThreads) * shape.batch;
    rows_of_part_ = blocks_for(shape.rows, std::min<int64_t>(row_parts(shape.rows, tiles, 64), 65535));
    column_parts_at_ = space_.add(shape.batch * column_part_count() * shape.columns * 8);
    by_row_at_ = space_.add(shape.all_rows() * 4);
    by_column_at_ = space_.add(shape.all_columns() * 4);
  }
  int64_t workspace_bytes() const override { return space_.bytes(); }

  void run(const Call& call) const override {
    const cudaStream_t stream = stream_of(call);
    const auto* const hyper = input<const double>(call, update_op::kHyper);
    const auto* const grad = input<const float>(call, update_op::kGrad);
    const auto p = P::entry(call, update_op::kParameter, form_);
    auto* const state = output<float>(call, update_op::kFirstState);
    auto* const factors = Workspace::at<Factors>(call, factors_at_);
    auto *const p_parts = Workspace::at<double>(call, p_parts_at_), *const parts = Workspace::at<double>(
                                                                        call, parts_at_);
    const int64_t rows = shape_.rows, all_rows = shape_.all_rows(), columns = shape_.columns;
    const LaunchSize of_rows{.blocks = blocks_for(all_rows, kRows), .threads = kThreads},
        of_chunks{.blocks = chunks_.parts, .threads = kThreads};
    auto *const by_row = Workspace::at<float>(call, by_row_at_), *const by_column = Workspace::at<float>(
                                                                     call, by_column_at_);
    launch(stream, prepare, {.threads = 1}, hyper, input<const double>(call, update_op::kTotal),
           output<double>(call, update_op::kGradScale), factors);
    launch(stream, square_parts<decltype(p.at)>, of_chunks, p.at, all_rows * columns, chunks_.size, p_parts);
    if (shape_.factored) {
      launch(stream, row_means, of_rows, factors, grad, all_rows, columns, state, by_row);
      make_columns(call, grad, factors, state, by_column);
      launch(stream, update_squares, of_rows, factors, grad, rows, all_rows, columns, by_row, by_column,
             parts);
    } else {
      launch(stream, vector_factors, of_chunks, factors, grad, columns, chunks_.size, state, parts);
    }
    launch(stream, step_size, {.threads = kThreads}, hyper, p_parts, chunks_.parts, parts, parts_,
           static_cast<double>(all_rows * columns), factors);
    if (shape_.factored)
      launch(stream, move_rows<P>, of_rows, factors, grad, rows, all_rows, columns, by_row, by_column, p,
             RandomSource::of(call));
    else
      launch(stream, move_vector<P>, {.blocks = blocks_for(columns, kThreads), .threads = kThreads}, factors,
             grad, columns, state, p, RandomSource::of(call));
  }

 private:
  int64_t column_part_count() const { return blocks_for(shape_.rows, rows_of_part_); }

  // A launch takes so many matrices.
  void make_columns(const Call& call, const float* grad, const Factors* factors, const float* row,
                    float* by_column) const {
    constexpr int64_t kMatrices = 65535;
    const int64_t rows = shape_.rows, columns = shape_.columns, strips = blocks_for(columns, kThreads);
    auto* const parts = Workspace::at<double>(call, column_parts_at_);
    auto* const state = output<float>(call, update_op::kFirstState + 1);
    for (int64_t b = 0; b < shape_.batch; b += kMatrices) {
      const int64_t count = std::min(kMatrices, shape_.batch - b);
      launch(stream_of(call), column_parts,
             {.blocks = strips, .threads = kThreads, .blocks_y = column_part_count(), .blocks_z = count},
             factors, grad + b * rows * columns, rows, columns, rows_of_part_, parts);
      launch(stream_of(call), column_means, {.blocks = strips, .threads = kThreads, .blocks_y = count},
             factors, parts, column_part_count(), row + b * rows, rows, columns, state + b * columns,
             by_column + b * columns);
    }
  }

  AdafactorShape shape_;
  ParameterForm form_;
  Chunks chunks_;
  Workspace space_;
  int64_t parts_ = 0, rows_of_part_ = 1;
  int64_t factors_at_ = 0, p_parts_at_ = 0, parts_at_ = 0, column_parts_at_ = 0, by_row_at_ = 0,
          by_column_at_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_adafactor(const Signature& s) {
  const auto shape = adafactor_shape(s, DType::kF32);
  if (!shape) return nullptr;
  return with_parameter(s, [&]<class P>(std::type_identity<P>) -> std::unique_ptr<Kernel> {
    return std::make_unique<Adafactor<P>>(*shape, ParameterForm(s));
  });
}

}  // namespace cairn::kernels::cuda
