#include <algorithm>
#include <cmath>

#include "runtime/data/pictures/draws.h"
#include "runtime/data/pictures/job.h"

namespace cairn::data {
namespace {

double drawn_normal(Draws& draws) {
  const double radius = std::sqrt(-2 * std::log(1 - draws.unit()));
  return radius * std::cos(2 * 3.14159265358979323846 * draws.unit());
}

// Marsaglia and Tsang, 2000.
double drawn_gamma(double shape, Draws& draws) {
  if (shape < 1) {
    const double u = 1 - draws.unit();
    return drawn_gamma(shape + 1, draws) * std::pow(u, 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = drawn_normal(draws), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - draws.unit()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

double drawn_beta(double shape, Draws& draws) {
  const double a = drawn_gamma(shape, draws), b = drawn_gamma(shape, draws);
  return a + b > 0 ? a / (a + b) : 1;
}

}  // namespace

void mix(const PictureOptions& options, const PictureJob& job, const PictureBatch& out) {
  std::vector<size_t> rows;  // those with a picture
  for (size_t row = 0; row < static_cast<size_t>(job.real); ++row)
    if (job.labels[row] != kNoClass) rows.push_back(row);
  if (rows.empty()) return;
  Draws draws(options.source.seed, Purpose::kMix, job.epoch, job.first);
  const bool cuts = options.cutmix > 0 && (options.mixup == 0 || draws.unit() < 0.5);
  double share = drawn_beta(cuts ? options.cutmix : options.mixup, draws);
  const int width = options.augment.width, height = options.augment.height;
  int left = 0, right = 0, top = 0, bottom = 0;
  if (cuts) {
    const int x = draws.below(width), y = draws.below(height);
    const double half = 0.5 * std::sqrt(1 - share);
    const int across = static_cast<int>(half * width), down = static_cast<int>(half * height);
    left = std::max(0, x - across), right = std::min(width, x + across);
    top = std::max(0, y - down), bottom = std::min(height, y + down);
    share = 1 - static_cast<double>(right - left) * (bottom - top) / (static_cast<double>(width) * height);
  }
  const auto channels = static_cast<size_t>(options.augment.channels),
             line = static_cast<size_t>(width) * channels;
  const size_t numbers = line * static_cast<size_t>(height);
  const auto own = static_cast<float>(share), rest = static_cast<float>(1 - share);
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t row = rows[i], other = rows[(i + rows.size() - 1) % rows.size()];
    if (out.others != nullptr) out.others[row] = job.labels[other];
    if (out.shares != nullptr) out.shares[row] = own;
    if (out.pixels == nullptr) continue;
    const float *from = job.pixels.data() + row * numbers, *mixed = job.pixels.data() + other * numbers;
    float* to = out.pixels + row * numbers;
    if (!cuts) {
      for (size_t k = 0; k < numbers; ++k) to[k] = mixed[k] * rest + from[k] * own;
      continue;
    }
    for (int y = top; y < bottom && left < right; ++y) {
      const size_t at = static_cast<size_t>(y) * line + static_cast<size_t>(left) * channels;
      std::copy_n(mixed + at, static_cast<size_t>(right - left) * channels, to + at);
    }
  }
}

}  // namespace cairn::data
