// batchnorm, normalize and their gradient: a channel's statistics over all rows, in parts whose means and squares are put together in a
// fixed order.
#include "kernels/cuda/common/activations.h"
#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/pictures/channels.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = ChannelGrid::kThreads, kWarps = kThreads / kWarp;

// partial[parts][2][channels]: each part's sum, and its sum of squares about its mean. The rows are read twice, the second time from
// a cache.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads, 4)
    part_moments(ChannelGrid grid, const T* __restrict__ x, Wide<T>* partial) {
  CAIRN_SHARED Wide<T> shared[kCount][kThreads];
  const ChannelGrid::Part part = grid.part();
  const int channel = grid.channel<kCount>();
  const bool inside = channel < grid.channels;
  const auto each_row = [&](const auto& body) {
    for (int64_t row = part.begin + grid.slot(); row < part.end && inside; row += grid.slots())
      body(read<kCount>(x + row * grid.channels + channel));
  };
  Wide<T> sums[kCount] = {}, squares[kCount] = {};
  each_row([&](const Group<kCount>& v) {
    for (int i = 0; i < kCount; ++i) sums[i] += static_cast<Wide<T>>(v.at[i]);
  });
  sum_slots(grid, sums, shared);
  float middle[kCount];  // next to the mean
  for (int i = 0; i < kCount; ++i)
    middle[i] = static_cast<float>(sums[i]) * reciprocal(static_cast<float>(part.end - part.begin));
  each_row([&](const Group<kCount>& v) {
    for (int i = 0; i < kCount; ++i) {
      const Wide<T> centered = static_cast<Wide<T>>(v.at[i]) - static_cast<Wide<T>>(middle[i]);
      squares[i] += centered * centered;
    }
  });
  sum_slots(grid, squares, shared);
  if (grid.slot() != 0 || !inside) return;
  Wide<T>* const to = partial + 2 * static_cast<int64_t>(blockIdx.x) * grid.channels + channel;
  for (int i = 0; i < kCount; ++i) {
    to[i] = sums[i];
    to[grid.channels + i] = squares[i];
  }
}

// The sum over parts of body(part): a block has a warp's width of channels, and its warps take the parts in turn. `shared`: a
// row for each warp.
template <class Body>
__device__ __forceinline__ double sum_over_parts(int64_t parts, double (*shared)[kWarp], const Body& body) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  double sum = 0;
  for (int64_t p = warp; p < parts; p += kWarps) sum += body(p);
  shared[warp][lane] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += shared[w][lane];
  __syncthreads();
  return sum;
}

// share: 1 / rows.
template <class Sum>
__global__ void __launch_bounds__(kThreads)
    all_moments(ChannelGrid grid, double share, const Sum* __restrict__ partial, float* mean, float* var) {
  CAIRN_SHARED double shared[kWarps][kWarp];
  const int channel = static_cast<int>(blockIdx.x * kWarp + threadIdx.x % kWarp);
  const bool inside = channel < grid.channels;
  const auto of_part = [&](int64_t part, int which) {
    return inside ? static_cast<double>(partial[(2 * part + which) * grid.channels + channel]) : 0.0;
  };
  const double middle = share * sum_over_parts(grid.parts, shared, [&](int64_t p) { return of_part(p, 0); });
  const double squares =
      share * sum_over_parts(grid.parts, shared, [&](int64_t p) {
        const auto apart = static_cast<float>(of_part(p, 0) - static_cast<double>(grid.count(p)) * middle);
        return of_part(p, 1) +
               static_cast<double>(apart * reciprocal(static_cast<float>(grid.count(p))) * apart);
      });
  if (threadIdx.x >= kWarp || !inside) return;
  mean[channel] = static_cast<float>(middle);
  var[channel] = static_cast<float>(squares);
}

