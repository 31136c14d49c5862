// cross_entropy and its gradient. A block takes one row after the other. The row lies in shared memory, so that it is
// read once; each thread owns the same vectors of every row, and asks for the next row's as soon as it is done with
// this one's. So memory is busy all the time, and nobody waits for a barrier but for the row's sum.
#include <algorithm>

#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/losses.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/vocabulary/exponentials.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kRowBlocks = 2;            // at most, of a multiprocessor
constexpr int kBatches = 4, kSlots = 4;  // a thread's vectors, and how many it asks for in one go
constexpr int kMostKept = kBatches * kSlots * kRowThreads;
constexpr int64_t kScratchBytes = 2 * kWarp * 8 + static_cast<int64_t>(sizeof(UnitSums));

// A row of logits: `head` numbers one by one, `whole` vectors, the rest one by one.
template <class T>
struct LogitRow {
  int64_t begin = 0, target = 0;
  float weight = 0;
  int head = 0, whole = 0;
  bool valid = false, counts = false;  // is the target a class; has the row a gradient
};

template <class D, int kCount>
__device__ __forceinline__ void write_as(D* d, const Group<kCount>& group) {
  if constexpr (kGroupOf<D> == kCount)
    write(d, group);
  else
    for (int i = 0; i < kCount; ++i) store(d + i, group.at[i]);
}

template <class T, class D>
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    cross_entropy(LossRows how, const T* logits, D* gradients, Targets t, int64_t first, int64_t rows,
                  double* losses) {
  constexpr int kCount = kGroupOf<T>;
  CAIRN_DYNAMIC_SHARED(T, kept);
  CAIRN_SHARED float2 scratch[2][kWarp];
  CAIRN_SHARED UnitSums units[1];
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  const int classes = static_cast<int>(t.classes);
  const Shared own = shared_address(kept + thread * kCount);

  const auto look_up = [&](int64_t row) {
    LogitRow<T> r;
    if (row >= rows) return r;
    r.begin = row * how.ld_x;
    r.target = t.targets[first + row];
    r.weight = t.weight(first + row);
    r.valid = r.target >= 0 && r.target < classes;
    r.counts = r.valid && r.weight != 0;
    const int over =
        static_cast<int>(reinterpret_cast<uintptr_t>(logits + r.begin) % 16) / static_cast<int>(sizeof(T));
    r.head = how.vectors ? (kCount - over) % kCount : classes;
    if (r.head > classes) r.head = classes;
    r.whole = (classes - r.head) / kCount;
    return r;
  };
  const auto kept_of = [&](const LogitRow<T>& r) { return r.whole < how.kept ? r.whole : how.kept; };
  // Starts to copy the thread's vectors of a batch. It overwrites only what this thread reads.
  const auto fetch = [&](const LogitRow<T>& r, int batch) {
    if (r.counts) {
      const int begin = batch * kSlots * threads, end = kept_of(r) - begin - thread;
      const T* const from = logits + r.begin + r.head + (begin + thread) * kCount;
      const Shared to = own + begin * 16;
      for (int s = 0; s < kSlots; ++s)
        if (s * threads < end) cp_async(to + s * threads * 16, from + s * threads * kCount, true);
    }
    cp_async_commit();
  };
  const auto one_by_one = [&](const LogitRow<T>& r, const auto& body) {
    const int vectors = r.whole * kCount, count = classes - vectors;
    CAIRN_UNROLL_BY(1) for (int i = thread; i < count; i += threads) body(i < r.head ? i : i + vectors);
  };

  const float dloss = t.scale();
  LogitRow<T> r = look_up(blockIdx.x);
  for (int b = 0; b < kBatches; ++b) fetch(r, b);
  int turn = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const LogitRow<T> next = look_up(row + gridDim.x);
    D* d = gradients != nullptr ? gradients + row * how.ld_d : nullptr;
    if (!r.counts) {
      const float value = r.weight == 0 ? 0.0f : NAN;
      if (thread == 0) losses[first + row] = static_cast<double>(value);
      if (d != nullptr) {
        Group<kCount> group;
        for (int i = 0; i < kCount; ++i) group.at[i] = value;
        for (int at = thread; at < r.whole; at += threads) write_as(d + r.head + at * kCount, group);
        one_by_one(r, [&](int v) { store(d + v, value); });
      }
      for (int b = 0; b < kBatches; ++b) fetch(next, b);
      r = next;
      continue;
    }
    const T *const row_x = logits + r.begin, *const x = row_x + r.head;
    const float of_class =
        load(row_x + r.target);  // before d, which may be x, is written: a barrier lies between
    const int end = kept_of(r);
    Exponentials e;
    UnitCursor cursor(how.unit_pairs);
    // Two vectors at a time, the second `threads` after the first.
    const auto take = [&](const T* from, int at, int limit) {
      e.take_two(from, at, limit, threads);
      if (how.units > 1 && cursor.ends(how.units, how.unit_pairs)) {
        e.leave(units->of_warps[cursor.unit - 1]);
        e = {};
      }
    };
    CAIRN_UNROLL_BY(1) for (int b = 0; b < kBatches; ++b) {
      // Waits for this batch; the copies that may still be under way are of the batches after it, of this row or the next.
      cp_async_wait<kBatches - 1>();
      for (int s = 0; s < kSlots; s += 2)
        if (const int at = (b * kSlots + s) * threads + thread; at < end) take(kept, at, end);
      if (d == nullptr)
        fetch(next, b);
      else
        cp_async_commit();
    }
    CAIRN_UNROLL_BY(1) for (int at = end + thread; at < r.whole; at += 2 * threads) take(x, at, r.whole);
    one_by_one(r, [&](int v) { e.take_one(load(row_x + v)); });
    if (how.units > 1) {
      join_units(e, how.units, units);
      e = {};
      for (int u = 0; u < how.units; ++u) e.base = fmaxf(e.base, units->of_units[u].x);
      for (int u = 0; u < how.units; ++u) e.sum = e.with_unit(e.sum, units->of_units[u]);
    } else {
      e.join(scratch[turn]);
      turn ^= 1;
    }
    RowLoss loss(e, of_class, r.weight, dloss);
    if (t.smoothing > 0) loss.smooth(t.smoothing, of_class, t.means[row], t.classes);
    if (thread == 0) losses[first + row] = loss.loss(r.weight);
    if (d != nullptr) {
      const auto gradient = [&](const T* from, D* to) {
        Group<kCount> group = read<kCount>(from);
        for (int i = 0; i < kCount; ++i) group.at[i] = loss.gradient(e, group.at[i]);
        write_as(to, group);
      };
      one_by_one(r, [&](int v) { store(d + v, loss.gradient(e, load(row_x + v))); });
      CAIRN_UNROLL_BY(1)
      for (int at = end + thread; at < r.whole; at += threads)
        gradient(x + at * kCount, d + r.head + at * kCount);
      CAIRN_UNROLL_BY(1) for (int b = 0; b < kBatches; ++b) {
        for (int s = 0; s < kSlots; ++s)
          if (const int at = (b * kSlots + s) * threads + thread; at < end)
            gradient(kept + at * kCount, d + r.head + at * kCount);
        fetch(next, b);
      }
      // Once more the target's, by the thread that wrote it.
      const int target = static_cast<int>(r.target), in = target - r.head, vectors = r.whole * kCount;
      const int owner = in < 0              ? target
                        : in >= vectors     ? target - vectors
                        : in / kCount < end ? in / kCount
                                            : in / kCount - end;
      if (owner % threads == thread) store(d + target, loss.gradient_at_target(e, of_class));
    }
    r = next;
  }
}

