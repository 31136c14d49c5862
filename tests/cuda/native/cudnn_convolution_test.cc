// Whether cuDNN takes the graphs of convolutions, with plans whose bits are the same in every run, on a machine without a GPU.
#include "kernels/cuda/native/cudnn_convolution_graph.h"
#include "tests/cuda/native/described_device.h"

namespace cairn::kernels::cuda {
namespace {

LibraryConvolution square(int64_t n, int64_t size, int64_t channels, int64_t outputs, int64_t kernel,
                          int64_t stride, int64_t before, int64_t after) {
  LibraryConvolution c{};
  c.type = DType::kBF16;
  c.n = n, c.h = c.w = size, c.channels = channels, c.outputs = outputs;
  c.kernel_h = c.kernel_w = kernel, c.stride_h = c.stride_w = stride, c.dilation_h = c.dilation_w = 1;
  c.before_h = c.before_w = before, c.after_h = c.after_w = after;
  c.out_h = c.out_w = (size + before + after - kernel) / stride + 1;
  return c;
}

class CudnnConvolution : public DescribedDevice {};

TEST_F(CudnnConvolution, BothWaysAreTaken) {
  for (LibraryConvolution c : {square(16, 56, 64, 64, 3, 1, 1, 1), square(16, 56, 128, 128, 3, 2, 1, 1),
                               square(16, 56, 256, 512, 1, 2, 0, 0), square(2, 9, 24, 40, 5, 3, 0, 2)})
    for (const DType type : {DType::kBF16, DType::kF16})
      for (const bool bias : {false, true})
        for (const bool transposed : {false, true}) {
          c.type = type, c.bias = bias;
          const auto graph = convolution_graph(c, transposed);
          describe(*graph);
          auto status = plan_convolution(*graph, c, nullptr);
          EXPECT_TRUE(status.is_good()) << "kernel " << c.kernel_h << ", bias " << bias << ", transposed "
                                        << transposed << ": " << status.get_message();
        }
}

}  // namespace
}  // namespace cairn::kernels::cuda
