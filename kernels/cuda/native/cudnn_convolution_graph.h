// A convolution, or a transposed one, as a graph of cuDNN's. The gradient of a weight is none: the library has it in 16 bits alone. For
// files that are compiled only where the library's headers are.
#pragma once
#include "kernels/cuda/native/cudnn_graph.h"
#include "kernels/cuda/pictures/library.h"

namespace cairn::kernels::cuda {

// Of the graph's tensors.
enum ConvolutionId : int64_t { kConvX = 21, kConvWeight, kConvY, kConvBias };

// The library counts n, c, h, w; in memory channels are last.
struct ConvolutionTensor {
  ConvolutionId id;
  int64_t n, channels, h, w;
  cudnn_frontend::DataType_t type;

  template <class Tensor>
  void describe(Tensor& t) const {
    t.set_uid(id)
        .set_data_type(type)
        .set_dim({n, channels, h, w})
        .set_stride({h * w * channels, 1, w * channels, channels});
  }
  TensorPtr input(cudnn_frontend::graph::Graph& graph) const {
    auto t = Tensor_attributes();
    describe(t);
    return graph.tensor(t);
  }
  void output(const TensorPtr& t) const {
    t->set_output(true);
    describe(*t);
  }
};

template <class Options>
Options convolution_options(const LibraryConvolution& c) {
  Options options;
  options.set_pre_padding({c.before_h, c.before_w})
      .set_post_padding({c.after_h, c.after_w})
      .set_stride({c.stride_h, c.stride_w})
      .set_dilation({c.dilation_h, c.dilation_w});
  return options;
}

// Not yet built.
inline std::shared_ptr<cudnn_frontend::graph::Graph> convolution_graph(const LibraryConvolution& c,
                                                                       bool transposed) {
  namespace graphs = cudnn_frontend::graph;
  constexpr auto kFloat = cudnn_frontend::DataType_t::FLOAT;
  const auto type =
      c.type == DType::kF16 ? cudnn_frontend::DataType_t::HALF : cudnn_frontend::DataType_t::BFLOAT16;
  auto graph = std::make_shared<graphs::Graph>();
  graph->set_io_data_type(type).set_intermediate_data_type(kFloat).set_compute_data_type(kFloat);
  const ConvolutionTensor x{kConvX, c.n, c.channels, c.h, c.w, type},
      weight{kConvWeight, c.outputs, c.channels, c.kernel_h, c.kernel_w, type},
      y{kConvY, c.n, c.outputs, c.out_h, c.out_w, type}, bias{kConvBias, 1, c.outputs, 1, 1, kFloat};
  if (transposed) {
    x.output(graph->conv_dgrad(y.input(*graph), weight.input(*graph),
                               convolution_options<graphs::Conv_dgrad_attributes>(c)));
    return graph;
  }
  TensorPtr out = graph->conv_fprop(x.input(*graph), weight.input(*graph),
                                    convolution_options<graphs::Conv_fprop_attributes>(c));
  if (c.bias)
    out = graph->pointwise(out, bias.input(*graph),
                           graphs::Pointwise_attributes().set_mode(cudnn_frontend::PointwiseMode_t::ADD));
  y.output(out);
  return graph;
}

// Leaves the plans that may run: those whose bits are the same in every run. handle: nullptr for a device that is described.
inline cudnn_frontend::error_t plan_convolution(cudnn_frontend::graph::Graph& graph,
                                                const LibraryConvolution& c, cudnnHandle_t handle) {
  auto status = graph.validate();
  if (status.is_good()) status = graph.build_operation_graph(handle);
  if (status.is_good()) status = graph.create_execution_plans({cudnn_frontend::HeurMode_t::A});
  if (!status.is_good()) return status;
  graph.deselect_numeric_notes({cudnn_frontend::NumericalNote_t::NONDETERMINISTIC})
      .deselect_workspace_greater_than(max_convolution_workspace(c));
  return graph.check_support(handle);
}

}  // namespace cairn::kernels::cuda
