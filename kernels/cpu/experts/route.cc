// Which experts rows go to, and which rows an expert gets.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"
#include "runtime/base/experts.h"

namespace cairn::kernels::cpu {
namespace {

// The k largest of n logits, the largest first, of equal ones the first.
void choose(const float* logits, int64_t n, int64_t k, int32_t* chosen) {
  int64_t count = 0;
  for (int64_t e = 0; e < n; ++e) {
    if (count == k && !experts::ahead(logits[e], logits[chosen[k - 1]])) continue;
    int64_t at = std::min(count, k - 1);
    for (; at > 0 && experts::ahead(logits[e], logits[chosen[at - 1]]); --at) chosen[at] = chosen[at - 1];
    chosen[at] = static_cast<int32_t>(e);
    count = std::min(count + 1, k);
  }
}

bool normalises(const Signature& s) { return s.attrs->integer("normalise", 1) != 0; }

}  // namespace

std::unique_ptr<Kernel> make_route(const Signature& s) {
  if (!fast_float(s.in[0]) || !plain_f32(s.out[0])) return nullptr;
  const DType type = s.in[0].dtype;
  const int64_t rows = s.in[0].shape.rows(), n = s.in[0].shape.last(), k = s.attrs->integer("k"),
                bytes = align_up(n * 4, kAlignment);
  const bool normalise = normalises(s);
  return make_kernel(
      [=](const Call& call) {
        const char* logits = input<const char>(call, 0);
        float* weights = output<float>(call, 0);
        int32_t* numbers = output<int32_t>(call, 1);
        parallel_for(rows, row_grain(8 * n), [&](int64_t begin, int64_t end, int thread) {
          float* row = Workspace::at<float>(call.workspace, thread * bytes);
          for (int64_t r = begin; r < end; ++r) {
            float* to = weights + r * k;
            int32_t* chosen = numbers + r * k;
            convert(type, DType::kF32, false, logits + r * n * dtype_bytes(type), row, n);
            choose(row, n, k, chosen);
            for (int64_t j = 0; j < k; ++j) to[j] = row[chosen[j]];
            normalise ? softmax_row(DType::kF32, to, to, k) : softmax_row(DType::kF32, row, row, n);
            for (int64_t j = 0; !normalise && j < k; ++j) to[j] = row[chosen[j]];
          }
        });
      },
      s.threads * bytes);
}

std::unique_ptr<Kernel> make_route_grad(const Signature& s) {
  if (!plain_f32(s.in[0]) || !plain_f32(s.in[1]) || (s.has_in(3) && !fast_float(s.in[3]))) return nullptr;
  const int64_t rows = s.in[0].shape.rows(), n = s.out[0].shape.last(), k = s.in[0].shape.last();
  const bool normalise = normalises(s);
  const DType type = s.has_in(3) ? s.in[3].dtype : DType::kF32;
  return make_kernel([=](const Call& call) {
    const float *dweights = input<const float>(call, 0), *weights = input<const float>(call, 1);
    const int32_t* numbers = input<const int32_t>(call, 2);
    const char* logits = input<const char>(call, 3);
    parallel_for(rows, row_grain(n), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        const float *dw = dweights + r * k, *w = weights + r * k;
        float *to = output<float>(call, 0) + r * n, mean = 0;
        for (int64_t j = 0; j < k; ++j) mean += dw[j] * w[j];
        if (normalise) {
          std::fill(to, to + n, 0.0f);
        } else {
          convert(type, DType::kF32, false, logits + r * n * dtype_bytes(type), to, n);
          softmax_row(DType::kF32, to, to, n);
          for (int64_t e = 0; e < n; ++e) to[e] *= -mean;
        }
        for (int64_t j = 0; j < k; ++j)
          if (const int64_t e = numbers[r * k + j]; e >= 0 && e < n)
            to[e] += w[j] * (dw[j] - (normalise ? mean : 0));
      }
    });
  });
}

// A counting sort: `starts` counts, and says then where the next choice of an expert goes.
std::unique_ptr<Kernel> make_group_rows(const Signature& s) {
  const int64_t count = s.in[0].shape.elements(), n = s.attrs->integer("experts");
  return make_kernel([=](const Call& call) {
    const int32_t* numbers = input<const int32_t>(call, 0);
    int32_t *order = output<int32_t>(call, 0), *places = output<int32_t>(call, 1),
            *starts = output<int32_t>(call, 2);
    std::fill(starts, starts + n + 1, 0);
    for (int64_t i = 0; i < count; ++i) ++starts[experts::nearest(numbers[i], n) + 1];
    for (int64_t e = 0; e < n; ++e) starts[e + 1] += starts[e];
    for (int64_t i = 0; i < count; ++i) {
      const int32_t place = starts[experts::nearest(numbers[i], n)]++;
      order[place] = static_cast<int32_t>(i);
      places[i] = place;
    }
    for (int64_t e = n; e > 0; --e) starts[e] = starts[e - 1];
    starts[0] = 0;
  });
}

std::unique_ptr<Kernel> make_count_choices(const Signature& s) {
  if (!plain_f32(s.out[0])) return nullptr;
  const int64_t count = s.in[0].shape.elements(), n = s.attrs->integer("experts");
  const int64_t bytes = n * 4;
  return make_kernel(
      [=](const Call& call) {
        const int32_t* numbers = input<const int32_t>(call, 0);
        auto* counts = static_cast<int32_t*>(call.workspace);
        std::fill(counts, counts + n, 0);
        for (int64_t i = 0; i < count; ++i) ++counts[experts::nearest(numbers[i], n)];
        for (int64_t e = 0; e < n; ++e) output<float>(call, 0)[e] = static_cast<float>(counts[e]);
      },
      bytes);
}

}  // namespace cairn::kernels::cpu