constexpr int kMeanThreads = 256;

// A block for each row.
template <class T>
__global__ void __launch_bounds__(kMeanThreads)
    row_means(const T* x, int64_t ld, int64_t classes, float* means) {
  CAIRN_SHARED float scratch[kWarp];
  const T* const row = x + static_cast<int64_t>(blockIdx.x) * ld;
  float sum = 0;
  for (int64_t v = threadIdx.x; v < classes; v += kMeanThreads) sum += load(row + v);
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) means[blockIdx.x] = sum / static_cast<float>(classes);
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

std::unique_ptr<Kernel> make_cross_entropy_any(const Signature& s, bool gradient) {
  if (!fast_float(s.in[0]) || s.in[1].dtype != DType::kI32 || (s.has_in(2) && !plain_f32(s.in[2])))
    return nullptr;
  if (gradient && s.has_out(2) && !fast_float(s.out[2])) return nullptr;
  const int64_t rows = s.in[0].shape.rows(), classes = s.in[0].shape.last();
  const int64_t ignore = s.attrs != nullptr ? s.attrs->integer("ignore_index", -100) : -100;
  const DType x_dtype = s.in[0].dtype, d_dtype = gradient && s.has_out(2) ? s.out[2].dtype : x_dtype;
  const float smoothing = s.attrs != nullptr ? static_cast<float>(s.attrs->real("smoothing")) : 0.0f;
  const size_t class_weights = gradient ? 4 : 3, dloss = gradient ? 3 : kLeftOut;
  if (s.has_in(class_weights) && !plain_f32(s.in[class_weights])) return nullptr;
  return make_kernel(
      [=, how = make_loss_rows(x_dtype, classes, d_dtype, classes, classes, false)](const Call& call) {
        Targets t = targets_of(call, 1, classes, ignore, dloss, class_weights);
        auto* losses = static_cast<double*>(call.workspace);
        if (smoothing > 0) {
          auto* means = reinterpret_cast<float*>(losses + rows);
          mean_rows(stream_of(call), x_dtype, data_of(call.in, 0), classes, classes, rows, means);
          t.smoothing = smoothing;
          t.means = means;
        }
        cross_entropy_rows(stream_of(call), how, data_of(call.in, 0),
                           gradient ? data_of(call.out, 2) : nullptr, t, 0, rows, losses);
        sum_cross_entropy(stream_of(call), t, rows, losses, output<double>(call, 0), output<double>(call, 1));
      },
      rows * (smoothing > 0 ? 12 : 8));
}

