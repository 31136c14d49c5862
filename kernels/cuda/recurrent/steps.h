// What recurrent layers share: the steps in their order, and the products with the weight w[gates H, H] between them, which are
// rows of tensors [batch, time, ..].
#pragma once
#include "kernels/cuda/products/linear.h"
#include "kernels/cuda/products/product.h"

namespace cairn::kernels::cuda {

inline constexpr int kStepThreads = 256;

struct StepSizes {
  int64_t batch, time, hidden, gates;  // of w
  bool reverse;

  __host__ __device__ int64_t states() const { return batch * hidden; }
  // The time of step i, of -1 and `time` as well: there is none.
  int64_t at(int64_t i) const { return i < 0 || i >= time ? -1 : reverse ? time - 1 - i : i; }
  LaunchSize size() const {
    return {.blocks = (states() + kStepThreads - 1) / kStepThreads, .threads = kStepThreads};
  }
};

// y: [batch, time, H].
inline StepSizes step_sizes(const Signature& s, const TensorDesc& y, const TensorDesc& w) {
  return {y.shape[0], y.shape[1], w.shape[1], w.shape[0] / w.shape[1],
          s.attrs != nullptr && s.attrs->integer("reverse") != 0};
}

// Left out, or dense numbers of that type.
inline bool is_state(const Signature& s, size_t i, DType type) {
  return !s.has_in(i) || (s.in[i].dtype == type && s.in[i].packed_bytes == 0);
}

// out[batch, gates H] = y w^T, or (back) out[batch, H] (+)= d w, in float32, of states [batch, H] or of those of a step.
class StepProduct {
 public:
  StepProduct(const StepSizes& z, DType type, bool back, Workspace* space) {
    ProductShape shape;
    const int64_t each = back ? z.gates * z.hidden : z.hidden;
    shape.in = type;
    shape.m = z.batch, shape.k = each, shape.n = back ? z.hidden : z.gates * z.hidden;
    shape.transpose_b = !back;
    shape.alignment_a = alignment_of(each * dtype_bytes(type));
    dense_ = make_product(shape);
    shape.lda = z.time * each;
    of_step_ = make_product(shape);
    at_ = space->add(std::max(dense_->workspace_bytes(), of_step_->workspace_bytes()));
  }
  void run(const Call& call, bool of_step, const void* a, const void* w, float* out,
           bool accumulate = false) const {
    (of_step ? of_step_ : dense_)
        ->run({.stream = stream_of(call),
               .a = a,
               .b = w,
               .c = out,
               .workspace = Workspace::at(call, at_),
               .accumulate = accumulate});
  }

 private:
  std::shared_ptr<Product> dense_, of_step_;
  int64_t at_;
};

// The thread's state of the step at a time: `own` in [batch, H]; unit `unit` of row `row` of [batch, time, ..].
struct State {
  int64_t own, row, unit;
};
__device__ __forceinline__ State own_state(const StepSizes& z, int64_t at) {
  const int64_t own = static_cast<int64_t>(blockIdx.x) * kStepThreads + threadIdx.x, sample = own / z.hidden;
  return {own, sample * z.time + at, own - sample * z.hidden};
}

template <class T>
__global__ void __launch_bounds__(kStepThreads) round_states(StepSizes z, const float* from, T* to) {
  const State s = own_state(z, 0);
  if (s.own < z.states()) store(to + s.own, from[s.own]);
}

}  // namespace cairn::kernels::cuda
