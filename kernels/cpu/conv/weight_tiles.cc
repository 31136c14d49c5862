// Gradients of the weights of convolutions on the AMX tiles: dw = dy^T x for each tap, summed over pixels, a
// thousand at a time. dy is transposed once for all threads; a thread has channels of x, and makes pairs of pixels
// of them for one tap after the other.
#include <algorithm>

#include "kernels/cpu/conv/slab.h"
#include "kernels/cpu/conv/tile_products.h"
#include "kernels/cpu/gemm/bf16/gemm.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"

#if defined(__x86_64__)
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")

namespace cairn::kernels::cpu {
namespace {

constexpr int64_t kOutputs = 256;  // whose transposed dy the second cache keeps
constexpr int64_t kPixels = 1024;  // that are summed between two loads of dw, about

class WeightTiles {
 public:
  WeightTiles(const ConvShape& shape, DType type, int threads)
      : shape_(shape),
        pass_(shape.passes()[0]),
        depth_(shape.group_inputs()),
        outputs_(shape.group_outputs()),
        channels_(depth_ % kTileK == 0 ? kPanel : depth_),
        // The same rows, and so the same sums, whatever the number of threads.
        slab_(shape, pass_, channels_, type, 4) {
    rows_ = std::clamp<int64_t>(kPixels / slab_.columns(0), 1, all_rows());
    steps_ = round_up(rows_ * slab_.columns(0), kTileK) / kTileK;
    slab_.set_plane(slab_.direct() ? 0 : slab_.bytes_of_rows(rows_));
    find_columns();
    const int64_t units = shape.groups * (depth_ / channels_), blocks = (outputs_ + 31) / 32;
    output_shares_ = std::clamp<int64_t>((2 * threads + units - 1) / units, 1, blocks);
    if (units % threads == 0) output_shares_ = 1;
    for (int64_t s = 0; s < steps_; ++s) offsets_.push_back(s * slab_.parts() * kTileBytes);

    dy_at_ = space_.add(shape.groups * blocks_of_a(outputs_) * strip());
    slab_at_ = align_up(32 * kPanel * 4, kAlignment);
    pairs_at_ = slab_at_ + slab_.parts() * slab_.grid().plane;
    pixels_at_ = pairs_at_ + 2 * strip();
    each_ = align_up(pixels_at_ + steps_ * kTileK * 8, kAlignment);
    threads_at_ = space_.add(threads * each_);
  }
  int64_t workspace_bytes() const { return space_.bytes(); }

  void run(const void* x, const void* dy, float* dw, bool add, void* ws) const {
    char* const turned = Workspace::at<char>(ws, dy_at_);
    const int64_t blocks = blocks_of_a(outputs_) / 2 + blocks_of_a(outputs_) % 2,
                  units = shape_.groups * (depth_ / channels_);
    int64_t pixel = 0;
    for (int64_t row = 0; row < all_rows(); row += rows_) {
      const int64_t end = std::min(all_rows(), row + rows_);
      int64_t count = 0;
      for (int64_t r = row; r < end; ++r) count += slab_.columns(r % slab_.rows());
      const int64_t steps = round_up(count, kTileK) / kTileK;
      parallel_for(steps, 1, [&](int64_t b, int64_t e, int) {
        for (int64_t s = b; s < e; ++s) turn(dy, pixel, count, s, turned);
      });
      parallel_for(units * output_shares_, 1, [&](int64_t b, int64_t e, int thread) {
        char* const mine = Workspace::at<char>(ws, threads_at_) + thread * each_;
        find_pixels(row, end, reinterpret_cast<int64_t*>(mine + pixels_at_));
        int64_t filled = -1;
        for (int64_t i = b; i < e; ++i) {
          const int64_t unit = i / output_shares_, share = i % output_shares_,
                        o0 = blocks * share / output_shares_ * 32,
                        o1 = std::min(outputs_, blocks * (share + 1) / output_shares_ * 32);
          const Part part{
              unit / (depth_ / channels_), unit % (depth_ / channels_) * channels_, o0, o1, count, steps};
          const int64_t first = part.group * depth_ + part.channel;
          if (!slab_.direct() && filled != unit) slab_.fill_rows(x, row, end, first, mine + slab_at_);
          filled = unit;
          const char* from = slab_.direct() ? slab_.place(x, row / slab_.rows(), row % slab_.rows(), first)
                                            : mine + slab_at_;
          sum(part, from, turned + part.group * blocks_of_a(outputs_) * strip(), dw, add || row > 0, mine);
        }
      });
      pixel += count;
    }
  }

