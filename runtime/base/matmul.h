// The sizes of a call of the op matmul, which kernels of every backend work out alike.
#pragma once
#include "runtime/base/broadcast.h"
#include "runtime/base/kernel.h"

namespace cairn {

struct Matmul {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  Broadcast batch;    // of the leading dimensions; strides count matrices
  int64_t count = 1;  // of products

  explicit Matmul(const kernels::Signature& s)
      : transpose_a(s.attrs != nullptr && s.attrs->integer("transpose_a") != 0),
        transpose_b(s.attrs != nullptr && s.attrs->integer("transpose_b") != 0) {
    m = s.out[0].shape[-2], n = s.out[0].shape[-1], k = s.in[0].shape[transpose_a ? -2 : -1];
    TensorDesc lead[] = {s.in[0], s.in[1], s.out[0]};
    for (TensorDesc& each : lead) each.shape = Shape(each.shape.span().first(each.shape.span().size() - 2));
    batch = make_broadcast(lead[2].shape, std::span(lead).first(2));
    count = lead[2].shape.elements();
  }
  // The matrix of operand `o` that goes into product i.
  int64_t matrix(int o, int64_t i) const { return place(batch, o, i); }
};

}  // namespace cairn
