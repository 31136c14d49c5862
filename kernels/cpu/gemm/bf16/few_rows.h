// Few rows times a weight that is stored as [n, k], on the AMX tiles, with the weight as the left operand: its rows are read in
// the order in which they are stored, once, and not packed. Sums are those of bf16_gemm, to the bit: each adds up the same
// products in the same order.
#pragma once
#include "kernels/cpu/gemm/bf16/forward.h"

namespace cairn::kernels::cpu {

inline constexpr int64_t kFewRows = 8;

// Whether there are tiles, and the weight can be read so: in blocks.
bool few_rows_fit(int64_t m, const TensorDesc& weight, bool transposed);

// Bytes that x[m, k] takes as the right operand, and what makes it: x has rows of `steps` elements, a multiple of kTileK.
inline int64_t few_rows_bytes(int64_t m, int64_t steps) { return m * steps * 2; }
void pack_few_rows(const bf16* x, int64_t m, int64_t steps, bf16* to);

// Bytes of a thread's buffer.
int64_t few_rows_scratch();
// Panels [p0, p1) of x w^T, on the calling thread.
void few_rows_gemm(const bf16* packed_x, int64_t m, int64_t steps, const PlainWeight& w, int64_t p0,
                   int64_t p1, void* scratch, const Epilogue& epilogue);

}  // namespace cairn::kernels::cpu
