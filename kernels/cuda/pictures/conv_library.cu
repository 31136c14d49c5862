// Convolutions in bfloat16 and float16 by the GPU vendor's library.
#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/pictures/library.h"
#include "kernels/cuda/products/linear.h"
#include "kernels/cuda/rows.h"
#include "runtime/base/spatial.h"

namespace cairn::kernels::cuda {
namespace {

std::unique_ptr<Kernel> make_library(const Signature& s, bool transposed) {
  const DType type = s.in[0].dtype;
  const Shape &weight = s.in[1].shape, &read = transposed ? s.out[0].shape : s.in[0].shape;
  if (!fast_float(s.in[0]) || !is_half(type) || s.out[0].dtype != type || !WeightReader::takes(s.in[1], type))
    return nullptr;
  const bool bias = !transposed && s.has_in(2);
  if (s.attrs->integer("groups", 1) != 1 || weight[0] % 8 != 0 || weight.last() % 8 != 0 ||
      (bias && !plain_f32(s.in[2])))
    return nullptr;
  const Windows all = conv_windows(read, weight, *s.attrs);
  const WindowAxis &h = all.h, &w = all.w;
  const LibraryConvolution c{type,     all.n,   h.in,     w.in,     all.channels, weight[0],  h.window,
                             w.window, h.out,   w.out,    h.stride, w.stride,     h.dilation, w.dilation,
                             h.before, h.after, w.before, w.after,  bias};
  const std::shared_ptr<ConvolutionPlan> plan = try_library_convolution(c, transposed);
  if (plan == nullptr) return nullptr;
  Workspace space;
  const WeightReader reader(s.in[1], type, &space);
  const int64_t plan_at = space.add(plan->workspace_bytes());
  return make_kernel(
      [=](const Call& call) {
        void *const in = data_of(call.in, 0), *const out = data_of(call.out, 0);
        plan->run({.stream = stream_of(call),
                   .x = transposed ? out : in,
                   .weight = const_cast<void*>(reader.read(call, 1)),
                   .y = transposed ? in : out,
                   .workspace = Workspace::at(call, plan_at),
                   .bias = bias ? input<const float>(call, 2) : nullptr});
      },
      space.bytes());
}

}  // namespace

std::unique_ptr<Kernel> make_conv_library(const Signature& s) { return make_library(s, false); }
std::unique_ptr<Kernel> make_conv_transpose_library(const Signature& s) { return make_library(s, true); }

}  // namespace cairn::kernels::cuda
