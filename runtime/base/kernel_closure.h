// What kernel files of every backend use: kernels as closures, checks of a signature, typed pointers.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "runtime/base/kernel.h"

namespace cairn::kernels {

// A kernel that is one closure; everything that depends on shapes is worked out when it is made.
class ClosureKernel final : public Kernel {
 public:
  ClosureKernel(std::function<void(const Call&)> run, int64_t workspace)
      : run_(std::move(run)), workspace_(workspace) {}
  int64_t workspace_bytes() const override { return workspace_; }
  void run(const Call& call) const override { run_(call); }

 private:
  std::function<void(const Call&)> run_;
  int64_t workspace_;
};

inline std::unique_ptr<Kernel> make_kernel(std::function<void(const Call&)> run, int64_t workspace = 0) {
  return std::make_unique<ClosureKernel>(std::move(run), workspace);
}

// What the fast kernels take.
inline bool is_fast_float(DType t) { return t == DType::kF32 || t == DType::kBF16 || t == DType::kF16; }
// body(T{}) with T = float, bf16 or f16. The dtype must be one of these.
template <class Body>
auto with_float(DType dtype, const Body& body) {
  return dtype == DType::kBF16 ? body(bf16{}) : dtype == DType::kF16 ? body(f16{}) : body(float{});
}
inline bool fast_float(const TensorDesc& d) { return is_fast_float(d.dtype) && d.packed_bytes == 0; }
inline bool plain_f32(const TensorDesc& d) { return d.dtype == DType::kF32 && d.packed_bytes == 0; }
inline bool is_bf16(const TensorDesc& d) { return d.dtype == DType::kBF16; }

inline void* data_of(std::span<const Tensor> tensors, size_t i) {
  return i < tensors.size() ? tensors[i].data : nullptr;
}
template <class T>
T* input(const Call& call, size_t i) {
  return static_cast<T*>(data_of(call.in, i));
}
template <class T>
T* output(const Call& call, size_t i) {
  return static_cast<T*>(data_of(call.out, i));
}
inline bool accumulates(const Call& call, size_t i) { return call.accumulate >> i & 1u; }

}  // namespace cairn::kernels