template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) normalize(ChannelGrid grid, const T* x, ChannelStatistics s,
                                                      const float* gamma, const float* beta, T* y) {
  const ChannelGrid::Part part = grid.part();
  const int channel = grid.channel<kCount>();
  if (channel >= grid.channels) return;
  float mean[kCount], scale[kCount], shift[kCount];
  for (int i = 0; i < kCount; ++i) {
    const int c = channel + i;
    mean[i] = s.mean[c];
    scale[i] = s.rstd(c) * (gamma != nullptr ? gamma[c] : 1.0f);
    shift[i] = beta != nullptr ? beta[c] : 0.0f;
  }
  for (int64_t row = part.begin + grid.slot(); row < part.end; row += grid.slots()) {
    const int64_t at = row * grid.channels + channel;
    Group<kCount> v = read<kCount>(x + at);
    for (int i = 0; i < kCount; ++i) v.at[i] = fmaf(v.at[i] - mean[i], scale[i], shift[i]);
    write(y + at, v);
  }
}

// dx = scale (dy - mean of dy - h * mean of dy h), by sums[2][channels] of dy h and of dy; nullptr: the statistics are constants, and
// dx = scale dy. It may lie on dy.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads)
    batchnorm_grad(ChannelGrid grid, const T* dy, const T* x, ChannelStatistics s, const float* gamma,
                   const double* sums, T* dx) {
  const ChannelGrid::Part part = grid.part();
  const int channel = grid.channel<kCount>();
  if (channel >= grid.channels) return;
  Wide<T> mean[kCount], scale[kCount], along[kCount], constant[kCount];
  const Wide<T> share = static_cast<Wide<T>>(1) / static_cast<Wide<T>>(grid.rows);
  for (int i = 0; i < kCount; ++i) {
    const int c = channel + i;
    const Wide<T> rstd = s.rstd<Wide<T>>(c);
    mean[i] = static_cast<Wide<T>>(s.mean[c]);
    scale[i] = rstd * static_cast<Wide<T>>(gamma != nullptr ? gamma[c] : 1.0f);
    along[i] = sums == nullptr ? 0 : static_cast<Wide<T>>(sums[c]) * share * rstd;
    constant[i] = sums == nullptr ? 0 : static_cast<Wide<T>>(sums[grid.channels + c]) * share;
  }
  for (int64_t row = part.begin + grid.slot(); row < part.end; row += grid.slots()) {
    const int64_t at = row * grid.channels + channel;
    Group<kCount> d = read<kCount>(dy + at), v = {};
    if (sums != nullptr) v = read<kCount>(x + at);
    for (int i = 0; i < kCount; ++i) {
      Wide<T> centered = static_cast<Wide<T>>(d.at[i]) - constant[i];
      centered -= (static_cast<Wide<T>>(v.at[i]) - mean[i]) * along[i];
      d.at[i] = static_cast<float>(centered * scale[i]);
    }
    write(dx + at, d);
  }
}

// partial[samples * parts][2][channels].
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads)
    gradient_sums(ChannelGrid grid, const T* __restrict__ dy, const T* __restrict__ x, ChannelStatistics s,
                  Wide<T>* partial) {
  CAIRN_SHARED Wide<T> shared[kCount][kThreads];
  const ChannelGrid::Part part = grid.part();
  const int channel = grid.channel<kCount>();
  const bool inside = channel < grid.channels;
  const auto statistic = [&](int i) { return part.sample * s.groups + (channel + i) / s.each; };
  Wide<T> mean[kCount] = {}, dgamma[kCount] = {}, dbeta[kCount] = {};
  for (int i = 0; i < kCount && inside; ++i) mean[i] = static_cast<Wide<T>>(s.mean[statistic(i)]);
  for (int64_t row = part.begin + grid.slot(); row < part.end && inside; row += grid.slots()) {
    const int64_t at = row * grid.channels + channel;
    const Group<kCount> d = read<kCount>(dy + at), v = read<kCount>(x + at);
    for (int i = 0; i < kCount; ++i) {
      const auto own = static_cast<Wide<T>>(d.at[i]);
      dgamma[i] += own * (static_cast<Wide<T>>(v.at[i]) - mean[i]);
      dbeta[i] += own;
    }
  }
  sum_slots(grid, dgamma, shared);
  sum_slots(grid, dbeta, shared);
  if (grid.slot() != 0 || !inside) return;
  Wide<T>* const to = partial + 2 * static_cast<int64_t>(blockIdx.x) * grid.channels + channel;
  for (int i = 0; i < kCount; ++i) {
    to[i] = dgamma[i] * s.rstd<Wide<T>>(statistic(i));
    to[grid.channels + i] = dbeta[i];
  }
}

