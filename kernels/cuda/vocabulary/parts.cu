// The fused loss on a part of a vocabulary. Its logits are computed three times: for the largest logit, for the sum of
// exponentials and for the gradients, with the bits that linear_cross_entropy.cu gives for the full vocabulary.
#include "kernels/cuda/losses.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/vocabulary/exponentials.h"
#include "kernels/cuda/vocabulary/logits.h"
#include "kernels/cuda/vocabulary/products.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kOpenTerms =
    64;  // size of a row's open block (ops.def), unused here: parts end where units do, so no block is left open

// What the parts of a row hand on.
struct alignas(16) Seen {
  float largest, at_target, before_target, not_a_number;
};
constexpr float kLowest = -3.0e38f;

// Of a chunk's rows: where their logits are, and which columns of the vocabulary.
struct PartRows {
  int64_t first_row, ld;
  int first, columns, units, unit_pairs;
};

// A block a row.
template <class T>
__global__ void __launch_bounds__(kThreads)
    find_largest(PartRows how, const T* logits, const int32_t* targets, const Seen* before, bool accuracy,
                 Seen* now) {
  CAIRN_SHARED float scratch[3][kWarp];
  const int64_t row = how.first_row + blockIdx.x;
  const T* x = logits + blockIdx.x * how.ld;
  Seen seen = {kLowest, 0, accuracy ? kLowest : 0, 0};
  if (before != nullptr) seen = before[row];
  const int64_t target = static_cast<int64_t>(targets[row]) - how.first;
  float largest = kLowest, left = kLowest, strange = 0;
  for (int v = static_cast<int>(threadIdx.x); v < how.columns; v += kThreads) {
    const float at = load(x + v);
    largest = fmaxf(largest, at);
    if (v < target) left = fmaxf(left, at);
    if (at != at) strange = 1;
  }
  largest = block_max(largest, scratch[0]);
  if (accuracy) {
    left = block_max(left, scratch[1]);
    strange = block_max(strange, scratch[2]);
  }
  if (threadIdx.x != 0) return;
  seen.largest = fmaxf(seen.largest, largest);
  if (target >= 0 && target < how.columns) seen.at_target = load(x + target);
  if (accuracy) {
    seen.before_target = fmaxf(seen.before_target, left);
    seen.not_a_number = fmaxf(seen.not_a_number, strange);
  }
  now[row] = seen;
}

// A block a row; each thread has the columns that cross_entropy() gives it.
template <class T>
__global__ void __launch_bounds__(kRowThreads)
    sum_units(PartRows how, const T* logits, const Seen* seen, const double* before, const float* open,
              double* sum, float* rest) {
  constexpr int kCount = kGroupOf<T>;
  CAIRN_SHARED UnitSums units[1];
  const int64_t row = how.first_row + blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x), whole = how.columns / kCount;
  const T* x = logits + blockIdx.x * how.ld;
  Exponentials e;
  UnitCursor cursor(how.unit_pairs);
  for (int at = thread; at < whole; at += 2 * kRowThreads) {
    e.take_two(x, at, whole, kRowThreads);
    if (cursor.ends(how.units, how.unit_pairs)) {
      e.leave(units->of_warps[cursor.unit - 1]);
      e = {};
    }
  }
  if (const int at = whole * kCount + thread; at < how.columns) e.take_one(load(x + at));
  join_units(e, how.units, units);
  if (rest != nullptr && thread < kOpenTerms) rest[row * kOpenTerms + thread] = 0;
  if (thread != 0) return;
  e = {.base = Exponentials::base_of(seen[row].largest)};
  float total = before != nullptr ? static_cast<float>(before[row]) : 0.0f;
  for (int i = 0; open != nullptr && i < kOpenTerms; ++i) total += open[row * kOpenTerms + i];
  for (int u = 0; u < how.units; ++u) total = e.with_unit(total, units->of_units[u]);
  sum[row] = static_cast<double>(total);
}

__device__ __forceinline__ Exponentials exponentials_of(const Seen& seen, double sum) {
  return {.base = Exponentials::base_of(seen.largest), .sum = static_cast<float>(sum)};
}

