// Attention by cuDNN's fused kernels. The library is opened at run time; where it is missing, too old, or
// does not take the sizes, the next row of the table is asked.
#include "kernels/cuda/attention/library.h"

#if __has_include(<cudnn_frontend.h>) && __has_include(<cudnn.h>)
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <map>
#include <mutex>
#include <tuple>

#include "kernels/cuda/native/cudnn_graph.h"
#include "runtime/base/cuda/status.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace cairn::kernels::cuda {
namespace {

namespace fe = cudnn_frontend;

// A handle has one stream at a time, so whoever uses it holds the lock.
struct Handle {
  std::mutex mutex;
  cudnnHandle_t cudnn = nullptr;
};

constexpr const char* kLibrary = "libcudnn.so.9";

// Opens the library once and never closes it. False: it is missing.
bool open_library() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (fe::cudnn_dlhandle == nullptr) fe::cudnn_dlhandle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  return fe::cudnn_dlhandle != nullptr;
}

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

// The handle of the current device; nullptr without the library. Handles live as long as the process.
Handle* open_handle(int device) {
  static std::mutex mutex;
  static std::map<int, Handle>& handles = *new std::map<int, Handle>;
  if (!open_library()) return nullptr;
  const std::lock_guard lock(mutex);
  Handle& handle = handles[device];
  if (handle.cudnn == nullptr && fe::detail::create_handle(&handle.cudnn) != CUDNN_STATUS_SUCCESS) {
    handle.cudnn = nullptr;
    return nullptr;
  }
  return &handle;
}

// What cudaMalloc gives, and the library's plans are tried with; cairn promises less.
constexpr int64_t kWorkspaceAlignment = 256;
void* aligned(void* workspace) {
  const auto address = reinterpret_cast<uintptr_t>(workspace);
  return reinterpret_cast<void*>((address + kWorkspaceAlignment - 1) / kWorkspaceAlignment *
                                 kWorkspaceAlignment);
}

class Cudnn final : public LibraryAttention {
 public:
  Cudnn(Handle* handle, std::shared_ptr<fe::graph::Graph> graph, int64_t workspace)
      : handle_(handle), graph_(std::move(graph)), workspace_(workspace) {}
  int64_t workspace_bytes() const override { return workspace_ > 0 ? workspace_ + kWorkspaceAlignment : 0; }
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
    const std::lock_guard lock(handle_->mutex);
    if (fe::detail::set_stream(handle_->cudnn, static_cast<cudaStream_t>(call.stream)) !=
        CUDNN_STATUS_SUCCESS) [[unlikely]]
      fail(code_of(Refusal::kFailed, present_status()), "cuDNN does not take the stream");
    auto status = graph_->execute(handle_->cudnn, operands, aligned(call.workspace));
    if (!status.is_good()) [[unlikely]]
      fail(code_of(refusal_of(status.get_code()), present_status()),
           "cuDNN's attention could not be started: ", status.get_message());
  }

 private:
  Handle* handle_;
  std::shared_ptr<fe::graph::Graph> graph_;
  int64_t workspace_;
};

struct Plan {
  std::shared_ptr<fe::graph::Graph> graph;  // nullptr: the library does not take it
  int64_t workspace = 0;
};

// Layers of one shape share a plan: making one takes up to seconds.
Plan find_plan(const AttentionSizes& a, bool gradient, int device, Handle& handle) {
  using Key = std::tuple<int, bool, int, int, int, int, int, bool, bool, float>;
  static std::mutex mutex;
  static std::map<Key, Plan>& plans = *new std::map<Key, Plan>;
  const Key key{device, gradient, a.batch, a.length, a.heads, a.kv_heads, a.dim, a.causal, a.packed, a.scale};
  const std::lock_guard lock(mutex);
  const auto found = plans.find(key);
  if (found != plans.end()) return found->second;
  Plan& plan = plans[key];
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
  Handle* handle = open_handle(device);
  if (handle == nullptr) return nullptr;
  const Plan plan = find_plan(a, gradient, device, *handle);
  if (plan.graph == nullptr) return nullptr;
  return std::make_unique<Cudnn>(handle, plan.graph, plan.workspace);
}

LibraryVersion attention_library_version() {
  if (!open_library()) return {0, cat(kLibrary, " cannot be opened")};
  return {static_cast<int>(fe::detail::get_backend_version())};
}

}  // namespace cairn::kernels::cuda

#else

namespace cairn::kernels::cuda {

std::unique_ptr<LibraryAttention> try_library_attention(const AttentionSizes&, bool) { return nullptr; }
LibraryVersion attention_library_version() { return {0, "built without cuDNN's headers"}; }

}  // namespace cairn::kernels::cuda

#endif
