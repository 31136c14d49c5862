#include "kernels/cuda/native/cublaslt.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <map>
#include <mutex>

#include "runtime/base/error.h"

namespace cairn::kernels::cuda {
namespace {

CublasLt load() {
  void* library = nullptr;
  for (const char* name : {"libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13", "libcublasLt.so"})
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    fail(Code::kUnsupported,
         "matrix products on CUDA devices need libcublasLt.so.13, which cannot be opened: ",
         why != nullptr ? why : "unknown error");
  }
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    require(function != nullptr, Code::kUnsupported, "libcublasLt has no function ", name);
  };
  CublasLt lt;
  find(lt.create, "cublasLtCreate");
  find(lt.status_string, "cublasLtGetStatusString");
  find(lt.matmul, "cublasLtMatmul");
  find(lt.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(lt.algorithm_check, "cublasLtMatmulAlgoCheck");
  find(lt.desc_create, "cublasLtMatmulDescCreate");
  find(lt.desc_destroy, "cublasLtMatmulDescDestroy");
  find(lt.desc_set, "cublasLtMatmulDescSetAttribute");
  find(lt.layout_create, "cublasLtMatrixLayoutCreate");
  find(lt.layout_destroy, "cublasLtMatrixLayoutDestroy");
  find(lt.layout_set, "cublasLtMatrixLayoutSetAttribute");
  find(lt.preference_create, "cublasLtMatmulPreferenceCreate");
  find(lt.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  find(lt.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  return lt;
}

}  // namespace

const CublasLt& CublasLt::open() {
  static const CublasLt lt = load();  // tried again after a failure
  return lt;
}

cublasLtHandle_t CublasLt::handle() const {
  static std::mutex mutex;
  static std::map<int, cublasLtHandle_t> handles;
  int device = 0;
  const cudaError_t found = cudaGetDevice(&device);
  require(found == cudaSuccess, Code::kUnsupported, "there is no CUDA device: ", cudaGetErrorString(found));
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = handles[device];
  if (handle == nullptr) {
    const cublasStatus_t status = create(&handle);
    if (status != CUBLAS_STATUS_SUCCESS) handle = nullptr;
    require(status == CUBLAS_STATUS_SUCCESS, Code::kUnsupported, "cuBLASLt does not start on device ", device,
            ": ", status_string(status));
  }
  return handle;
}

}  // namespace cairn::kernels::cuda
