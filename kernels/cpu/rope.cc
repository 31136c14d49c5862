// Rotary positions. The angles of one position are worked out once and serve all heads and all sequences of a
// share.
#include <cmath>
#include <vector>

#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {
namespace {

template <class T>
void turn(const T* x, T* y, int64_t heads, int64_t dim, const float* cosines, const float* sines) {
  const int64_t half = dim / 2;
  for (int64_t h = 0; h < heads; ++h, x += dim, y += dim)
    for (int64_t i = 0; i < half; ++i) {
      const float a = to_float(x[i]), b = to_float(x[i + half]);
      y[i] = round_to<T>(a * cosines[i] - b * sines[i]);
      y[i + half] = round_to<T>(b * cosines[i] + a * sines[i]);
    }
}

}  // namespace

std::unique_ptr<Kernel> make_rope(const Signature& s) {
  if (!uniform_fast(s) || s.in[0].shape.rank < 2) return nullptr;
  const Shape& shape = s.in[0].shape;
  const int64_t heads = s.attrs->integer("heads"), width = shape.last(), dim = width / heads, half = dim / 2;
  const int64_t length = shape[-2], batch = shape.elements() / (length * width);
  const bool inverse = s.attrs->integer("inverse") != 0;
  const DType type = s.in[0].dtype;
  std::vector<double> turns(static_cast<size_t>(half));
  const double base = s.attrs->real("base", 10000.0);
  for (int64_t i = 0; i < half; ++i)
    turns[static_cast<size_t>(i)] = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(dim));
  const int64_t share = align_up(dim * 4, kAlignment);
  return make_kernel(
      [=](const Call& call) {
        parallel_for(length, row_grain(width * batch), [&](int64_t b, int64_t e, int thread) {
          float* cosines = reinterpret_cast<float*>(static_cast<char*>(call.workspace) + thread * share);
          float* sines = cosines + half;
          for (int64_t t = b; t < e; ++t) {
            for (int64_t i = 0; i < half; ++i) {
              const double angle = static_cast<double>(t) * turns[static_cast<size_t>(i)];
              cosines[i] = static_cast<float>(std::cos(angle));
              sines[i] = static_cast<float>(inverse ? -std::sin(angle) : std::sin(angle));
            }
            for (int64_t n = 0; n < batch; ++n) {
              const int64_t at = (n * length + t) * width;
              with_float(type, [&](auto zero) {
                using T = decltype(zero);
                turn(input<const T>(call, 0) + at, output<T>(call, 0) + at, heads, dim, cosines, sines);
              });
            }
          }
        });
      },
      share * s.threads);
}

}  // namespace cairn::kernels::cpu
