// cross_entropy, mse and their gradients, and accuracy.
#include <algorithm>

#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/losses.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kSumThreads = 1024;  // at most

int sum_threads(int64_t items) {
  return static_cast<int>(items < kSumThreads ? (items + kWarp - 1) / kWarp * kWarp : kSumThreads);
}

// What exponentials are taken against. With only -infinity so far, against 0: they are 0 then, not NaN.
__device__ __forceinline__ float base_of(float largest) { return largest == -INFINITY ? 0.0f : largest; }

// By powers of two: fewer instructions than expf, and as exact for arguments that are not far below zero.
__device__ __forceinline__ float exponential(float x) { return exp2f(x * 1.44269504088896341f); }

// The largest number and the sum of exponentials against it, of numbers seen one after the other.
struct Exponentials {
  float largest = -INFINITY, sum = 0;

  template <class T, int kCount>
  __device__ __forceinline__ void take(const T (&at)[kCount]) {
    float v[kCount], most = largest;
    for (int i = 0; i < kCount; ++i) {
      v[i] = load(&at[i]);
      most = fmaxf(most, v[i]);
    }
    const float base = base_of(most);
    sum *= exponential(largest - base);
    for (int i = 0; i < kCount; ++i) sum += exponential(v[i] - base);
    largest = most;
  }
};

// A block per row. The row is read twice, the second time backwards: what was read last is still near.
template <class T, class D>
__global__ void __launch_bounds__(1024)
    cross_entropy(const T* logits, int64_t ld_x, D* gradients, int64_t ld_d, Targets t, int64_t first,
                  bool vectors, double* losses) {
  CAIRN_SHARED float scratch[kWarp];
  constexpr int kCount = Vector<T>::kCount;
  const int64_t row = blockIdx.x, classes = t.classes, threads = blockDim.x;
  const int64_t whole = vectors ? classes / kCount : 0;
  const T* x = logits + row * ld_x;
  D* d = gradients != nullptr ? gradients + row * ld_d : nullptr;
  const int64_t target = t.targets[first + row];
  const float weight = t.weight(first + row);
  const bool valid = target >= 0 && target < classes;
  if (weight == 0 || !valid) {
    if (threadIdx.x == 0) losses[first + row] = weight == 0 ? 0.0 : static_cast<double>(NAN);
    if (d != nullptr)
      for (int64_t v = threadIdx.x; v < classes; v += threads) store(d + v, weight == 0 ? 0.0f : NAN);
    return;
  }
  Exponentials e;
  for (int64_t v = threadIdx.x; v < whole; v += threads) e.take(load_vector(x + v * kCount).at);
  for (int64_t v = whole * kCount + threadIdx.x; v < classes; v += threads) {
    const T one[1] = {x[v]};
    e.take(one);
  }
  const float largest = block_max(e.largest, scratch), base = base_of(largest);
  const float sum = block_sum(e.sum * exponential(e.largest - base), scratch);
  const float error = (base - load(x + target)) + logf(sum);
  if (threadIdx.x == 0) losses[first + row] = static_cast<double>(weight) * static_cast<double>(error);
  if (d == nullptr) return;
  __syncthreads();  // x[target] is read before d, which may be x, is written
  const bool invalid = error != error;
  const float of_target = weight * t.scale(), scale = invalid ? NAN : of_target / sum;
  const auto gradient = [&](float logit, int64_t v) {
    const float g = scale * exponential(logit - base);
    return v == target ? g - of_target : g;
  };
  for (int64_t v = whole * kCount + threadIdx.x; v < classes; v += threads)
    store(d + v, gradient(load(x + v), v));
  for (int64_t at = threadIdx.x; at < whole; at += threads) {
    const int64_t v = (whole - 1 - at) * kCount;
    const Vector<T> logit = load_vector(x + v);
    D value[kCount];
    for (int i = 0; i < kCount; ++i) store(&value[i], gradient(load(&logit.at[i]), v + i));
    if constexpr (sizeof(D) == sizeof(T)) {
      Vector<D> out;
      for (int i = 0; i < kCount; ++i) out.at[i] = value[i];
      store_vector(d + v, out);
    } else {
      for (int i = 0; i < kCount; ++i) d[v + i] = value[i];
    }
  }
}