 private:
  // 32 columns of dw at most: neighbours of one tap or, where there are few channels, of several.
  struct Columns {
    int64_t offset, first,
        count;  // bytes from a pixel's first tap; of a row of dw, from the part's channel on
  };
  struct Part {
    int64_t group, channel, o0, o1, pixels, steps;
  };

  int64_t all_rows() const { return slab_.pictures() * slab_.rows(); }
  int64_t strip() const { return steps_ * slab_.parts() * kTileBytes; }

  void find_columns() {
    const auto taps = static_cast<int64_t>(pass_.taps.size());
    for (int64_t t = 0, next; t < taps; t = next) {
      const Tap& tap = pass_.taps[static_cast<size_t>(t)];
      for (next = t + 1; channels_ % kTileK != 0 && next < taps; ++next) {
        const Tap& other = pass_.taps[static_cast<size_t>(next)];
        if (other.y != tap.y || other.x != tap.x + next - t) break;
      }
      const int64_t count = (next - t) * channels_;
      for (int64_t j = 0; j < count; j += kPanel)
        columns_.push_back({slab_.offset(tap) + j * 2, tap.index * depth_ + j, std::min(kPanel, count - j)});
    }
  }

  // Step s of dy's pixels, transposed: all outputs of a row of memory in turn.
  void turn(const void* dy, int64_t pixel, int64_t count, int64_t s, char* to) const {
    const int64_t from = (pixel + s * kTileK) * shape_.outputs, left = count - s * kTileK,
                  blocks = blocks_of_a(outputs_);
    for (int64_t group = 0; group < shape_.groups; ++group)
      for (int64_t g = 0; g < blocks; ++g) {
        const int64_t at = from + group * outputs_ + g * 16;
        char* const tile = to + (group * blocks + g) * strip() + s * slab_.parts() * kTileBytes;
        if (slab_.parts() == 1)
          pack_a_transposed(static_cast<const bf16*>(dy) + at, shape_.outputs, outputs_ - g * 16,
                            std::min(kTileK, left), reinterpret_cast<bf16*>(tile), 0, 1);
        else
          split_tile<3>(static_cast<const float*>(dy) + at, shape_.outputs, false, true, outputs_ - g * 16,
                        left, tile);
      }
  }

  // Where each pixel reads its first tap, in bytes.
  void find_pixels(int64_t row, int64_t end, int64_t* to) const {
    const int64_t down = slab_.advance_y() * slab_.grid().row,
                  across = slab_.advance_x() * slab_.grid().pixel;
    int64_t base = 0;
    for (int64_t next; row < end; row = next) {
      const int64_t picture = row / slab_.rows();
      next = std::min(end, (picture + 1) * slab_.rows());
      for (int64_t r = row; r < next; ++r)
        for (int64_t i = 0; i < slab_.columns(r % slab_.rows()); ++i)
          *to++ = base + (r - row) * down + i * across;
      base += slab_.direct() ? (slab_.place(nullptr, picture + 1, 0, 0) -
                                slab_.place(nullptr, picture, row % slab_.rows(), 0))
                             : slab_.bytes(slab_.height(next - row));
    }
  }

