// y[m, n] = epilogue(x[m, k] B) in bfloat16 over the threads of the caller, with every step around the
// product: rows padded to full tiles, weights packed where they come plain.
#pragma once
#include "kernels/cpu/gemm/bf16/gemm.h"
#include "kernels/cpu/simd/blocks.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {

// Weights come packed, or plain in float32 or bfloat16 or in blocks and are then packed in the workspace at every call, slice
// by slice: a slice is kept in a cache that the threads share while all rows are multiplied by it, and the workspace is small.
inline bool plain_fits(const TensorDesc& w) { return fast_float(w) || in_blocks(w); }
inline bool weight_fits(const TensorDesc& w) { return w.packed_bytes > 0 || plain_fits(w); }
inline constexpr int64_t kSliceBytes = 4 << 20;

// B as it is stored: w[n, k] when transposed (B = w^T), else w[k, n] (B = w), from value `first` of the weight on.
struct PlainWeight {
  DType type;
  bool transposed;
  const void* data;
  int64_t n, k, first = 0;
};
// Panels [p0, p1) of it. Blocks are decoded to bfloat16 on the way, a few cache lines at a time.
void pack_panels(const PlainWeight& w, bf16* to, int64_t p0, int64_t p1);
// The same on the calling thread alone.
void pack_panels_here(const PlainWeight& w, bf16* to, int64_t p0, int64_t p1);

// Where panel 0 would begin if panel p0 begins at `slice`: functions of panels count from there. steps: of k, as packed.
bf16* panel_zero(bf16* slice, int64_t p0, int64_t steps);
// x[m, k] with rows padded by zeros to a multiple of 32 elements.
void pad_rows(const bf16* x, int64_t m, int64_t k, bf16* to);

struct Bf16Forward {
  int64_t m, n, k;
  TensorDesc weight;
  bool transposed;
  Workspace space;
  int64_t padded = -1, packed = -1, scratch = 0;
  int64_t slice = 0;     // panels that are packed at once, where the weight comes plain
  bool fetches = false;  // the next slice while one is multiplied
  // Of a weight in blocks: few rows are multiplied as few_rows.h says, and of some more each thread packs panels for itself.
  bool few_rows = false;
  int64_t x_at = -1, each = 0;  // each: bytes of a thread's

  Bf16Forward(int64_t m, int64_t n, int64_t k, const TensorDesc& weight, bool transposed, int threads);
  void run(void* workspace, const bf16* x, const void* w, const Epilogue& epilogue) const;

 private:
  Ahead ahead_of(const void* w, int64_t p, int64_t end) const;
  void panels_of(void* workspace, const GemmOperands& g, int64_t p0, int64_t p1,
                 const Epilogue& epilogue) const;
};

}  // namespace cairn::kernels::cpu
