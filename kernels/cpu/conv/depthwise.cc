// Depthwise convolutions, with as many outputs as inputs: blocks of channels of some rows of a picture are copied
// to the workspace, where every tap is the same load elsewhere. Other convolutions in groups of one channel are
// products like any.
#include "kernels/cpu/conv/depthwise.h"

#include <algorithm>

#include "kernels/cpu/conv/shape.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/widened.h"

namespace cairn::kernels::cpu {
namespace {

constexpr int64_t kRows = 16;    // of targets that are computed from one copy
constexpr int64_t kChunks = 16;  // of pictures: each has sums of its own for the gradient of a weight

// One pass over pictures, blocks of rows, blocks of channels.
struct DepthwisePass {
  Pass pass;
  int64_t top = 0, left = 0, height = 1, width = 1;  // of what `rows` target rows read
  int64_t rows = 1, row_blocks = 1;
  std::vector<int64_t> offsets;

  explicit DepthwisePass(const Pass& p) : pass(p) {
    rows = std::min(pass.y.count, kRows);
    row_blocks = (pass.y.count + rows - 1) / rows;
    if (pass.taps.empty()) return;
    int64_t right = left = pass.taps.front().x;
    for (const Tap& tap : pass.taps) left = std::min(left, tap.x), right = std::max(right, tap.x);
    top = pass.taps.front().y;
    height = (rows - 1) * pass.y.advance + pass.taps.back().y - top + 1;
    width = (pass.x.count - 1) * pass.x.advance + right - left + 1;
    for (const Tap& tap : pass.taps) offsets.push_back(((tap.y - top) * width + tap.x - left) * kChannels);
  }
  int64_t taps() const { return static_cast<int64_t>(offsets.size()); }
  int64_t floats() const { return height * width * kChannels; }
  int64_t first(int64_t block) const { return block * rows; }
  int64_t count(int64_t block) const { return std::min(rows, pass.y.count - first(block)); }
  // Of source rows that target rows `block` read.
  void copy(const ConvShape& shape, DType type, const void* source, int64_t picture, int64_t block,
            int64_t channel, float* to) const {
    const int64_t channels = shape.source_channels(),
                  at = picture * shape.source_rows() * shape.source_columns() * channels + channel;
    depthwise_rows({type, static_cast<const char*>(source) + at * dtype_bytes(type), shape.source_rows(),
                    shape.source_columns(), channels, first(block) * pass.y.advance + top, left, height,
                    width, std::min(kChannels, channels - channel)},
                   to);
  }
};

// w[channel, tap] as [block of channels, tap of the pass, channel].
void turn_weight(const float* w, int64_t channels, int64_t taps, const Pass& pass, float* to) {
  const auto count = static_cast<int64_t>(pass.taps.size());
  for (int64_t c = 0; c < round_channels(channels); ++c)
    for (int64_t t = 0; t < count; ++t)
      to[(c / kChannels * count + t) * kChannels + c % kChannels] =
          c < channels ? w[c * taps + pass.taps[static_cast<size_t>(t)].index] : 0.0f;
}

std::unique_ptr<Kernel> make_depthwise(const ConvShape& shape, const Signature& s) {
  struct Part {
    DepthwisePass pass;
    int64_t weight_at;
  };
  const DType type = s.in[0].dtype;
  const int64_t channels = shape.inputs, blocks = round_channels(channels) / kChannels;
  Workspace space;
  const Widened weight(s.in[1], &space);
  std::vector<Part> parts;
  int64_t each = 0;
  for (const Pass& pass : shape.passes()) {
    parts.push_back({DepthwisePass(pass), 0});
    const Part& part = parts.back();
    parts.back().weight_at = space.add(std::max<int64_t>(1, part.pass.taps()) * round_channels(channels) * 4);
    each = std::max(each, align_up(part.pass.floats() * 4, kAlignment));
  }
  const int64_t copies_at = space.add(s.threads * each), bias_at = space.add(round_channels(channels) * 4);
  return make_kernel(
      [=](const Call& call) {
        void* const ws = call.workspace;
        const float *const w = weight.read(data_of(call.in, 1), ws), *const given =
                                                                         shape.transposed
                                                                             ? nullptr
                                                                             : input<const float>(call, 2);
        float* const bias = Workspace::at<float>(ws, bias_at);
        std::fill_n(bias, round_channels(channels), 0.0f);
        if (given != nullptr) std::copy_n(given, channels, bias);
        for (const Part& part : parts) {
          const DepthwisePass& p = part.pass;
          float* const turned = Workspace::at<float>(ws, part.weight_at);
          turn_weight(w, channels, shape.windows.taps(), p.pass, turned);
          parallel_for(
              shape.windows.n * p.row_blocks * blocks, 1, [&](int64_t begin, int64_t end, int thread) {
                float* const mine = Workspace::at<float>(ws, copies_at + thread * each);
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t b = i % blocks, rows = i / blocks % p.row_blocks,
                                n = i / blocks / p.row_blocks;
                  if (p.taps() > 0) p.copy(shape, type, data_of(call.in, 0), n, rows, b * kChannels, mine);
                  for (int64_t r = 0; r < p.count(rows); ++r) {
                    const int64_t y = p.pass.y.first + (p.first(rows) + r) * p.pass.y.step,
                                  pixel =
                                      (n * shape.target_rows() + y) * shape.target_columns() + p.pass.x.first;
                    depthwise_row(
                        {mine + r * p.pass.y.advance * p.width * kChannels, p.offsets.data(), p.taps(),
                         p.pass.x.advance * kChannels, turned + b * p.taps() * kChannels,
                         bias + b * kChannels, p.pass.x.count, std::min(kChannels, channels - b * kChannels),
                         type, output<char>(call, 0) + (pixel * channels + b * kChannels) * dtype_bytes(type),
                         p.pass.x.step * channels});
                  }
                }
              });
        }
      },
      space.bytes());
}

}  // namespace

