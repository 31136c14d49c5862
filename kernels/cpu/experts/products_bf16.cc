// Products of rows that are grouped by expert, in bfloat16. Threads share the panels of all experts' weights; weights
// come plain, and a thread packs a few panels at a time.
#include <algorithm>

#include "kernels/cpu/experts/grouped.h"
#include "kernels/cpu/gemm/bf16/forward.h"
#include "kernels/cpu/gemm/bf16/gemm.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {
namespace {

// Panels that a thread packs at once: they and rows of x fit the second cache.
constexpr int64_t kPanelBytes = 256 << 10;
// Packing a panel takes as long as multiplying it by so many rows.
constexpr int64_t kRowsOfPacking = 32;

// y[rows, n] = x[rows, k] B of each expert. by_columns: B is stored as [n, k], else as [k, n].
std::unique_ptr<Kernel> make_grouped(const Signature& s, int64_t n, int64_t k, bool by_columns,
                                     Besides besides) {
  if (!has_bf16_products() || !is_bf16(s.in[0]) || !is_bf16(s.out[0]) || !plain_fits(s.in[1])) return nullptr;
  const bool bias = besides.bias >= 0 && s.has_in(static_cast<size_t>(besides.bias));
  if (bias && !plain_f32(s.in[static_cast<size_t>(besides.bias)])) return nullptr;
  const experts::Grouped z(s, s.in[1]);
  const TensorDesc weight = s.in[1];
  const int64_t steps = round_up(k, kTileK), all = panels(n),
                slice = std::clamp<int64_t>(kPanelBytes / packed_b_bytes(kPanel, k), 1, all),
                slice_bytes = packed_b_bytes(slice * kPanel, k);
  Workspace space;
  const int64_t padded_at = steps > k ? space.add(z.rows * steps * 2) : -1;
  const int64_t slices_at = space.add(s.threads * slice_bytes), sums_at = space.add(s.threads * kGemmScratch);
  return make_kernel(
      [=](const Call& call) {
        const bf16* x = input<const bf16>(call, 0);
        const float* b = bias ? input<const float>(call, static_cast<size_t>(besides.bias)) : nullptr;
        carry_rows(call, besides, z);
        bf16* y = output<bf16>(call, 0);
        if (padded_at >= 0) {
          bf16* padded = space.at<bf16>(call.workspace, padded_at);
          pad_rows(x, z.rows, k, padded);
          x = padded;
        }
        for_experts(input<const int32_t>(call, 2), z, all, kRowsOfPacking, 0,
                    [&](int64_t e, experts::Rows rows, int64_t p0, int64_t p1, int thread) {
                      const PlainWeight w{weight.dtype, by_columns, data_of(call.in, 1), n, k, e * n * k};
                      bf16* mine = space.at<bf16>(call.workspace, slices_at + thread * slice_bytes);
                      float* sums = space.at<float>(call.workspace, sums_at + thread * kGemmScratch);
                      const LinearEpilogue epilogue(Activation::kNone,
                                                    b != nullptr ? b + (z.first + e) * n : nullptr,
                                                    y + rows.begin * n, nullptr, n);
                      for (int64_t p = p0; p < p1; p += slice) {
                        const int64_t end = std::min(p1, p + slice);
                        pack_panels_here(w, mine, p, end);
                        bf16_gemm(row_major(x + rows.begin * steps, steps, panel_zero(mine, p, steps), steps),
                                  0, rows.end - rows.begin, n, p, end, sums, epilogue);
                      }
                    });
      },
      space.bytes());
}

}  // namespace

std::unique_ptr<Kernel> make_grouped_linear_bf16(const Signature& s) {
  const experts::Grouped z(s, s.in[1]);
  return make_grouped(s, z.n, z.k, !z.transposed, kOfForward);
}
std::unique_ptr<Kernel> make_grouped_linear_grad_input_bf16(const Signature& s) {
  const experts::Grouped z(s, s.in[1]);
  return make_grouped(s, z.k, z.n, z.transposed, kOfInput);
}

// dw[left, right] of each expert: the products of columns of dy and x, or, stored the other way round, of x and dy.
// They are taken in chunks of rows, so that the packed ones are kept near and the workspace is small.
std::unique_ptr<Kernel> make_grouped_linear_grad_weight_bf16(const Signature& s) {
  if (!has_bf16_products() || !is_bf16(s.in[0]) || !is_bf16(s.in[1]) || !plain_f32(s.out[0])) return nullptr;
  constexpr int64_t kMostBytes = 1 << 20, kMostRows = 1024, kLeastRows = 128;
  const experts::Grouped z(s, s.out[0]);
  const int left_operand = z.transposed ? 0 : 1;
  const int64_t m = z.transposed ? z.k : z.n, n = z.transposed ? z.n : z.k,
                chunk = std::clamp(kMostBytes / (2 * n) / kTileK * kTileK, kLeastRows, kMostRows),
                most = std::min(chunk, z.rows), packed_bytes = packed_b_bytes(n, most),
                each = align_up(packed_bytes + grad_weight_space(most), kAlignment);
  Workspace space;
  const int64_t shares_at = space.add(s.threads * each);
  return make_kernel(
      [=](const Call& call) {
        const auto* starts = input<const int32_t>(call, 2);
        const bf16 *left = input<const bf16>(call, left_operand),
                   *right = input<const bf16>(call, 1 - left_operand);
        float* dw = output<float>(call, 0);
        const bool add = accumulates(call, 0);
        for_experts(starts, z, (m + kGradRows - 1) / kGradRows, kRowsOfPacking, add ? 0 : kRowsOfPacking,
                    [&](int64_t e, experts::Rows rows, int64_t b0, int64_t b1, int thread) {
                      const int64_t m0 = b0 * kGradRows, m1 = std::min(m, b1 * kGradRows);
                      float* to = dw + e * m * n;
                      if (rows.begin >= rows.end) return std::fill(to + m0 * n, to + m1 * n, 0.0f);
                      char* mine = space.at<char>(call.workspace, shares_at + thread * each);
                      bf16* packed = reinterpret_cast<bf16*>(mine);
                      for (int64_t r = rows.begin; r < rows.end; r += chunk) {
                        const int64_t count = std::min(chunk, rows.end - r);
                        pack_b(right + r * n, n, n, count, packed, 0, panels(n));
                        bf16_grad_weight(left + r * m, m, packed, count, m0, m1, n, to, add || r > rows.begin,
                                         mine + packed_bytes);
                      }
                    });
        if (float* db = output<float>(call, 1))
          grouped_column_sums(DType::kBF16, input<const bf16>(call, 1), call.in[2], z, db,
                              accumulates(call, 1));
      },
      space.bytes());
}

}  // namespace cairn::kernels::cpu
