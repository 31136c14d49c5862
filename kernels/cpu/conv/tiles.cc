// Convolutions on the AMX tiles, without patches: sixteen target pixels of a row are a tile of the left operand
// wherever a tap reads them, so that the sum over taps and channels is one long product with the packed weight.
// bfloat16 is multiplied as it is, float32 and float16 in three parts. Every sum has the order of taps and
// channels, whoever computes it.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/conv/slab.h"
#include "kernels/cpu/conv/store.h"
#include "kernels/cpu/conv/tile_products.h"
#include "kernels/cpu/gemm/bf16/amx_tiles.h"
#include "kernels/cpu/gemm/bf16/gemm.h"
#include "kernels/cpu/gemm/bf16/split_tile.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/widened.h"

#if defined(__x86_64__)
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")

namespace cairn::kernels::cpu {
namespace {

constexpr int64_t kStrips =
    4;  // of pixels, whose sums are kept near while shares of the taps are summed; two for one share
// What the second cache keeps: of a thread's block of pixels, and of panels of the weight that these are
// multiplied by in turn.
constexpr int64_t kSlabBytes = 768 << 10, kPanelBytes = 512 << 10;
constexpr int64_t kShare = 18, kSplitShare = 9;  // steps of a panel that the first cache keeps
constexpr int64_t kSumBytes = kStrips * 16 * kPanel * 4;

// Taps that are read together: their channels are neighbours.
struct Segment {
  int64_t tap, taps, count, step;  // first of the pass, how many; numbers; first step
};

// One pass: what each of its products reads, and the way through its pixels.
class TilePass {
 public:
  TilePass(const ConvShape& shape, const Pass& pass, DType type, int threads)
      : shape_(shape),
        pass_(pass),
        type_(type),
        k_(shape.transposed ? shape.group_outputs() : shape.group_inputs()),
        n_(shape.transposed ? shape.group_inputs() : shape.group_outputs()),
        slab_(shape, pass, k_, type, threads) {
    const auto taps = static_cast<int64_t>(pass_.taps.size());
    for (int64_t t = 0, next; t < taps; t = next) {
      for (next = t + 1; k_ % kTileK != 0 && next < taps && follows(t, next); ++next) {
      }
      segments_.push_back({t, next - t, (next - t) * k_, steps()});
      for (int64_t j = 0; j < segments_.back().count; j += kTileK)
        offsets_.push_back(slab_.offset(tap(t)) + j * 2);
    }
    // Target rows whose pixels one tile takes.
    const int64_t columns = slab_.columns(0), down = slab_.advance_y() * slab_.grid().row,
                  across = slab_.advance_x() * slab_.grid().pixel;
    if (down % across == 0 && columns <= 16 && !slab_.flat())
      down_ = down / across, span_ = std::max<int64_t>(1, (16 - columns) / down_ + 1);
    block_rows_ = span_;
    const int64_t all = slab_.pictures() * slab_.rows();
    while (block_rows_ < all &&
           slab_.parts() * slab_.bytes_of_rows(std::min(all, 2 * block_rows_)) <= kSlabBytes)
      block_rows_ = std::min(all, 2 * block_rows_);
    if (steps() <= kShare) strips_ = 2;
    slab_.set_plane(slab_.direct() ? 0 : slab_.bytes_of_rows(block_rows_));
  }

  int64_t weight_bytes() const { return shape_.groups * panels(n_) * panel_bytes(); }
  int64_t slab_bytes() const { return slab_.parts() * slab_.grid().plane; }

  void pack(const float* w, char* to) const {
    parallel_for(shape_.groups * panels(n_), 1, [&](int64_t b, int64_t e, int) {
      for (int64_t p = b; p < e; ++p)
        slab_.parts() == 1 ? pack_panel<1>(w, p / panels(n_), p % panels(n_), to + p * panel_bytes())
                           : pack_panel<3>(w, p / panels(n_), p % panels(n_), to + p * panel_bytes());
    });
  }

