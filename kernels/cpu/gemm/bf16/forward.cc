#include "kernels/cpu/gemm/bf16/forward.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace cairn::kernels::cpu {

bf16* panel_zero(bf16* slice, int64_t p0, int64_t steps) {
  return reinterpret_cast<bf16*>(reinterpret_cast<uintptr_t>(slice) -
                                 static_cast<uintptr_t>(p0 * kPanel * steps) * sizeof(bf16));
}

void pack_panels(const TensorDesc& w, bool transposed, const void* from, int64_t n, int64_t k, bf16* to,
                 int64_t p0, int64_t p1) {
  const int64_t ld = transposed ? k : n;
  bf16* const base = panel_zero(to, p0, round_up(k, kTileK));
  parallel_for(p1 - p0, 1, [&](int64_t b, int64_t e, int) {
    b += p0, e += p0;
    if (is_bf16(w))
      transposed ? pack_b_transposed(static_cast<const bf16*>(from), ld, n, k, base, b, e)
                 : pack_b(static_cast<const bf16*>(from), ld, n, k, base, b, e);
    else
      transposed ? pack_b_transposed(static_cast<const float*>(from), ld, n, k, base, b, e)
                 : pack_b(static_cast<const float*>(from), ld, n, k, base, b, e);
  });
}
void pack_panels(const TensorDesc& w, bool transposed, const void* from, int64_t n, int64_t k, bf16* to) {
  pack_panels(w, transposed, from, n, k, to, 0, panels(n));
}

namespace {

// An epilogue of which nothing is finished yet.
class Unfinished final : public Epilogue {
 public:
  explicit Unfinished(const Epilogue& whole) : whole_(whole) {}
  Target target() const override { return whole_.target(); }
  void block(const float* c, int64_t m, int64_t rows, int64_t n, int64_t columns) const override {
    whole_.block(c, m, rows, n, columns);
  }

 private:
  const Epilogue& whole_;
};

}  // namespace

void pad_rows(const bf16* x, int64_t m, int64_t k, bf16* to) {
  const int64_t ld = round_up(k, kTileK);
  parallel_for(m, row_grain(k), [&](int64_t b, int64_t e, int) {
    for (int64_t r = b; r < e; ++r) {
      std::memcpy(to + r * ld, x + r * k, static_cast<size_t>(k) * 2);
      std::memset(to + r * ld + k, 0, static_cast<size_t>(ld - k) * 2);
    }
  });
}

Bf16Forward::Bf16Forward(int64_t m_, int64_t n_, int64_t k_, const TensorDesc& w, bool t, int threads)
    : m(m_), n(n_), k(k_), weight(w), transposed(t) {
  if (k % kTileK != 0) padded = space.add(m * round_up(k, kTileK) * 2);
  if (w.packed_bytes == 0) {
    const int64_t few = fetched_panels(m, k) * threads;
    fetches = few > 0 && few < panels(n);
    slice = std::clamp<int64_t>(fetches ? few : kSliceBytes / packed_b_bytes(kPanel, k),
                                std::min<int64_t>(threads, panels(n)), panels(n));
    packed = space.add(packed_b_bytes(slice * kPanel, k));
  }
  scratch = space.add(threads * kGemmScratch);
}

void Bf16Forward::run(void* workspace, const bf16* x, const void* w, const Epilogue& epilogue) const {
  if (padded >= 0) {
    pad_rows(x, m, k, space.at<bf16>(workspace, padded));
    x = space.at<bf16>(workspace, padded);
  }
  const int64_t steps = round_up(k, kTileK), all = panels(n);
  if (packed < 0)
    return panels_of(workspace, row_major(x, steps, static_cast<const bf16*>(w), steps), 0, all, epilogue);
  bf16* const at = space.at<bf16>(workspace, packed);
  for (int64_t p = 0; p < all; p += slice) {
    const int64_t end = std::min(all, p + slice);
    pack_panels(weight, transposed, w, n, k, at, p, end);
    GemmOperands g = row_major(x, steps, panel_zero(at, p, steps), steps);
    if (fetches && end < all) g.ahead = ahead_of(w, p, end);
    fetches ? panels_of(workspace, g, p, end, Unfinished(epilogue))
            : panels_of(workspace, g, p, end, epilogue);
  }
  if (fetches)  // full rows: memory is faster with these than with parts of rows
    parallel_for(m, 32, [&](int64_t b, int64_t e, int) { epilogue.finished(b, e - b, 0, n); });
}

// The slice after panels [p, end).
Ahead Bf16Forward::ahead_of(const void* w, int64_t p, int64_t end) const {
  const int64_t size = dtype_bytes(weight.dtype), across = kPanel * size,
                down = kPanel * (transposed ? k : n) * size;
  return {.at = static_cast<const char*>(w) + end * (transposed ? down : across),
          .panel = transposed ? down : across,
          .row = down / kPanel,
          .step = transposed ? across : down,
          .first_panel = p,
          .panels = std::min(slice, panels(n) - end),
          .shift = m > 256 ? 1 : 0};
}

// Shared out by rows when there are enough, else by panels.
void Bf16Forward::panels_of(void* workspace, const GemmOperands& g, int64_t p0, int64_t p1,
                            const Epilogue& epilogue) const {
  float* sums = space.at<float>(workspace, scratch);
  const auto mine = [&](int thread) { return sums + thread * (kGemmScratch / 4); };
  if (m >= 64 * thread_count())
    parallel_for(m, 32,
                 [&](int64_t b, int64_t e, int t) { bf16_gemm(g, b, e, n, p0, p1, mine(t), epilogue); });
  else
    parallel_for(p1 - p0, 1, [&](int64_t b, int64_t e, int t) {
      bf16_gemm(g, 0, m, n, p0 + b, p0 + e, mine(t), epilogue);
    });
}

}  // namespace cairn::kernels::cpu
