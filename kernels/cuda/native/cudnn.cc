#if __has_include(<cudnn_frontend.h>) && __has_include(<cudnn.h>)
#include "kernels/cuda/native/cudnn.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <map>

#include "runtime/base/cuda/status.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace cairn::kernels::cuda {
namespace {

namespace fe = cudnn_frontend;

Refusal refusal_of(fe::error_code_t code) {
  switch (code) {
    case fe::error_code_t::GRAPH_NOT_SUPPORTED:
    case fe::error_code_t::UNSUPPORTED_GRAPH_FORMAT:
      return Refusal::kNotSupported;
    case fe::error_code_t::INVALID_VALUE:
    case fe::error_code_t::INVALID_VARIANT_PACK:
    case fe::error_code_t::ATTRIBUTE_NOT_SET:
      return Refusal::kInvalidValue;
    default:
      return Refusal::kFailed;
  }
}

}  // namespace

bool open_cudnn() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (fe::cudnn_dlhandle == nullptr) fe::cudnn_dlhandle = dlopen(kCudnnLibrary, RTLD_NOW | RTLD_LOCAL);
  return fe::cudnn_dlhandle != nullptr;
}

CudnnHandle* cudnn_handle(int device) {
  static std::mutex mutex;
  static std::map<int, CudnnHandle>& handles = *new std::map<int, CudnnHandle>;
  if (!open_cudnn()) return nullptr;
  const std::lock_guard lock(mutex);
  CudnnHandle& handle = handles[device];
  if (handle.cudnn == nullptr && fe::detail::create_handle(&handle.cudnn) != CUDNN_STATUS_SUCCESS) {
    handle.cudnn = nullptr;
    return nullptr;
  }
  return &handle;
}

void CudnnGraph::run(CudnnHandle& handle, void* stream, std::unordered_map<int64_t, void*>& operands,
                     void* space, const char* what) const {
  const auto address = reinterpret_cast<uintptr_t>(space);
  void* const aligned = reinterpret_cast<void*>((address + kAlignment - 1) / kAlignment * kAlignment);
  const std::lock_guard lock(handle.mutex);
  if (fe::detail::set_stream(handle.cudnn, static_cast<cudaStream_t>(stream)) != CUDNN_STATUS_SUCCESS)
      [[unlikely]]
    fail(code_of(Refusal::kFailed, present_status()), "cuDNN does not take the stream");
  auto status = graph->execute(handle.cudnn, operands, aligned);
  if (!status.is_good()) [[unlikely]]
    fail(code_of(refusal_of(status.get_code()), present_status()), "cuDNN's ", what,
         " could not be started: ", status.get_message());
}

}  // namespace cairn::kernels::cuda

#endif
