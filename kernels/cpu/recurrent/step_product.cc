#include "kernels/cpu/recurrent/step_product.h"

#include <cstring>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm/bf16/forward.h"
#include "kernels/cpu/gemm/small_gemm.h"
#include "kernels/cpu/simd/isa.h"

namespace cairn::kernels::cpu {
namespace {

constexpr int64_t kPanelWork = 1 << 15;  // rows times steps of panels that are worth a thread
// Steps of k of a panel in float32 that are summed at once: they fit the first cache.
constexpr int64_t kDepth = 384;

// Element i of a weight.
float weight_at(const void* w, DType type, int64_t i) {
  return with_float(type, [&](auto zero) { return to_float(static_cast<const decltype(zero)*>(w)[i]); });
}

}  // namespace

StepProduct::StepProduct(int64_t m, int64_t n, int64_t k, const TensorDesc& weight, bool transposed,
                         DType type, int threads, Workspace* space)
    : m_(m),
      n_(n),
      k_(k),
      weight_(weight),
      type_(type),
      transposed_(transposed),
      narrow_(type == DType::kBF16 && has_bf16_products()) {
  row_ = narrow_ ? round_up(k, kTileK) : k;
  x_at_ = space->add(m * row_ * (narrow_ ? 2 : 4));
  y_at_ = space->add(m * n * 4);
  weight_at_ = space->add(narrow_ ? packed_b_bytes(n, k) : panels(n) * kPanel * k * 4);
  if (!narrow_) return;
  scratch_ = align_up(std::min(m, kSumRows) * kPanel * 4, kAlignment);
  scratch_at_ = space->add(threads * scratch_);
}

void StepProduct::prepare(void* workspace, const void* w) const {
  std::memset(Workspace::at<char>(workspace, x_at_), 0, static_cast<size_t>(m_ * row_ * (narrow_ ? 2 : 4)));
  if (narrow_)
    return pack_panels({weight_.dtype, transposed_, w, n_, k_}, Workspace::at<bf16>(workspace, weight_at_), 0,
                       panels(n_));
  float* packed = Workspace::at<float>(workspace, weight_at_);
  parallel_for(panels(n_), 1, [&](int64_t p0, int64_t p1, int) {
    constexpr int64_t kSteps = 16;  // of a row of a transposed weight: a cache line
    for (int64_t p = p0; p < p1; ++p)
      for (int64_t k0 = 0; k0 < k_; k0 += kSteps)
        for (int64_t j = p * kPanel; j < std::min(n_, (p + 1) * kPanel); ++j)
          for (int64_t k = k0; k < std::min(k_, k0 + kSteps); ++k)
            packed[(p * k_ + k) * kPanel + j % kPanel] =
                weight_at(w, weight_.dtype, transposed_ ? j * k_ + k : k * n_ + j);
  });
}

void StepProduct::set_rows(void* workspace, const void* x) const {
  for (int64_t r = 0; r < m_; ++r)
    convert(type_, narrow_ ? DType::kBF16 : DType::kF32, false,
            static_cast<const char*>(x) + r * k_ * dtype_bytes(type_), factor(workspace, r).to, k_);
}

void StepProduct::run(void* workspace) const {
  float* y = Workspace::at<float>(workspace, y_at_);
  const int64_t grain = std::max<int64_t>(1, kPanelWork / (m_ * row_));
  if (narrow_) {
    const GemmOperands g = row_major(Workspace::at<bf16>(workspace, x_at_), row_,
                                     Workspace::at<bf16>(workspace, weight_at_), row_);
    return parallel_for(panels(n_), grain, [&](int64_t p0, int64_t p1, int t) {
      bf16_gemm_f32(g, 0, m_, n_, p0, p1, Workspace::at<float>(workspace, scratch_at_ + t * scratch_), y, n_,
                    false);
    });
  }
  const float *x = Workspace::at<float>(workspace, x_at_),
              *packed = Workspace::at<float>(workspace, weight_at_);
  parallel_for(panels(n_), grain, [&](int64_t p0, int64_t p1, int) {
    for (int64_t p = p0; p < p1; ++p)
      for (int64_t k = 0; k < k_; k += kDepth)
        small_gemm({.m = m_,
                    .n = std::min(kPanel, n_ - p * kPanel),
                    .k = std::min(kDepth, k_ - k),
                    .a = x + k,
                    .a_row = k_,
                    .a_step = 1,
                    .b = packed + (p * k_ + k) * kPanel,
                    .ldb = kPanel,
                    .c = y + p * kPanel,
                    .ldc = n_,
                    .add = k > 0});
  });
}

}  // namespace cairn::kernels::cpu
