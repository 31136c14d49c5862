// AdamW and the sum of squares: one pass over memory each. update_gate.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cuda/group.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// ---- the sum of squares, which are exact in float64

constexpr int64_t kParts = 1024;  // at most

template <class T>
__global__ void __launch_bounds__(kThreads)
    square_parts(const T* x, int64_t count, int64_t chunk, double* parts) {
  constexpr int kCount = kGroupOf<T>, kLoads = 4;
  CAIRN_SHARED double scratch[kWarp];
  const int64_t begin = blockIdx.x * chunk, end = begin + chunk < count ? begin + chunk : count;
  const int64_t groups = (end - begin) / kCount;
  double sums[kCount] = {};
  for (int64_t g = threadIdx.x; g < groups; g += kLoads * kThreads) {
    Group<kCount> in[kLoads];
    for (int u = 0; u < kLoads; ++u) {
      in[u] = {};
      if (g + u * kThreads < groups) in[u] = read<kCount>(x + begin + (g + u * kThreads) * kCount);
    }
    for (int u = 0; u < kLoads; ++u)
      for (int i = 0; i < kCount; ++i) {
        const double v = in[u].at[i];
        sums[i] += v * v;
      }
  }
  for (int width = kCount / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) sums[i] += sums[i + width];
  const int64_t rest = begin + groups * kCount + threadIdx.x;
  if (rest < end) {
    const double v = load(x + rest);
    sums[0] += v * v;
  }
  const double total = block_sum(sums[0], scratch);
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

__global__ void __launch_bounds__(kThreads)
    square_total(const double* parts, int count, bool add, double* total) {
  CAIRN_SHARED double scratch[kWarp];
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) sum += parts[i];
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) *total = add ? *total + sum : sum;
}

// ---- AdamW

struct Factors {
  float gradient, one_minus_beta1, beta2, one_minus_beta2, root_bias2, eps, decay, step;
};

__device__ __forceinline__ Factors factors_of(const double* hyper, double gradient) {
  const double rate = hyper[0], beta1 = hyper[1], beta2 = hyper[2], eps = hyper[3], decay = hyper[4];
  return {.gradient = static_cast<float>(gradient),
          .one_minus_beta1 = static_cast<float>(1 - beta1),
          .beta2 = static_cast<float>(beta2),
          .one_minus_beta2 = static_cast<float>(1 - beta2),
          .root_bias2 = static_cast<float>(sqrt(hyper[6])),
          .eps = static_cast<float>(eps),
          .decay = static_cast<float>(1 - rate * decay),
          .step = static_cast<float>(rate / hyper[5])};
}