__global__ void __launch_bounds__(kSumThreads)
    cross_entropy_sums(Targets t, int64_t rows, const double* losses, double* loss, double* weight) {
  CAIRN_SHARED double scratch[kWarp];
  double total = 0, weights = 0;
  for (int64_t r = threadIdx.x; r < rows; r += blockDim.x) {
    total += losses[r];
    weights += static_cast<double>(t.weight(r));
  }
  total = block_sum(total, scratch);
  weights = block_sum(weights, scratch);
  if (threadIdx.x != 0) return;
  if (loss != nullptr) *loss = total;
  if (weight != nullptr) *weight = weights;
}

// ---- accuracy

constexpr int kHitThreads = 256;

// A block per row: those before the target are less, those behind it at most as large, so that a NaN anywhere is no
// hit. A thread stops at the first of its numbers that is larger.
template <class T>
__global__ void __launch_bounds__(kHitThreads)
    compare_rows(const T* logits, int64_t ld, Targets t, int64_t first, Hit* hits) {
  CAIRN_SHARED float scratch[kWarp];
  const int64_t row = blockIdx.x, target = t.targets[first + row];
  const bool counts = t.weight(first + row) != 0, valid = target >= 0 && target < t.classes;
  const T* x = logits + row * ld;
  bool ok = counts && valid;
  const float best = ok ? load(x + target) : 0.0f;
  for (int64_t v = threadIdx.x; v < t.classes && ok; v += blockDim.x) {
    const float at = load(x + v);
    ok = v < target ? at < best : at <= best;
  }
  const float misses = block_max(ok ? 0.0f : 1.0f, scratch);
  if (threadIdx.x == 0) hits[first + row] = !counts ? Hit::kNone : misses == 0.0f ? Hit::kHit : Hit::kMissed;
}

__global__ void __launch_bounds__(kSumThreads)
    hit_sums(const Hit* of, int64_t rows, double* hits, double* count) {
  CAIRN_SHARED double scratch[kWarp];
  double hit = 0, none = 0;  // whole numbers: exact in any order
  for (int64_t r = threadIdx.x; r < rows; r += blockDim.x) {
    hit += of[r] == Hit::kHit ? 1 : 0;
    none += of[r] == Hit::kNone ? 1 : 0;
  }
  hit = block_sum(hit, scratch);
  none = block_sum(none, scratch);
  if (threadIdx.x != 0) return;
  if (hits != nullptr) *hits = hit;
  if (count != nullptr) *count = static_cast<double>(rows) - none;
}

// ---- mse: blocks of elements; a thread owns kEach neighbours of one row, or (kEach 1) one element.

constexpr int kThreads = 256;

template <class T, int kEach>
struct alignas(sizeof(T) * kEach) Some {
  T at[kEach];
};

template <class X, class Y, int kEach>
__global__ void __launch_bounds__(kThreads)
    mse(const X* x, const Y* y, const float* weights, const double* dloss, int64_t count, int64_t columns,
        X* dx, Y* dy, double* partial) {
  CAIRN_SHARED double scratch[kWarp];
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads * kEach;
  const float scale = dloss != nullptr ? static_cast<float>(*dloss) : 1.0f;
  double sum = 0;
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kEach; i < count;
       i += step) {
    const float weight = weights != nullptr ? weights[i / columns] : 1.0f;
    const auto a = *reinterpret_cast<const Some<X, kEach>*>(x + i);
    const auto b = *reinterpret_cast<const Some<Y, kEach>*>(y + i);
    Some<X, kEach> da;
    Some<Y, kEach> db;
    float squares = 0;
    for (int j = 0; j < kEach; ++j) {
      const float difference = load(&a.at[j]) - load(&b.at[j]);
      squares += difference * difference;
      store(&da.at[j], 2 * scale * weight * difference);
      store(&db.at[j], -2 * scale * weight * difference);
    }
    if (dx != nullptr) *reinterpret_cast<Some<X, kEach>*>(dx + i) = da;
    if (dy != nullptr) *reinterpret_cast<Some<Y, kEach>*>(dy + i) = db;
    sum += static_cast<double>(weight) * static_cast<double>(squares);
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kSumThreads)
    mse_sums(const double* partial, int64_t parts, const float* weights, int64_t rows, int64_t columns,
             double* loss, double* weight) {
  CAIRN_SHARED double scratch[kWarp];
  double total = 0, sum = 0;
  for (int64_t p = threadIdx.x; p < parts; p += blockDim.x) total += partial[p];
  if (weights != nullptr)
    for (int64_t r = threadIdx.x; r < rows; r += blockDim.x) sum += static_cast<double>(weights[r]);
  total = block_sum(total, scratch);
  sum = block_sum(sum, scratch);
  if (threadIdx.x != 0) return;
  if (loss != nullptr) *loss = total;
  if (weight != nullptr)
    *weight = (weights != nullptr ? sum : static_cast<double>(rows)) * static_cast<double>(columns);
}

