// Convolutions by the GPU vendor's library: native/cudnn_convolution.cc opens it at run time, tests/cuda/emulated/convolution_library.cc
// stands in for it; which of the two is decided by the linker. Plain C++, for host compilers.
#pragma once
#include <cstdint>
#include <memory>

#include "runtime/base/tensor.h"

namespace cairn::kernels::cuda {

// x[n, h, w, channels], weight[outputs, kernel_h, kernel_w, channels], y[n, out_h, out_w, outputs], one group.
struct LibraryConvolution {
  DType type;  // of 16 bits
  int64_t n, h, w, channels, outputs, kernel_h, kernel_w, out_h, out_w;
  int64_t stride_h, stride_w, dilation_h, dilation_w, before_h, after_h, before_w, after_w;
  bool bias;  // float32, of the forward pass

  auto operator<=>(const LibraryConvolution&) const = default;
};

struct ConvolutionCall {
  void* stream = nullptr;  // a cudaStream_t
  void *x = nullptr, *weight = nullptr, *y = nullptr, *workspace = nullptr;
  const float* bias = nullptr;
};

// Immutable; run() by one thread at a time per object. The same operands give the same bits in every run.
class ConvolutionPlan {
 public:
  virtual ~ConvolutionPlan() = default;
  virtual int64_t workspace_bytes() const = 0;
  virtual void run(const ConvolutionCall& call) const = 0;
};

// transposed: makes x of y and the weight. nullptr: there is no library, or it does not take these sizes.
std::unique_ptr<ConvolutionPlan> try_library_convolution(const LibraryConvolution& c, bool transposed);

// What the library's kernels may take.
inline int64_t max_convolution_workspace(const LibraryConvolution& c) {
  constexpr int64_t kMin = int64_t{32} << 20;
  const int64_t operands = 2 * c.n * (c.h * c.w * c.channels + c.out_h * c.out_w * c.outputs);
  return operands > kMin ? operands : kMin;
}

}  // namespace cairn::kernels::cuda
