// The library's convolutions with plain loops: each product of the sum goes to the element that it is for.
#include <vector>

#include "kernels/cuda/pictures/library.h"
#include "tests/cuda/emulated/runtime.h"

namespace cairn::kernels::cuda {
namespace {

template <class T>
void convolve(const LibraryConvolution& c, bool transposed, const ConvolutionCall& call) {
  auto *x = static_cast<T*>(call.x), *y = static_cast<T*>(call.y);
  const auto* weight = static_cast<const T*>(call.weight);
  const int64_t of_x = c.n * c.h * c.w * c.channels, of_y = c.n * c.out_h * c.out_w * c.outputs;
  std::vector<double> sums(static_cast<size_t>(transposed ? of_x : of_y));
  for (int64_t i = 0; i < of_y; ++i) {
    const int64_t o = i % c.outputs, pixel = i / c.outputs, out_w = pixel % c.out_w,
                  out_h = pixel / c.out_w % c.out_h, n = pixel / c.out_w / c.out_h;
    double sum = call.bias != nullptr ? double{call.bias[o]} : 0;
    for (int64_t tap = 0; tap < c.kernel_h * c.kernel_w; ++tap) {
      const int64_t h = out_h * c.stride_h + tap / c.kernel_w * c.dilation_h - c.before_h,
                    w = out_w * c.stride_w + tap % c.kernel_w * c.dilation_w - c.before_w;
      if (h < 0 || h >= c.h || w < 0 || w >= c.w) continue;
      for (int64_t k = 0; k < c.channels; ++k) {
        const int64_t at = ((n * c.h + h) * c.w + w) * c.channels + k;
        const double factor = double{to_float(weight[(o * c.kernel_h * c.kernel_w + tap) * c.channels + k])};
        if (transposed)
          sums[static_cast<size_t>(at)] += factor * double{to_float(y[i])};
        else
          sum += factor * double{to_float(x[at])};
      }
    }
    if (!transposed) sums[static_cast<size_t>(i)] = sum;
  }
  T* const to = transposed ? x : y;
  for (size_t i = 0; i < sums.size(); ++i) to[i] = round_to<T>(static_cast<float>(sums[i]));
}

class Loops final : public ConvolutionPlan {
 public:
  Loops(const LibraryConvolution& c, bool transposed) : c_(c), transposed_(transposed) {}
  int64_t workspace_bytes() const override { return 64; }
  void run(const ConvolutionCall& call) const override {
    emulated::submit(static_cast<cudaStream_t>(call.stream), [c = c_, transposed = transposed_, call,
                                                              space = workspace_bytes()] {
      std::fill_n(static_cast<char*>(call.workspace), space, '\x5a');
      c.type == DType::kF16 ? convolve<f16>(c, transposed, call) : convolve<bf16>(c, transposed, call);
    });
  }

 private:
  LibraryConvolution c_;
  bool transposed_;
};

}  // namespace

std::unique_ptr<ConvolutionPlan> try_library_convolution(const LibraryConvolution& c, bool transposed) {
  if (emulated::libraries().attention == 0) return nullptr;
  return std::make_unique<Loops>(c, transposed);
}

}  // namespace cairn::kernels::cuda
