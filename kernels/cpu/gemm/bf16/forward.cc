#include "kernels/cpu/gemm/bf16/forward.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/gemm/bf16/few_rows.h"

namespace cairn::kernels::cpu {

bf16* panel_zero(bf16* slice, int64_t p0, int64_t steps) {
  return reinterpret_cast<bf16*>(reinterpret_cast<uintptr_t>(slice) -
                                 static_cast<uintptr_t>(p0 * kPanel * steps) * sizeof(bf16));
}

namespace {

// A part of a weight in blocks that is decoded at once: 32 rows, which a panel is made of, or 32 steps of k.
constexpr int64_t kDecodedRows = 32, kDecodedColumns = 256;
static_assert(kDecodedRows == kPanel && kDecodedRows == kTileK && kDecodedColumns % kPanel == 0);

void pack_blocks(const PlainWeight& w, bf16* base, int64_t p0, int64_t p1) {
  alignas(64) bf16 decoded[kDecodedRows * kDecodedColumns];
  const int64_t steps = round_up(w.k, kTileK) / kTileK, ld = w.transposed ? w.k : w.n;
  const auto decode = [&](int64_t row, int64_t rows, int64_t column, int64_t columns) {
    decode_rows({w.type, w.data, w.first + row * ld + column, ld, rows, columns}, DecodedAs(DType::kBF16),
                decoded, kDecodedColumns);
  };
  const auto tile = [&](int64_t p, int64_t step) { return base + (p * steps + step) * kPanel * kTileK; };
  if (w.transposed) {
    for (int64_t p = p0; p < p1; ++p)
      for (int64_t k = 0; k < w.k; k += kDecodedColumns) {
        const int64_t rows = std::min(kPanel, w.n - p * kPanel), count = std::min(kDecodedColumns, w.k - k);
        decode(p * kPanel, rows, k, count);
        pack_b_transposed(decoded, kDecodedColumns, rows, count, tile(p, k / kTileK), 0, 1);
      }
    return;
  }
  constexpr int64_t kPanels = kDecodedColumns / kPanel;
  for (int64_t s = 0; s < steps; ++s)
    for (int64_t p = p0; p < p1; p += kPanels) {
      const int64_t end = std::min(p1, p + kPanels), rows = std::min(kTileK, w.k - s * kTileK);
      decode(s * kTileK, rows, p * kPanel, std::min(w.n, end * kPanel) - p * kPanel);
      for (int64_t q = p; q < end; ++q)
        pack_b(decoded + (q - p) * kPanel, kDecodedColumns, w.n - q * kPanel, rows, tile(q, s), 0, 1);
    }
}

template <class T>
void pack_plain(const PlainWeight& w, bf16* base, int64_t p0, int64_t p1) {
  const T* const from = static_cast<const T*>(w.data) + w.first;
  w.transposed ? pack_b_transposed(from, w.k, w.n, w.k, base, p0, p1)
               : pack_b(from, w.n, w.n, w.k, base, p0, p1);
}

}  // namespace

void pack_panels_here(const PlainWeight& w, bf16* to, int64_t p0, int64_t p1) {
  bf16* const base = panel_zero(to, p0, round_up(w.k, kTileK));
  const auto pack = w.type == DType::kBF16                      ? pack_plain<bf16>
                    : format(w.type).read == Read::kDequantised ? pack_blocks
                                                                : pack_plain<float>;
  pack(w, base, p0, p1);
}
void pack_panels(const PlainWeight& w, bf16* to, int64_t p0, int64_t p1) {
  const int64_t one = kPanel * round_up(w.k, kTileK);
  parallel_for(p1 - p0, 1,
               [&](int64_t b, int64_t e, int) { pack_panels_here(w, to + b * one, p0 + b, p0 + e); });
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
  const int64_t steps = round_up(k, kTileK);
  if (steps > k) padded = space.add(m * steps * 2);
  few_rows = few_rows_fit(m, w, t);
  if (few_rows) {
    x_at = space.add(few_rows_bytes(m, steps));
    each = align_up(few_rows_scratch(), kAlignment);
    scratch = space.add(threads * each);
    return;
  }
  if (in_blocks(w) && m < 64 * threads) {
    constexpr int64_t kOwnBytes = 256 << 10;  // and rows of x fit the second cache
    slice = std::clamp<int64_t>(kOwnBytes / packed_b_bytes(kPanel, k), 1, panels(n));
    each = packed_b_bytes(slice * kPanel, k);
    packed = space.add(threads * each);
  } else if (w.packed_bytes == 0) {
    const int64_t few = in_blocks(w) ? 0 : fetched_panels(m, k) * threads;
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
  const PlainWeight plain{weight.dtype, transposed, w, n, k};
  if (few_rows) {
    bf16* const packed_x = space.at<bf16>(workspace, x_at);
    pack_few_rows(x, m, steps, packed_x);
    return parallel_for(all, 1, [&](int64_t b, int64_t e, int t) {
      few_rows_gemm(packed_x, m, steps, plain, b, e, space.at<char>(workspace, scratch + t * each), epilogue);
    });
  }
  if (each > 0) {  // a thread packs panels for itself
    float* sums = space.at<float>(workspace, scratch);
    return parallel_for(all, 1, [&](int64_t b, int64_t e, int t) {
      bf16* const mine = space.at<bf16>(workspace, packed + t * each);
      for (int64_t p = b; p < e; p += slice) {
        const int64_t end = std::min(e, p + slice);
        pack_panels_here(plain, mine, p, end);
        bf16_gemm(row_major(x, steps, panel_zero(mine, p, steps), steps), 0, m, n, p, end,
                  sums + t * (kGemmScratch / 4), epilogue);
      }
    });
  }
  if (packed < 0)
    return panels_of(workspace, row_major(x, steps, static_cast<const bf16*>(w), steps), 0, all, epilogue);
  bf16* const at = space.at<bf16>(workspace, packed);
  for (int64_t p = 0; p < all; p += slice) {
    const int64_t end = std::min(all, p + slice);
    pack_panels(plain, at, p, end);
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
