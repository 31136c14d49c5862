// Single ops by the CUDA backend on operands drawn here: against the reference, and as bytes.
#pragma once
#include "kernels/cuda/rows.h"
#include "kernels/cuda/support.h"
#include "tests/conformance/backend.h"

namespace cairn::conformance {

inline TensorDesc desc(DType dtype, std::initializer_list<int64_t> shape) { return {dtype, Shape(shape), 0}; }

inline kernels::Signature signature_of(const Direct& d) {
  const auto present = [](size_t n) { return (1u << n) - 1; };
  return {d.op, d.in, d.out, present(d.in.size()), present(d.out.size()), &d.attrs, 1};
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

// What one call leaves: operands drawn, `set` changes them and the call before it runs. Outputs start as
// noise of their own.
struct Ran {
  std::vector<Buffer> in_buffers, out_buffers;
  std::vector<Tensor> in, out;

  template <class Prepare>
  Ran(const Direct& d, const Prepare& prepare) {
    for (size_t i = 0; i < d.in.size(); ++i) in_buffers.emplace_back(d.in[i].bytes());
    for (size_t i = 0; i < d.out.size(); ++i) out_buffers.emplace_back(d.out[i].bytes());
    for (size_t i = 0; i < d.in.size(); ++i) {
      in.push_back({d.in[i], in_buffers[i].data()});
      fill(in[i], 50 + i, T({}, -2, 2));
    }
    for (size_t i = 0; i < d.out.size(); ++i) {
      out.push_back({d.out[i], out_buffers[i].data()});
      fill(out[i], 90 + i, T({}, 0.1, 1));
    }
    kernels::Call call;
    prepare(*this, call);
    call.in = in;
    call.out = out;
    const auto kernel = kernels::cuda_registry().find(signature_of(d));
    require(kernel != nullptr, Code::kUnsupported, "no kernel takes ", name_of(d));
    Buffer workspace(kernel->workspace_bytes());
    call.workspace = workspace.data();
    kernel->run(call);
  }
  std::string bytes(size_t output) const {
    const Tensor& t = out[output];
    return t ? std::string(static_cast<const char*>(t.data), static_cast<size_t>(t.desc.bytes())) : "";
  }
};

}  // namespace cairn::conformance
