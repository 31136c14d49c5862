#include "kernels/cpu/conv/slab.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/gemm/bf16/gemm.h"
#include "kernels/cpu/gemm/bf16/split_tile.h"

namespace cairn::kernels::cpu {
namespace {

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

// Rows of a product of all pixels: long, but as many as keep the threads busy.
int64_t row_of_pixels(int64_t pixels, int threads) {
  return std::clamp<int64_t>(round_up(ceil_div(pixels, 8 * threads), 16), 16, 256);
}

}  // namespace

Slab::Slab(const ConvShape& shape, const Pass& pass, int64_t channels, DType type, int threads)
    : pictures_(shape.windows.n),
      rows_(pass.y.count),
      columns_(pass.x.count),
      source_rows_(shape.source_rows()),
      source_columns_(shape.source_columns()),
      source_channels_(shape.source_channels()),
      channels_(channels),
      type_(type),
      parts_(type == DType::kBF16 ? 1 : 3),
      one_tap_(pass.taps.size() == 1),
      advance_x_(pass.x.advance),
      advance_y_(pass.y.advance) {
  top_ = pass.taps.front().y, left_ = pass.taps.front().x, below_ = pass.taps.back().y - top_;
  int64_t right = left_;
  for (const Tap& tap : pass.taps) left_ = std::min(left_, tap.x), right = std::max(right, tap.x);
  const bool every_pixel = pass.x.step == 1 && pass.y.step == 1 && advance_x_ == 1 && advance_y_ == 1 &&
                           rows_ == source_rows_ && columns_ == source_columns_;
  if (one_tap_ && every_pixel && top_ == 0 && left_ == 0) {
    flat_ = true;
    pixels_ = pictures_ * rows_ * columns_;
    columns_ = source_columns_ = row_of_pixels(pixels_, threads);
    rows_ = source_rows_ = ceil_div(pixels_, columns_);
    pictures_ = 1;
  }
  width_ = (columns_ - 1) * advance_x_ + right - left_ + 1;
  const int64_t last_y = (rows_ - 1) * advance_y_ + top_ + below_;
  const bool inside = top_ >= 0 && left_ >= 0 && last_y < source_rows_ && left_ + width_ <= source_columns_;
  direct_ = type == DType::kBF16 && channels % kTileK == 0 && inside && (flat_ || !one_tap_);
  if (direct_) {
    grid_.pixel = source_channels_ * 2;
    grid_.row = source_columns_ * grid_.pixel;
    return;
  }
  if (one_tap_) {
    fold_x_ = advance_x_, fold_y_ = advance_y_;
    advance_x_ = advance_y_ = 1;
    width_ = columns_;
  }
  head_ = std::clamp<int64_t>(ceil_div(-left_, fold_x_), 0, width_);
  end_ = std::clamp<int64_t>(ceil_div(source_columns_ - left_, fold_x_), head_, width_);
  shared_ = std::min(head_, width_ - end_);
  // Taps of few channels are read together, so pixels lie close. Else rows of a tile should not all lie in one set
  // of a cache.
  grid_.pixel = channels * 2;
  if (channels % kTileK == 0 && grid_.pixel % 512 == 0) grid_.pixel += 64;
  grid_.row = (width_ - shared_) * grid_.pixel;
}

int64_t Slab::bytes_of_rows(int64_t rows) const {
  const int64_t most = std::min(pictures_, (rows + rows_ - 2) / rows_ + 1);
  int64_t all = 0;
  for (const int64_t pictures : {int64_t{1}, most}) {
    const int64_t high = rows * advance_y_ + pictures * (below_ + 1 - advance_y_);
    all = std::max(all, bytes(high) + (pictures - 1) * (bytes(0) + kAlignment));
  }
  return align_up(all, kAlignment);
}

#if defined(__x86_64__)
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,f16c")
namespace {

inline __m512 load(const float* p, __mmask16 mask) { return _mm512_maskz_loadu_ps(mask, p); }
inline __m512 load(const f16* p, __mmask16 mask) {
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, p));
}