  // each: bytes of a thread's space.
  void run(const void* source, const char* weights, const float* bias, char* target, char* space,
           int64_t each) const {
    parallel_for(slab_.pictures() * slab_.rows(), 1, [&](int64_t begin, int64_t end, int thread) {
      char* const mine = space + thread * each;
      const int64_t blocks = (end - begin + block_rows_ - 1) / block_rows_, count = end - begin;
      for (int64_t g = 0; g < shape_.groups; ++g)
        for (int64_t b = 0; b < blocks; ++b)
          block(source, weights + g * panels(n_) * panel_bytes(), bias, target, g, begin + count * b / blocks,
                begin + count * (b + 1) / blocks, mine);
      _tile_release();
    });
  }

 private:
  struct Strip {
    const char* a;
    int64_t target, rows, pixels, loaded;  // the first target pixel; loaded: pixels with those between rows
  };
  // Strips of target rows [row, end), one after the other.
  struct Walk {
    int64_t row, end, column = 0;
    const char* picture;  // where the first tap of the first row of this picture's part reads
    int64_t first;        // that row
  };

  const Tap& tap(int64_t t) const { return pass_.taps[static_cast<size_t>(t)]; }
  bool follows(int64_t first, int64_t next) const {
    return tap(next).y == tap(first).y && tap(next).x == tap(first).x + next - first;
  }
  int64_t steps() const { return static_cast<int64_t>(offsets_.size()); }
  int64_t half_bytes() const { return steps() * slab_.parts() * kTileBytes; }
  int64_t panel_bytes() const { return 2 * half_bytes(); }

  // Two halves of 16 columns, each with its steps, each with its parts.
  template <int kParts>
  void pack_panel(const float* w, int64_t g, int64_t panel, char* to) const {
    const int64_t taps = shape_.windows.taps();
    for (int64_t half = 0; half < 2; ++half)
      for (const Segment& s : segments_)
        for (int64_t j = 0; j < s.count; j += kTileK, to += kParts * kTileBytes) {
          const int64_t column = panel * kPanel + half * 16, columns = n_ - column, left = s.count - j;
          const Tap& first = tap(s.tap);
          if (!shape_.transposed && in_order(s))
            split_tile<kParts>(w + ((g * n_ + column) * taps + first.index) * k_ + j, taps * k_, true, false,
                               columns, left, to);
          else if (shape_.transposed && s.taps == 1)
            split_tile<kParts>(w + ((g * k_ + j) * taps + first.index) * n_ + column, taps * n_, false, false,
                               columns, left, to);
          else
            split_gathered<kParts>(w, g, s, j, column, to);
        }
  }
  bool in_order(const Segment& s) const {
    return tap(s.tap + s.taps - 1).index == tap(s.tap).index + s.taps - 1;
  }
  template <int kParts>
  void split_gathered(const float* w, int64_t g, const Segment& s, int64_t j, int64_t column,
                      char* to) const {
    float values[kTileK * 16] = {};
    const int64_t taps = shape_.windows.taps();
    for (int64_t i = 0; i < std::min(kTileK, s.count - j); ++i)
      for (int64_t c = 0; c < std::min<int64_t>(16, n_ - column); ++c) {
        const int64_t index = tap(s.tap + (j + i) / k_).index, k = (j + i) % k_, n = column + c;
        values[i * 16 + c] = shape_.transposed ? w[((g * k_ + k) * taps + index) * n_ + n]
                                               : w[((g * n_ + n) * taps + index) * k_ + k];
      }
    split_tile<kParts>(values, 16, false, false, 16, kTileK, to);
  }

  Walk walk(const void* source, const char* slab, int64_t g, int64_t begin, int64_t end) const {
    const int64_t first = begin % slab_.rows();
    return {begin, end, 0, slab_.direct() ? slab_.place(source, begin / slab_.rows(), first, g * k_) : slab,
            first};
  }
  // The next strips, at most strips_; 0: all are done.
  int64_t take(const void* source, int64_t g, Walk* w, Strip* strips) const {
    int64_t count = 0;
    while (count < strips_ && w->row < w->end) {
      const int64_t picture = w->row / slab_.rows(), row = w->row % slab_.rows(),
                    part_end = std::min(w->end, (picture + 1) * slab_.rows());
      const int64_t columns = slab_.columns(row), strips_of_row = (columns + 15) / 16;
      Strip& s = strips[count++];
      s.a = w->picture + (row - w->first) * slab_.advance_y() * slab_.grid().row +
            w->column * slab_.advance_x() * slab_.grid().pixel;
      s.target = target_pixel(w->row, w->column);
      s.rows = std::min(span_, part_end - w->row);
      // Strips of a row are as even as they can be.
      s.pixels = slab_.flat() ? std::min<int64_t>(16, columns - w->column)
                              : columns * (strip_of(w->column, columns, strips_of_row) + 1) / strips_of_row -
                                    w->column;
      s.loaded = s.pixels + (s.rows - 1) * down_;
      w->column += s.pixels;
      if (w->column < columns) continue;
      w->column = 0;
      w->row += s.rows;
      if (w->row < part_end || w->row == w->end) continue;
      w->picture = slab_.direct() ? slab_.place(source, picture + 1, 0, g * k_)
                                  : w->picture + slab_.bytes(slab_.height(row + s.rows - w->first));
      w->first = 0;
    }
    return count;
  }
  static int64_t strip_of(int64_t column, int64_t columns, int64_t strips) {
    return (column * strips + columns - 1) / columns;
  }

