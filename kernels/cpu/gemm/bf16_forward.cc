#include "kernels/cpu/gemm/bf16_forward.h"

#include <cstring>

namespace cairn::kernels::cpu {

void pack_panels(const TensorDesc& w, bool transposed, const void* from, int64_t n, int64_t k, bf16* to) {
  const int64_t ld = transposed ? k : n;
  parallel_for(panels(n), 1, [&](int64_t b, int64_t e, int) {
    if (is_bf16(w))
      transposed ? pack_b_transposed(static_cast<const bf16*>(from), ld, n, k, to, b, e)
                 : pack_b(static_cast<const bf16*>(from), ld, n, k, to, b, e);
    else
      transposed ? pack_b_transposed(static_cast<const float*>(from), ld, n, k, to, b, e)
                 : pack_b(static_cast<const float*>(from), ld, n, k, to, b, e);
  });
}

namespace {

// x[m, k] with rows padded by zeros to a multiple of 32 elements.
void pad_rows(const bf16* x, int64_t m, int64_t k, bf16* to) {
  const int64_t ld = round_up(k, kTileK);
  parallel_for(m, row_grain(k), [&](int64_t b, int64_t e, int) {
    for (int64_t r = b; r < e; ++r) {
      std::memcpy(to + r * ld, x + r * k, static_cast<size_t>(k) * 2);
      std::memset(to + r * ld + k, 0, static_cast<size_t>(ld - k) * 2);
    }
  });
}

}  // namespace

Bf16Forward::Bf16Forward(int64_t m_, int64_t n_, int64_t k_, const TensorDesc& w, bool t, int threads)
    : m(m_), n(n_), k(k_), weight(w), transposed(t) {
  if (k % kTileK != 0) padded = space.add(m * round_up(k, kTileK) * 2);
  if (w.packed_bytes == 0) packed = space.add(packed_b_bytes(n, k));
  scratch = space.add(threads * kGemmScratch);
}

// Shared out by rows when there are enough, else by panels.
void Bf16Forward::run(void* workspace, const bf16* x, const void* w, const Epilogue& epilogue) const {
  if (padded >= 0) {
    pad_rows(x, m, k, space.at<bf16>(workspace, padded));
    x = space.at<bf16>(workspace, padded);
  }
  const bf16* b = static_cast<const bf16*>(w);
  if (packed >= 0) {
    pack_panels(weight, transposed, w, n, k, space.at<bf16>(workspace, packed));
    b = space.at<bf16>(workspace, packed);
  }
  const int64_t steps = round_up(k, kTileK);
  const GemmOperands g = row_major(x, steps, b, steps);
  float* sums = space.at<float>(workspace, scratch);
  const auto mine = [&](int thread) { return sums + thread * (kGemmScratch / 4); };
  if (m >= 64 * thread_count())
    parallel_for(m, 32, [&](int64_t b0, int64_t b1, int t) {
      bf16_gemm(g, b0, b1, n, 0, panels(n), mine(t), epilogue);
    });
  else
    parallel_for(panels(n), 1,
                 [&](int64_t b0, int64_t b1, int t) { bf16_gemm(g, 0, m, n, b0, b1, mine(t), epilogue); });
}

}  // namespace cairn::kernels::cpu
