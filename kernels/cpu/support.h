// What every CPU kernel file uses: kernels as closures, checks of a signature, typed pointers.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "kernels/kernel.h"
#include "runtime/base/checked.h"
#include "runtime/base/parallel.h"

namespace cairn::kernels::cpu {

// A kernel that is one closure; everything shape-dependent is worked out when it is made.
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

// These kernels take float32 and bfloat16; everything else is left to the reference rows.
inline bool is_fast_float(DType t) { return t == DType::kF32 || t == DType::kBF16; }
inline bool fast_float(const TensorDesc& d) { return is_fast_float(d.dtype) && d.packed_bytes == 0; }
inline bool plain_f32(const TensorDesc& d) { return d.dtype == DType::kF32 && d.packed_bytes == 0; }
inline bool is_bf16(const TensorDesc& d) { return d.dtype == DType::kBF16; }

// All operands present are of the float type of the first one.
inline bool uniform_fast(const Signature& s) {
  const DType t = s.in.empty() ? s.out[0].dtype : s.in[0].dtype;
  if (!is_fast_float(t)) return false;
  for (size_t i = 0; i < s.in.size(); ++i)
    if (s.has_in(i) && (s.in[i].dtype != t || s.in[i].packed_bytes)) return false;
  for (size_t i = 0; i < s.out.size(); ++i)
    if (s.has_out(i) && s.out[i].dtype != t) return false;
  return true;
}

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

// Rows or elements a thread must have before a second one is worth waking (about 20 microseconds of work).
inline constexpr int64_t kGrain = 8192;
inline int64_t row_grain(int64_t columns) { return columns >= kGrain ? 1 : kGrain / columns; }

}  // namespace cairn::kernels::cpu
