// A graph handle: open for building, or frozen and shared with plans.
#pragma once
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "capi/src/instance.h"
#include "runtime/graph/graph.h"

struct cairn_graph : cairn::capi::Handle<cairn_graph> {
  explicit cairn_graph(cairn_instance* in) : instance(in) {}

  cairn::capi::Ref<cairn_instance> instance;
  std::shared_ptr<const cairn::graph::Graph> graph;
  std::shared_ptr<cairn::graph::Graph> building;  // the same; empty when it came frozen from a checkpoint

  // Names handed out while the graph may still move or rename its own; they live as long as the handle.
  mutable std::mutex mutex;
  mutable std::set<std::string> names;

  cairn::graph::Graph& open() const {
    cairn::require(building != nullptr && !building->frozen(), cairn::Code::kWrongState,
                   "the graph is frozen; this call needs one that is still being built");
    return *building;
  }
};

namespace cairn::capi {

// The runtime's id of a value of this graph; 0 is kNone. `what` names the argument in the message.
graph::ValueId value_id(const graph::Graph& graph, cairn_value_t value, std::string_view what);
// A tensor's type, shape and bytes.
inline void describe(const TensorDesc& desc, cairn_value_info_t* info) {
  info->rank = static_cast<uint32_t>(desc.shape.rank);
  for (int i = 0; i < desc.shape.rank; ++i) info->dims[i] = desc.shape[i];
  info->dtype = static_cast<uint32_t>(desc.dtype);
  info->bytes = static_cast<uint64_t>(desc.bytes());
}
inline cairn_value_t handle_id(graph::ValueId id) {
  return id == graph::kNone ? 0 : static_cast<cairn_value_t>(id) + 1;
}

// What a custom op's callbacks have in common: the host's `user`, which it gets back when the last copy of them is gone.
struct CustomOpUser {
  CustomOpUser(void* of_host, const char* (*words)(void* user)) : user(of_host), failure_words(words) {}
  CustomOpUser(const CustomOpUser&) = delete;
  CustomOpUser& operator=(const CustomOpUser&) = delete;
  ~CustomOpUser() {
    if (release == nullptr) return;
    try {
      release(user);
    } catch (...) {  // whoever let go of the last copy can do nothing about it
    }
  }
  void* const user;
  const char* (*const failure_words)(void* user);
  void (*release)(void* user) = nullptr;  // only where the graph took the op
};

// The host's callbacks as the runtime's (custom_op.cc).
graph::CustomOp custom_op(const cairn_custom_op_t& op, const std::shared_ptr<CustomOpUser>& user);

}  // namespace cairn::capi
