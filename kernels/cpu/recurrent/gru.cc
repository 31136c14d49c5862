// gru and its gradient: a product and a row of gates for each step.
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/recurrent/gates.h"
#include "kernels/cpu/recurrent/step_product.h"
#include "kernels/cpu/rows.h"

namespace cairn::kernels::cpu {

std::unique_ptr<Kernel> make_gru(const Signature& s) {
  if (!fast_float(s.in[0]) || !fast_float(s.in[1])) return nullptr;
  const DType type = s.in[0].dtype;
  const StepOrder z(s, 0);
  const int64_t n = z.hidden;
  Workspace space;
  const int64_t state_at = space.add(z.batch * n * 4);
  const StepProduct product(z.batch, 3 * n, n, s.in[1], true, type, s.threads, &space);
  return make_kernel(
      [=](const Call& call) {
        void* ws = call.workspace;
        const void* h0 = data_of(call.in, 3);
        float* state = Workspace::at<float>(ws, state_at);
        product.prepare(ws, data_of(call.in, 1));
        std::fill_n(state, z.batch * n, 0.0f);
        if (h0 != nullptr) {
          product.set_rows(ws, h0);
          convert(type, DType::kF32, false, h0, state, z.batch * n);
        }
        for (int64_t i = 0; i < z.time; ++i) {
          const bool multiplied = i > 0 || h0 != nullptr;
          if (multiplied) product.run(ws);
          parallel_for(z.batch, z.grain(), [&](int64_t b0, int64_t b1, int) {
            for (int64_t b = b0; b < b1; ++b)
              gru_step({.type = type,
                        .hidden = n,
                        .gates = element(data_of(call.in, 0), type, z.row(b, i, 3 * n)),
                        .products = multiplied ? product.result(ws, b) : nullptr,
                        .bias = input<const float>(call, 2),
                        .state = state + b * n,
                        .y = element(data_of(call.out, 0), type, z.row(b, i, n)),
                        .saved = element(data_of(call.out, 1), type, z.row(b, i, 4 * n)),
                        .factor = product.factor(ws, b)});
          });
        }
      },
      space.bytes());
}

std::unique_ptr<Kernel> make_gru_grad(const Signature& s) {
  if (!fast_float(s.in[0]) || !fast_float(s.in[3])) return nullptr;
  const DType type = s.in[0].dtype;
  StepOrder z(s, 0);
  z.hidden /= 3;
  const int64_t n = z.hidden;
  Workspace space;
  const int64_t dstate_at = space.add(z.batch * n * 4);
  const StepProduct product(z.batch, n, 3 * n, s.in[3], false, type, s.threads, &space);
  return make_kernel(
      [=](const Call& call) {
        void* ws = call.workspace;
        float* dstate = Workspace::at<float>(ws, dstate_at);
        product.prepare(ws, data_of(call.in, 3));
        std::fill_n(dstate, z.batch * n, 0.0f);
        for (int64_t i = z.time - 1; i >= 0; --i) {
          const bool multiplied = i < z.time - 1;
          if (multiplied) product.run(ws);
          parallel_for(z.batch, z.grain(), [&](int64_t b0, int64_t b1, int) {
            for (int64_t b = b0; b < b1; ++b)
              gru_step_grad({.type = type,
                             .hidden = n,
                             .dy = element(data_of(call.in, 0), type, z.row(b, i, n)),
                             .products = multiplied ? product.result(ws, b) : nullptr,
                             .saved = element(data_of(call.in, 1), type, z.row(b, i, 4 * n)),
                             .before = i > 0 ? element(data_of(call.in, 2), type, z.row(b, i - 1, n))
                                             : element(data_of(call.in, 4), type, b * n),
                             .dstate = dstate + b * n,
                             .dgates = element(data_of(call.out, 0), type, z.row(b, i, 3 * n)),
                             .dhidden = element(data_of(call.out, 1), type, z.row(b, i, 3 * n)),
                             .factor = product.factor(ws, b)});
          });
        }
        if (data_of(call.out, 2) == nullptr) return;
        product.run(ws);
        add_rounded(type, product.result(ws, 0), dstate, data_of(call.out, 2), z.batch * n);
      },
      space.bytes());
}

}  // namespace cairn::kernels::cpu
