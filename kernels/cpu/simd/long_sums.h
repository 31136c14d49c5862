// Sums over many rows. Hundreds of thousands of float32 additions, each rounded, give a wrong third digit. So blocks of rows are
// summed, and the blocks' sums are added to totals that keep their rounding errors.
#pragma once
#include <cstdint>

namespace cairn::kernels::cpu {

// So many terms are one chain of additions in float32; more are added up by blocks of kSumBlock.
inline constexpr int64_t kChain = 4096, kSumBlock = 32;
inline bool sums_by_blocks(int64_t terms) { return terms > kChain; }

// Adds the sums of a block to the totals high + low, n of each, and sets them to 0 for the next block.
void end_block(float* sums, float* high, float* low, int64_t n);
// sums = the totals, each as one number.
void end_totals(float* sums, const float* high, const float* low, int64_t n);

}  // namespace cairn::kernels::cpu
