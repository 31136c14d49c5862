// The part of a source that a block of target pixels reads, as bfloat16 that tiles of the left operand are loaded
// from: pixels in rows with the padding written out, so that tap (y, x) of a row of target pixels is the same load
// elsewhere. float32 and float16 are split in three parts (gemm/amx_f32.h), each in a plane of its own.
#pragma once
#include <algorithm>

#include "kernels/cpu/conv/shape.h"

namespace cairn::kernels::cpu {

// Where pixels of bfloat16 lie: bytes.
struct PixelGrid {
  int64_t pixel = 0, row = 0, plane = 0;
};

class Slab {
 public:
  // Of one pass and of `channels` of the source's. With one tap the slab has the pixels that are read, no others.
  Slab(const ConvShape& shape, const Pass& pass, int64_t channels, DType type, int threads);

  // The target as this sees it: a product of all pixels (1 x 1) is one picture of rows as long as tiles like.
  int64_t pictures() const { return pictures_; }
  int64_t rows() const { return rows_; }
  int64_t columns(int64_t row) const {
    return flat_ ? std::min(columns_, pixels_ - row * columns_) : columns_;
  }
  bool flat() const { return flat_; }
  // Pixels of the slab from a target pixel to the next, and rows likewise.
  int64_t advance_x() const { return advance_x_; }
  int64_t advance_y() const { return advance_y_; }
  // Bytes from what a target pixel reads first to what it reads at a tap.
  int64_t offset(const Tap& tap) const {
    return one_tap_ ? 0 : (tap.y - top_) * grid_.row + (tap.x - left_) * grid_.pixel;
  }
  const PixelGrid& grid() const { return grid_; }
  int parts() const { return parts_; }

  // Nothing is copied: bfloat16 whose taps are all inside.
  bool direct() const { return direct_; }
  // Rows that `rows` target rows of one picture need; bytes of one plane with so many.
  int64_t height(int64_t rows) const { return (rows - 1) * advance_y_ + below_ + 1; }
  int64_t bytes(int64_t height) const {
    return align_up((height * grid_.row) + shared_ * grid_.pixel + kTail, kAlignment);
  }
  // Bytes of a plane for any `rows` target rows that follow each other, over several pictures.
  int64_t bytes_of_rows(int64_t rows) const;
  void set_plane(int64_t bytes) { grid_.plane = bytes; }
  // Copies for target rows [begin, end), counted over all pictures, one picture after the other.
  void fill_rows(const void* source, int64_t begin, int64_t end, int64_t first, char* to) const {
    for (int64_t row = begin, next; row < end; row = next) {
      const int64_t picture = row / rows_;
      next = std::min(end, (picture + 1) * rows_);
      fill(source, picture, row % rows_, row % rows_ + next - row, first, to);
      to += bytes(height(next - row));
    }
  }
  // Copies for target rows [begin, end) of a picture, channels from `first` on.
  void fill(const void* source, int64_t picture, int64_t begin, int64_t end, int64_t first, char* to) const;
  // Where the first tap of target row `row` of a picture reads, of a direct source.
  const char* place(const void* source, int64_t picture, int64_t row, int64_t first) const {
    const int64_t y = row * advance_y_ + top_;
    return static_cast<const char*>(source) +
           (((picture * source_rows_ + y) * source_columns_ + left_) * source_channels_ + first) * 2;
  }

 private:
  static constexpr int64_t kTail = 64;  // a tile's row may begin at the last number

  int64_t pictures_, rows_, columns_, pixels_ = 0;
  int64_t source_rows_, source_columns_, source_channels_, channels_;
  DType type_;
  int parts_;
  bool flat_ = false, one_tap_ = false, direct_ = false;
  int64_t advance_x_, advance_y_;
  int64_t fold_x_ = 1, fold_y_ = 1;  // of the source, from a pixel of the slab to the next
  int64_t top_, left_,
      below_;  // first row and column of the source that are read; rows from the first tap to the last
  int64_t width_, head_, end_;  // columns of a row of the slab; [head_, end_) of them are of the source
  int64_t shared_ = 0;          // columns of zeros that end a row and begin the next one
  PixelGrid grid_;
};

}  // namespace cairn::kernels::cpu
