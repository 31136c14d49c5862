// The innermost part of a bfloat16 product, by instruction set; gemm.h has the layouts. Internal to
// kernels/cpu/gemm.
#pragma once
#include "kernels/cpu/gemm/bf16/gemm.h"

namespace cairn::kernels::cpu {

// Rows [m, m_end) x one panel x steps [k0, k1) into c (rows x 32, pitch in bytes), added to what is there or not.
using Bf16Column = void (*)(const GemmOperands& g, int64_t m, int64_t m_end, int64_t panel, int64_t k0,
                            int64_t k1, float* c, int64_t pitch, bool add);

struct Bf16Blocks {
  // The most steps of k that one pass takes, so that B's part of them is kept in the nearest caches while all rows of A are
  // multiplied by it. max_share: where sums are in memory; near_share: where they are in an epilogue's buffer in cache.
  int64_t max_share, near_share;
  void (*begin)();  // before the first column on this thread, and after the last one
  Bf16Column column;
  void (*end)();
  int64_t near_bytes = 0;     // bytes of A that are kept in cache while panels of B are multiplied
  bool pairs = false;         // A in blocks holds pairs of steps (GemmOperands)
  int64_t fetched_bytes = 0;  // the most bytes of a weight's next slice that are prefetched (Ahead); 0: none
};
bool blocks_of_pairs();  // `pairs` of the blocks in use
extern const Bf16Blocks kAmxBlocks, kDotBlocks, kMatrixBlocks;

}  // namespace cairn::kernels::cpu
