// Convolutions by cuDNN. The library is opened at run time; where it is missing, or does not take the sizes, the next row of the table is
// asked.
#include "kernels/cuda/pictures/library.h"

#if __has_include(<cudnn_frontend.h>) && __has_include(<cudnn.h>)
#include <cuda_runtime_api.h>

#include <map>
#include <tuple>

#include "kernels/cuda/native/cudnn.h"
#include "kernels/cuda/native/cudnn_convolution_graph.h"

namespace cairn::kernels::cuda {
namespace {

class Cudnn final : public ConvolutionPlan {
 public:
  Cudnn(CudnnHandle* handle, CudnnGraph graph) : handle_(handle), graph_(std::move(graph)) {}
  int64_t workspace_bytes() const override { return graph_.workspace_bytes(); }
  void run(const ConvolutionCall& call) const override {
    std::unordered_map<int64_t, void*> operands{
        {kConvX, call.x}, {kConvWeight, call.weight}, {kConvY, call.y}};
    if (call.bias != nullptr) operands[kConvBias] = const_cast<float*>(call.bias);
    graph_.run(*handle_, call.stream, operands, call.workspace, "convolution");
  }

 private:
  CudnnHandle* handle_;
  CudnnGraph graph_;
};

// Layers of one shape share a plan: making one takes up to seconds.
CudnnGraph find_plan(const LibraryConvolution& c, bool transposed, int device, CudnnHandle& handle) {
  using Key = std::tuple<int, bool, LibraryConvolution>;
  static std::mutex mutex;
  static std::map<Key, CudnnGraph>& plans = *new std::map<Key, CudnnGraph>;
  const std::lock_guard lock(mutex);
  const Key key{device, transposed, c};
  const auto found = plans.find(key);
  if (found != plans.end()) return found->second;
  CudnnGraph& plan = plans[key];
  const std::lock_guard own(handle.mutex);
  try {
    const auto graph = convolution_graph(c, transposed);
    if (plan_convolution(*graph, c, handle.cudnn).is_good() && graph->build_plans(handle.cudnn).is_good() &&
        graph->get_workspace_size(plan.workspace).is_good())
      plan.graph = graph;
  } catch (const std::exception&) {  // a library it needs is missing
    plan.graph = nullptr;
  }
  return plan;
}

}  // namespace

std::unique_ptr<ConvolutionPlan> try_library_convolution(const LibraryConvolution& c, bool transposed) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return nullptr;
  CudnnHandle* handle = cudnn_handle(device);
  if (handle == nullptr) return nullptr;
  CudnnGraph plan = find_plan(c, transposed, device, *handle);
  if (plan.graph == nullptr) return nullptr;
  return std::make_unique<Cudnn>(handle, std::move(plan));
}

}  // namespace cairn::kernels::cuda

#else

namespace cairn::kernels::cuda {

std::unique_ptr<ConvolutionPlan> try_library_convolution(const LibraryConvolution&, bool) { return nullptr; }

}  // namespace cairn::kernels::cuda

#endif
