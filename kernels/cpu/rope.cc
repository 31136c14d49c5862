// Rotary positions. The angles of one position are worked out once and serve all heads and, where positions are not given,
// all sequences of a share.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {
namespace {

struct Heads {
  int64_t heads, dim, columns;  // of dim columns, the first `columns` turn
  bool interleaved;
};

template <class T>
void turn(const T* x, T* y, const Heads& h, const float* cosines, const float* sines) {
  const int64_t half = h.columns / 2;
  for (int64_t n = 0; n < h.heads; ++n, x += h.dim, y += h.dim) {
    for (int64_t i = 0; i < half; ++i) {
      const float a = to_float(x[i]), b = to_float(x[i + half]);
      y[i] = round_to<T>(a * cosines[i] - b * sines[i]);
      y[i + half] = round_to<T>(b * cosines[i] + a * sines[i]);
    }
    std::copy(x + h.columns, x + h.dim, y + h.columns);
  }
}

template <class T>
void turn_interleaved(const T* x, T* y, const Heads& h, const float* cosines, const float* sines) {
  for (int64_t n = 0; n < h.heads; ++n, x += h.dim, y += h.dim) {
    for (int64_t i = 0; i < h.columns / 2; ++i) {
      const float a = to_float(x[2 * i]), b = to_float(x[2 * i + 1]);
      y[2 * i] = round_to<T>(a * cosines[i] - b * sines[i]);
      y[2 * i + 1] = round_to<T>(b * cosines[i] + a * sines[i]);
    }
    std::copy(x + h.columns, x + h.dim, y + h.columns);
  }
}

}  // namespace

std::unique_ptr<Kernel> make_rope(const Signature& s) {
  const bool given = s.has_in(1);
  if (!fast_float(s.in[0]) || s.out[0].dtype != s.in[0].dtype || s.in[0].shape.rank < 2) return nullptr;
  const Shape& shape = s.in[0].shape;
  const int64_t heads = s.attrs->integer("heads"), width = shape.last(), dim = width / heads;
  const Heads of{heads, dim, s.attrs->integer("columns", dim), s.attrs->integer("interleaved") != 0};
  const int64_t half = of.columns / 2, length = shape[-2], batch = shape.elements() / (length * width);
  const bool inverse = s.attrs->integer("inverse") != 0;
  const DType type = s.in[0].dtype;
  std::vector<double> turns = s.attrs->reals("frequencies");
  const double base = s.attrs->real("base", 10000.0), factor = s.attrs->real("factor", 1.0);
  if (turns.empty())
    for (int64_t i = 0; i < half; ++i)
      turns.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(of.columns)));
  const int64_t share = align_up(of.columns * 4, kAlignment);
  return make_kernel(
      [=](const Call& call) {
        const auto* const positions = given ? input<const int32_t>(call, 1) : nullptr;
        parallel_for(length, row_grain(width * batch), [&](int64_t b, int64_t e, int thread) {
          float* cosines = reinterpret_cast<float*>(static_cast<char*>(call.workspace) + thread * share);
          float* sines = cosines + half;
          const auto set_angles = [&](int64_t position) {
            for (int64_t i = 0; i < half; ++i) {
              const double angle = static_cast<double>(position) * turns[static_cast<size_t>(i)];
              cosines[i] = static_cast<float>(factor * std::cos(angle));
              sines[i] = static_cast<float>(factor * (inverse ? -std::sin(angle) : std::sin(angle)));
            }
          };
          int64_t set =
              -1;  // rows of one position often follow one another: those of a batch that is not packed
          bool any = false;
          for (int64_t t = b; t < e; ++t)
            for (int64_t n = 0; n < batch; ++n) {
              const int64_t row = n * length + t, position = positions != nullptr ? positions[row] : t;
              if (!any || position != set) set_angles(position);
              set = position, any = true;
              with_float(type, [&](auto zero) {
                using T = decltype(zero);
                (of.interleaved ? turn_interleaved<T> : turn<T>)(input<const T>(call, 0) + row * width,
                                                                 output<T>(call, 0) + row * width, of,
                                                                 cosines, sines);
              });
            }
        });
      },
      share * s.threads);
}

}  // namespace cairn::kernels::cpu
