// matmul: the products of pairs of matrices, one after the other, in float32. Operands of 16 bits are widened in the
// workspace; on the tiles, products of what was float16 or bfloat16 need fewer parts (amx_f32.h).
#include "runtime/base/matmul.h"

#include <memory>

#include "kernels/cpu/gemm/float_product.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/widened.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {

std::unique_ptr<Kernel> make_matmul(const Signature& s) {
  if (!uniform_fast(s)) return nullptr;
  const Matmul z(s);
  const DType type = s.in[0].dtype;
  const int64_t bytes = dtype_bytes(type);
  Workspace space;
  const auto matrix = [&](int64_t rows, int64_t columns) {
    return Widened({type, {rows, columns}, 0}, &space);
  };
  const Widened a = matrix(z.m, z.k), b = matrix(z.k, z.n), y = matrix(z.m, z.n);
  auto product = std::make_shared<FloatProduct>(ProductShape{.m = z.m,
                                                             .n = z.n,
                                                             .k = z.k,
                                                             .transpose_a = z.transpose_a,
                                                             .transpose_b = z.transpose_b,
                                                             .parts_a = a.parts(),
                                                             .parts_b = b.parts()},
                                                s.threads);
  const int64_t scratch_at = space.add(product->scratch_bytes());
  return make_kernel(
      [=](const Call& call) {
        void* ws = call.workspace;
        for (int64_t i = 0; i < z.count; ++i) {
          char* to = output<char>(call, 0) + i * y.count * bytes;
          product->run(a.read(input<const char>(call, 0) + z.matrix(0, i) * a.count * bytes, ws),
                       b.read(input<const char>(call, 1) + z.matrix(1, i) * b.count * bytes, ws),
                       y.target(to, ws), Workspace::at<char>(ws, scratch_at));
          y.finish(to, ws);
        }
      },
      space.bytes());
}

}  // namespace cairn::kernels::cpu