std::unique_ptr<Kernel> make_cross_entropy_any(const Signature& s, bool gradient) {
  if (!fast_float(s.in[0]) || s.in[1].dtype != DType::kI32 || (s.has_in(2) && !plain_f32(s.in[2])))
    return nullptr;
  if (gradient && s.has_out(2) && !fast_float(s.out[2])) return nullptr;
  const int64_t rows = s.in[0].shape.rows(), classes = s.in[0].shape.last();
  const int64_t ignore = s.attrs != nullptr ? s.attrs->integer("ignore_index", -100) : -100;
  const DType x_dtype = s.in[0].dtype, d_dtype = gradient && s.has_out(2) ? s.out[2].dtype : x_dtype;
  return make_kernel(
      [=](const Call& call) {
        const Targets t = targets_of(call, 1, classes, ignore, 3);
        auto* losses = static_cast<double*>(call.workspace);
        cross_entropy_rows(stream_of(call), x_dtype, data_of(call.in, 0), classes, d_dtype,
                           gradient ? data_of(call.out, 2) : nullptr, classes, t, 0, rows, losses);
        sum_cross_entropy(stream_of(call), t, rows, losses, output<double>(call, 0), output<double>(call, 1));
      },
      rows * 8);
}

std::unique_ptr<Kernel> make_accuracy_any(const Signature& s) {
  if (!fast_float(s.in[0]) || s.in[1].dtype != DType::kI32 || (s.has_in(2) && !plain_f32(s.in[2])))
    return nullptr;
  const int64_t rows = s.in[0].shape.rows(), classes = s.in[0].shape.last();
  const int64_t ignore = s.attrs != nullptr ? s.attrs->integer("ignore_index", -100) : -100;
  const DType dtype = s.in[0].dtype;
  return make_kernel(
      [=](const Call& call) {
        constexpr size_t kNoScale = 3;  // there is no such operand
        const Targets t = targets_of(call, 1, classes, ignore, kNoScale);
        auto* of = static_cast<Hit*>(call.workspace);
        hit_rows(stream_of(call), dtype, data_of(call.in, 0), classes, t, 0, rows, of);
        sum_hits(stream_of(call), of, rows, output<double>(call, 0), output<double>(call, 1));
      },
      rows);
}

template <class X, class Y>
std::unique_ptr<Kernel> make_mse_of(const Signature& s) {
  constexpr int kEach = 4;
  const int64_t columns = s.in[0].shape.last(), rows = s.in[0].shape.rows(), count = rows * columns;
  const bool fours = columns % kEach == 0;
  const int64_t each = fours ? kEach : 1, most = (count / each + kThreads - 1) / kThreads;
  const int64_t blocks = most < 1 ? 1 : most < 4096 ? most : 4096;
  return make_kernel(
      [=](const Call& call) {
        auto* partial = static_cast<double*>(call.workspace);
        const auto* weights = input<const float>(call, 2);
        launch(stream_of(call), fours ? mse<X, Y, kEach> : mse<X, Y, 1>,
               {.blocks = blocks, .threads = kThreads}, input<const X>(call, 0), input<const Y>(call, 1),
               weights, input<const double>(call, 3), count, columns, output<X>(call, 2), output<Y>(call, 3),
               partial);
        launch(stream_of(call), mse_sums, {.blocks = 1, .threads = sum_threads(std::max(blocks, rows))},
               partial, blocks, weights, rows, columns, output<double>(call, 0), output<double>(call, 1));
      },
      blocks * 8);
}

