// groupnorm and its gradient: a block for each group of a sample; sums by channel for gamma and beta.
#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/pictures/channels.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256;  // at most

// The block's group of x[samples, pixels, channels]; element i of it is channel `channel(i)`, at `at(i)`.
struct GroupSizes {
  int groups, each;
  int64_t pixels;

  __device__ __forceinline__ int count() const { return static_cast<int>(pixels) * each; }
  __device__ __forceinline__ int64_t begin() const {
    return blockIdx.x / groups * pixels * (int64_t{groups} * each) + first_channel();
  }
  __device__ __forceinline__ int first_channel() const {
    return static_cast<int>(blockIdx.x % groups) * each;
  }
};
struct InGroup {
  int channel;
  int64_t at;
};
__device__ __forceinline__ InGroup in_group(const GroupSizes& z, int i) {
  const int pixel = i / z.each, channel = i - pixel * z.each;
  return {channel, static_cast<int64_t>(pixel) * z.groups * z.each + channel};
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    groupnorm(GroupSizes z, const T* x, const float* gamma, const float* beta, float eps, T* y, float* means,
              float* rstds) {
  CAIRN_SHARED float scratch[kWarp];
  const int64_t begin = z.begin();
  const int count = z.count();
  x += begin;
  float mean = 0, squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    mean += load(x + in_group(z, i).at);
  mean = block_sum(mean, scratch) / static_cast<float>(count);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    const float centered = load(x + in_group(z, i).at) - mean;
    squares = fmaf(centered, centered, squares);
  }
  squares = block_sum(squares, scratch);
  const float rstd = 1.0f / sqrtf(squares / static_cast<float>(count) + eps);
  if (threadIdx.x == 0) {
    if (means != nullptr) means[blockIdx.x] = mean;
    if (rstds != nullptr) rstds[blockIdx.x] = rstd;
  }
  if (y == nullptr) return;
  y += begin;
  const int first = z.first_channel();
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    const InGroup e = in_group(z, i);
    const float h = (load(x + e.at) - mean) * rstd;
    store(y + e.at, h * (gamma != nullptr ? gamma[first + e.channel] : 1.0f) +
                        (beta != nullptr ? beta[first + e.channel] : 0.0f));
  }
}

// dx = rstd (g - mean of g - h * mean of g h), g = dy gamma.
template <class T>
__global__ void __launch_bounds__(kThreads, 4)
    groupnorm_grad(GroupSizes z, const T* dy, const T* x, const float* gamma, const float* means,
                   const float* rstds, T* dx) {
  CAIRN_SHARED float scratch[kWarp];
  const int64_t begin = z.begin();
  const int count = z.count();
  const float mean = means[blockIdx.x], rstd = rstds[blockIdx.x];
  dy += begin, x += begin, dx += begin;
  if (gamma != nullptr) gamma += z.first_channel();
  float sum = 0, along = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    const InGroup e = in_group(z, i);
    const float g = load(dy + e.at) * (gamma != nullptr ? gamma[e.channel] : 1.0f);
    sum += g;
    along = fmaf(g, (load(x + e.at) - mean) * rstd, along);
  }
  sum = block_sum(sum, scratch) / static_cast<float>(count);
  along = block_sum(along, scratch) / static_cast<float>(count);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    const InGroup e = in_group(z, i);
    const float g = load(dy + e.at) * (gamma != nullptr ? gamma[e.channel] : 1.0f);
    store(dx + e.at, rstd * (g - fmaf((load(x + e.at) - mean) * rstd, along, sum)));
  }
}

LaunchSize size_of(const GroupSizes& z, int64_t samples) {
  const int64_t threads = align_up(z.pixels * z.each, kWarp);
  return {.blocks = samples * z.groups, .threads = static_cast<int>(std::min<int64_t>(threads, kThreads))};
}

bool group_sizes(const Signature& s, const TensorDesc& x, GroupSizes* z) {
  const int64_t groups = s.attrs->integer("groups"), channels = x.shape.last(), samples = x.shape[0];
  const int64_t pixels = x.shape.rows() / samples;
  constexpr int64_t kMost = int64_t{1} << 30;
  if (pixels * (channels / groups) > kMost || samples * groups > kMost) return false;
  *z = {static_cast<int>(groups), static_cast<int>(channels / groups), pixels};
  return true;
}

bool all_floats(const Signature& s, size_t first_in) {
  for (size_t i = first_in; i < s.in.size(); ++i)
    if (s.has_in(i) && !plain_f32(s.in[i])) return false;
  for (size_t i = 1; i < s.out.size(); ++i)
    if (s.has_out(i) && !plain_f32(s.out[i])) return false;
  return fast_float(s.in[0]) && s.out[0].dtype == s.in[0].dtype;
}

}  // namespace

std::unique_ptr<Kernel> make_groupnorm(const Signature& s) {
  GroupSizes z;
  if (!all_floats(s, 1) || !group_sizes(s, s.in[0], &z)) return nullptr;
  const int64_t samples = s.in[0].shape[0];
  const auto eps = static_cast<float>(s.attrs->real("eps", 1e-5));
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), groupnorm<T>, size_of(z, samples), z, input<const T>(call, 0),
             input<const float>(call, 1), input<const float>(call, 2), eps, output<T>(call, 0),
             output<float>(call, 1), output<float>(call, 2));
    });
  });
}

std::unique_ptr<Kernel> make_groupnorm_grad(const Signature& s) {
  GroupSizes z;
  if (!all_floats(s, 2) || s.in[1].dtype != s.in[0].dtype || !group_sizes(s, s.in[1], &z)) return nullptr;
  const int64_t samples = s.in[1].shape[0], channels = s.in[1].shape.last();
  const int each = channels_each(s.in[0].dtype, channels);
  const ChannelGradients gradients(ChannelGrid(samples, z.pixels, channels, each), samples, s.in[0].dtype,
                                   each);
  const bool sums = s.has_out(1) || s.has_out(2);
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel(
        [=](const Call& call) {
          const cudaStream_t stream = stream_of(call);
          const auto *dy = input<const T>(call, 0), *x = input<const T>(call, 1);
          const float *mean = input<const float>(call, 3), *rstd = input<const float>(call, 4);
          if (sums)
            gradients.run(stream, dy, x, {mean, rstd, true, 0, z.groups, z.each}, call.workspace,
                          {output<float>(call, 1), accumulates(call, 1)},
                          {output<float>(call, 2), accumulates(call, 2)});
          if (auto* dx = output<T>(call, 0))
            launch(stream, groupnorm_grad<T>, size_of(z, samples), z, dy, x, input<const float>(call, 2),
                   mean, rstd, dx);
        },
        sums ? gradients.workspace_bytes() : 0);
  });
}

}  // namespace cairn::kernels::cuda
