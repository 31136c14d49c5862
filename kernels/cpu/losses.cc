// softmax, cross_entropy and mse with their gradients, and accuracy, row by row. Row losses are kept and added up in row
// order, so sums do not depend on the threads.
#include "kernels/cpu/losses.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/rows.h"
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {

LossRow classify(const Targets& t, int64_t row) {
  const int32_t target = t.targets[row];
  float weight = target == t.ignore_index ? 0.0f : t.weights != nullptr ? t.weights[row] : 1.0f;
  const bool valid = target >= 0 && target < t.classes;
  if (t.class_weights != nullptr && valid) weight *= t.class_weights[target];
  if (weight == 0) return {LossRow::kIgnored, 0, 0};
  return {valid ? LossRow::kValid : LossRow::kInvalid, target, weight};
}

double cross_entropy_step(const Targets& t, int64_t row, DType type_x, DType type_d, const void* x, void* d) {
  const LossRow r = classify(t, row);
  if (r.kind == LossRow::kValid)
    return r.weight *
           cross_entropy_row(type_x, type_d, x, t.classes, r.target, r.weight * t.scale, t.smoothing, d);
  const bool ignored = r.kind == LossRow::kIgnored;
  // All bits set is a NaN in both types.
  if (d != nullptr) std::memset(d, ignored ? 0 : 0xff, static_cast<size_t>(t.classes * dtype_bytes(type_d)));
  return ignored ? 0.0 : std::numeric_limits<double>::quiet_NaN();
}

Hit hit_step(const Targets& t, int64_t row, DType type, const void* x, int64_t top) {
  const LossRow r = classify(t, row);
  if (r.kind != LossRow::kValid) return r.kind == LossRow::kIgnored ? Hit::kNone : Hit::kMissed;
  return before_target(type, x, t.classes, r.target, top) < top ? Hit::kHit : Hit::kMissed;
}

void sum_hits(const Hit* of, int64_t rows, double* hits, double* count) {
  int64_t hit = 0, none = 0;
  for (int64_t r = 0; r < rows; ++r) {
    hit += of[r] == Hit::kHit ? 1 : 0;
    none += of[r] == Hit::kNone ? 1 : 0;
  }
  if (hits != nullptr) *hits = static_cast<double>(hit);
  if (count != nullptr) *count = static_cast<double>(rows - none);
}

float gradient_scale(const Call& call, size_t i) {
  const auto* const scale = input<const double>(call, i);
  return scale != nullptr ? static_cast<float>(*scale) : 1.0f;
}

void sum_losses(const Targets& t, int64_t rows, const double* losses, double* loss, double* weight) {
  double total = 0, weights = 0;
  for (int64_t i = 0; i < rows; ++i) {
    total += losses[i];
    weights += classify(t, i).weight;
  }
  if (loss != nullptr) *loss = total;
  if (weight != nullptr) *weight = weights;
}

namespace {

std::unique_ptr<Kernel> make_softmax_any(const Signature& s, bool gradient) {
  if (!uniform_fast(s)) return nullptr;
  const int64_t columns = s.in[0].shape.last(), rows = s.in[0].shape.rows();
  const DType type = s.in[0].dtype;
  const int64_t bytes = columns * dtype_bytes(type);
  return make_kernel([=](const Call& call) {
    parallel_for(rows, row_grain(columns), [&](int64_t b, int64_t e, int) {
      for (int64_t r = b; r < e; ++r) {
        const char* const x = input<const char>(call, 0) + r * bytes;
        const char* const y = gradient ? input<const char>(call, 1) + r * bytes : nullptr;
        char* out = output<char>(call, 0) + r * bytes;
        gradient ? softmax_grad_row(type, x, y, out, columns) : softmax_row(type, x, out, columns);
      }
    });
  });
}

std::unique_ptr<Kernel> make_cross_entropy_any(const Signature& s, bool gradient) {
  if (!fast_float(s.in[0]) || s.in[1].dtype != DType::kI32) return nullptr;
  if (s.has_in(2) && !plain_f32(s.in[2])) return nullptr;
  if (gradient && !fast_float(s.out[2])) return nullptr;
  const DType type_x = s.in[0].dtype, type_d = gradient ? s.out[2].dtype : DType::kF32;
  const int64_t row_x = s.in[0].shape.last() * dtype_bytes(type_x),
                row_d = s.in[0].shape.last() * dtype_bytes(type_d);
  const int64_t classes = s.in[0].shape.last(), rows = s.in[0].shape.rows();
  const int64_t ignore = s.attrs != nullptr ? s.attrs->integer("ignore_index", -100) : -100;
  const float smoothing = s.attrs != nullptr ? static_cast<float>(s.attrs->real("smoothing")) : 0.0f;
  const size_t class_weights = gradient ? 4 : 3;
  if (s.has_in(class_weights) && !plain_f32(s.in[class_weights])) return nullptr;
  return make_kernel(
      [=](const Call& call) {
        const Targets t{input<const int32_t>(call, 1),
                        input<const float>(call, 2),
                        classes,
                        ignore,
                        gradient ? gradient_scale(call, 3) : 1.0f,
                        input<const float>(call, class_weights),
                        smoothing};
        double* losses = static_cast<double*>(call.workspace);
        char* d = gradient ? output<char>(call, 2) : nullptr;
        parallel_for(rows, row_grain(classes), [&](int64_t b, int64_t e, int) {
          for (int64_t r = b; r < e; ++r)
            losses[r] = cross_entropy_step(t, r, type_x, type_d, input<const char>(call, 0) + r * row_x,
                                           d == nullptr ? nullptr : d + r * row_d);
        });
        sum_losses(t, rows, losses, output<double>(call, 0), output<double>(call, 1));
      },
      rows * 8);
}

std::unique_ptr<Kernel> make_accuracy_any(const Signature& s) {
  if (!fast_float(s.in[0]) || s.in[1].dtype != DType::kI32) return nullptr;
  if (s.has_in(2) && !plain_f32(s.in[2])) return nullptr;
  const DType type = s.in[0].dtype;
  const int64_t classes = s.in[0].shape.last(), rows = s.in[0].shape.rows(),
                bytes = classes * dtype_bytes(type);
  const int64_t ignore = s.attrs != nullptr ? s.attrs->integer("ignore_index", -100) : -100;
  const int64_t top = s.attrs != nullptr ? s.attrs->integer("top", 1) : 1;
  return make_kernel(
      [=](const Call& call) {
        const Targets t{input<const int32_t>(call, 1), input<const float>(call, 2), classes, ignore};
        Hit* const of = static_cast<Hit*>(call.workspace);
        parallel_for(rows, row_grain(classes), [&](int64_t b, int64_t e, int) {
          for (int64_t r = b; r < e; ++r)
            of[r] = hit_step(t, r, type, input<const char>(call, 0) + r * bytes, top);
        });
        sum_hits(of, rows, output<double>(call, 0), output<double>(call, 1));
      },
      rows);
}

float read(const void* p, DType type, int64_t i) {
  return with_float(type, [&](auto zero) { return to_float(static_cast<const decltype(zero)*>(p)[i]); });
}
void write(void* p, DType type, int64_t i, float v) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    static_cast<T*>(p)[i] = round_to<T>(v);
  });
}