std::unique_ptr<Kernel> make_mse_any(const Signature& s) {
  if (!fast_float(s.in[0]) || !fast_float(s.in[1]) || (s.has_in(2) && !plain_f32(s.in[2]))) return nullptr;
  for (size_t i = 2; i < 4; ++i)
    if (s.has_out(i) && s.out[i].dtype != s.in[i - 2].dtype) return nullptr;
  return with_float(s.in[0].dtype, [&](auto x) {
    return with_float(s.in[1].dtype, [&](auto y) { return make_mse_of<decltype(x), decltype(y)>(s); });
  });
}

}  // namespace

void cross_entropy_rows(cudaStream_t stream, DType x_dtype, const void* x, int64_t ld_x, DType d_dtype,
                        void* d, int64_t ld_d, const Targets& targets, int64_t first, int64_t count,
                        double* losses) {
  const int64_t x_bytes = dtype_bytes(x_dtype), d_bytes = dtype_bytes(d_dtype);
  const bool vectors = ld_x * x_bytes % 16 == 0 && ld_d * d_bytes % 16 == 0;
  const int64_t items = vectors ? (targets.classes * x_bytes + 15) / 16 : targets.classes;
  // Short rows: an item per thread. Long ones: few blocks at a time, so that their rows stay in the cache.
  const int64_t threads = items <= 512 ? (items + kWarp - 1) / kWarp * kWarp : items <= 4096 ? 512 : 1024;
  with_float(x_dtype, [&](auto from) {
    with_float(d_dtype, [&](auto to) {
      using T = decltype(from);
      using D = decltype(to);
      launch(stream, cross_entropy<T, D>, {.blocks = count, .threads = static_cast<int>(threads)},
             static_cast<const T*>(x), ld_x, static_cast<D*>(d), ld_d, targets, first, vectors, losses);
    });
  });
}

void hit_rows(cudaStream_t stream, DType dtype, const void* x, int64_t ld, const Targets& targets,
              int64_t first, int64_t count, Hit* hits) {
  const int64_t threads = std::min<int64_t>(kHitThreads, (targets.classes + kWarp - 1) / kWarp * kWarp);
  with_float(dtype, [&](auto zero) {
    using T = decltype(zero);
    launch(stream, compare_rows<T>, {.blocks = count, .threads = static_cast<int>(threads)},
           static_cast<const T*>(x), ld, targets, first, hits);
  });
}

void sum_hits(cudaStream_t stream, const Hit* of, int64_t rows, double* hits, double* count) {
  launch(stream, hit_sums, {.blocks = 1, .threads = sum_threads(rows)}, of, rows, hits, count);
}

void sum_cross_entropy(cudaStream_t stream, const Targets& targets, int64_t rows, const double* losses,
                       double* loss, double* weight) {
  launch(stream, cross_entropy_sums, {.blocks = 1, .threads = sum_threads(rows)}, targets, rows, losses, loss,
         weight);
}

std::unique_ptr<Kernel> make_cross_entropy(const Signature& s) { return make_cross_entropy_any(s, false); }
std::unique_ptr<Kernel> make_cross_entropy_grad(const Signature& s) {
  return make_cross_entropy_any(s, true);
}
std::unique_ptr<Kernel> make_accuracy(const Signature& s) { return make_accuracy_any(s); }
std::unique_ptr<Kernel> make_mse(const Signature& s) { return make_mse_any(s); }
std::unique_ptr<Kernel> make_mse_grad(const Signature& s) { return make_mse_any(s); }

}  // namespace cairn::kernels::cuda