  void block(const void* source, const char* weights, const float* bias, char* target, int64_t g,
             int64_t begin, int64_t end, char* mine) const {
    char* const slab = mine + kSumBytes;
    if (!slab_.direct()) slab_.fill_rows(source, begin, end, g * k_, slab);
    const int64_t all = panels(n_), near = std::clamp<int64_t>(kPanelBytes / panel_bytes(), 1, all);
    TileRows rows;
    for (int64_t p0 = 0; p0 < all; p0 += near) {
      Walk w = walk(source, slab, g, begin, end);
      Strip strips[kStrips];
      while (const int64_t count = take(source, g, &w, strips)) {
        for (int64_t p = p0; p < std::min(all, p0 + near); ++p) {
          sum(strips, count, weights + p * panel_bytes(), reinterpret_cast<float*>(mine), &rows);
          for (int64_t i = 0; i < count; ++i)
            store(strips[i], reinterpret_cast<const float*>(mine) + i * 16 * kPanel, bias, target,
                  g * n_ + p * kPanel, std::min(kPanel, n_ - p * kPanel));
        }
      }
    }
  }

  // Of a panel and strips, into sums of 16 rows each.
  void sum(const Strip* strips, int64_t count, const char* panel, float* sums, TileRows* rows) const {
    const int64_t parts = slab_.parts(), share = parts == 1 ? kShare : kSplitShare;
    for (int64_t s = 0; s < steps(); s += share)
      for (int64_t i = 0; i < count; i += 2) {
        const bool two = i + 1 < count;
        rows->set(strips[i].loaded, two ? strips[i + 1].loaded : 0);
        const StripProduct product{.a0 = strips[i].a,
                                   .a1 = two ? strips[i + 1].a : nullptr,
                                   .a_row = slab_.advance_x() * slab_.grid().pixel,
                                   .a_plane = slab_.grid().plane,
                                   .offsets = offsets_.data() + s,
                                   .b = panel + s * parts * kTileBytes,
                                   .b_half = half_bytes(),
                                   .steps = std::min(share, steps() - s),
                                   .c = sums + i * 16 * kPanel,
                                   .pitch = kPanel * 4,
                                   .add = s > 0};
        parts == 1 ? multiply_strips<1>(product) : multiply_strips<3>(product);
      }
  }

  void store(const Strip& s, const float* sums, const float* bias, char* target, int64_t channel,
             int64_t columns) const {
    const int64_t bytes = dtype_bytes(type_), pixel = shape_.target_channels() * bytes,
                  down = pass_.y.step * shape_.target_columns() * pixel, across = pass_.x.step * pixel;
    if (bias != nullptr) bias += channel;
    char* row = target + s.target * pixel + channel * bytes;
    for (int64_t r = 0; r < s.rows; ++r, row += down, sums += down_ * kPanel) {
      if (type_ == DType::kBF16 && columns == kPanel)
        store_bf16(sums, s.pixels, bias, row, across);
      else
        store_sums(type_, sums, s.pixels, columns, bias, row, across / bytes);
    }
  }
  static void store_bf16(const float* c, int64_t rows, const float* bias, char* to, int64_t pitch) {
    __m512 low = _mm512_setzero_ps(), high = low;
    if (bias != nullptr) low = _mm512_loadu_ps(bias), high = _mm512_loadu_ps(bias + 16);
    for (int64_t r = 0; r < rows; ++r, to += pitch, c += kPanel) {
      const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_add_ps(_mm512_loadu_ps(c + 16), high),
                                                _mm512_add_ps(_mm512_loadu_ps(c), low));
      _mm512_storeu_si512(to, reinterpret_cast<const __m512i&>(both));
    }
  }
  int64_t target_pixel(int64_t row, int64_t column) const {
    if (slab_.flat()) return row * slab_.columns(0) + column;
    const int64_t y = pass_.y.first + row % slab_.rows() * pass_.y.step;
    return (row / slab_.rows() * shape_.target_rows() + y) * shape_.target_columns() + pass_.x.first +
           column * pass_.x.step;
  }

