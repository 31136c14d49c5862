// The runtime's CustomOp, which calls the host's callbacks.
#include <array>

#include "capi/src/graph.h"
#include "runtime/base/os/float_environment.h"

namespace cairn::capi {
namespace {

constexpr size_t kMaxOperands = 12;  // backward: 4 inputs, 4 outputs, 4 gradients

cairn_tensor_t view(const TensorDesc& desc, void* data) {
  cairn_tensor_t t{};
  t.data = data;
  t.rank = static_cast<uint32_t>(desc.shape.rank);
  for (int i = 0; i < desc.shape.rank; ++i) t.dims[i] = desc.shape[i];
  t.dtype = static_cast<uint32_t>(desc.dtype);
  return t;
}

struct Views {
  explicit Views(std::span<const TensorDesc> descs) {
    for (size_t i = 0; i < descs.size() && i < kMaxOperands; ++i) list[i] = view(descs[i], nullptr);
  }
  explicit Views(std::span<const Tensor> tensors) {
    for (size_t i = 0; i < tensors.size() && i < kMaxOperands; ++i)
      list[i] = view(tensors[i].desc, tensors[i].data);
  }
  std::array<cairn_tensor_t, kMaxOperands> list{};
};

// A type that the host's shape callback filled.
TensorDesc checked(const std::string& op, size_t output, const cairn_tensor_t& t) {
  require(t.rank <= kMaxRank, Code::kInvalidArgument, "custom op '", op, "': shape gave output ", output,
          " the rank ", t.rank);
  require(t.dtype <= CAIRN_U8, Code::kInvalidArgument, "custom op '", op, "': shape gave output ", output,
          " the unknown dtype ", t.dtype);
  for (uint32_t d = 0; d < t.rank; ++d)
    require(t.dims[d] >= 1, Code::kInvalidArgument, "custom op '", op, "': shape gave output ", output,
            " the dimension ", t.dims[d], " on axis ", d);
  TensorDesc desc;
  desc.dtype = static_cast<DType>(t.dtype);
  desc.shape = Shape(std::span<const int64_t>(t.dims, t.rank));
  return desc;
}

// " (words)" of the host's about the callback that just failed on this thread; "" where it has none.
std::string words(const CustomOpUser& user) {
  const char* given = user.failure_words != nullptr ? user.failure_words(user.user) : nullptr;
  return given != nullptr ? std::string(": ") + given : std::string();
}

using Run = int32_t (*)(void*, const cairn_tensor_t*, const cairn_tensor_t*, void*);

// A callback that fails with a status of cairn's fails the call with it.
[[noreturn]] void failed(const std::string& op, const char* which, int32_t result, const std::string& why) {
  if (result < 0 && !why.empty())  // a number for what has none says less than the words
    fail(Code::kInvalidArgument, "custom op '", op, "': its ", which, " callback failed", why);
  const bool status = result > 0 && result <= CAIRN_STATUS_INTERNAL;
  fail(status ? static_cast<Code>(result) : Code::kInvalidArgument, "custom op '", op, "': its ", which,
       " callback failed with ", result, status ? " (" : ", which is no status of cairn's",
       status ? cairn_status_name(result) : "", status ? ")" : "", why);
}

auto runner(const std::string& op, const char* which, const std::shared_ptr<CustomOpUser>& user, Run run) {
  return [op, which, user, run](std::span<const Tensor> in, std::span<const Tensor> out, void* workspace) {
    const KeptFloatEnvironment numbers;
    const int32_t result = run(user->user, Views(in).list.data(), Views(out).list.data(), workspace);
    if (result == 0) return true;
    failed(op, which, result, words(*user));
  };
}

}  // namespace

graph::CustomOp custom_op(const cairn_custom_op_t& op, const std::shared_ptr<CustomOpUser>& user) {
  graph::CustomOp made;
  made.name = op.name;
  made.inputs = static_cast<int>(op.inputs);
  made.outputs = static_cast<int>(op.outputs);
  made.recomputable = op.recomputable != 0;
  made.shape = [name = made.name, user, shape = op.shape](std::span<const TensorDesc> in,
                                                          std::span<TensorDesc> out) {
    const KeptFloatEnvironment numbers;
    Views outputs{std::span<const TensorDesc>()};
    const int32_t result = shape(user->user, Views(in).list.data(), outputs.list.data());
    if (result != 0) {
      const std::string why = words(*user);
      if (result == CAIRN_STATUS_INVALID_ARGUMENT && why.empty()) return false;
      failed(name, "shape", result, why);
    }
    for (size_t i = 0; i < out.size(); ++i) out[i] = checked(name, i, outputs.list[i]);
    return true;
  };
  if (op.workspace_bytes != nullptr)
    made.workspace_bytes = [name = made.name, user,
                            ask = op.workspace_bytes](std::span<const TensorDesc> in) {
      const KeptFloatEnvironment numbers;
      const int64_t bytes = ask(user->user, Views(in).list.data());
      if (bytes < 0)
        fail(Code::kInvalidArgument, "custom op '", name, "': workspace_bytes gave ", bytes, words(*user));
      return bytes;
    };
  made.forward = runner(made.name, "forward", user, op.forward);
  if (op.backward != nullptr) made.backward = runner(made.name, "backward", user, op.backward);
  return made;
}

}  // namespace cairn::capi
