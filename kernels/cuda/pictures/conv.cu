// What the kernels of convolutions share: geometry, weights in another order, sums of parts; and products by cuBLASLt, where a window
// is one pixel.
#include <numeric>

#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/pictures/conv.h"
#include "kernels/cuda/products/columns.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256;

template <class From, class To>
__global__ void __launch_bounds__(kThreads)
    reorder(WeightOrder order, const From* __restrict__ w, To* __restrict__ to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= order.count) return;
  int64_t rest = i / order.channels;
  const int64_t c = i - rest * order.channels, output = rest / order.taps, tap = rest - output * order.taps,
                group = output / order.outputs;
  store(to + group * order.group + (output - group * order.outputs) * order.output + tap * order.tap +
            c * order.channel,
        load(w + i));
}

ConvAxis axis_of(const WindowAxis& a, bool transposed) {
  const int64_t every = transposed ? a.stride / std::gcd(a.stride, a.dilation) : 1;
  const auto narrow = [](int64_t v) { return static_cast<int>(v); };
  return {narrow(transposed ? a.out : a.in),
          narrow(transposed ? a.in : a.out),
          narrow(a.window),
          narrow(a.stride),
          narrow(a.dilation),
          narrow(a.before),
          narrow(every),
          narrow(transposed ? std::min(a.stride, a.in) : 1)};
}

const Attrs& attrs_of(const Signature& s) {
  static const Attrs kNone;
  return s.attrs != nullptr ? *s.attrs : kNone;
}

// The signature of a product, of a convolution whose windows are one pixel each, a stride of one apart and without padding: its
// operands as matrices of pixels and channels.
class Pointwise {
 public:
  Pointwise(const Signature& s, std::string_view op, const ConvSizes& z)
      : in_(s.in.begin(), s.in.end()), out_(s.out.begin(), s.out.end()), product_(s) {
    for (std::vector<TensorDesc>* list : {&in_, &out_})
      for (TensorDesc& d : *list)
        if (d.shape.rank > 1) d.shape = Shape{d.shape.rows(), d.shape.last()};
    const auto one = [](const ConvAxis& a) {
      return a.window == 1 && a.stride == 1 && a.before == 0 && a.from == a.to;
    };
    fits_ = z.groups == 1 && one(z.h) && one(z.w);
    product_.op = op;
    product_.in = in_;
    product_.out = out_;
    product_.attrs = &none_;
  }
  std::unique_ptr<Kernel> make(MakeKernel maker) const { return fits_ ? maker(product_) : nullptr; }

 private:
  std::vector<TensorDesc> in_, out_;
  Attrs none_;
  Signature product_;
  bool fits_;
};

ColumnSums bias_sums(const ConvGradient& g) { return {g.pixels, g.z.channels_out(), g.type}; }

}  // namespace

bool make_conv_sizes(const Shape& input, const Shape& weight, const Attrs& attrs, bool transposed,
                     ConvSizes* to) {
  const Windows all = conv_windows(input, weight, attrs);
  const int64_t groups = attrs.integer("groups", 1), of_input = all.channels / groups,
                outputs = weight[0] / groups;
  constexpr int64_t kMost = int64_t{1} << 30;
  const int64_t reach =
      std::max(all.h.span() + all.h.in + all.h.stride, all.w.span() + all.w.in + all.w.stride);
  if (all.pixels_in() > kMost || all.pixels_out() > kMost || weight.elements() > kMost || reach > kMost ||
      groups > 65535)
    return false;
  *to = {static_cast<int>(all.n),
         static_cast<int>(groups),
         static_cast<int>(transposed ? outputs : of_input),
         static_cast<int>(transposed ? of_input : outputs),
         transposed,
         axis_of(all.h, transposed),
         axis_of(all.w, transposed)};
  return to->phases() <= 65535;
}

WeightOrder rows_of_sums(const ConvSizes& z) {
  const int64_t length = z.length(), depth = z.depth;
  const int64_t count = length * z.channels_out(), group = length * z.columns;
  if (z.transposed) return {z.depth, z.taps(), z.columns, count, group, 1, depth, length};
  return {z.columns, z.taps(), z.depth, count, group, length, depth, 1};
}