  // Pairs of pixels by 32 columns, in two halves, each with its steps, each with its parts.
  void make_pairs(const char* from, const int64_t* pixels, const Part& part, char* to) const {
    const __m512i low = _mm512_load_si512(kPairsLow), high = _mm512_load_si512(kPairsHigh);
    const int64_t parts = slab_.parts(), plane = slab_.grid().plane, half = strip(), count = part.pixels;
    for (int64_t s = 0; s < part.steps; ++s, pixels += kTileK)
      for (int64_t level = 0; level < parts; ++level, to += kTileBytes) {
        const char* const at = from + level * plane;
        const int64_t left = count - s * kTileK;
        for (int64_t p = 0; p < kTileK; p += 2) {
          const __m512i r0 = p < left ? _mm512_loadu_si512(at + pixels[p]) : _mm512_setzero_si512();
          const __m512i r1 = p + 1 < left ? _mm512_loadu_si512(at + pixels[p + 1]) : _mm512_setzero_si512();
          _mm512_storeu_si512(to + p * 32, _mm512_permutex2var_epi16(r0, low, r1));
          _mm512_storeu_si512(to + half + p * 32, _mm512_permutex2var_epi16(r0, high, r1));
        }
      }
  }

  void sum(const Part& part, const char* from, const char* turned, float* dw, bool add, char* mine) const {
    const int64_t row = shape_.windows.taps() * depth_;  // of dw
    float* const edge = reinterpret_cast<float*>(mine);
    char* const pairs = mine + pairs_at_;
    const auto* pixels = reinterpret_cast<const int64_t*>(mine + pixels_at_);
    TileRows rows;
    for (int64_t o0 = part.o0; o0 < part.o1; o0 += kOutputs)
      for (const Columns& c : columns_) {
        make_pairs(from + c.offset, pixels, part, pairs);
        for (int64_t o = o0; o < std::min(part.o1, o0 + kOutputs); o += 32) {
          const int64_t left = part.o1 - o, need0 = std::min<int64_t>(16, left),
                        need1 = std::clamp<int64_t>(left - 16, 0, 16);
          rows.set(need0, need1);
          float* const to = dw + (part.group * outputs_ + o) * row + part.channel + c.first;
          const char* const a = turned + o / 16 * strip();
          StripProduct product{a,
                               need1 > 0 ? a + strip() : nullptr,
                               64,
                               kTileBytes,
                               offsets_.data(),
                               pairs,
                               strip(),
                               part.steps,
                               to,
                               row * 4,
                               add};
          const bool full = c.count == kPanel;
          if (!full) product.c = edge, product.pitch = kPanel * 4, product.add = false;
          slab_.parts() == 1 ? multiply_strips<1>(product) : multiply_strips<3>(product);
          if (full) continue;
          for (int64_t r = 0; r < need0 + need1; ++r)
            for (int64_t j = 0; j < c.count; ++j)
              to[r * row + j] = add ? to[r * row + j] + edge[r * kPanel + j] : edge[r * kPanel + j];
        }
      }
    _tile_release();
  }

  ConvShape shape_;
  Pass pass_;
  int64_t depth_, outputs_;  // of a group
  int64_t channels_;         // of a unit
  Slab slab_;
  int64_t rows_, steps_;  // target rows whose pixels are summed at once; of 32 pixels
  int64_t output_shares_;
  std::vector<Columns> columns_;
  std::vector<int64_t> offsets_;
  Workspace space_;
  int64_t dy_at_, slab_at_, pairs_at_, pixels_at_, each_, threads_at_;
};

}  // namespace
}  // namespace cairn::kernels::cpu
HWY_POP_ATTRIBUTES;  // what asks for the instruction set runs on any processor
#endif

namespace cairn::kernels::cpu {
#if defined(__x86_64__)
std::unique_ptr<Kernel> make_conv_grad_weight_tiles(const Signature& s) {
  if (!has_amx() || !conv_weight_fits(s) || s.in[0].dtype == DType::kF16) return nullptr;
  const ConvShape shape = conv_weight_shape(s);
  const DType type = s.in[0].dtype;
  auto tiles = std::make_shared<WeightTiles>(shape, type, s.threads);
  return make_kernel(
      [=](const Call& call) {
        conv_bias_gradient(call, type, shape.windows.pixels_out(), shape.outputs);
        if (float* dw = output<float>(call, 0))
          tiles->run(data_of(call.in, 0), data_of(call.in, 1), dw, accumulates(call, 0), call.workspace);
      },
      tiles->workspace_bytes());
}
#else
std::unique_ptr<Kernel> make_conv_grad_weight_tiles(const Signature&) { return nullptr; }
#endif
}  // namespace cairn::kernels::cpu
