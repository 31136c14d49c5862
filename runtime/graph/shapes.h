// Shape inference of one node, built-in or custom. Internal to runtime/graph.
#pragma once
#include <vector>

#include "runtime/graph/graph.h"

namespace cairn::graph {

// Output descs of the op, as many as it makes. `in` holds ids (kNone: left out), `descs` their types.
inline std::vector<TensorDesc> infer_shapes(const Graph& graph, const ops::OpRow& row, const Attrs& attrs,
                                            const std::vector<int32_t>& in,
                                            const std::vector<TensorDesc>& descs) {
  std::vector<TensorDesc> out;
  if (row.code == ops::OpCode::k_custom) {
    const CustomOp& custom = graph.customs()[attrs.integer("custom")];
    out.resize(custom.outputs);
    require(custom.shape({descs.data(), static_cast<size_t>(custom.inputs)}, out), Code::kInvalidArgument,
            custom.name, ": its shape callback refused the inputs");
    for (const TensorDesc& desc : out) desc.bytes();
    return out;
  }
  uint32_t present = 0;
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i] >= 0) present |= 1u << i;
  row.shape({row.name, descs, present, &attrs, &out});
  return out;
}

}  // namespace cairn::graph