WeightOrder columns_of_taps(const ConvSizes& z) {
  const int64_t across = z.channels_out(), tap = across * z.depth, count = tap * z.taps();
  if (z.transposed) return {z.depth, z.taps(), z.columns, count, z.columns, across, tap, 1};
  return {z.columns, z.taps(), z.depth, count, z.columns, 1, tap, across};
}

void reorder_weight(cudaStream_t stream, const WeightOrder& order, DType from, const void* w, DType to,
                    void* out) {
  with_float(from, [&](auto a) {
    with_float(to, [&](auto b) {
      using From = decltype(a);
      using To = decltype(b);
      launch(stream, reorder<From, To>,
             {.blocks = (order.count + kThreads - 1) / kThreads, .threads = kThreads}, order,
             static_cast<const From*>(w), static_cast<To*>(out));
    });
  });
}

bool conv_call(const Signature& s, bool transposed, ConvCall* to) {
  const DType weight = s.in[1].dtype;
  if (!fast_float(s.in[0]) || s.out[0].dtype != s.in[0].dtype || !fast_float(s.in[1])) return false;
  if (weight != DType::kF32 && weight != s.in[0].dtype) return false;
  if (!transposed && s.has_in(2) && !plain_f32(s.in[2])) return false;
  to->type = s.in[0].dtype;
  to->weight = weight;
  return make_conv_sizes(transposed ? s.out[0].shape : s.in[0].shape, s.in[1].shape, attrs_of(s), transposed,
                         &to->z);
}

bool conv_gradient(const Signature& s, ConvGradient* to) {
  if (!fast_float(s.in[0]) || s.in[1].dtype != s.in[0].dtype) return false;
  if (!plain_f32(s.out[0]) || (s.has_out(1) && !plain_f32(s.out[1]))) return false;
  to->type = s.in[0].dtype;
  if (!make_conv_sizes(s.in[0].shape, s.out[0].shape, attrs_of(s), false, &to->z)) return false;
  to->pixels = to->z.rows();
  return true;
}

void cut_into_parts(int64_t tiles, int least_pixels, ConvGradient* g) {
  constexpr int64_t kBlocks = 2 * kGridMultiprocessors;
  const int64_t most = (g->pixels - 1) / least_pixels + 1, wanted = (kBlocks + tiles - 1) / tiles;
  g->parts = static_cast<int>(std::min(most, wanted));
}

int64_t ConvGradient::workspace_bytes() const {
  return std::max(partial_bytes(), bias_sums(*this).workspace_bytes());
}

PartSums part_sums(const Call& call, const ConvGradient& g) {
  if (g.parts > 1) return {static_cast<float*>(call.workspace), false};
  return {output<float>(call, 0), accumulates(call, 0)};
}

void finish_gradient(const Call& call, const ConvGradient& g) {
  if (g.parts > 1 && output<float>(call, 0) != nullptr)
    sum_partials(stream_of(call), static_cast<const float*>(call.workspace), g.parts, g.elements(),
                 g.elements(), {output<float>(call, 0), accumulates(call, 0)});
  if (auto* db = output<float>(call, 1))
    bias_sums(g).run(stream_of(call), data_of(call.in, 1), db, accumulates(call, 1), call.workspace);
}

std::unique_ptr<Kernel> make_conv_pointwise(const Signature& s) {
  ConvCall c;
  if (!conv_call(s, false, &c)) return nullptr;
  return Pointwise(s, "linear", c.z).make(make_linear);
}
std::unique_ptr<Kernel> make_conv_transpose_pointwise(const Signature& s) {
  ConvCall c;
  if (!conv_call(s, true, &c)) return nullptr;
  return Pointwise(s, "linear_grad_input", c.z).make(make_linear_grad_input);
}
std::unique_ptr<Kernel> make_conv_grad_weight_pointwise(const Signature& s) {
  ConvGradient g;
  if (!conv_gradient(s, &g)) return nullptr;
  return Pointwise(s, "linear_grad_weight", g.z).make(make_linear_grad_weight);
}

}  // namespace cairn::kernels::cuda
