// mse and its gradient, and accuracy.
#include <algorithm>

#include "kernels/cuda/losses.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

// ---- accuracy

constexpr int kHitThreads = 256;

// A block per row. A hit: fewer than `top` logits come before the target, larger ones and equal ones at a smaller index; a NaN
// anywhere is no hit. A thread stops when its own numbers are too many.
template <class T>
__global__ void __launch_bounds__(kHitThreads)
    compare_rows(const T* logits, int64_t ld, Targets t, int64_t first, int top, Hit* hits) {
  CAIRN_SHARED float scratch[kWarp];
  const int64_t row = blockIdx.x, target = t.targets[first + row];
  const bool counts = t.weight(first + row) != 0, valid = target >= 0 && target < t.classes;
  const T* x = logits + row * ld;
  const bool ok = counts && valid;
  const float best = ok ? load(x + target) : 0.0f;
  int before = ok ? 0 : top;
  for (int64_t v = threadIdx.x; v < t.classes && before < top; v += blockDim.x) {
    const float at = load(x + v);
    if (v < target ? at < best : at <= best) continue;
    before = at >= best ? before + 1 : top;
  }
  // Counts up to 2^24, which float32 has.
  const float all = block_sum(static_cast<float>(before), scratch);
  if (threadIdx.x == 0)
    hits[first + row] = !counts ? Hit::kNone : all < static_cast<float>(top) ? Hit::kHit : Hit::kMissed;
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

std::unique_ptr<Kernel> make_accuracy_any(const Signature& s) {
  if (!fast_float(s.in[0]) || s.in[1].dtype != DType::kI32 || (s.has_in(2) && !plain_f32(s.in[2])))
    return nullptr;
  const int64_t rows = s.in[0].shape.rows(), classes = s.in[0].shape.last();
  const int64_t ignore = s.attrs != nullptr ? s.attrs->integer("ignore_index", -100) : -100;
  const int64_t top = std::min(s.attrs != nullptr ? s.attrs->integer("top", 1) : 1, classes);
  if (top > (1 << 15)) return nullptr;  // its threads count up to 2^24 together
  const DType dtype = s.in[0].dtype;
  return make_kernel(
      [=](const Call& call) {
        constexpr size_t kNoScale = 3;  // there is no such operand
        const Targets t = targets_of(call, 1, classes, ignore, kNoScale);
        auto* of = static_cast<Hit*>(call.workspace);
        hit_rows(stream_of(call), dtype, data_of(call.in, 0), classes, t, 0, rows, of, static_cast<int>(top));
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

void hit_rows(cudaStream_t stream, DType dtype, const void* x, int64_t ld, const Targets& targets,
              int64_t first, int64_t count, Hit* hits, int top) {
  const int64_t threads = std::min<int64_t>(kHitThreads, (targets.classes + kWarp - 1) / kWarp * kWarp);
  with_float(dtype, [&](auto zero) {
    using T = decltype(zero);
    launch(stream, compare_rows<T>, {.blocks = count, .threads = static_cast<int>(threads)},
           static_cast<const T*>(x), ld, targets, first, top, hits);
  });
}

void sum_hits(cudaStream_t stream, const Hit* of, int64_t rows, double* hits, double* count) {
  launch(stream, hit_sums, {.blocks = 1, .threads = sum_threads(rows)}, of, rows, hits, count);
}

std::unique_ptr<Kernel> make_accuracy(const Signature& s) { return make_accuracy_any(s); }
std::unique_ptr<Kernel> make_mse(const Signature& s) { return make_mse_any(s); }
std::unique_ptr<Kernel> make_mse_grad(const Signature& s) { return make_mse_any(s); }

}  // namespace cairn::kernels::cuda
