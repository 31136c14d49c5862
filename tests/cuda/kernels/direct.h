// Single ops by the CUDA backend on operands drawn here: against the reference, and as bytes.
#pragma once
#include "kernels/cuda/common/support.h"
#include "kernels/cuda/rows.h"
#include "kernels/registry.h"
#include "tests/conformance/backend.h"

namespace cairn::conformance {

inline TensorDesc desc(DType dtype, std::initializer_list<int64_t> shape) { return {dtype, Shape(shape), 0}; }

inline kernels::Signature signature_of(const Direct& d) {
  return {d.op, d.in, d.out, present_of(d.in), present_of(d.out), &d.attrs, 1};
}

inline std::string name_of(const Direct& d) {
  std::string name = d.op;
  for (const TensorDesc& in : d.in) name += ' ' + to_string(in);
  return name + " -> " + to_string(d.out[0]);
}

// The backend takes it and agrees with the reference.
inline void agree(const Direct& d) {
  SCOPED_TRACE(name_of(d));
  EXPECT_NE(kernels::cuda_registry().find(signature_of(d)), nullptr);
  Harness harness(kernels::cuda_registry());
  check_direct(harness, d);
}

// What one call leaves: operands drawn, `prepare` changes them and the call before it runs.
struct Ran : Drawn {
  template <class Prepare>
  Ran(const Direct& d, const Prepare& prepare) : Drawn(d) {
    kernels::Call call;
    prepare(*this, call);
    run(kernels::cuda_registry(), d, call);
  }
};

}  // namespace cairn::conformance
