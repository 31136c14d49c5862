// y[m, n] = epilogue(x[m, k] B) in bfloat16 over the threads of the caller, with every step around the
// product: rows padded to full tiles, weights packed where they come plain.
#pragma once
#include "kernels/cpu/gemm/bf16/gemm.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {

// Weights come packed, or plain in float32 or bfloat16 and are then packed in the workspace at every call, slice
// by slice: a slice is kept in a cache that the threads share while all rows are multiplied by it, and the workspace is small.
inline bool weight_fits(const TensorDesc& w) { return w.packed_bytes > 0 || fast_float(w); }
inline constexpr int64_t kSliceBytes = 4 << 20;

// All panels of B from a plain weight: w[n, k] when transposed (B = w^T), else w[k, n] (B = w).
void pack_panels(const TensorDesc& w, bool transposed, const void* from, int64_t n, int64_t k, bf16* to);
// Panels [p0, p1) of them alone.
void pack_panels(const TensorDesc& w, bool transposed, const void* from, int64_t n, int64_t k, bf16* to,
                 int64_t p0, int64_t p1);

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

  Bf16Forward(int64_t m, int64_t n, int64_t k, const TensorDesc& weight, bool transposed, int threads);
  void run(void* workspace, const bf16* x, const void* w, const Epilogue& epilogue) const;

 private:
  Ahead ahead_of(const void* w, int64_t p, int64_t end) const;
  void panels_of(void* workspace, const GemmOperands& g, int64_t p0, int64_t p1,
                 const Epilogue& epilogue) const;
};

}  // namespace cairn::kernels::cpu
