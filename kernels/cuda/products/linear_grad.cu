// The gradients of linear. Products are the library's, with what it can do on the way: the derivative of tanh
// gelu, the gradient of the bias, unless sums of our own were measured to be faster. Passes do the rest.
#include "kernels/cuda/common/activations.h"
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/products/columns.h"
#include "kernels/cuda/products/linear.h"
#include "kernels/cuda/products/product.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

// The product of the weight's gradient, and with it the bias's; or sums of our own over dy's columns, if the
// library does not make these, or if measurements chose so: "columns ALGORITHM" in place of "sums ALGORITHM".
struct WeightProduct {
  std::shared_ptr<Product> product;
  bool sums = false;

  WeightProduct(ProductShape shape, bool bias, Chooser chooser) {
    constexpr std::string_view kSums = "sums ", kColumns = "columns ";
    std::string_view word = chooser.pick();
    std::vector<std::string> options;
    const auto attempt = [&](Epilogue epilogue, std::string_view way) {
      shape.epilogue = epilogue;
      std::vector<std::string> words;
      auto made = try_product(shape, word.starts_with(way) ? word.substr(way.size()) : std::string_view(),
                              chooser.lists() ? &words : nullptr);
      for (const std::string& w : words) options.push_back(cat(way, w));
      return made;
    };
    const bool columns = word.starts_with(kColumns);
    if (bias && (!columns || chooser.lists())) product = attempt(Epilogue::kSumsOfA, kSums);
    sums = product != nullptr && !columns;
    if (!sums || chooser.lists())
      if (auto plain = attempt(Epilogue::kNone, bias ? kColumns : ""); !sums) product = std::move(plain);
    if (product == nullptr) product = make_plain_product(shape);
    chooser.made(std::move(options));
  }
};

template <class T>
void multiply_derivatives(const Call& call, Activation act, int64_t count, T* dx, const T* pre) {
  const auto elementwise = [&](auto f) { launch_map(call, f, count, dx, static_cast<const T*>(dx), pre); };
  switch (act) {
#define FUNCTION(name, ...)  \
  case Activation::k_##name: \
    return elementwise(Gradient_##name{});
#include "runtime/base/elementwise.def"
    default:
      return;
  }
}

}  // namespace

std::unique_ptr<Kernel> make_linear_grad_input(const Signature& s) {
  Activation act;
  const DType t = s.in[0].dtype;
  if (!fast_float(s.in[0]) || s.out[0].dtype != t || !WeightReader::takes(s.in[1], t)) return nullptr;
  if (!parse(s.attrs != nullptr ? s.attrs->word("activation") : "", &act)) return nullptr;
  if (s.has_in(2) != (act != Activation::kNone) || (s.has_in(2) && s.in[2].dtype != t)) return nullptr;
  ProductShape shape;
  shape.m = s.in[0].shape.rows(), shape.n = s.out[0].shape.last(), shape.k = s.in[0].shape.last();
  shape.in = shape.out = t;
  std::shared_ptr<Product> product;
  Chooser chooser(s);
  if (act == Activation::k_gelu_tanh) {
    shape.epilogue = Epilogue::kGeluDerivative;
    product = try_product(shape, chooser);
    shape.epilogue = Epilogue::kNone;
  }
  const bool fused = product != nullptr;
  if (!fused) product = make_product(shape, chooser);
  Workspace space;
  const WeightReader weight(s.in[1], t, &space);
  const int64_t product_at = space.add(product->workspace_bytes()), count = shape.m * shape.n;
  return make_kernel(
      [=](const Call& call) {
        void *dx = data_of(call.out, 0), *pre = data_of(call.in, 2);
        product->run({.stream = stream_of(call),
                      .a = data_of(call.in, 0),
                      .b = weight.read(call, 1),
                      .c = dx,
                      .pre = fused ? pre : nullptr,
                      .workspace = Workspace::at(call, product_at)});
        if (!fused && pre != nullptr)
          with_float(t, [&](auto zero) {
            using T = decltype(zero);
            multiply_derivatives(call, act, count, static_cast<T*>(dx), static_cast<const T*>(pre));
          });
      },
      space.bytes());
}

std::unique_ptr<Kernel> make_linear_grad_weight(const Signature& s) {
  const DType t = s.in[0].dtype;
  if (!fast_float(s.in[0]) || s.in[1].dtype != t) return nullptr;
  if ((s.has_out(0) && !plain_f32(s.out[0])) || (s.has_out(1) && !plain_f32(s.out[1]))) return nullptr;
  const int64_t rows = s.in[0].shape.rows(), n = s.in[1].shape.last();
  ProductShape shape;
  shape.m = n, shape.n = s.in[0].shape.last(), shape.k = rows;
  shape.in = t;
  shape.transpose_a = true;
  std::shared_ptr<Product> product;
  bool fused = false;
  if (s.has_out(0)) {
    const WeightProduct made(shape, s.has_out(1), Chooser(s));
    product = made.product, fused = made.sums;
  }
  const ColumnSums bias(rows, n, t);
  Workspace space;
  const int64_t product_at = product ? space.add(product->workspace_bytes()) : 0;
  const int64_t bias_at = s.has_out(1) ? space.add(fused ? 4 * n : bias.workspace_bytes()) : 0;
  return make_kernel(
      [=](const Call& call) {
        const cudaStream_t stream = stream_of(call);
        const void *x = data_of(call.in, 0), *dy = data_of(call.in, 1);
        float *db = output<float>(call, 1), *space_for_bias = Workspace::at<float>(call, bias_at);
        const bool add = accumulates(call, 1);
        float* sums = add ? space_for_bias : db;
        if (product != nullptr)
          product->run({.stream = stream,
                        .a = dy,
                        .b = x,
                        .c = data_of(call.out, 0),
                        .sums = fused ? sums : nullptr,
                        .workspace = Workspace::at(call, product_at),
                        .accumulate = accumulates(call, 0)});
        if (!fused && db != nullptr)
          bias.run(stream, dy, db, add, space_for_bias);
        else if (fused && add)
          sum_partials(stream, space_for_bias, 1, n, n, {db, true});
      },
      space.bytes());
}

}  // namespace cairn::kernels::cuda