// body(kernel, T, D)
template <class Body>
void with_cross_entropy(const LossRows& how, const Body& body) {
  with_float(how.x_dtype, [&](auto x) {
    with_float(how.d_dtype, [&](auto d) {
      using T = decltype(x);
      using D = decltype(d);
      body(cross_entropy<T, D>, x, d);
    });
  });
}

}  // namespace

LossRows make_loss_rows(DType x_dtype, int64_t ld_x, DType d_dtype, int64_t ld_d, int64_t classes,
                        bool in_units) {
  constexpr int64_t kVector = 16, kEach = 8;  // vectors of a thread, about
  constexpr int64_t kMaxInt = (int64_t{1} << 31) - 1 - kMostKept * kVector;
  require(classes <= kMaxInt, Code::kUnsupported, "a loss over ", classes, " classes");
  const int64_t x_bytes = dtype_bytes(x_dtype), d_bytes = dtype_bytes(d_dtype);
  LossRows how{.x_dtype = x_dtype,
               .d_dtype = d_dtype,
               .ld_x = ld_x,
               .ld_d = ld_d,
               .vectors = {},
               .threads = {},
               .kept = {},
               .units = in_units ? static_cast<int>(units_of(classes)) : 1,
               .unit_pairs = unit_pairs(classes, x_dtype),
               .blocks = {}};
  // Vectors of x and d begin at the same columns.
  how.vectors = x_bytes == d_bytes ? (ld_x - ld_d) * x_bytes % kVector == 0
                                   : ld_x * x_bytes % kVector == 0 && ld_d * d_bytes % kVector == 0;
  const int64_t vectors = classes * x_bytes / kVector, wanted = (vectors + kEach - 1) / kEach;
  how.threads =
      how.units > 1
          ? kRowThreads
          : static_cast<int>(std::clamp<int64_t>((wanted + kWarp - 1) / kWarp * kWarp, kWarp, kRowThreads));
  const Multiprocessors m = multiprocessors();
  // The same most bytes for all rows: what a kernel may use is set once.
  const int64_t most =
      std::min<int64_t>((m.shared_bytes / kRowBlocks - kSharedOfSystem - kScratchBytes) / kVector, kMostKept);
  how.kept = static_cast<int>(how.vectors ? std::min(vectors, most) : 0);
  // Vectors that are not kept must belong to the same threads as if they were.
  if (how.units > 1 && how.kept < vectors) how.kept -= how.kept % (2 * kRowThreads);
  how.blocks = m.count * std::max<int64_t>(kRowBlocks, kRowBlocks * kRowThreads / how.threads);
  with_cross_entropy(how, [&](auto kernel, auto, auto) {
    allow_shared(kernel, most * kVector);
    prefer_shared(kernel);
  });
  return how;
}

void cross_entropy_rows(cudaStream_t stream, const LossRows& how, const void* x, void* d,
                        const Targets& targets, int64_t first, int64_t count, double* losses) {
  const LaunchSize size{
      .blocks = std::min(how.blocks, count), .threads = how.threads, .shared_bytes = int64_t{how.kept} * 16};
  with_cross_entropy(how, [&](auto kernel, auto from, auto to) {
    launch(stream, kernel, size, how, static_cast<const decltype(from)*>(x), static_cast<decltype(to)*>(d),
           targets, first, count, losses);
  });
}

void mean_rows(cudaStream_t stream, DType dtype, const void* x, int64_t ld, int64_t classes, int64_t count,
               float* means) {
  with_float(dtype, [&](auto zero) {
    using T = decltype(zero);
    launch(stream, row_means<T>, {.blocks = count, .threads = kMeanThreads}, static_cast<const T*>(x), ld,
           classes, means);
  });
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

}  // namespace cairn::kernels::cuda
