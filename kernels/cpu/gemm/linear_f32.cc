// linear and its gradients by float32 products. float16 activations, and bfloat16 ones where nothing multiplies bfloat16,
// are widened in the workspace; on the tiles, products of what was float16 need fewer parts (amx_f32.h).
#include <memory>

#include "kernels/cpu/gemm/epilogue.h"
#include "kernels/cpu/gemm/float_product.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/widened.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {
std::unique_ptr<Kernel> make_linear_f32(const Signature& s) {
  Activation act;
  if (!fast_float(s.in[0]) || !float_weight(s.in[1], s.in[0].dtype) || s.out[0].dtype != s.in[0].dtype)
    return nullptr;
  if (s.has_in(2) && !plain_f32(s.in[2])) return nullptr;
  if (!parse_activation(s.attrs != nullptr ? s.attrs->word("activation") : "", &act)) return nullptr;
  const int64_t m = s.in[0].shape.rows(), k = s.in[0].shape.last(), n = s.out[0].shape.last();
  Workspace space;
  const Widened x(s.in[0], &space), pre(s.out[0], &space);
  auto product = std::make_shared<WeightProduct>(ProductShape{.m = m,
                                                              .n = n,
                                                              .k = k,
                                                              .transpose_b = true,
                                                              .bias = s.has_in(2),
                                                              .parts_a = x.parts(),
                                                              .parts_b = weight_parts(s.in[1])},
                                                 s.in[1], s.in[0].dtype, s.threads);
  const int64_t scratch_at = space.add(product->scratch_bytes());
  const bool keep_pre = act != Activation::kNone && s.has_out(1);
  return make_kernel(
      [=](const Call& call) {
        void* ws = call.workspace;
        // Without activation the product is y; with one it is pre, or y in place when nobody wants pre.
        void* target =
            keep_pre && data_of(call.out, 1) != nullptr ? data_of(call.out, 1) : data_of(call.out, 0);
        float* z = pre.target(target, ws);
        product->run(x.read(data_of(call.in, 0), ws), data_of(call.in, 1), z,
                     Workspace::at<char>(ws, scratch_at), input<const float>(call, 2));
        if (target != data_of(call.out, 0)) pre.finish(target, ws);
        if (act != Activation::kNone) {
          float* y = pre.target(data_of(call.out, 0), ws);
          parallel_for(m * n, kGrain, [&](int64_t b, int64_t e, int) { activate(act, z + b, y + b, e - b); });
        }
        pre.finish(data_of(call.out, 0), ws);
      },
      space.bytes());
}

std::unique_ptr<Kernel> make_linear_grad_input_f32(const Signature& s) {
  Activation act;
  if (!fast_float(s.in[0]) || !float_weight(s.in[1], s.in[0].dtype) || !fast_float(s.out[0])) return nullptr;
  if (s.has_in(2) && s.in[2].dtype != s.out[0].dtype) return nullptr;
  if (!parse_activation(s.attrs != nullptr ? s.attrs->word("activation") : "", &act)) return nullptr;
  const int64_t m = s.in[0].shape.rows(), k = s.in[0].shape.last(), n = s.out[0].shape.last();
  Workspace space;
  const Widened dy(s.in[0], &space), dx(s.out[0], &space);
  auto product = std::make_shared<WeightProduct>(
      ProductShape{.m = m, .n = n, .k = k, .parts_a = dy.parts(), .parts_b = weight_parts(s.in[1])}, s.in[1],
      s.in[0].dtype, s.threads);
  const int64_t scratch_at = space.add(product->scratch_bytes());
  const DType type = s.out[0].dtype;
  const int64_t bytes = dtype_bytes(type);
  return make_kernel(
      [=](const Call& call) {
        void* ws = call.workspace;
        char* to = output<char>(call, 0);
        product->run(dy.read(data_of(call.in, 0), ws), data_of(call.in, 1), dx.target(to, ws),
                     Workspace::at<char>(ws, scratch_at));
        dx.finish(to, ws);
        if (const char* pre = input<const char>(call, 2))
          parallel_for(m * n, kGrain, [&](int64_t b, int64_t e, int) {
            const int64_t at = b * bytes;
            multiply_derivatives(act, type, pre + at, to + at, e - b);
          });
      },
      space.bytes());
}

std::unique_ptr<Kernel> make_linear_grad_weight_f32(const Signature& s) {
  if (!fast_float(s.in[0]) || !fast_float(s.in[1]) || !plain_f32(s.out[0])) return nullptr;
  const int64_t rows = s.in[0].shape.rows(), k = s.in[0].shape.last(), n = s.in[1].shape.last();
  Workspace space;
  const Widened x(s.in[0], &space), dy(s.in[1], &space);
  const ProductShape shape{.m = n,
                           .n = k,
                           .k = rows,
                           .transpose_a = true,
                           .whole_k = s.attrs != nullptr ? s.attrs->integer("rows", rows) : rows,
                           .parts_a = dy.parts(),
                           .parts_b = x.parts()};
  ProductShape adding = shape;
  adding.add = true;
  auto write = std::make_shared<FloatProduct>(shape, s.threads),
       add = std::make_shared<FloatProduct>(adding, s.threads);
  const int64_t scratch_at = space.add(std::max(write->scratch_bytes(), add->scratch_bytes()));
  return make_kernel(
      [=](const Call& call) {
        void* ws = call.workspace;
        const float* wide_dy = dy.read(data_of(call.in, 1), ws);
        if (float* dw = output<float>(call, 0))
          (accumulates(call, 0) ? add : write)
              ->run(wide_dy, x.read(data_of(call.in, 0), ws), dw, Workspace::at<char>(ws, scratch_at));
        if (float* db = output<float>(call, 1))
          parallel_for(n, 64, [&](int64_t c0, int64_t c1, int) {
            column_sums(DType::kF32, wide_dy + c0, n, rows, c1 - c0, db + c0, accumulates(call, 1));
          });
      },
      space.bytes());
}

}  // namespace cairn::kernels::cpu
