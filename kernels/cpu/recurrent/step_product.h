// The product that every step of a recurrent layer takes of the state of the step before, with a weight that all steps share and
// that is packed once a run: in bfloat16, or in float32 (panels of kPanel columns, one row for each step of k).
#pragma once
#include "kernels/cpu/gemm/bf16/gemm.h"
#include "kernels/cpu/recurrent/gates.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {

class StepProduct {
 public:
  // [m, k] times w^T of w[n, k], or, where not transposed, w[k, n]. type: of the activations.
  StepProduct(int64_t m, int64_t n, int64_t k, const TensorDesc& weight, bool transposed, DType type,
              int threads, Workspace* space);
  // Before the first step.
  void prepare(void* workspace, const void* w) const;
  // Where row r of what is multiplied goes.
  Factor factor(void* workspace, int64_t r) const {
    return {Workspace::at<char>(workspace, x_at_) + r * row_ * (narrow_ ? 2 : 4), narrow_};
  }
  // The same for rows that are there: `x` of the type of the activations.
  void set_rows(void* workspace, const void* x) const;
  void run(void* workspace) const;
  const float* result(void* workspace, int64_t r) const {
    return Workspace::at<float>(workspace, y_at_) + r * n_;
  }

 private:
  int64_t m_, n_, k_, row_ = 0;  // row_: elements of a row of what is multiplied
  TensorDesc weight_;
  DType type_;
  bool transposed_, narrow_;
  int64_t x_at_, y_at_, weight_at_, scratch_ = 0, scratch_at_ = 0;
};

// The steps of a run over [B, T, hidden].
struct StepOrder {
  int64_t batch, time, hidden;
  bool reverse;
  StepOrder(const Signature& s, size_t y)
      : batch(s.out[y].shape[0]),
        time(s.out[y].shape[1]),
        hidden(s.out[y].shape[2]),
        reverse(s.attrs != nullptr && s.attrs->integer("reverse") != 0) {}
  // The place of the i-th step.
  int64_t at(int64_t i) const { return reverse ? time - 1 - i : i; }
  // Row (b, t) of what has `width` columns a step.
  int64_t row(int64_t b, int64_t i, int64_t width) const { return (b * time + at(i)) * width; }
  // Samples that are worth a thread.
  int64_t grain() const { return std::max<int64_t>(1, kGrain / 8 / hidden); }
};

// An element of a tensor, or null where there is no tensor.
inline char* element(void* data, DType type, int64_t i) {
  return data != nullptr ? static_cast<char*>(data) + i * dtype_bytes(type) : nullptr;
}
template <class T>
T* element(T* data, int64_t i) {
  return data != nullptr ? data + i : nullptr;
}

}  // namespace cairn::kernels::cpu
