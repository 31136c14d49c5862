// lstm and its gradient: a product and a row of gates for each step.
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/recurrent/gates.h"
#include "kernels/cpu/recurrent/step_product.h"
#include "kernels/cpu/rows.h"

namespace cairn::kernels::cpu {

std::unique_ptr<Kernel> make_lstm(const Signature& s) {
  if (!fast_float(s.in[0]) || !fast_float(s.in[1])) return nullptr;
  const DType type = s.in[0].dtype;
  const StepOrder z(s, 0);
  const int64_t n = z.hidden;
  Workspace space;
  const int64_t cell_at = space.add(z.batch * n * 4);
  const StepProduct product(z.batch, 4 * n, n, s.in[1], true, type, s.threads, &space);
  return make_kernel(
      [=](const Call& call) {
        void* ws = call.workspace;
        const void* h0 = data_of(call.in, 2);
        const float* c0 = input<const float>(call, 3);
        float* cell = Workspace::at<float>(ws, cell_at);
        product.prepare(ws, data_of(call.in, 1));
        std::fill_n(cell, z.batch * n, 0.0f);
        if (c0 != nullptr) std::copy_n(c0, z.batch * n, cell);
        if (h0 != nullptr) product.set_rows(ws, h0);
        for (int64_t i = 0; i < z.time; ++i) {
          const bool multiplied = i > 0 || h0 != nullptr;
          if (multiplied) product.run(ws);
          parallel_for(z.batch, z.grain(), [&](int64_t b0, int64_t b1, int) {
            for (int64_t b = b0; b < b1; ++b)
              lstm_step({.type = type,
                         .hidden = n,
                         .gates = element(data_of(call.in, 0), type, z.row(b, i, 4 * n)),
                         .products = multiplied ? product.result(ws, b) : nullptr,
                         .cell = cell + b * n,
                         .y = element(data_of(call.out, 0), type, z.row(b, i, n)),
                         .saved = element(data_of(call.out, 2), type, z.row(b, i, 4 * n)),
                         .cells = element(output<float>(call, 1), z.row(b, i, n)),
                         .factor = product.factor(ws, b)});
          });
        }
      },
      space.bytes());
}

std::unique_ptr<Kernel> make_lstm_grad(const Signature& s) {
  if (!fast_float(s.in[2]) || !fast_float(s.in[4])) return nullptr;
  const DType type = s.in[2].dtype;
  StepOrder z(s, 0);
  z.hidden /= 4;
  const int64_t n = z.hidden;
  Workspace space;
  const int64_t dcell_at = space.add(z.batch * n * 4);
  const StepProduct product(z.batch, n, 4 * n, s.in[4], false, type, s.threads, &space);
  return make_kernel(
      [=](const Call& call) {
        void* ws = call.workspace;
        const float *cells = input<const float>(call, 3), *c0 = input<const float>(call, 5);
        float* dcell = Workspace::at<float>(ws, dcell_at);
        product.prepare(ws, data_of(call.in, 4));
        std::fill_n(dcell, z.batch * n, 0.0f);
        for (int64_t i = z.time - 1; i >= 0; --i) {
          const bool multiplied = i < z.time - 1;
          if (multiplied) product.run(ws);
          parallel_for(z.batch, z.grain(), [&](int64_t b0, int64_t b1, int) {
            for (int64_t b = b0; b < b1; ++b)
              lstm_step_grad({.type = type,
                              .hidden = n,
                              .dy = element(data_of(call.in, 0), type, z.row(b, i, n)),
                              .dc = element(input<const float>(call, 1), z.row(b, i, n)),
                              .products = multiplied ? product.result(ws, b) : nullptr,
                              .saved = element(data_of(call.in, 2), type, z.row(b, i, 4 * n)),
                              .cells = cells + z.row(b, i, n),
                              .before = i > 0 ? cells + z.row(b, i - 1, n) : element(c0, b * n),
                              .dcell = dcell + b * n,
                              .dgates = element(data_of(call.out, 0), type, z.row(b, i, 4 * n)),
                              .factor = product.factor(ws, b)});
          });
        }
        if (data_of(call.out, 1) != nullptr) {
          product.run(ws);
          convert(DType::kF32, type, false, product.result(ws, 0), data_of(call.out, 1), z.batch * n);
        }
        if (float* dc0 = output<float>(call, 2)) std::copy_n(dcell, z.batch * n, dc0);
      },
      space.bytes());
}

}  // namespace cairn::kernels::cpu
