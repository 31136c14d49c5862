#include "runtime/data/pictures/augment/augment.h"

#include <algorithm>
#include <cmath>

namespace cairn::data {
namespace {

// Python's int(round(x)): half to even.
int rounded(double x) { return static_cast<int>(std::nearbyint(x)); }

Box all_of(PictureSize size) {
  return {0, 0, static_cast<double>(size.width), static_cast<double>(size.height)};
}

// As torchvision's RandomResizedCrop.get_params.
Box random_part(const Augment& a, PictureSize size, Draws& draws) {
  const double area = static_cast<double>(size.width) * size.height;
  const double low = std::log(a.ratio[0]), high = std::log(a.ratio[1]);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double share = area * draws.between(a.scale[0], a.scale[1]),
                 aspect = std::exp(draws.between(low, high));
    const int w = rounded(std::sqrt(share * aspect)), h = rounded(std::sqrt(share / aspect));
    if (w < 1 || h < 1 || w > size.width || h > size.height) continue;
    const double top = draws.below(size.height - h + 1), left = draws.below(size.width - w + 1);
    return {left, top, left + w, top + h};
  }
  const double aspect = static_cast<double>(size.width) / size.height;
  int w = size.width, h = size.height;
  if (aspect < a.ratio[0])
    h = std::max(1, rounded(w / a.ratio[0]));
  else if (aspect > a.ratio[1])
    w = std::max(1, rounded(h * a.ratio[1]));
  const double left = (size.width - w) / 2, top = (size.height - h) / 2;
  return {left, top, left + w, top + h};
}

// The output's part of what was resized: black where that has no pixel.
Picture cropped(const Picture& picture, int left, int top, int width, int height) {
  if (left == 0 && top == 0 && width == picture.width && height == picture.height) return picture;
  Picture out(width, height);
  const int first = std::max(0, -left), last = std::min(width, picture.width - left);
  for (int y = std::max(0, -top); y < std::min(height, picture.height - top) && first < last; ++y)
    std::copy_n(picture.at(left + first, top + y), (last - first) * kColours, out.at(first, y));
  return out;
}

// Cropped, then resized, as torchvision does: what is outside the box has no weight. Boxes of a picture that was decoded smaller are
// no whole pixels.
Picture resized_part(const Picture& picture, Box box, PictureSize to, Filter filter) {
  const int left = static_cast<int>(box.left),
            right = std::min(picture.width, static_cast<int>(std::ceil(box.right)));
  const int top = static_cast<int>(box.top),
            bottom = std::min(picture.height, static_cast<int>(std::ceil(box.bottom)));
  if (right - left == picture.width && bottom - top == picture.height)
    return resized(picture, box, to, filter);
  return resized(cropped(picture, left, top, right - left, bottom - top),
                 {box.left - left, box.top - top, box.right - left, box.bottom - top}, to, filter);
}

}  // namespace

Taken take(const Augment& a, PictureSize size, Draws& draws) {
  if (a.crop == Crop::kRandomResized) return {random_part(a, size, draws), {a.width, a.height}};
  // As torchvision's resize to a number: the shorter side, relative to the output's.
  const double across = a.width * a.resize, down = a.height * a.resize;
  Taken taken{all_of(size), {rounded(across), rounded(down)}};
  if (across * size.height < down * size.width)
    taken.resized.width = std::max(taken.resized.width, static_cast<int>(down * size.width / size.height));
  else
    taken.resized.height =
        std::max(taken.resized.height, static_cast<int>(across * size.height / size.width));
  taken.left = rounded((taken.resized.width - a.width) / 2.0);
  taken.top = rounded((taken.resized.height - a.height) / 2.0);
  if (a.crop == Crop::kPadded) {
    taken.top += draws.below(2 * a.padding + 1) - a.padding;
    taken.left += draws.below(2 * a.padding + 1) - a.padding;
  }
  return taken;
}

int shrink_of(const Taken& taken) {
  const double across = (taken.box.right - taken.box.left) / taken.resized.width,
               down = (taken.box.bottom - taken.box.top) / taken.resized.height;
  int shrink = 8;
  while (shrink > 1 && std::min(across, down) < shrink) shrink /= 2;
  return shrink;
}

void flip(Picture& picture) {
  for (int y = 0; y < picture.height; ++y)
    for (int left = 0, right = picture.width - 1; left < right; ++left, --right)
      std::swap_ranges(picture.at(left, y), picture.at(left, y) + kColours, picture.at(right, y));
}

void apply(const Augment& a, const Taken& taken, PictureSize size, const Picture& picture, Draws& draws,
           float* out) {
  const double across = static_cast<double>(picture.width) / size.width,
               down = static_cast<double>(picture.height) / size.height;
  const Box box = {taken.box.left * across, taken.box.top * down, taken.box.right * across,
                   taken.box.bottom * down};
  Picture made =
      cropped(resized_part(picture, box, taken.resized, a.filter), taken.left, taken.top, a.width, a.height);
  if (a.flip > 0 && draws.unit() < a.flip) flip(made);
  if (a.ops > 0) rand_augment(a.ops, a.magnitude, made, draws);
  jitter(a, made, draws);
  std::array<std::array<float, 256>, kColours> table;
  for (size_t c = 0; c < kColours; ++c)
    for (size_t v = 0; v < 256; ++v)
      table[c][v] = (static_cast<float>(v) / 255.0f - a.mean[c]) / a.deviation[c];
  const uint8_t* from = made.rgb.data();
  const size_t pixels = static_cast<size_t>(a.width) * static_cast<size_t>(a.height);
  for (size_t i = 0; i < pixels; ++i, from += kColours) {
    if (a.channels == 1)  // as Pillow makes grey
      *out++ = table[0][(from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u) >> 16];
    else
      for (size_t c = 0; c < kColours; ++c) *out++ = table[c][from[c]];
  }
}

}  // namespace cairn::data
