// The pixels that a convolution multiplies, as float32 rows for a product of any kind.
#pragma once
#include "kernels/cpu/conv/shape.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {

// Walks over the target pixels of a pass, counted by picture, then row, then column.
class PassPixels {
 public:
  PassPixels(const Pass& pass, int64_t first)
      : pass_(pass),
        x_(first % pass.x.count),
        y_(first / pass.x.count % pass.y.count),
        n_(first / pass.x.count / pass.y.count) {}
  void next() {
    if (++x_ < pass_.x.count) return;
    x_ = 0;
    if (++y_ == pass_.y.count) y_ = 0, ++n_;
  }
  int64_t picture() const { return n_; }
  int64_t source_y(const Tap& tap) const { return y_ * pass_.y.advance + tap.y; }
  int64_t source_x(const Tap& tap) const { return x_ * pass_.x.advance + tap.x; }
  int64_t target(int64_t rows, int64_t columns) const {
    return (n_ * rows + pass_.y.first + y_ * pass_.y.step) * columns + pass_.x.first + x_ * pass_.x.step;
  }

 private:
  const Pass& pass_;
  int64_t x_, y_, n_;
};

struct PatchSource {
  DType type;
  const void* data;
  int64_t rows, columns, channels;
  int64_t first, count;  // channels that are read
};

// Patches [begin, end) of a pass: a row of taps x count numbers each, zero where there is no pixel.
inline void read_patches(const PatchSource& s, const Pass& pass, int64_t begin, int64_t end, float* to) {
  PassPixels at(pass, begin);
  const int64_t bytes = dtype_bytes(s.type);
  for (int64_t p = begin; p < end; ++p, at.next())
    for (const Tap& tap : pass.taps) {
      const int64_t y = at.source_y(tap), x = at.source_x(tap);
      if (y >= 0 && y < s.rows && x >= 0 && x < s.columns) {
        const int64_t pixel = (at.picture() * s.rows + y) * s.columns + x;
        convert(s.type, DType::kF32, false,
                static_cast<const char*>(s.data) + (pixel * s.channels + s.first) * bytes, to, s.count);
      } else {
        std::fill_n(to, s.count, 0.0f);
      }
      to += s.count;
    }
}

}  // namespace cairn::kernels::cpu
