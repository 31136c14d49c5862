#include "kernels/cpu/gemm/bf16/few_rows.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/gemm/bf16/amx_tiles.h"
#include "kernels/cpu/simd/isa.h"

namespace cairn::kernels::cpu {

bool few_rows_fit(int64_t m, const TensorDesc& weight, bool transposed) {
  return has_amx() && transposed && m <= kFewRows && in_blocks(weight);
}

// Of every pair of steps, the rows one after the other.
void pack_few_rows(const bf16* x, int64_t m, int64_t steps, bf16* to) {
  for (int64_t k = 0; k < steps; k += 2)
    for (int64_t r = 0; r < m; ++r, to += 2) std::memcpy(to, x + r * steps + k, 4);
}

}  // namespace cairn::kernels::cpu

#if defined(__x86_64__)
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16")

namespace cairn::kernels::cpu {
namespace {

constexpr int64_t kRowsAtOnce = 64;  // of the weight: four tiles of sums, which do not wait for each other
constexpr int64_t kColumns = 256;    // of these rows that are decoded at once
constexpr int64_t kPitch = kColumns + kTileK;  // rows begin in lines of the cache that do not share a place
struct Scratch {
  bf16 decoded[kRowsAtOnce * kPitch];
  float across[kRowsAtOnce * kFewRows], sums[kFewRows * kPanel];
};

// Tiles 0 to 3: sums of 16 rows of the weight each; 4: rows of it; 5: x.
void configure(int64_t m) {
  alignas(64) uint8_t config[64] = {1};
  const auto across = static_cast<uint8_t>(4 * m);
  const uint8_t bytes[6] = {across, across, across, across, 64, across};
  for (int i = 0; i < 6; ++i) {
    config[16 + 2 * i] = bytes[i];
    config[48 + i] = 16;
  }
  __asm__ volatile("ldtilecfg %0" ::"m"(*reinterpret_cast<const char(*)[64]>(config)));
}

}  // namespace

int64_t few_rows_scratch() { return sizeof(Scratch); }

void few_rows_gemm(const bf16* x, int64_t m, int64_t steps, const PlainWeight& w, int64_t p0, int64_t p1,
                   void* space, const Epilogue& epilogue) {
  auto& scratch = *static_cast<Scratch*>(space);
  bf16* const decoded = scratch.decoded;
  std::memset(decoded, 0, sizeof scratch.decoded);
  configure(m);
  constexpr int64_t kPanelsAtOnce = kRowsAtOnce / kPanel, kTile = 16;
  for (int64_t p = p0; p < p1; p += kPanelsAtOnce) {
    const int64_t rows = std::min(std::min(p1, p + kPanelsAtOnce) * kPanel, w.n) - p * kPanel;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t k = 0; k < steps; k += kColumns) {
      const int64_t count = std::min(kColumns, w.k - k), end = std::min(kColumns, steps - k);
      decode_rows({w.type, w.data, w.first + p * kPanel * w.k + k, w.k, rows, count}, DecodedAs(DType::kBF16),
                  decoded, kPitch);
      if (count < end)
        for (int64_t r = 0; r < rows; ++r)
          std::memset(decoded + r * kPitch + count, 0, static_cast<size_t>(end - count) * 2);
      for (int64_t s = 0; s < end; s += kTileK) {
        const bf16* const from = decoded + s;
        _tile_loadd(5, x + (k + s) * m, 4 * m);
        _tile_loadd(4, from, kPitch * 2);
        _tile_dpbf16ps(0, 4, 5);
        _tile_loadd(4, from + kTile * kPitch, kPitch * 2);
        _tile_dpbf16ps(1, 4, 5);
        if (rows <= kPanel) continue;
        _tile_loadd(4, from + 2 * kTile * kPitch, kPitch * 2);
        _tile_dpbf16ps(2, 4, 5);
        _tile_loadd(4, from + 3 * kTile * kPitch, kPitch * 2);
        _tile_dpbf16ps(3, 4, 5);
      }
    }
    float* const across = scratch.across;
    _tile_stored(0, across, 4 * m);
    _tile_stored(1, across + kTile * m, 4 * m);
    _tile_stored(2, across + 2 * kTile * m, 4 * m);
    _tile_stored(3, across + 3 * kTile * m, 4 * m);
    for (int64_t n = 0; n < rows; n += kPanel) {
      const int64_t columns = std::min(kPanel, rows - n);
      for (int64_t r = 0; r < m; ++r)
        for (int64_t j = 0; j < columns; ++j) scratch.sums[r * kPanel + j] = across[(n + j) * m + r];
      epilogue.block(scratch.sums, 0, m, p * kPanel + n, columns);
    }
  }
  _tile_release();
  epilogue.finished(0, m, p0 * kPanel, std::min(w.n, p1 * kPanel));
}

}  // namespace cairn::kernels::cpu
HWY_POP_ATTRIBUTES
#else
namespace cairn::kernels::cpu {
int64_t few_rows_scratch() { return 0; }
void few_rows_gemm(const bf16*, int64_t, int64_t, const PlainWeight&, int64_t, int64_t, void*,
                   const Epilogue&) {}
}  // namespace cairn::kernels::cpu
#endif
