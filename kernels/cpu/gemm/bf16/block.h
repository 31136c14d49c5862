// The innermost part of a bfloat16 product, by instruction set; gemm.h has the layouts. Internal to
// kernels/cpu/gemm.
#pragma once
#include "kernels/cpu/gemm/bf16/gemm.h"

namespace cairn::kernels::cpu {

// Rows [m, m_end) x one panel x steps [k0, k1) into c (rows x 32, pitch in bytes), added to what is there or not.
using Bf16Column = void (*)(const GemmOperands& g, int64_t m, int64_t m_end, int64_t panel, int64_t k0,
                            int64_t k1, float* c, int64_t pitch, bool add);

struct Bf16Blocks {
  // Steps of k that one pass takes at most: B's part of them stays in the nearest caches while rows of A go by. Sums are in
  // memory, or near, in an epilogue's buffer.
  int64_t max_share, near_share;
  void (*begin)();  // before the first column on this thread, and behind the last one
  Bf16Column column;
  void (*end)();
  int64_t near_bytes = 0;     // of A that stay near while panels of B go by
  bool pairs = false;         // A in blocks holds pairs of steps (GemmOperands)
  int64_t fetched_bytes = 0;  // of a weight's next slice, packed, at most (Ahead); 0: none is fetched
};
bool blocks_of_pairs();  // those in use
extern const Bf16Blocks kAmxBlocks, kDotBlocks, kMatrixBlocks;

}  // namespace cairn::kernels::cpu
