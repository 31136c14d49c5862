// RandAugment (Cubuk et al., 2019) with the ops and magnitudes of torchvision, 31 bins, nearest pixels, black outside.
#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/data/pictures/augment/augment.h"

namespace cairn::data {
namespace {

constexpr double kBins = 30;  // steps from the least magnitude to the most

// x and y of the input for each of the output, from the picture's middle.
struct Affine {
  double xx = 1, xy = 0, x = 0, yx = 0, yy = 1, y = 0;
};

void transform(Picture& picture, const Affine& m) {
  const Picture in = picture;
  const double middle_x = (in.width - 1) / 2.0, middle_y = (in.height - 1) / 2.0;
  for (int row = 0; row < in.height; ++row)
    for (int column = 0; column < in.width; ++column) {
      const double dx = column - middle_x, dy = row - middle_y;
      const double x = std::nearbyint(m.xx * dx + m.xy * dy + m.x + middle_x),
                   y = std::nearbyint(m.yx * dx + m.yy * dy + m.y + middle_y);
      uint8_t* to = picture.at(column, row);
      if (x < 0 || y < 0 || x >= in.width || y >= in.height)
        std::fill_n(to, kColours, uint8_t{0});
      else
        std::copy_n(in.at(static_cast<int>(x), static_cast<int>(y)), kColours, to);
    }
}

void identity(Picture&, double) {}
// Sheared about the picture's corner, as torchvision does.
void shear_x(Picture& p, double by) { transform(p, {1, by, by * (p.height / 2.0), 0, 1, 0}); }
void shear_y(Picture& p, double by) { transform(p, {1, 0, 0, by, 1, by * (p.width / 2.0)}); }
void translate_x(Picture& p, double by) { transform(p, {1, 0, -std::trunc(by), 0, 1, 0}); }
void translate_y(Picture& p, double by) { transform(p, {1, 0, 0, 0, 1, -std::trunc(by)}); }
void rotate(Picture& p, double degrees) {
  const double angle = degrees * 3.14159265358979323846 / 180, c = std::cos(angle), s = std::sin(angle);
  transform(p, {c, -s, 0, s, c, 0});
}
void brightness(Picture& p, double by) { adjust_brightness(p, 1 + by); }
void colour(Picture& p, double by) { adjust_saturation(p, 1 + by); }
void contrast(Picture& p, double by) { adjust_contrast(p, 1 + by); }

void sharpness(Picture& p, double by) {
  if (p.width <= 2 || p.height <= 2) return;
  const Picture in = p;
  const auto rest = static_cast<float>(-by);
  for (int y = 1; y < in.height - 1; ++y)
    for (int x = 1; x < in.width - 1; ++x)
      for (int c = 0; c < kColours; ++c) {
        int sum = 4 * in.at(x, y)[c];
        for (int row = y - 1; row <= y + 1; ++row)
          for (int column = x - 1; column <= x + 1; ++column) sum += in.at(column, row)[c];
        const auto value = static_cast<float>(in.at(x, y)[c]);
        const float blurred = std::nearbyint(static_cast<float>(sum) / 13.0f);
        p.at(x, y)[c] = static_cast<uint8_t>(std::clamp(value + (blurred - value) * rest, 0.0f, 255.0f));
      }
}

void posterize(Picture& p, double bits) {
  const auto mask = static_cast<uint8_t>(0xFF << (8 - static_cast<int>(bits)));
  for (uint8_t& value : p.rgb) value &= mask;
}
void solarize(Picture& p, double threshold) {
  for (uint8_t& value : p.rgb)
    if (value >= threshold * 255) value = static_cast<uint8_t>(255 - value);
}

// Each colour through a table of its own.
template <class Make>
void through_table(Picture& p, const Make& make) {
  for (size_t c = 0; c < kColours; ++c) {
    std::array<int, 256> histogram = {}, table;
    for (size_t i = c; i < p.rgb.size(); i += kColours) ++histogram[p.rgb[i]];
    int last = 255;
    while (last > 0 && histogram[static_cast<size_t>(last)] == 0) --last;
    if (!make(histogram, last, table)) continue;
    for (size_t i = c; i < p.rgb.size(); i += kColours) p.rgb[i] = static_cast<uint8_t>(table[p.rgb[i]]);
  }
}

void auto_contrast(Picture& p, double) {
  through_table(p, [](const auto& histogram, int last, auto& table) {
    int first = 0;
    while (histogram[static_cast<size_t>(first)] == 0) ++first;
    if (first == last) return false;
    const float scale = static_cast<float>(last - first) * static_cast<float>(1.0 / 255);
    for (int v = 0; v < 256; ++v)
      table[static_cast<size_t>(v)] =
          static_cast<int>(std::clamp(static_cast<float>(v - first) / scale, 0.0f, 255.0f));
    return true;
  });
}

void equalize(Picture& p, double) {
  const int pixels = p.width * p.height;
  through_table(p, [&](const auto& histogram, int last, auto& table) {
    const int step = (pixels - histogram[static_cast<size_t>(last)]) / 255;
    if (step == 0) return false;
    int sum = step / 2;
    for (size_t v = 0; v < 256; ++v) {
      table[v] = v == 0 ? 0 : std::min(255, sum / step);
      sum += histogram[v];
    }
    return true;
  });
}

struct Op {
  void (*run)(Picture&, double magnitude);
  double first, last;  // magnitudes, from the least to the most
  bool is_signed = false;
  int of = 0;  // 1: shares of the width; 2: of the height; 3: rounded to a whole number
};
constexpr Op kOps[] = {
    {identity, 0, 0},
    {shear_x, 0, 0.3, true},
    {shear_y, 0, 0.3, true},
    {translate_x, 0, 150.0 / 331, true, 1},
    {translate_y, 0, 150.0 / 331, true, 2},
    {rotate, 0, 30, true},
    {brightness, 0, 0.9, true},
    {colour, 0, 0.9, true},
    {contrast, 0, 0.9, true},
    {sharpness, 0, 0.9, true},
    {posterize, 8, 4, false, 3},
    {solarize, 1, 0},
    {auto_contrast, 0, 0},
    {equalize, 0, 0},
};

}  // namespace

int rand_augment_ops() { return static_cast<int>(std::size(kOps)); }

void rand_augment_op(int number, int bin, bool negative, Picture& picture) {
  const Op& op = kOps[number];
  double magnitude = op.first + (op.last - op.first) * bin / kBins;
  if (op.of == 1) magnitude *= picture.width;
  if (op.of == 2) magnitude *= picture.height;
  if (op.of == 3) magnitude = std::nearbyint(magnitude);
  op.run(picture, op.is_signed && negative ? -magnitude : magnitude);
}

void rand_augment(int ops, int magnitude, Picture& picture, Draws& draws) {
  for (int i = 0; i < ops; ++i) {
    const int number = draws.below(rand_augment_ops());
    rand_augment_op(number, magnitude, draws.unit() < 0.5, picture);
  }
}

}  // namespace cairn::data
