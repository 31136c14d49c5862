// linear and its gradients in bfloat16; packed weights. See gemm/bf16/gemm.h for the layouts.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/gemm/bf16/forward.h"
#include "kernels/cpu/gemm/bf16/gemm.h"
#include "kernels/cpu/gemm/epilogue.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/widened.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {

// Panels for products of bfloat16. For those in float32, blocks alone: all values decoded, which serves every use ("any").
int64_t packed_bytes(const TensorDesc& weight, std::string_view use, int64_t, DType compute, int) {
  if (weight.shape.rank != 2) return 0;
  if (compute != DType::kBF16 || !has_bf16_products())
    return in_blocks(weight) ? checked_mul(4, weight.shape.elements()) : 0;
  if (use == "any") return 0;
  const int64_t n = weight.shape[0], k = weight.shape[1];
  return use == "input_grad" ? packed_b_bytes(k, n) : packed_b_bytes(n, k);
}

std::unique_ptr<Kernel> make_pack_weight(const Signature& s) {
  if (!has_bf16_products() || s.attrs->word("dtype") != "bf16" || !plain_fits(s.in[0]) ||
      s.in[0].shape.rank != 2)
    return nullptr;
  const TensorDesc w = s.in[0];
  const bool forward = s.attrs->word("use") != "input_grad";
  const int64_t n = w.shape[forward ? 0 : 1], k = w.shape[forward ? 1 : 0];
  return make_kernel([=](const Call& call) {
    pack_panels({w.dtype, forward, data_of(call.in, 0), n, k}, output<bf16>(call, 0), 0, panels(n));
  });
}

// For products in float32.
std::unique_ptr<Kernel> make_pack_decoded(const Signature& s) {
  const TensorDesc w = s.in[0];
  const DType compute = dtype_from_name(s.attrs->word("dtype"));
  if (!in_blocks(w) || !is_decoded(s.out[0], compute)) return nullptr;
  const WeightRows weight(w, compute);
  const int64_t rows = w.shape.rows(), columns = w.shape.last();
  return make_kernel([=](const Call& call) {
    parallel_for(rows, row_grain(columns), [&](int64_t b, int64_t e, int) {
      weight.read(data_of(call.in, 0), b * columns, columns, e - b, columns,
                  output<float>(call, 0) + b * columns);
    });
  });
}

std::unique_ptr<Kernel> make_linear_bf16(const Signature& s) {
  Activation act;
  if (!has_bf16_products() || !is_bf16(s.in[0]) || !is_bf16(s.out[0]) || !weight_fits(s.in[1]))
    return nullptr;
  if (s.has_in(2) && !plain_f32(s.in[2])) return nullptr;
  if (!parse_activation(s.attrs != nullptr ? s.attrs->word("activation") : "", &act)) return nullptr;
  const int64_t n = s.out[0].shape.last();
  auto f =
      std::make_shared<Bf16Forward>(s.in[0].shape.rows(), n, s.in[0].shape.last(), s.in[1], true, s.threads);
  return make_kernel(
      [=](const Call& call) {
        const LinearEpilogue epilogue(act, input<const float>(call, 2), output<bf16>(call, 0),
                                      act == Activation::kNone ? nullptr : output<bf16>(call, 1), n);
        f->run(call.workspace, input<const bf16>(call, 0), data_of(call.in, 1), epilogue);
      },
      f->space.bytes());
}

std::unique_ptr<Kernel> make_linear_grad_input_bf16(const Signature& s) {
  Activation act;
  if (!has_bf16_products() || !is_bf16(s.in[0]) || !is_bf16(s.out[0]) || !weight_fits(s.in[1]))
    return nullptr;
  if (s.has_in(2) && !is_bf16(s.in[2])) return nullptr;
  if (!parse_activation(s.attrs != nullptr ? s.attrs->word("activation") : "", &act)) return nullptr;
  const int64_t n = s.out[0].shape.last();
  auto f =
      std::make_shared<Bf16Forward>(s.in[0].shape.rows(), n, s.in[0].shape.last(), s.in[1], false, s.threads);
  return make_kernel(
      [=](const Call& call) {
        bf16* dx = output<bf16>(call, 0);
        const LinearEpilogue plain(Activation::kNone, nullptr, dx, nullptr, n);
        const DerivativeEpilogue scaled(act, input<const bf16>(call, 2), dx, n);
        f->run(call.workspace, input<const bf16>(call, 0), data_of(call.in, 1),
               act == Activation::kNone ? static_cast<const Epilogue&>(plain) : scaled);
      },
      f->space.bytes());
}

std::unique_ptr<Kernel> make_linear_grad_weight_bf16(const Signature& s) {
  if (!has_bf16_products() || !is_bf16(s.in[0]) || !is_bf16(s.in[1]) || !plain_f32(s.out[0])) return nullptr;
  const int64_t rows = s.in[0].shape.rows(), k = s.in[0].shape.last(), n = s.in[1].shape.last(),
                whole = s.attrs != nullptr ? s.attrs->integer("rows", rows) : rows;
  Workspace space;
  const int64_t b_at = space.add(packed_b_bytes(k, rows));
  const int64_t share = grad_weight_space(rows), shares_at = space.add(s.threads * share);
  return make_kernel(
      [=](const Call& call) {
        const bf16 *x = input<const bf16>(call, 0), *dy = input<const bf16>(call, 1);
        bf16* b = space.at<bf16>(call.workspace, b_at);
        char* shares = space.at<char>(call.workspace, shares_at);
        if (float* dw = output<float>(call, 0)) {
          parallel_for(panels(k), 1, [&](int64_t p0, int64_t p1, int) { pack_b(x, k, k, rows, b, p0, p1); });
          parallel_for(n, 32, [&](int64_t n0, int64_t n1, int t) {
            bf16_grad_weight(dy, n, b, rows, n0, n1, k, dw, accumulates(call, 0), shares + t * share, whole);
          });
        }
        if (float* db = output<float>(call, 1))
          parallel_for(n, 64, [&](int64_t c0, int64_t c1, int) {
            column_sums(DType::kBF16, dy + c0, n, rows, c1 - c0, db + c0, accumulates(call, 1));
          });
      },
      space.bytes());
}

}  // namespace cairn::kernels::cpu
