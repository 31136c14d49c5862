// Convolutions whose groups have few channels, depthwise ones above all: a thread has one pixel of a channel, or of neighbouring
// channels, and goes over the taps. Neighbouring threads have neighbouring channels.
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/pictures/conv.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// kCount > 1: groups are one channel each. weight: columns of taps.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads)
    conv_direct(ConvSizes z, const T* __restrict__ x, const float* __restrict__ weight, const float* bias,
                T* y) {
  const ConvLine h = conv_line(z.h, z.transposed, static_cast<int>(blockIdx.y) / z.w.phases),
                 w = conv_line(z.w, z.transposed, static_cast<int>(blockIdx.y) % z.w.phases);
  const int across = z.channels_out() / kCount;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, row = thread / across;
  if (row >= static_cast<int64_t>(z.n) * h.count * w.count) return;
  const int channel = static_cast<int>(thread - row * across) * kCount;
  const ConvRow r = conv_row(z, h, w, static_cast<int>(row));
  x += kCount > 1 ? channel : channel / z.columns * z.depth;
  Group<kCount> sum = {};
  if (bias != nullptr)
    for (int i = 0; i < kCount; ++i) sum.at[i] = bias[channel + i];
  for (int i = 0; i < h.taps; ++i) {
    const int at_h = r.h * h.step + h.base + h.read_offset(i);
    if (at_h < 0 || at_h >= z.h.from) continue;
    for (int j = 0; j < w.taps; ++j) {
      const int at_w = r.w * w.step + w.base + w.read_offset(j);
      if (at_w < 0 || at_w >= z.w.from) continue;
      const T* const from =
          x + ((static_cast<int64_t>(r.n) * z.h.from + at_h) * z.w.from + at_w) * z.channels_in();
      const float* own = weight +
                         static_cast<int64_t>(h.tap(i) * z.w.window + w.tap(j)) * z.depth * z.channels_out() +
                         channel;
      if constexpr (kCount > 1) {
        const Group<kCount> v = read<kCount>(from), factor = read<kCount>(own);
        for (int e = 0; e < kCount; ++e) sum.at[e] = fmaf(v.at[e], factor.at[e], sum.at[e]);
      } else {
        for (int c = 0; c < z.depth; ++c, own += z.channels_out())
          sum.at[0] = fmaf(load(from + c), *own, sum.at[0]);
      }
    }
  }
  write(y + written_pixel(z, h, w, r) * z.channels_out() + channel, sum);
}

// Of kSlots places (taps, channels of the group) of 32 outputs, over a part of the pixels: lanes are outputs.
constexpr int kSlots = 4, kWarps = kThreads / kWarp;

