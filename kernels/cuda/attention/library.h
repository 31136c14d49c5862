// Attention by the GPU vendor's library: native/cudnn_attention.cc opens it at run time,
// tests/cuda/emulated/attention_library.cc stands in for it; which of the two is decided by the linker. Plain
// C++, for host compilers.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

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

// The version of the library that is opened, as it counts (91200: 9.12.0); 0: there is none, and `why`.
struct LibraryVersion {
  int number = 0;
  std::string why = {};
};
LibraryVersion attention_library_version();

// The largest workspace that the library may take: linear in the length, as that of cairn's own kernels is, plus room for its
// sums in float32. Before version kLinearGradient the library's deterministic gradients need a workspace that is quadratic in
// the length, so they are computed in parts; each part takes some 30 us more.
inline int64_t max_library_workspace(const AttentionSizes& a, bool gradient) {
  constexpr int64_t kMin = int64_t{1} << 20;
  const int64_t slots =
      2 * a.heads + 2 * a.kv_heads;  // heads of q and y, of k and v; the gradients have as many
  const int64_t operands = 2 * slots * a.batch * a.length * a.dim * (gradient ? 2 : 1);
  return std::max(operands + operands / 64, kMin);
}
inline constexpr int kLinearGradient = 92500;

// The library's kernel within max_library_workspace(): over all samples at once, or one after the other over parts of the batch
// or over heads of one sample, so that each part's workspace fits. nullptr: there is no library, it does not take these sizes, or
// the parts would be too small to use a GPU.
std::shared_ptr<const LibraryAttention> library_in_parts(const AttentionSizes& a, bool gradient);

// Which row attention takes on this machine, and why; for people.
std::string attention_row();

}  // namespace cairn::kernels::cuda