template <class T>
inline void split_row(const T* from, int64_t count, char* to, int64_t plane) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = first_of(count - i);
    __m512 v = load(from + i, mask);
#pragma GCC unroll 3
    for (int64_t level = 0; level < 3; ++level) {
      const __m256bh top = _mm512_cvtneps_pbh(v);
      const __m256i& bits = reinterpret_cast<const __m256i&>(top);
      _mm256_mask_storeu_epi16(to + level * plane + i * 2, mask, bits);
      v = _mm512_sub_ps(v, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16)));
    }
  }
}
// Few bytes mostly, for which a call would take longer.
inline void copy_bf16(const char* from, int64_t bytes, char* to) {
  if (bytes > 512) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  for (; bytes >= 64; bytes -= 64, from += 64, to += 64) _mm512_storeu_si512(to, _mm512_loadu_si512(from));
  if (bytes > 0) {
    const auto mask = static_cast<__mmask32>((1u << (bytes / 2)) - 1);
    _mm512_mask_storeu_epi16(to, mask, _mm512_maskz_loadu_epi16(mask, from));
  }
}
inline void copy_row(DType type, const char* from, int64_t count, char* to, int64_t plane) {
  if (type == DType::kBF16)
    copy_bf16(from, count * 2, to);
  else if (type == DType::kF16)
    split_row(reinterpret_cast<const f16*>(from), count, to, plane);
  else
    split_row(reinterpret_cast<const float*>(from), count, to, plane);
}

}  // namespace

void Slab::fill(const void* source, int64_t picture, int64_t begin, int64_t end, int64_t first,
                char* to) const {
  const int64_t bytes = dtype_bytes(type_), pixel = source_channels_ * bytes,
                height = this->height(end - begin);
  const auto zero = [&](int64_t at, int64_t columns) {
    for (int part = 0; part < parts_; ++part)
      std::memset(to + part * grid_.plane + at, 0, static_cast<size_t>(columns * grid_.pixel));
  };
  const bool dense = fold_x_ == 1 && channels_ == source_channels_ && grid_.pixel == channels_ * 2;
  int64_t y = begin * (one_tap_ ? fold_y_ : advance_y_) + top_;
  for (int64_t r = 0; r < height; ++r, y += fold_y_) {
    const int64_t at = r * grid_.row;
    if (y < 0 || y >= source_rows_) {
      zero(at, width_);
      continue;
    }
    const int64_t tail = flat_ ? std::min(end_, pixels_ - y * source_columns_) : end_;
    zero(at, head_);
    zero(at + tail * grid_.pixel, width_ - tail);
    const char* from = static_cast<const char*>(source) +
                       ((picture * source_rows_ + y) * source_columns_ + left_ + head_ * fold_x_) * pixel +
                       first * bytes;
    char* into = to + at + head_ * grid_.pixel;
    if (dense) {
      copy_row(type_, from, (tail - head_) * channels_, into, grid_.plane);
      continue;
    }
    constexpr int64_t kAhead = 8;  // pixels
    for (int64_t c = head_; c < tail; ++c, from += fold_x_ * pixel, into += grid_.pixel) {
      for (int64_t line = 0; line < channels_ * bytes; line += 64)
        __builtin_prefetch(from + kAhead * fold_x_ * pixel + line);
      copy_row(type_, from, channels_, into, grid_.plane);
    }
  }
  for (int part = 0; part < parts_; ++part)
    std::memset(to + part * grid_.plane + height * grid_.row + shared_ * grid_.pixel, 0, kTail);
}
HWY_POP_ATTRIBUTES
#else
void Slab::fill(const void*, int64_t, int64_t, int64_t, int64_t, char*) const {}
#endif

}  // namespace cairn::kernels::cpu