std::unique_ptr<Kernel> make_conv_depthwise(const Signature& s) {
  if (!conv_fits(s)) return nullptr;
  const ConvShape shape = conv_shape(s);
  return shape.depthwise() ? make_depthwise(shape, s) : nullptr;
}
std::unique_ptr<Kernel> make_conv_transpose_depthwise(const Signature& s) {
  if (!conv_fits(s)) return nullptr;
  const ConvShape shape = conv_transpose_shape(s);
  return shape.depthwise() ? make_depthwise(shape, s) : nullptr;
}

std::unique_ptr<Kernel> make_conv_grad_weight_depthwise(const Signature& s) {
  if (!conv_weight_fits(s)) return nullptr;
  const ConvShape shape = conv_weight_shape(s);
  if (!shape.depthwise()) return nullptr;
  const DType type = s.in[0].dtype;
  const DepthwisePass p(shape.passes()[0]);
  const int64_t channels = shape.inputs, blocks = round_channels(channels) / kChannels,
                pictures = shape.windows.n, chunks = std::min(pictures, kChunks), taps = p.taps();
  Workspace space;
  const int64_t sums_at = space.add(chunks * taps * blocks * kChannels * 4);
  const int64_t x_bytes = align_up(p.floats() * 4, kAlignment),
                each = x_bytes + align_up(p.rows * p.pass.x.count * kChannels * 4, kAlignment),
                copies_at = space.add(s.threads * each);
  return make_kernel(
      [=](const Call& call) {
        void* const ws = call.workspace;
        conv_bias_gradient(call, type, shape.windows.pixels_out(), channels);
        float* const dw = output<float>(call, 0);
        if (dw == nullptr) return;
        float* const sums = Workspace::at<float>(ws, sums_at);
        const char* const dy = input<const char>(call, 1);
        parallel_for(chunks * blocks, 1, [&](int64_t begin, int64_t end, int thread) {
          float* const x_copy = Workspace::at<float>(ws, copies_at + thread * each);
          float* const dy_copy = Workspace::at<float>(ws, copies_at + thread * each + x_bytes);
          for (int64_t i = begin; i < end; ++i) {
            const int64_t chunk = i / blocks, b = i % blocks, channel = b * kChannels;
            float* const mine = sums + i * taps * kChannels;
            std::fill_n(mine, taps * kChannels, 0.0f);
            for (int64_t n = pictures * chunk / chunks; n < pictures * (chunk + 1) / chunks; ++n)
              for (int64_t rows = 0; rows < p.row_blocks; ++rows) {
                p.copy(shape, type, data_of(call.in, 0), n, rows, channel, x_copy);
                const int64_t at = n * shape.target_rows() * shape.target_columns() * channels + channel;
                depthwise_rows({type, dy + at * dtype_bytes(type), shape.target_rows(),
                                shape.target_columns(), channels, p.first(rows), 0, p.count(rows),
                                shape.target_columns(), std::min(kChannels, channels - channel)},
                               dy_copy);
                depthwise_sums({x_copy, dy_copy, p.offsets.data(), taps, p.pass.x.advance * kChannels,
                                p.pass.y.advance * p.width * kChannels, p.count(rows), p.pass.x.count, mine});
              }
          }
        });
        const bool add = accumulates(call, 0);
        parallel_for(channels, row_grain(chunks * taps), [&](int64_t begin, int64_t end, int) {
          for (int64_t c = begin; c < end; ++c)
            for (int64_t t = 0; t < taps; ++t) {
              float* const to = dw + c * taps + p.pass.taps[static_cast<size_t>(t)].index;
              float total = add ? *to : 0.0f;
              for (int64_t chunk = 0; chunk < chunks; ++chunk)
                total += sums[((chunk * blocks + c / kChannels) * taps + t) * kChannels + c % kChannels];
              *to = total;
            }
        });
      },
      space.bytes());
}

}  // namespace cairn::kernels::cpu
