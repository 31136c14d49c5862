// linear and its gradients in bfloat16; packed weights. See gemm/bf16/gemm.h for the layouts.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/gemm/bf16/forward.h"
#include "kernels/cpu/gemm/bf16/gemm.h"
#include "kernels/cpu/gemm/epilogue.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {

int64_t packed_bytes(const TensorDesc& weight, std::string_view use, int64_t, DType compute, int) {
  if (compute != DType::kBF16 || !has_bf16_products() || weight.shape.rank != 2) return 0;
  const int64_t n = weight.shape[0], k = weight.shape[1];
  return use == "input_grad" ? packed_b_bytes(k, n) : packed_b_bytes(n, k);
}

std::unique_ptr<Kernel> make_pack_weight(const Signature& s) {
  if (!has_bf16_products() || s.attrs->word("dtype") != "bf16" || !fast_float(s.in[0]) ||
      s.in[0].shape.rank != 2)
    return nullptr;
  const TensorDesc w = s.in[0];
  const bool forward = s.attrs->word("use") != "input_grad";
  const int64_t n = w.shape[0], k = w.shape[1];
  return make_kernel([=](const Call& call) {
    if (forward)
      pack_panels(w, true, data_of(call.in, 0), n, k, output<bf16>(call, 0));
    else
      pack_panels(w, false, data_of(call.in, 0), k, n, output<bf16>(call, 0));
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
  const int64_t rows = s.in[0].shape.rows(), k = s.in[0].shape.last(), n = s.in[1].shape.last();
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
            bf16_grad_weight(dy, n, b, rows, n0, n1, k, dw, accumulates(call, 0), shares + t * share);
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
