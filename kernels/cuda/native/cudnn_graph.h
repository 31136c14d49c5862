// Attention as a graph of cuDNN's. For files that are compiled only where the library's headers are.
#pragma once
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#include <cudnn_frontend.h>
#pragma GCC diagnostic pop

#include "kernels/cuda/attention/library.h"

namespace cairn::kernels::cuda {

using cudnn_frontend::graph::Tensor_attributes;
using TensorPtr = std::shared_ptr<Tensor_attributes>;

// Of the graph's tensors.
enum Id : int64_t { kQ = 1, kK, kV, kY, kLse, kDy, kDq, kDk, kDv };

inline TensorPtr rows(cudnn_frontend::graph::Graph& graph, Id id, const AttentionSizes& a, int64_t heads,
                      int64_t ld) {
  return graph.tensor(Tensor_attributes()
                          .set_uid(id)
                          .set_dim({a.batch, heads, a.length, a.dim})
                          .set_stride({a.length * ld, a.dim, ld, 1}));
}
inline void make_output(const TensorPtr& t, Id id, const AttentionSizes& a, int64_t heads, int64_t ld) {
  t->set_output(true)
      .set_uid(id)
      .set_dim({a.batch, heads, a.length, a.dim})
      .set_stride({a.length * ld, a.dim, ld, 1});
}
template <class Tensor>
void describe_lse(Tensor& t, const AttentionSizes& a) {
  t.set_uid(kLse)
      .set_data_type(cudnn_frontend::DataType_t::FLOAT)
      .set_dim({a.batch, a.heads, a.length, 1})
      .set_stride({int64_t{a.heads} * a.length, a.length, 1, 1});
}

// Forward, or the gradient by the deterministic algorithm. Not yet built.
inline std::shared_ptr<cudnn_frontend::graph::Graph> attention_graph(const AttentionSizes& a, bool gradient) {
  auto graph = std::make_shared<cudnn_frontend::graph::Graph>();
  graph->set_io_data_type(cudnn_frontend::DataType_t::BFLOAT16)
      .set_intermediate_data_type(cudnn_frontend::DataType_t::FLOAT)
      .set_compute_data_type(cudnn_frontend::DataType_t::FLOAT);
  const TensorPtr q = rows(*graph, kQ, a, a.heads, a.q_ld), k = rows(*graph, kK, a, a.kv_heads, a.kv_ld),
                  v = rows(*graph, kV, a, a.kv_heads, a.kv_ld);
  if (!gradient) {
    auto options = cudnn_frontend::graph::SDPA_attributes();
    options.set_name("attention").set_generate_stats(true).set_causal_mask(a.causal).set_attn_scale(a.scale);
    const auto [y, lse] = graph->sdpa(q, k, v, options);
    make_output(y, kY, a, a.heads, a.y_ld);
    lse->set_output(true);
    describe_lse(*lse, a);
  } else {
    auto options = cudnn_frontend::graph::SDPA_backward_attributes();
    options.set_name("attention_grad").set_causal_mask(a.causal).set_attn_scale(a.scale);
    options.set_deterministic_algorithm(true);
    auto stats = Tensor_attributes();
    describe_lse(stats, a);
    const auto [dq, dk, dv] =
        graph->sdpa_backward(q, k, v, rows(*graph, kY, a, a.heads, a.y_ld),
                             rows(*graph, kDy, a, a.heads, a.y_ld), graph->tensor(stats), options);
    make_output(dq, kDq, a, a.heads, a.q_ld);
    make_output(dk, kDk, a, a.kv_heads, a.kv_ld);
    make_output(dv, kDv, a, a.kv_heads, a.kv_ld);
  }
  return graph;
}

}  // namespace cairn::kernels::cuda
