// Updates on a GPU against those on the processor beside it, to the bit: a plan may make one or the other; for the emulation
// and for real GPUs.
#pragma once
#include "kernels/registry.h"
#include "tests/cuda/kernels/batch_check.h"

namespace cairn::conformance {

inline void expect_bits_of_the_processor(const kernels::Registry& registry) {
  if (!kernels::cpu_registry().facts().fuses_multiply_add) return;  // then no plan has updates there
  constexpr int64_t kCount = 50002;
  const TensorDesc x{DType::kF32, Shape{kCount}, 0};
  for (const UpdateKind& kind : elementwise_kinds()) {
    const Direct d = update_call(kind, x, false);
    if (!kind.plain() || std::any_of(d.out.begin(), d.out.end(),
                                     [](const TensorDesc& out) { return format(out.dtype).block > 1; }))
      continue;
    for (const double scale : {1e-22, 1.0, 1e12}) {  // squares from denormals to what is near the largest
      SCOPED_TRACE(cat(kind.row->name, ' ', scale));
      Operands in, gpu, processor;
      const auto add = [](Operands& to, const TensorDesc& desc, uint32_t seed, double low, double high) {
        is_there(desc) ? to.add(desc, seed, low, high) : to.add_none();
      };
      for (size_t k = 0; k < d.in.size(); ++k) add(in, d.in[k], 5, -scale, scale);
      for (size_t k = 0; k < d.hyper.size(); ++k) set(in.tensors[1], static_cast<int64_t>(k), d.hyper[k]);
      for (Operands* out : {&gpu, &processor})
        for (size_t k = 0; k < d.out.size(); ++k)
          add(*out, d.out[k], static_cast<uint32_t>(k), k == 0 ? -1 : 0, k == 0 ? 1 : scale);
      const kernels::Signature s{d.op, d.in, d.out, present_of(d.in), present_of(d.out), &d.attrs, 1};
      run_kernel(registry.find(s).get(), in.tensors, gpu.tensors);
      run_kernel(kernels::cpu_registry().find(s).get(), in.tensors, processor.tensors);
      for (size_t o = 0; o < gpu.tensors.size(); ++o)
        expect_same(gpu.tensors[o], processor.tensors[o], ops::find("update")->outputs[o].name, o);
    }
  }
}

// Sums of squares that the processor makes in the GPU's order: of fewer elements than a group, of several rows of a chunk, and of more
// chunks than a block has threads.
inline void expect_squares_of_the_processor(const kernels::Registry& registry) {
  const TensorDesc number{DType::kF64, {}, 0};
  for (const int64_t count : {3, 1027, 8191, 8197, 100003, 3000007, 9000001}) {
    SCOPED_TRACE(count);
    const Direct d{"sum_squares", {{DType::kF32, Shape{count}, 0}}, {number}, {}};
    const Attrs order{{"threads", int64_t{registry.squares_threads}}};
    Operands in, gpu, processor;
    in.add(d.in[0], 5, -1, 1);
    gpu.add(number, 6, 0, 1);
    processor.add(number, 6, 0, 1);
    kernels::Signature s{d.op, d.in, d.out, 1, 1, &d.attrs, 1};
    run_kernel(registry.find(s).get(), in.tensors, gpu.tensors);
    s.attrs = &order;
    const auto kernel = kernels::cpu_registry().find(s);
    ASSERT_NE(kernel, nullptr);
    run_kernel(kernel.get(), in.tensors, processor.tensors);
    expect_same(gpu.tensors[0], processor.tensors[0], "total", 0);
  }
}

}  // namespace cairn::conformance
