// Ops that copy rows of channels: pad and patches.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"
#include "runtime/base/spatial.h"

namespace cairn::kernels::cpu {
namespace {

// One axis of y: `before` elements of padding, then those of x.
struct PaddedAxis {
  int64_t before, in, out;
};

// Neighbouring axes of which the inner one has no padding count as one.
std::vector<PaddedAxis> padded_axes(const Signature& s) {
  const Shape &x = s.in[0].shape, &y = s.out[0].shape;
  const std::vector<int64_t> before = s.attrs->list("before");
  std::vector<PaddedAxis> axes;  // innermost first
  for (int i = x.rank - 1; i >= 0; --i) {
    const PaddedAxis a{before[static_cast<size_t>(i)], x[i], y[i]};
    if (!axes.empty() && axes.back().in == axes.back().out) {
      const int64_t inner = axes.back().in;
      axes.back() = {a.before * inner, a.in * inner, a.out * inner};
    } else {
      axes.push_back(a);
    }
  }
  return axes;
}

}  // namespace

std::unique_ptr<Kernel> make_pad(const Signature& s) {
  if (!uniform_fast(s)) return nullptr;
  const DType type = s.in[0].dtype;
  const std::vector<PaddedAxis> axes = padded_axes(s);
  const int64_t width = axes[0].out, rows = s.out[0].shape.elements() / width;
  const auto value = static_cast<float>(s.attrs->real("value"));
  return make_kernel([=](const Call& call) {
    with_float(type, [&](auto zero) {
      using T = decltype(zero);
      const T fill = round_to<T>(value);
      parallel_for(rows, row_grain(width), [&](int64_t b, int64_t e, int) {
        for (int64_t row = b; row < e; ++row) {
          int64_t rest = row, from = 0, step = axes[0].in;
          bool inside = true;
          for (size_t i = 1; i < axes.size(); ++i) {
            const int64_t at = rest % axes[i].out - axes[i].before;
            inside = inside && at >= 0 && at < axes[i].in;
            from += at * step;
            rest /= axes[i].out;
            step *= axes[i].in;
          }
          T* const y = output<T>(call, 0) + row * width;
          const int64_t before = inside ? axes[0].before : width, count = inside ? axes[0].in : 0;
          std::fill_n(y, before, fill);
          if (count > 0) std::copy_n(input<const T>(call, 0) + from, count, y + before);
          std::fill(y + before + count, y + width, fill);
        }
      });
    });
  });
}

std::unique_ptr<Kernel> make_patches(const Signature& s) {
  if (!uniform_fast(s)) return nullptr;
  const Windows all = make_windows(s.in[0].shape, s.attrs->list("kernel"), *s.attrs);
  const int64_t pixel = all.channels * dtype_bytes(s.in[0].dtype), row = all.w.window * pixel,
                patch = all.h.window * row, sample = all.h.in * all.w.in * pixel;
  return make_kernel([=](const Call& call) {
    parallel_for(all.n * all.h.out, row_grain(all.w.out * patch / 4), [&](int64_t b, int64_t e, int) {
      for (int64_t line = b; line < e; ++line) {
        const char* const x = input<const char>(call, 0) + line / all.h.out * sample;
        char* y = output<char>(call, 0) + line * all.w.out * patch;
        for (int64_t j = 0; j < all.w.out; ++j)
          for (int64_t tap = 0; tap < all.h.window; ++tap, y += row) {
            const int64_t i = all.h.at(line % all.h.out, tap);
            const char* const from = x + i * all.w.in * pixel;
            const int64_t first = all.w.at(j, 0);
            if (all.h.inside(i) && first >= 0 && first + all.w.span() <= all.w.in && all.w.dilation == 1) {
              std::memcpy(y, from + first * pixel, static_cast<size_t>(row));
              continue;
            }
            for (int64_t k = 0; k < all.w.window; ++k) {
              const int64_t column = all.w.at(j, k);
              if (all.h.inside(i) && all.w.inside(column))
                std::memcpy(y + k * pixel, from + column * pixel, static_cast<size_t>(pixel));
              else
                std::memset(y + k * pixel, 0, static_cast<size_t>(pixel));
            }
          }
      }
    });
  });
}

}  // namespace cairn::kernels::cpu
