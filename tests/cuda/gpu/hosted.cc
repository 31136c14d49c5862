#include "tests/cuda/gpu/hosted.h"

#include <cuda_runtime_api.h>

#include <vector>

#include "kernels/cuda/rows.h"
#include "runtime/base/checked.h"
#include "runtime/base/optimizers/squares.h"
#include "runtime/device/cuda/status.h"
#include "tests/conformance/cases.h"

namespace cairn::conformance {
namespace {

using device::cuda::check;

// Device memory for the operands of one call at a time; grows as needed.
class Mirror {
 public:
  void begin() { used_ = 0; }
  void* take(const void* host, int64_t bytes) {
    const int64_t whole = bytes + Buffer::kGuardBytes;
    const int64_t at = used_;
    used_ = align_up(used_ + whole, 256);
    require(used_ <= kBytes, Code::kOutOfMemory, "operands of a conformance case need more than ", kBytes,
            " bytes");
    if (memory_ == nullptr) check(cudaMalloc(&memory_, kBytes), "cudaMalloc");
    char* const here = static_cast<char*>(memory_) + at;
    check(cudaMemcpy(here, host, static_cast<size_t>(whole), cudaMemcpyHostToDevice), "to the device");
    return here;
  }
  static void give_back(void* host, const void* here, int64_t bytes) {
    check(cudaMemcpy(host, here, static_cast<size_t>(bytes + Buffer::kGuardBytes), cudaMemcpyDeviceToHost),
          "from the device");
  }

 private:
  static constexpr int64_t kBytes = int64_t{1} << 30;
  void* memory_ = nullptr;
  int64_t used_ = 0;
};

Mirror& mirror() {
  static Mirror one;
  return one;
}

class HostedKernel final : public kernels::Kernel {
 public:
  explicit HostedKernel(std::unique_ptr<kernels::Kernel> inner) : inner_(std::move(inner)) {}
  int64_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  void run(const kernels::Call& call) const override {
    Mirror& m = mirror();
    m.begin();
    const auto there = [&](std::span<const Tensor> tensors) {
      std::vector<Tensor> list(tensors.begin(), tensors.end());
      for (Tensor& t : list)
        if (t) t.data = m.take(t.data, t.desc.bytes());
      return list;
    };
    const std::vector<Tensor> in = there(call.in);
    std::vector<Tensor> out = there(call.out);
    if (call.in_place != 0)  // output 0 lies where an input lies
      for (size_t i = 0; i < in.size(); ++i)
        if (call.in_place >> i & 1u) out[0].data = in[i].data;
    kernels::Call here = call;
    here.in = in;
    here.out = out;
    const int64_t workspace = inner_->workspace_bytes();
    if (workspace > 0) here.workspace = m.take(call.workspace, workspace);
    inner_->run(here);
    check(cudaDeviceSynchronize(), "a kernel");
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i]) Mirror::give_back(call.out[i].data, out[i].data, out[i].desc.bytes());
    if (workspace > 0) Mirror::give_back(call.workspace, here.workspace, workspace);
  }

 private:
  const std::unique_ptr<kernels::Kernel> inner_;
};

std::unique_ptr<kernels::Kernel> hosted(std::unique_ptr<kernels::Kernel> inner) {
  return inner == nullptr ? nullptr : std::make_unique<HostedKernel>(std::move(inner));
}

}  // namespace

const kernels::Registry& hosted_cuda_registry() {
  using kernels::Isa;
  static constexpr kernels::KernelRow kRows[] = {
#define KERNEL(op, name, isa, make) \
  {#op, name, Isa::isa, [](const kernels::Signature& s) { return hosted(kernels::cuda::make(s)); }},
#include "kernels/cuda/kernels.def"
#undef KERNEL
  };
  static constexpr auto kBatch = [](std::span<const kernels::Signature> ops) {
    return hosted(kernels::cuda::make_batch(ops));
  };
  static constexpr kernels::Registry kRegistry{.backend = "cuda",
                                               .rows = kRows,
                                               .packed_bytes = kernels::cuda::packed_bytes,
                                               .one_packed_form = true,
                                               .gaps_filled = false,
                                               .batch = kBatch,
                                               .squares_chunk = kernels::squares_chunk,
                                               .squares_threads = kernels::kSquaresThreads};
  return kRegistry;
}

}  // namespace cairn::conformance