template <class T>
__global__ void __launch_bounds__(kThreads)
    conv_gradient_direct(ConvSizes z, int pixels, int across, const T* __restrict__ x,
                         const T* __restrict__ dy, PartSums out) {
  CAIRN_SHARED float shared[kWarps][kSlots][kWarp];
  const ConvLine h = conv_line(z.h, false, 0), w = conv_line(z.w, false, 0);
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int first = static_cast<int>(blockIdx.x) % across * kWarp,
            first_slot = static_cast<int>(blockIdx.x) / across * kSlots, length = z.length();
  const bool inside = first + lane < z.channels_out();
  const int output = inside ? first + lane : 0;
  int down[kSlots], right[kSlots], channel[kSlots];
  CAIRN_UNROLL
  for (int s = 0; s < kSlots; ++s) {
    const ConvPlace place = conv_place(first_slot + s < length ? first_slot + s : 0, z.depth, w.taps);
    down[s] = h.base + h.read_offset(place.h), right[s] = w.base + w.read_offset(place.w);
    channel[s] = output / z.columns * z.depth + place.channel;
  }
  const auto cut = [&](unsigned part) {
    return static_cast<int>(static_cast<int64_t>(pixels) * part / gridDim.y);
  };
  float sums[kSlots] = {};
  const int end = cut(blockIdx.y + 1);
  for (int pixel = cut(blockIdx.y) + warp; pixel < end && inside; pixel += kWarps) {
    const ConvRow r = conv_row(z, h, w, pixel);
    const float d = load(dy + static_cast<int64_t>(pixel) * z.channels_out() + output);
    CAIRN_UNROLL
    for (int s = 0; s < kSlots; ++s) {
      const int at_h = r.h * h.step + down[s], at_w = r.w * w.step + right[s];
      if (at_h >= 0 && at_h < z.h.from && at_w >= 0 && at_w < z.w.from)
        sums[s] = fmaf(
            d,
            load(x + ((static_cast<int64_t>(r.n) * z.h.from + at_h) * z.w.from + at_w) * z.channels_in() +
                 channel[s]),
            sums[s]);
    }
  }
  for (int s = 0; s < kSlots; ++s) shared[warp][s][lane] = sums[s];
  __syncthreads();
  if (warp >= kSlots || first_slot + warp >= length || !inside) return;
  float sum = 0;
  for (int each = 0; each < kWarps; ++each) sum += shared[each][warp][lane];
  float* const to =
      out.to + (static_cast<int64_t>(blockIdx.y) * z.channels_out() + output) * length + first_slot + warp;
  *to = out.add ? *to + sum : sum;
}

// Groups too small for tiles of a product.
bool fits(const ConvSizes& z) { return z.groups > 1 && (z.depth < 8 || z.columns < 8); }

template <class T, int kCount>
std::unique_ptr<Kernel> make_of(const ConvCall& c) {
  const WeightOrder order = columns_of_taps(c.z);
  const int64_t threads = int64_t{c.z.rows()} * (c.z.channels_out() / kCount);
  const LaunchSize size{
      .blocks = (threads + kThreads - 1) / kThreads, .threads = kThreads, .blocks_y = c.z.phases()};
  return make_kernel(
      [=](const Call& call) {
        auto* const w = static_cast<float*>(call.workspace);
        reorder_weight(stream_of(call), order, c.weight, data_of(call.in, 1), DType::kF32, w);
        launch(stream_of(call), conv_direct<T, kCount>, size, c.z, input<const T>(call, 0), w, c.bias(call),
               output<T>(call, 0));
      },
      order.count * 4);
}

std::unique_ptr<Kernel> make_direct(const Signature& s, bool transposed) {
  ConvCall c;
  if (!conv_call(s, transposed, &c) || !fits(c.z)) return nullptr;
  return with_float(c.type, [&](auto zero) {
    using T = decltype(zero);
    const bool vectors = c.z.depth == 1 && c.z.columns == 1 && c.z.groups % 4 == 0;
    return vectors ? make_of<T, 4>(c) : make_of<T, 1>(c);
  });
}

}  // namespace

std::unique_ptr<Kernel> make_conv_direct(const Signature& s) { return make_direct(s, false); }
std::unique_ptr<Kernel> make_conv_transpose_direct(const Signature& s) { return make_direct(s, true); }

std::unique_ptr<Kernel> make_conv_grad_weight_direct(const Signature& s) {
  ConvGradient found;
  if (!conv_gradient(s, &found) || !fits(found.z)) return nullptr;
  const int across = (found.z.channels_out() - 1) / kWarp + 1;
  const int64_t blocks = int64_t{across} * ((found.z.length() - 1) / kSlots + 1);
  cut_into_parts(blocks, 16 * kWarps, &found);
  return with_float(found.type, [&](auto zero) {
    using T = decltype(zero);
    return make_gradient_kernel(found, [g = found, across, blocks](const Call& call, const PartSums& sums) {
      launch(stream_of(call), conv_gradient_direct<T>,
             {.blocks = blocks, .threads = kThreads, .blocks_y = g.parts}, g.z, g.pixels, across,
             input<const T>(call, 0), input<const T>(call, 1), sums);
    });
  });
}

}  // namespace cairn::kernels::cuda