  ConvShape shape_;
  Pass pass_;
  DType type_;
  int64_t k_, n_;  // channels of a group
  Slab slab_;
  std::vector<Segment> segments_;
  std::vector<int64_t> offsets_;  // of each step
  int64_t span_ = 1, down_ = 0;   // target rows of a strip; pixels of the slab from one to the next
  int64_t block_rows_, strips_ = kStrips;
};

// Pixels that no tap reaches.
void zero_pass(const ConvShape& shape, const Pass& pass, DType type, char* target) {
  const int64_t bytes = shape.target_channels() * dtype_bytes(type);
  parallel_for(shape.windows.n * pass.y.count, 1, [&](int64_t b, int64_t e, int) {
    for (int64_t r = b; r < e; ++r)
      for (int64_t i = 0; i < pass.x.count; ++i) {
        const int64_t row =
            r / pass.y.count * shape.target_rows() + pass.y.first + r % pass.y.count * pass.y.step;
        std::memset(target + (row * shape.target_columns() + pass.x.first + i * pass.x.step) * bytes, 0,
                    static_cast<size_t>(bytes));
      }
  });
}

std::unique_ptr<Kernel> make_tiles(const ConvShape& shape, const Signature& s) {
  const DType type = s.in[0].dtype;
  struct Part {
    TilePass pass;
    int64_t weight_at;
  };
  struct All {
    std::vector<Part> parts;
    std::vector<Pass> empty;
  };
  auto all = std::make_shared<All>();
  Workspace space;
  const Widened weight(s.in[1], &space);
  int64_t each = 0;
  for (const Pass& pass : shape.passes()) {
    if (pass.taps.empty()) {
      all->empty.push_back(pass);
      continue;
    }
    TilePass tiles(shape, pass, type, s.threads);
    each = std::max(each, kSumBytes + tiles.slab_bytes());
    const int64_t at = space.add(tiles.weight_bytes());
    all->parts.push_back({std::move(tiles), at});
  }
  const int64_t threads_at = space.add(s.threads * each);
  const bool bias = !shape.transposed;
  return make_kernel(
      [=](const Call& call) {
        void* const ws = call.workspace;
        const float* const w = weight.read(data_of(call.in, 1), ws);
        char* const y = output<char>(call, 0);
        for (const Part& part : all->parts) part.pass.pack(w, Workspace::at<char>(ws, part.weight_at));
        for (const Part& part : all->parts)
          part.pass.run(data_of(call.in, 0), Workspace::at<char>(ws, part.weight_at),
                        bias ? input<const float>(call, 2) : nullptr, y, Workspace::at<char>(ws, threads_at),
                        each);
        for (const Pass& pass : all->empty) zero_pass(shape, pass, type, y);
      },
      space.bytes());
}

}  // namespace
}  // namespace cairn::kernels::cpu
HWY_POP_ATTRIBUTES;  // what asks for the instruction set runs on any processor
#endif

namespace cairn::kernels::cpu {
#if defined(__x86_64__)
std::unique_ptr<Kernel> make_conv_tiles(const Signature& s) {
  return has_amx() && conv_fits(s) ? make_tiles(conv_shape(s), s) : nullptr;
}
std::unique_ptr<Kernel> make_conv_transpose_tiles(const Signature& s) {
  return has_amx() && conv_fits(s) ? make_tiles(conv_transpose_shape(s), s) : nullptr;
}
#else
std::unique_ptr<Kernel> make_conv_tiles(const Signature&) { return nullptr; }
std::unique_ptr<Kernel> make_conv_transpose_tiles(const Signature&) { return nullptr; }
#endif
}  // namespace cairn::kernels::cpu