template <class Sum>
__global__ void __launch_bounds__(kThreads)
    sum_gradients(int64_t parts, int channels, const Sum* __restrict__ partial, Total dgamma, Total dbeta,
                  double* sums) {
  CAIRN_SHARED double shared[kWarps][kWarp];
  const int channel = static_cast<int>(blockIdx.x * kWarp + threadIdx.x % kWarp);
  const bool inside = channel < channels;
  for (int which = 0; which < 2; ++which) {
    const double sum = sum_over_parts(parts, shared, [&](int64_t p) {
      return inside ? static_cast<double>(partial[(2 * p + which) * channels + channel]) : 0.0;
    });
    if (threadIdx.x >= kWarp || !inside) continue;
    const Total& total = which == 0 ? dgamma : dbeta;
    if (sums != nullptr) sums[which * channels + channel] = sum;
    if (total.to != nullptr)
      total.to[channel] = static_cast<float>(total.add ? static_cast<double>(total.to[channel]) + sum : sum);
  }
}

LaunchSize size_over_parts(int64_t channels) {
  return {.blocks = (channels - 1) / kWarp + 1, .threads = kThreads};
}

bool floats_from(const Signature& s, size_t first_in, size_t first_out) {
  for (size_t i = first_in; i < s.in.size(); ++i)
    if (s.has_in(i) && !plain_f32(s.in[i])) return false;
  for (size_t i = first_out; i < s.out.size(); ++i)
    if (s.has_out(i) && !plain_f32(s.out[i])) return false;
  return true;
}

ChannelStatistics by_channel(const Signature& s) {
  return {.mean = nullptr,
          .second = nullptr,
          .inverse = false,
          .eps = static_cast<float>(s.attrs != nullptr ? s.attrs->real("eps", 1e-5) : 1e-5),
          .groups = 0,
          .each = 1};
}

}  // namespace

void ChannelGradients::run(cudaStream_t stream, const void* dy, const void* x,
                           const ChannelStatistics& statistics, void* workspace, Total dgamma, Total dbeta,
                           double* sums) const {
  with_float(dtype_, [&](auto zero) {
    using T = decltype(zero);
    auto* const partial = static_cast<Wide<T>*>(workspace);
    launch(stream, each_ == 1 ? gradient_sums<T, 1> : gradient_sums<T, kGroupOf<T>>, grid_.size(samples_),
           grid_, static_cast<const T*>(dy), static_cast<const T*>(x), statistics, partial);
    launch(stream, sum_gradients<Wide<T>>, size_over_parts(grid_.channels), samples_ * grid_.parts,
           grid_.channels, partial, dgamma, dbeta, sums);
  });
}

