// The fused loss on a part of a vocabulary. Its logits are computed three times: for the largest logit, for the sum of
// exponentials and for the gradients, with the bits that linear_cross_entropy.cc gives for the full vocabulary.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/losses.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/vocabulary/logits.h"
#include "kernels/cpu/vocabulary/products.h"
#include "kernels/cpu/widened.h"

namespace cairn::kernels::cpu {
namespace {

// What the parts of a row hand on.
struct Seen {
  float largest, at_target, before_target, not_a_number;
};
constexpr float kLowest = -3.0e38f;

using MakeProducts = std::unique_ptr<HeadProducts> (*)(const Signature&, bool gradients);
std::unique_ptr<HeadProducts> by_floats(const Signature& s, bool gradients) {
  if (!fast_float(s.in[0]) || !float_weight(s.in[1], s.in[0].dtype)) return nullptr;
  return float_products(s, gradients);
}
std::unique_ptr<HeadProducts> by_bf16(const Signature& s, bool gradients) {
  if (!has_bf16_products() || !is_bf16(s.in[0]) || !float_weight(s.in[1], s.in[0].dtype)) return nullptr;
  return bf16_products(s, gradients, false);
}

// Calls step(row, its logits, thread) for every row of all chunks, and done(its first row) after each chunk.
template <class Step, class Done>
void each_row(const HeadProducts& products, const LogitRows& shape, const Call& call, const Step& step,
              const Done& done) {
  const HeadSizes& z = products.z;
  products.begin(call);
  for (int64_t r = 0; r < z.rows; r += z.chunk) {
    char* const logits = products.logits(call, r);
    parallel_for(z.count(r), row_grain(z.n), [&](int64_t b, int64_t e, int thread) {
      for (int64_t i = b; i < e; ++i) {
        char* const row = logits + i * z.ld * dtype_bytes(z.logits);
        shape.make(call, row, thread);
        step(r + i, row, thread);
      }
    });
    done(r);
  }
}

float logit_at(DType type, const char* row, int64_t i) {
  return type == DType::kBF16 ? to_float(reinterpret_cast<const bf16*>(row)[i])
                              : reinterpret_cast<const float*>(row)[i];
}

bool any_nan(DType type, const char* row, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (std::isnan(logit_at(type, row, i))) return true;
  return false;
}

std::unique_ptr<Kernel> make_max(const Signature& s, MakeProducts make) {
  if (!s.has_in(2) || s.in[2].dtype != DType::kI32 || !plain_f32(s.out[0])) return nullptr;
  std::shared_ptr<HeadProducts> products = make(s, false);
  if (products == nullptr) return nullptr;
  const LogitRows shape(s, products->z, false, &products->space);
  const bool accuracy = s.attrs->integer("accuracy") != 0;
  const int64_t bytes = products->space.bytes();
  return make_kernel(
      [=](const Call& call) {
        const HeadSizes& z = products->z;
        const auto* const before = input<const Seen>(call, 3);
        const auto step = [&](int64_t r, const char* row, int) {
          Seen seen = before != nullptr ? before[r] : Seen{kLowest, 0, accuracy ? kLowest : 0, 0};
          const int64_t target = input<const int32_t>(call, 2)[r] - z.first;
          seen.largest = largest_of(z.logits, row, z.n, seen.largest);
          if (target >= 0 && target < z.n) seen.at_target = logit_at(z.logits, row, target);
          if (accuracy) {
            const int64_t left = std::clamp<int64_t>(target, 0, z.n);
            if (left > 0) seen.before_target = largest_of(z.logits, row, left, seen.before_target);
            if (any_nan(z.logits, row, z.n)) seen.not_a_number = 1;
          }
          output<Seen>(call, 0)[r] = seen;
        };
        each_row(*products, shape, call, step, [](int64_t) {});
      },
      bytes);
}

std::unique_ptr<Kernel> make_sum(const Signature& s, MakeProducts make) {
  if (!plain_f32(s.in[2])) return nullptr;
  std::shared_ptr<HeadProducts> products = make(s, false);
  if (products == nullptr) return nullptr;
  const LogitRows shape(s, products->z, false, &products->space);
  const int64_t bytes = products->space.bytes();
  return make_kernel(
      [=](const Call& call) {
        const HeadSizes& z = products->z;
        const auto* const seen = input<const Seen>(call, 2);
        const auto* const before = input<const double>(call, 3);
        const auto* const open = input<const float>(call, 4);
        auto* const rest = output<float>(call, 1);
        const bool last = z.first + z.n == z.vocab;
        const auto step = [&](int64_t r, const char* row, int) {
          float terms[kOpenTerms] = {};
          if (open != nullptr) std::copy_n(open + r * kOpenTerms, kOpenTerms, terms);
          output<double>(call, 0)[r] =
              sum_exponentials(z.logits, row, z.first, z.n, last || rest == nullptr, seen[r].largest,
                               before != nullptr ? before[r] : 0, terms);
          if (rest != nullptr) std::copy_n(terms, kOpenTerms, rest + r * kOpenTerms);
        };
        each_row(*products, shape, call, step, [](int64_t) {});
      },
      bytes);
}

std::unique_ptr<Kernel> make_part(const Signature& s, MakeProducts make) {
  if (s.in[2].dtype != DType::kI32 || (s.has_in(3) && !plain_f32(s.in[3])) || !plain_f32(s.in[4]))
    return nullptr;
  if ((s.has_out(0) && !plain_f32(s.out[0])) || (s.has_out(1) && !plain_f32(s.out[1]))) return nullptr;
  std::shared_ptr<HeadProducts> products = make(s, true);
  if (products == nullptr) return nullptr;
  const LogitRows shape(s, products->z, true, &products->space);
  const int64_t bytes = products->space.bytes();
  return make_kernel(
      [=](const Call& call) {
        const HeadSizes& z = products->z;
        const Targets t{input<const int32_t>(call, 2), input<const float>(call, 3), z.vocab, z.ignore,
                        gradient_scale(call, 6)};
        const auto* const seen = input<const Seen>(call, 4);
        const auto* const sum = input<const double>(call, 5);
        const auto* const before = input<const float>(call, 7);
        float *const dx = output<float>(call, 0), *const dw = output<float>(call, 1);
        const int64_t size = dtype_bytes(z.logits);
        const auto step = [&](int64_t r, char* row, int thread) {
          const LossRow of = classify(t, r);
          const int64_t target = of.target - z.first;
          if (of.kind == LossRow::kValid)
            cross_entropy_part(z.logits, row, z.n, seen[r].largest, sum[r], target < z.n ? target : -1,
                               seen[r].at_target, of.weight * t.scale);
          else  // all bits set is a NaN in both types
            std::memset(row, of.kind == LossRow::kIgnored ? 0 : 0xff, static_cast<size_t>(z.n * size));
          shape.slope(call, row, thread);
          std::fill(row + z.n * size, row + z.ld * size, 0);
        };
        const auto done = [&](int64_t r) {
          float* const to = dx + r * z.width;
          if (dx != nullptr) {
            if (before != nullptr)
              std::memcpy(to, before + r * z.width, static_cast<size_t>(z.count(r) * z.width * 4));
            products->input_gradient(call, r, to, before != nullptr);
          }
          if (dw != nullptr) products->weight_gradient(call, r, dw, r > 0 || accumulates(call, 1));
        };
        each_row(*products, shape, call, step, done);
      },
      bytes);
}

}  // namespace

std::unique_ptr<Kernel> make_linear_cross_entropy_max_bf16(const Signature& s) {
  return make_max(s, by_bf16);
}
std::unique_ptr<Kernel> make_linear_cross_entropy_max_f32(const Signature& s) {
  return make_max(s, by_floats);
}
std::unique_ptr<Kernel> make_linear_cross_entropy_sum_bf16(const Signature& s) {
  return make_sum(s, by_bf16);
}
std::unique_ptr<Kernel> make_linear_cross_entropy_sum_f32(const Signature& s) {
  return make_sum(s, by_floats);
}
std::unique_ptr<Kernel> make_linear_cross_entropy_part_bf16(const Signature& s) {
  return make_part(s, by_bf16);
}
std::unique_ptr<Kernel> make_linear_cross_entropy_part_f32(const Signature& s) {
  return make_part(s, by_floats);
}

std::unique_ptr<Kernel> make_linear_cross_entropy_loss(const Signature& s) {
  if (!plain_f32(s.in[0]) || s.in[2].dtype != DType::kI32 || (s.has_in(3) && !plain_f32(s.in[3])))
    return nullptr;
  const int64_t rows = s.in[1].shape.elements(), vocab = s.attrs->integer("vocab"),
                ignore = s.attrs->integer("ignore_index", -100);
  return make_kernel(
      [=](const Call& call) {
        const Targets t{input<const int32_t>(call, 2), input<const float>(call, 3), vocab, ignore};
        const auto* const seen = input<const Seen>(call, 0);
        const auto* const sum = input<const double>(call, 1);
        auto* const losses = static_cast<double*>(call.workspace);
        auto* const hits = reinterpret_cast<Hit*>(losses + rows);
        for (int64_t r = 0; r < rows; ++r) {
          const LossRow of = classify(t, r);
          const double log_sum = std::log(sum[r]) + seen[r].largest;
          const float at = seen[r].at_target;
          const bool first_largest = seen[r].not_a_number == 0 && at >= seen[r].largest &&
                                     (of.target == 0 || seen[r].before_target < at);
          losses[r] = of.kind == LossRow::kIgnored   ? 0.0
                      : of.kind == LossRow::kInvalid ? std::numeric_limits<double>::quiet_NaN()
                                                     : of.weight * (log_sum - at);
          hits[r] = of.kind == LossRow::kIgnored                  ? Hit::kNone
                    : of.kind == LossRow::kValid && first_largest ? Hit::kHit
                                                                  : Hit::kMissed;
        }
        sum_losses(t, rows, losses, output<double>(call, 0), output<double>(call, 1));
        sum_hits(hits, rows, output<double>(call, 2), output<double>(call, 3));
      },
      rows * 9);
}

}  // namespace cairn::kernels::cpu
