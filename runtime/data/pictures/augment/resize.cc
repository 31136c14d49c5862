// Pillow's resampling of bytes (Resample.c), to the bit: weights in fixed point, along rows and along columns, each rounded
// to bytes.
#include <algorithm>
#include <cmath>

#include "runtime/data/pictures/augment/augment.h"

namespace cairn::data {
namespace {

constexpr int kWeightBits = 32 - 8 - 2;

double bilinear(double x) {
  x = std::abs(x);
  return x < 1 ? 1 - x : 0;
}
double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}
struct Kernel {
  double (*weight)(double);
  double support;
};
constexpr Kernel kKernels[] = {{bilinear, 1}, {bicubic, 2}};

// Of each number of the output: the first one of the input that counts, and the weights of those.
struct Weights {
  std::vector<int> first, count, weight;
  int most = 0;

  Weights(int in, double begin, double end, int out, Filter filter) {
    const Kernel& kernel = kKernels[static_cast<size_t>(filter)];
    const double scale = (end - begin) / out, wide = std::max(scale, 1.0), support = kernel.support * wide;
    most = static_cast<int>(std::ceil(support)) * 2 + 1;
    weight.resize(static_cast<size_t>(out) * static_cast<size_t>(most));
    std::vector<double> exact(static_cast<size_t>(most));
    for (int i = 0; i < out; ++i) {
      const double centre = begin + (i + 0.5) * scale;
      const int low = std::max(0, static_cast<int>(centre - support + 0.5));
      const int n = std::min(in, static_cast<int>(centre + support + 0.5)) - low;
      double sum = 0;
      for (int k = 0; k < n; ++k)
        sum += exact[static_cast<size_t>(k)] = kernel.weight((k + low - centre + 0.5) / wide);
      for (int k = 0; k < n; ++k) {
        const double w = (sum != 0 ? exact[static_cast<size_t>(k)] / sum : 0) * (1 << kWeightBits);
        weight[static_cast<size_t>(i) * static_cast<size_t>(most) + static_cast<size_t>(k)] =
            static_cast<int>(w < 0 ? w - 0.5 : w + 0.5);
      }
      first.push_back(low);
      count.push_back(n);
    }
  }
  const int* of(int i) const { return weight.data() + static_cast<size_t>(i) * static_cast<size_t>(most); }
};

uint8_t clipped(int sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }
constexpr int kHalf = 1 << (kWeightBits - 1);

Picture along_rows(const Picture& in, const Weights& weights, int width, int first_row, int rows) {
  Picture out(width, rows);
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < width; ++x) {
      const int* w = weights.of(x);
      const uint8_t* from = in.at(weights.first[static_cast<size_t>(x)], first_row + y);
      int sums[kColours] = {kHalf, kHalf, kHalf};
      for (int k = 0; k < weights.count[static_cast<size_t>(x)]; ++k, from += kColours)
        for (int c = 0; c < kColours; ++c) sums[c] += from[c] * w[k];
      for (int c = 0; c < kColours; ++c) out.at(x, y)[c] = clipped(sums[c]);
    }
  return out;
}

Picture along_columns(const Picture& in, const Weights& weights, int height, int first_row) {
  Picture out(in.width, height);
  const int numbers = in.width * kColours;
  std::vector<int> sums(static_cast<size_t>(numbers));
  for (int y = 0; y < height; ++y) {
    std::fill(sums.begin(), sums.end(), kHalf);
    const int* w = weights.of(y);
    for (int k = 0; k < weights.count[static_cast<size_t>(y)]; ++k) {
      const uint8_t* from = in.row(weights.first[static_cast<size_t>(y)] - first_row + k);
      for (int i = 0; i < numbers; ++i) sums[static_cast<size_t>(i)] += from[i] * w[k];
    }
    for (int i = 0; i < numbers; ++i) out.row(y)[i] = clipped(sums[static_cast<size_t>(i)]);
  }
  return out;
}

}  // namespace

Picture resized(const Picture& picture, Box box, PictureSize to, Filter filter) {
  const bool columns = to.width != picture.width || box.left != 0 || box.right != to.width;
  const bool rows = to.height != picture.height || box.top != 0 || box.bottom != to.height;
  const Weights across(picture.width, box.left, box.right, to.width, filter);
  const Weights down(picture.height, box.top, box.bottom, to.height, filter);
  if (!columns) return rows ? along_columns(picture, down, to.height, 0) : picture;
  if (!rows) return along_rows(picture, across, to.width, 0, picture.height);
  // The order of Pillow 13, on which roundings depend.
  if (to.height < picture.height && 2 * (picture.width - to.width) < picture.height - to.height)
    return along_rows(along_columns(picture, down, to.height, 0), across, to.width, 0, to.height);
  const int first = down.first.front(), last = down.first.back() + down.count.back();
  return along_columns(along_rows(picture, across, to.width, first, last - first), down, to.height, first);
}

}  // namespace cairn::data
