// Attention by the GPU vendor's library: native/cudnn_attention.cc opens it at run time,
// emulated/attention_library.cc stands in for it; which of the two is decided by the linker. Plain C++, for
// host compilers.
#pragma once
#include <cstdint>
#include <memory>

#include "runtime/base/tensor.h"

namespace cairn::kernels::cuda {

struct AttentionSizes {
  int batch, length, heads, kv_heads, dim;
  int q_ld, kv_ld, y_ld;  // elements from one position to the next
  bool causal, packed;
  float scale, scale_log2;  // exp(scale x) = 2^(scale_log2 x)
};

// Pointers to the first head of each operand.
struct AttentionCall {
  void* stream = nullptr;  // a cudaStream_t
  const bf16 *q = nullptr, *k = nullptr, *v = nullptr;
  bf16* y = nullptr;  // forward writes y and lse, the gradient reads them
  float* lse = nullptr;
  const bf16* dy = nullptr;  // of the gradient
  bf16 *dq = nullptr, *dk = nullptr, *dv = nullptr;
  void* workspace = nullptr;
};

// Immutable; run() by one thread at a time per object. The same operands give the same bits in every run.
class LibraryAttention {
 public:
  virtual ~LibraryAttention() = default;
  virtual int64_t workspace_bytes() const = 0;
  virtual void run(const AttentionCall& call) const = 0;
};

// In bfloat16. nullptr: there is no library, or it does not take these sizes.
std::unique_ptr<LibraryAttention> try_library_attention(const AttentionSizes& a, bool gradient);

}  // namespace cairn::kernels::cuda
