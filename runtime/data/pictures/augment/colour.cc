// Brightness, contrast, saturation and hue, as torchvision's functional has them of tensors of bytes: in float32, multiplied and
// added in one rounding, cut off to bytes.
#include <algorithm>
#include <cmath>

#include "runtime/data/pictures/augment/augment.h"

namespace cairn::data {
namespace {

uint8_t cut(float value) { return static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f)); }

float grey_of(const uint8_t* p) {
  return std::floor(std::fma(static_cast<float>(p[2]), 0.114f,
                             std::fma(static_cast<float>(p[1]), 0.587f, static_cast<float>(p[0]) * 0.2989f)));
}

template <class Change>
void each_pixel(Picture& picture, const Change& change) {
  for (uint8_t* p = picture.rgb.data(); p != picture.rgb.data() + picture.rgb.size(); p += kColours)
    change(p);
}

uint8_t blended(uint8_t value, float other, float factor, float rest) {
  return cut(std::fma(other, rest, static_cast<float>(value) * factor));
}

}  // namespace

void adjust_brightness(Picture& picture, double factor) {
  const auto f = static_cast<float>(factor);
  for (uint8_t& value : picture.rgb) value = cut(static_cast<float>(value) * f);
}

void adjust_contrast(Picture& picture, double factor) {
  double sum = 0;
  each_pixel(picture, [&](const uint8_t* p) { sum += grey_of(p); });
  const auto mean = static_cast<float>(sum / (static_cast<double>(picture.width) * picture.height));
  const auto f = static_cast<float>(factor), rest = static_cast<float>(1 - factor);
  for (uint8_t& value : picture.rgb) value = blended(value, mean, f, rest);
}

void adjust_saturation(Picture& picture, double factor) {
  const auto f = static_cast<float>(factor), rest = static_cast<float>(1 - factor);
  each_pixel(picture, [&](uint8_t* p) {
    const float grey = grey_of(p);
    for (int c = 0; c < kColours; ++c) p[c] = blended(p[c], grey, f, rest);
  });
}

void adjust_hue(Picture& picture, double shift) {
  const auto by = static_cast<float>(shift);
  each_pixel(picture, [&](uint8_t* p) {
    const float r = static_cast<float>(p[0]) / 255.0f, g = static_cast<float>(p[1]) / 255.0f,
                b = static_cast<float>(p[2]) / 255.0f;
    const float most = std::max({r, g, b}), least = std::min({r, g, b}), range = most - least;
    const float divisor = range == 0 ? 1 : range, s = range / (range == 0 ? 1 : most);
    const float rc = (most - r) / divisor, gc = (most - g) / divisor, bc = (most - b) / divisor;
    float h = most == r ? bc - gc : most == g ? rc + 2.0f - bc : gc + 4.0f - rc;
    h = std::fmod(h * (1.0f / 6.0f) + 1.0f, 1.0f) + by;
    h -= std::floor(h);
    const float h6 = h * 6, floor = std::floor(h6), f = h6 - floor, sxf = s * f, rest = 1.0f - s;
    const auto between = [&](float x) { return std::clamp(x * most, 0.0f, 1.0f); };
    const float values[4] = {most, between(rest), between(1.0f - sxf), between(sxf + rest)};  // v p q t
    static constexpr int kSelect[kColours][6] = {{0, 2, 1, 1, 3, 0}, {3, 0, 0, 2, 1, 1}, {1, 1, 3, 0, 0, 2}};
    for (int c = 0; c < kColours; ++c)  // as to_dtype: times the largest number below 256
      p[c] = static_cast<uint8_t>(values[kSelect[c][static_cast<int>(floor) % 6]] * (255.0f + 1.0f - 1e-3f));
  });
}

void jitter(const Augment& a, Picture& picture, Draws& draws) {
  struct Row {
    double range, centre;
    void (*adjust)(Picture&, double);
  };
  Row rows[] = {{a.brightness, 1, adjust_brightness},
                {a.contrast, 1, adjust_contrast},
                {a.saturation, 1, adjust_saturation},
                {a.hue, 0, adjust_hue}};
  if (std::all_of(std::begin(rows), std::end(rows), [](const Row& row) { return row.range == 0; })) return;
  for (int i = 3; i > 0; --i) std::swap(rows[i], rows[draws.below(i + 1)]);
  for (const Row& row : rows) {
    if (row.range == 0) continue;
    const double low = row.centre - row.range;
    row.adjust(picture, draws.between(row.centre == 1 ? std::max(0.0, low) : low, row.centre + row.range));
  }
}

}  // namespace cairn::data
