// matmul: products of pairs of matrices, as strided batches of the library's.
#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/cuda/common/support.h"
#include "kernels/cuda/products/product.h"
#include "kernels/cuda/rows.h"
#include "runtime/base/matmul.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int64_t kMostBatch = 65535;

// Addresses of matrices inside of an operand are multiples of what their size is.
int64_t alignment(int64_t elements, int64_t bytes) {
  int64_t aligned = 64;
  while (elements * bytes % aligned != 0) aligned /= 2;
  return aligned;
}

}  // namespace

std::unique_ptr<Kernel> make_matmul(const Signature& s) {
  const DType type = s.in[0].dtype;
  if (!fast_float(s.in[0]) || s.in[1] != TensorDesc{type, s.in[1].shape, 0} || s.out[0].dtype != type)
    return nullptr;
  const Matmul z(s);
  const int64_t bytes = dtype_bytes(type), of_a = z.m * z.k, of_b = z.k * z.n, of_y = z.m * z.n;
  // The last axis of the leading dimensions is a batch, in pieces of what a launch holds; a launch for each of the others.
  const int last = z.batch.rank - 1;
  const int64_t run = z.batch.sizes[last], most = std::min(run, kMostBatch);
  ProductShape shape;
  shape.m = z.m, shape.n = z.n, shape.k = z.k;
  shape.in = shape.out = type;
  shape.transpose_a = z.transpose_a, shape.transpose_b = z.transpose_b;
  shape.stride_a = z.batch.strides[0][last] * of_a, shape.stride_b = z.batch.strides[1][last] * of_b;
  shape.stride_c = of_y;
  shape.alignment_a = alignment(of_a, bytes), shape.alignment_b = alignment(of_b, bytes);
  shape.alignment_c = alignment(of_y, bytes);
  Chooser chooser(s);
  shape.batch = most;
  const std::shared_ptr<Product> full = make_product(shape, chooser);
  std::shared_ptr<Product> rest;
  if (run % most != 0) {
    shape.batch = run % most;
    rest = make_product(shape);
  }
  const int64_t workspace = std::max(full->workspace_bytes(), rest != nullptr ? rest->workspace_bytes() : 0);
  return make_kernel(
      [=](const Call& call) {
        for (int64_t outer = 0; outer < z.count; outer += run)
          for (int64_t at = 0; at < run; at += most) {
            const int64_t i = outer + at;
            (at + most <= run ? full : rest)
                ->run({.stream = stream_of(call),
                       .a = input<const char>(call, 0) + z.matrix(0, i) * of_a * bytes,
                       .b = input<const char>(call, 1) + z.matrix(1, i) * of_b * bytes,
                       .c = output<char>(call, 0) + i * of_y * bytes,
                       .workspace = call.workspace});
          }
      },
      workspace);
}

}  // namespace cairn::kernels::cuda