// A thread a row.
__global__ void __launch_bounds__(kThreads)
    finish_rows(Targets t, int64_t rows, const Seen* seen, const double* sums, double* losses, Hit* hits) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= rows) return;
  const float weight = t.weight(row);
  const int64_t target = t.targets[row];
  const bool valid = target >= 0 && target < t.classes;
  const Seen s = seen[row];
  double loss = weight == 0 ? 0.0 : static_cast<double>(NAN);
  if (weight != 0 && valid)
    loss = RowLoss(exponentials_of(s, sums[row]), s.at_target, weight, 1.0f).loss(weight);
  losses[row] = loss;
  if (hits == nullptr) return;
  const bool hit = valid && s.not_a_number == 0 && s.at_target >= s.largest &&
                   (target == 0 || s.before_target < s.at_target);
  hits[row] = weight == 0 ? Hit::kNone : hit ? Hit::kHit : Hit::kMissed;
}

// A block a row of logits, which become their gradient.
template <class T>
__global__ void __launch_bounds__(kThreads)
    part_gradient(PartRows how, T* logits, Targets t, const Seen* seen, const double* sums) {
  const int64_t row = how.first_row + blockIdx.x;
  T* x = logits + blockIdx.x * how.ld;
  const float weight = t.weight(row);
  const int64_t target = t.targets[row], here = target - how.first;
  const int thread = static_cast<int>(threadIdx.x);
  if (weight == 0 || target < 0 || target >= t.classes) {
    for (int v = thread; v < how.columns; v += kThreads) store(x + v, weight == 0 ? 0.0f : NAN);
    return;
  }
  const Exponentials e = exponentials_of(seen[row], sums[row]);
  const RowLoss loss(e, seen[row].at_target, weight, t.scale());
  for (int v = thread; v < how.columns; v += kThreads) {
    const float at = load(x + v);
    store(x + v, v == here ? loss.gradient_at_target(e, at) : loss.gradient(e, at));
  }
}

__global__ void __launch_bounds__(kThreads) copy_elements(const float* from, float* to, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) to[i] = from[i];
}

// What the three ops with products share.
struct Part {
  Workspace space;
  WeightReader weight;
  HeadProducts products;
  LogitRows shape;

  Part(const Signature& s, bool has_dx, bool has_dw)
      : weight(s.in[1], s.in[0].dtype, &space),
        products(s, has_dx, false, has_dw, &space),
        shape(s, products.z, has_dx || has_dw, &space) {}
  const HeadSizes& z() const { return products.z; }

  // Calls body(logits, how, first row) after the logits of each chunk.
  template <class Body>
  void each_chunk(const Call& call, const void* w, const Body& body) const {
    PartRows how{.first_row = 0,
                 .ld = z().ld,
                 .first = static_cast<int>(z().first),
                 .columns = static_cast<int>(z().n),
                 .units = z().first % z().unit == 0 ? static_cast<int>(z().units().size()) : 1,
                 .unit_pairs = unit_pairs(z().vocab, z().type)};
    for (int64_t r = 0; r < z().rows; r += z().chunk) {
      products.make_logits(call, r, input<const char>(call, 0) + z().x_bytes(r), w);
      how.first_row = r;
      char* const logits = shape.make(call, z(), z().count(r), products.logits(call));
      with_float(z().type, [&](auto zero) { body(reinterpret_cast<decltype(zero)*>(logits), how, r); });
    }
  }
};

// nullptr: no kernel here takes it.
std::shared_ptr<const Part> part_of(const Signature& s, bool has_dx = false, bool has_dw = false) {
  constexpr int64_t kMostClasses = (int64_t{1} << 31) - 1;
  const DType t = s.in[0].dtype;
  if (!fast_float(s.in[0]) || !WeightReader::takes(s.in[1], t)) return nullptr;
  if (s.attrs->integer("vocab") > kMostClasses) return nullptr;
  return std::make_shared<const Part>(s, has_dx, has_dw);
}

}  // namespace

void copy_floats(cudaStream_t stream, const float* from, float* to, int64_t count) {
  launch(stream, copy_elements, {.blocks = (count + kThreads - 1) / kThreads, .threads = kThreads}, from, to,
         count);
}

std::unique_ptr<Kernel> make_linear_cross_entropy_max(const Signature& s) {
  if (s.in[2].dtype != DType::kI32 || !plain_f32(s.out[0])) return nullptr;
  const auto part = part_of(s);
  if (part == nullptr) return nullptr;
  const bool accuracy = s.attrs->integer("accuracy", 0) != 0;
  return make_kernel(
      [=](const Call& call) {
        part->each_chunk(call, part->weight.read(call, 1), [&](auto* logits, const PartRows& how, int64_t r) {
          launch(stream_of(call), find_largest<std::remove_pointer_t<decltype(logits)>>,
                 {.blocks = part->z().count(r), .threads = kThreads}, how, logits,
                 input<const int32_t>(call, 2), input<const Seen>(call, 3), accuracy, output<Seen>(call, 0));
        });
      },
      part->space.bytes());
}

