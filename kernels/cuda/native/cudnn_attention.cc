// Attention by cuDNN's fused kernels. The library is opened at run time; where it is missing, too old, or
// does not take the sizes, the next row of the table is asked.
#include "kernels/cuda/attention/library.h"

#if __has_include(<cudnn_frontend.h>) && __has_include(<cudnn.h>)
#include <cuda_runtime_api.h>

#include <map>
#include <tuple>

#include "kernels/cuda/native/cudnn.h"

namespace cairn::kernels::cuda {
namespace {

namespace fe = cudnn_frontend;

class Cudnn final : public LibraryAttention {
 public:
  Cudnn(CudnnHandle* handle, CudnnGraph graph) : handle_(handle), graph_(std::move(graph)) {}
  int64_t workspace_bytes() const override { return graph_.workspace_bytes(); }
  void run(const AttentionCall& call) const override {
    std::unordered_map<int64_t, void*> operands{{kQ, const_cast<bf16*>(call.q)},
                                                {kK, const_cast<bf16*>(call.k)},
                                                {kV, const_cast<bf16*>(call.v)},
                                                {kY, call.y},
                                                {kLse, call.lse}};
    if (call.dy != nullptr) {
      operands[kDy] = const_cast<bf16*>(call.dy);
      operands[kDq] = call.dq;
      operands[kDk] = call.dk;
      operands[kDv] = call.dv;
    }
    graph_.run(*handle_, call.stream, operands, call.workspace, "attention");
  }

 private:
  CudnnHandle* handle_;
  CudnnGraph graph_;
};

// Layers of one shape share a plan: making one takes up to seconds.
CudnnGraph find_plan(const AttentionSizes& a, bool gradient, int device, CudnnHandle& handle) {
  using Key = std::tuple<int, bool, int, int, int, int, int, bool, bool, float>;
  static std::mutex mutex;
  static std::map<Key, CudnnGraph>& plans = *new std::map<Key, CudnnGraph>;
  const Key key{device, gradient, a.batch, a.length, a.heads, a.kv_heads, a.dim, a.causal, a.packed, a.scale};
  const std::lock_guard lock(mutex);
  const auto found = plans.find(key);
  if (found != plans.end()) return found->second;
  CudnnGraph& plan = plans[key];
  const std::lock_guard own(handle.mutex);
  try {
    plan.graph = attention_graph(a, gradient);
    if (!plan.graph->build(handle.cudnn, {fe::HeurMode_t::A}).is_good()) plan.graph = nullptr;
    if (plan.graph != nullptr && !plan.graph->get_workspace_size(plan.workspace).is_good())
      plan.graph = nullptr;
  } catch (const std::exception&) {  // a library it needs is missing
    plan.graph = nullptr;
  }
  return plan;
}

}  // namespace

std::unique_ptr<LibraryAttention> try_library_attention(const AttentionSizes& a, bool gradient) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return nullptr;
  CudnnHandle* handle = cudnn_handle(device);
  if (handle == nullptr) return nullptr;
  CudnnGraph plan = find_plan(a, gradient, device, *handle);
  if (plan.graph == nullptr) return nullptr;
  return std::make_unique<Cudnn>(handle, std::move(plan));
}

LibraryVersion attention_library_version() {
  if (!open_cudnn()) return {0, cat(kCudnnLibrary, " cannot be opened")};
  return {static_cast<int>(fe::detail::get_backend_version())};
}

}  // namespace cairn::kernels::cuda

#else

namespace cairn::kernels::cuda {

std::unique_ptr<LibraryAttention> try_library_attention(const AttentionSizes&, bool) { return nullptr; }
LibraryVersion attention_library_version() { return {0, "built without cuDNN's headers"}; }

}  // namespace cairn::kernels::cuda

#endif