std::unique_ptr<Kernel> make_batchnorm(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != s.in[0].dtype || !floats_from(s, 1, 1)) return nullptr;
  const int64_t rows = s.in[0].shape.rows(), channels = s.in[0].shape.last();
  const ChannelStatistics statistics = by_channel(s);
  return with_channels_each(s.in[0].dtype, channels, [&](auto zero, auto each) {
    using T = decltype(zero);
    constexpr int kCount = decltype(each)::value;
    const ChannelGrid grid(1, rows, channels, kCount);
    Workspace space;
    const int64_t partial_at = space.add(2 * grid.parts * channels * static_cast<int64_t>(sizeof(Wide<T>))),
                  moments_at = space.add(2 * channels * 4);
    return make_kernel(
        [=](const Call& call) {
          const cudaStream_t stream = stream_of(call);
          auto* const partial = Workspace::at<Wide<T>>(call, partial_at);
          float *mean = output<float>(call, 1), *var = output<float>(call, 2);
          if (mean == nullptr) mean = Workspace::at<float>(call, moments_at);
          if (var == nullptr) var = Workspace::at<float>(call, moments_at) + channels;
          const auto* x = input<const T>(call, 0);
          launch(stream, part_moments<T, kCount>, grid.size(1), grid, x, partial);
          launch(stream, all_moments<Wide<T>>, size_over_parts(channels), grid,
                 1.0 / static_cast<double>(rows), partial, mean, var);
          ChannelStatistics own = statistics;
          own.mean = mean, own.second = var;
          if (auto* y = output<T>(call, 0))
            launch(stream, normalize<T, kCount>, grid.size(1), grid, x, own, input<const float>(call, 1),
                   input<const float>(call, 2), y);
        },
        space.bytes());
  });
}

std::unique_ptr<Kernel> make_normalize(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != s.in[0].dtype || !floats_from(s, 1, 1)) return nullptr;
  const int64_t rows = s.in[0].shape.rows(), channels = s.in[0].shape.last();
  const ChannelStatistics statistics = by_channel(s);
  return with_channels_each(s.in[0].dtype, channels, [&](auto zero, auto each) {
    using T = decltype(zero);
    constexpr int kCount = decltype(each)::value;
    const ChannelGrid grid(1, rows, channels, kCount);
    return make_kernel([=](const Call& call) {
      ChannelStatistics own = statistics;
      own.mean = input<const float>(call, 1), own.second = input<const float>(call, 2);
      launch(stream_of(call), normalize<T, kCount>, grid.size(1), grid, input<const T>(call, 0), own,
             input<const float>(call, 3), input<const float>(call, 4), output<T>(call, 0));
    });
  });
}

std::unique_ptr<Kernel> make_batchnorm_grad(const Signature& s) {
  if (!fast_float(s.in[0]) || s.in[1].dtype != s.in[0].dtype || s.out[0].dtype != s.in[0].dtype ||
      !floats_from(s, 2, 1))
    return nullptr;
  const int64_t rows = s.in[1].shape.rows(), channels = s.in[1].shape.last();
  const ChannelStatistics statistics = by_channel(s);
  const bool fixed = s.attrs != nullptr && s.attrs->integer("fixed") != 0;
  const bool sums = !fixed || s.has_out(1) || s.has_out(2);
  const DType dtype = s.in[0].dtype;
  return with_channels_each(dtype, channels, [&](auto zero, auto each) {
    using T = decltype(zero);
    constexpr int kCount = decltype(each)::value;
    const ChannelGrid grid(1, rows, channels, kCount);
    const ChannelGradients gradients(grid, 1, dtype, kCount);
    Workspace space;
    const int64_t partial_at = sums ? space.add(gradients.workspace_bytes()) : 0,
                  sums_at = fixed ? -1 : space.add(2 * channels * 8);
    return make_kernel(
        [=](const Call& call) {
          const cudaStream_t stream = stream_of(call);
          ChannelStatistics own = statistics;
          own.mean = input<const float>(call, 3), own.second = input<const float>(call, 4);
          const auto *dy = input<const T>(call, 0), *x = input<const T>(call, 1);
          double* const totals = fixed ? nullptr : Workspace::at<double>(call, sums_at);
          if (sums)
            gradients.run(stream, dy, x, own, Workspace::at(call, partial_at),
                          {output<float>(call, 1), accumulates(call, 1)},
                          {output<float>(call, 2), accumulates(call, 2)}, totals);
          if (auto* dx = output<T>(call, 0))
            launch(stream, batchnorm_grad<T, kCount>, grid.size(1), grid, dy, x, own,
                   input<const float>(call, 2), totals, dx);
        },
        space.bytes());
  });
}

}  // namespace cairn::kernels::cuda