// A product that is rounded before anything is added to it.
__device__ __forceinline__ float times(float a, float b) {
#ifdef __CUDACC__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

// The order of operations of kernels/cpu/optimizer.cc.
__device__ __forceinline__ void update(const Factors& f, float grad, float& p, float& m, float& v) {
  const float g = times(grad, f.gradient);
  m = fmaf(g - m, f.one_minus_beta1, m);
  v = fmaf(times(g, g), f.one_minus_beta2, times(v, f.beta2));
  const float denominator = sqrtf(v) / f.root_bias2 + f.eps;
  p = fmaf(-f.step, m / denominator, times(p, f.decay));
}

// gate: the gradient's factor instead of hyper's; see ops.def for it and `total`.
template <bool kGated>
__global__ void __launch_bounds__(kThreads)
    adamw(int64_t count, const float* grad, const double* hyper, const double* total, double* gate, float* p,
          float* m, float* v) {
  constexpr int kCount = 4;
  CAIRN_SHARED Factors shared[1];
  CAIRN_SHARED int open[1];
  const int64_t groups = count / kCount, g = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t rest = sweep_rest<kCount>(count);
  Group<kCount> of_grad, of_p, of_m, of_v;
  if (g < groups) {
    of_grad = read<kCount>(grad + g * kCount);
    of_p = read<kCount>(p + g * kCount);
    of_m = read<kCount>(m + g * kCount);
    of_v = read<kCount>(v + g * kCount);
  }
  if (threadIdx.x == 0) {  // while all others' loads are under way
    const double factor = kGated ? *gate : hyper[7];
    const bool finite = !kGated || std::isfinite(*total);
    shared[0] = factors_of(hyper, factor);
    open[0] = finite && (!kGated || std::isfinite(factor));
    // One block closes the gate; all others find `total` not finite, whether they see that or not.
    if (!finite && blockIdx.x == gridDim.x - 1) *gate = std::numeric_limits<double>::quiet_NaN();
  }
  __syncthreads();
  if (open[0] == 0) return;
  const Factors f = shared[0];
  if (g < groups) {
    for (int i = 0; i < kCount; ++i) update(f, of_grad.at[i], of_p.at[i], of_m.at[i], of_v.at[i]);
    write(p + g * kCount, of_p);
    write(m + g * kCount, of_m);
    write(v + g * kCount, of_v);
  }
  if (rest >= 0) update(f, grad[rest], p[rest], m[rest], v[rest]);
}

template <bool kGated>
std::unique_ptr<Kernel> make_update(const Signature& s) {
  for (const TensorDesc& d : {s.in[0], s.out[0], s.out[1], s.out[2]})
    if (!plain_f32(d)) return nullptr;
  if (s.in[1].dtype != DType::kF64) return nullptr;
  const int64_t count = s.in[0].shape.elements();
  const LaunchSize size{.blocks = std::max<int64_t>(1, (count / 4 + kThreads - 1) / kThreads),
                        .threads = kThreads};
  return make_kernel([=](const Call& call) {
    launch(stream_of(call), adamw<kGated>, size, count, input<const float>(call, 0),
           input<const double>(call, 1), kGated ? input<const double>(call, 2) : nullptr,
           kGated ? output<double>(call, 3) : nullptr, output<float>(call, 0), output<float>(call, 1),
           output<float>(call, 2));
  });
}

__global__ void update_gate(const double* loss, const double* weight, double* gate) {
  const double sum = *loss, by = weight != nullptr ? *weight : 1.0;
  const bool open = std::isfinite(sum) && std::isfinite(by);
  *gate = open ? 1.0 / (by != 0.0 ? by : 1.0) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::unique_ptr<Kernel> make_sum_squares(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != DType::kF64) return nullptr;
  constexpr int64_t kLeast = 8192;
  const int64_t count = s.in[0].shape.elements();
  const int64_t chunk = align_up(std::max(kLeast, (count + kParts - 1) / kParts), 8);
  const int64_t parts = (count + chunk - 1) / chunk;
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel(
        [=](const Call& call) {
          auto* const partial = static_cast<double*>(call.workspace);
          launch(stream_of(call), square_parts<T>, {.blocks = parts, .threads = kThreads},
                 input<const T>(call, 0), count, chunk, partial);
          launch(stream_of(call), square_total, {.threads = kThreads}, partial, static_cast<int>(parts),
                 accumulates(call, 0), output<double>(call, 0));
        },
        parts * 8);
  });
}

std::unique_ptr<Kernel> make_adamw(const Signature& s) { return make_update<false>(s); }
std::unique_ptr<Kernel> make_adamw_gated(const Signature& s) {
  return s.in[2].dtype == DType::kF64 && s.out[3].dtype == DType::kF64 ? make_update<true>(s) : nullptr;
}

std::unique_ptr<Kernel> make_update_gate(const Signature& s) {
  if (s.in[0].dtype != DType::kF64 || s.out[0].dtype != DType::kF64) return nullptr;
  return make_kernel([](const Call& call) {
    launch(stream_of(call), update_gate, {.threads = 1}, input<const double>(call, 0),
           input<const double>(call, 1), output<double>(call, 0));
  });
}

}  // namespace cairn::kernels::cuda