std::unique_ptr<Kernel> make_linear_cross_entropy_sum(const Signature& s) {
  if (!plain_f32(s.in[2])) return nullptr;
  const auto part = part_of(s);
  if (part == nullptr) return nullptr;
  return make_kernel(
      [=](const Call& call) {
        part->each_chunk(call, part->weight.read(call, 1), [&](auto* logits, const PartRows& how, int64_t r) {
          launch(stream_of(call), sum_units<std::remove_pointer_t<decltype(logits)>>,
                 {.blocks = part->z().count(r), .threads = kRowThreads}, how, logits,
                 input<const Seen>(call, 2), input<const double>(call, 3), input<const float>(call, 4),
                 output<double>(call, 0), output<float>(call, 1));
        });
      },
      part->space.bytes());
}

std::unique_ptr<Kernel> make_linear_cross_entropy_part(const Signature& s) {
  if (s.in[2].dtype != DType::kI32 || (s.has_in(3) && !plain_f32(s.in[3])) || !plain_f32(s.in[4]))
    return nullptr;
  if ((s.has_out(0) && !plain_f32(s.out[0])) || (s.has_out(1) && !plain_f32(s.out[1]))) return nullptr;
  const bool has_dx = s.has_out(0), has_dw = s.has_out(1);
  const auto part = part_of(s, has_dx, has_dw);
  if (part == nullptr) return nullptr;
  return make_kernel(
      [=](const Call& call) {
        const HeadSizes& z = part->z();
        const Targets targets = targets_of(call, 2, z.vocab, z.ignore, 6);
        const void* w = part->weight.read(call, 1);
        const auto* const before = input<const float>(call, 7);
        part->each_chunk(call, w, [&](auto* logits, const PartRows& how, int64_t r) {
          launch(stream_of(call), part_gradient<std::remove_pointer_t<decltype(logits)>>,
                 {.blocks = z.count(r), .threads = kThreads}, how, logits, targets,
                 input<const Seen>(call, 4), input<const double>(call, 5));
          part->shape.slope(call, z, z.count(r), reinterpret_cast<const char*>(logits),
                            part->products.logits(call));
          if (has_dx)
            part->products.input_gradient(call, r, w, before != nullptr ? before + r * z.width : nullptr,
                                          output<float>(call, 0) + r * z.width);
          if (has_dw)
            part->products.weight_gradient(call, r, input<const char>(call, 0) + z.x_bytes(r),
                                           output<float>(call, 1), r > 0 || accumulates(call, 1));
        });
      },
      part->space.bytes());
}

std::unique_ptr<Kernel> make_linear_cross_entropy_loss(const Signature& s) {
  if (!plain_f32(s.in[0]) || s.in[2].dtype != DType::kI32 || (s.has_in(3) && !plain_f32(s.in[3])))
    return nullptr;
  const int64_t rows = s.in[1].shape.elements(), vocab = s.attrs->integer("vocab"),
                ignore = s.attrs->integer("ignore_index", -100);
  const bool has_hits = s.has_out(2) || s.has_out(3);
  Workspace space;
  const int64_t losses_at = space.add(rows * 8), hits_at = has_hits ? space.add(rows) : -1;
  return make_kernel(
      [=](const Call& call) {
        constexpr size_t kNoScale = 4;  // there is no such operand
        const cudaStream_t stream = stream_of(call);
        const Targets targets = targets_of(call, 2, vocab, ignore, kNoScale);
        auto* losses = Workspace::at<double>(call, losses_at);
        Hit* const hits = has_hits ? Workspace::at<Hit>(call, hits_at) : nullptr;
        launch(stream, finish_rows, {.blocks = (rows + kThreads - 1) / kThreads, .threads = kThreads},
               targets, rows, input<const Seen>(call, 0), input<const double>(call, 1), losses, hits);
        sum_cross_entropy(stream, targets, rows, losses, output<double>(call, 0), output<double>(call, 1));
        if (hits != nullptr) sum_hits(stream, hits, rows, output<double>(call, 2), output<double>(call, 3));
      },
      space.bytes());
}

}  // namespace cairn::kernels::cuda