std::unique_ptr<Kernel> make_mse_any(const Signature& s) {
  if (!fast_float(s.in[0]) || !fast_float(s.in[1])) return nullptr;
  if (s.has_in(2) && !plain_f32(s.in[2])) return nullptr;
  for (size_t i = 2; i < s.out.size(); ++i)
    if (s.has_out(i) && !fast_float(s.out[i])) return nullptr;
  const int64_t columns = s.in[0].shape.last(), rows = s.in[0].shape.rows();
  const DType type_x = s.in[0].dtype, type_y = s.in[1].dtype;
  const DType type_dx = s.has_out(2) ? s.out[2].dtype : DType::kF32,
              type_dy = s.has_out(3) ? s.out[3].dtype : DType::kF32;
  return make_kernel(
      [=](const Call& call) {
        const void *x = data_of(call.in, 0), *y = data_of(call.in, 1);
        const float* weights = input<const float>(call, 2);
        const double scale = gradient_scale(call, 3);
        void *dx = data_of(call.out, 2), *dy = data_of(call.out, 3);
        double* losses = static_cast<double*>(call.workspace);
        parallel_for(rows, row_grain(columns), [&](int64_t b, int64_t e, int) {
          for (int64_t r = b; r < e; ++r) {
            const double w = weights != nullptr ? weights[r] : 1.0;
            double sum = 0;
            for (int64_t i = r * columns; i < (r + 1) * columns; ++i) {
              const double diff = static_cast<double>(read(x, type_x, i)) - read(y, type_y, i);
              sum += diff * diff;
              if (dx != nullptr) write(dx, type_dx, i, static_cast<float>(2 * scale * w * diff));
              if (dy != nullptr) write(dy, type_dy, i, static_cast<float>(-2 * scale * w * diff));
            }
            losses[r] = w == 0 ? 0 : w * sum;
          }
        });
        double total = 0, weight = 0;
        for (int64_t r = 0; r < rows; ++r) {
          total += losses[r];
          weight += weights != nullptr ? weights[r] : 1.0;
        }
        if (double* out = output<double>(call, 0)) *out = total;
        if (double* out = output<double>(call, 1)) *out = weight * static_cast<double>(columns);
      },
      rows * 8);
}

}  // namespace

std::unique_ptr<Kernel> make_softmax(const Signature& s) { return make_softmax_any(s, false); }
std::unique_ptr<Kernel> make_softmax_grad(const Signature& s) { return make_softmax_any(s, true); }
std::unique_ptr<Kernel> make_cross_entropy(const Signature& s) { return make_cross_entropy_any(s, false); }
std::unique_ptr<Kernel> make_cross_entropy_grad(const Signature& s) {
  return make_cross_entropy_any(s, true);
}
std::unique_ptr<Kernel> make_accuracy(const Signature& s) { return make_accuracy_any(s); }
std::unique_ptr<Kernel> make_mse(const Signature& s) { return make_mse_any(s); }
std::unique_ptr<Kernel> make_mse_grad(const Signature& s) { return make_mse_any(s); }

}  // namespace cairn::kernels::cpu
