// gru and its gradient: for each step a product with the weight, then a kernel with a thread for each unit of each sample.
#include "kernels/cuda/common/activations.h"
#include "kernels/cuda/recurrent/steps.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int64_t kGates = 3, kSaved = 4;  // r z n; and the hidden part of n

// y of the step before, or h0, or 0.
template <class T>
__device__ __forceinline__ float state_before(const StepSizes& z, const State& s, int64_t at, int64_t before,
                                              const T* y, const T* h0) {
  if (before >= 0) return load(y + (s.row - at + before) * z.hidden + s.unit);
  return h0 != nullptr ? load(h0 + s.own) : 0.0f;
}

// products: w y of the step before, [batch, 3H]; nullptr: 0.
template <class T>
__global__ void __launch_bounds__(kStepThreads)
    gru_step(StepSizes z, int64_t at, int64_t before, const T* gates, const float* products,
             const float* bias, const T* h0, T* y, T* saved) {
  const State s = own_state(z, at);
  if (s.own >= z.states()) return;
  float of_input[kGates], hidden[kGates];
  CAIRN_UNROLL
  for (int64_t k = 0; k < kGates; ++k) {
    of_input[k] = load(gates + (s.row * kGates + k) * z.hidden + s.unit);
    hidden[k] = bias != nullptr ? bias[k * z.hidden + s.unit] : 0.0f;
    if (products != nullptr) hidden[k] += products[(s.own - s.unit) * kGates + k * z.hidden + s.unit];
  }
  const float reset = sigmoid(of_input[0] + hidden[0]), keep = sigmoid(of_input[1] + hidden[1]),
              fresh = tanhf(fmaf(reset, hidden[2], of_input[2]));
  const float last = state_before(z, s, at, before, static_cast<const T*>(y), h0);
  store(y + s.row * z.hidden + s.unit, fmaf(keep, last - fresh, fresh));
  if (saved == nullptr) return;
  const float all[kSaved] = {reset, keep, fresh, hidden[2]};
  CAIRN_UNROLL
  for (int64_t k = 0; k < kSaved; ++k) store(saved + (s.row * kSaved + k) * z.hidden + s.unit, all[k]);
}

struct GruGradient {
  const void *dy, *saved, *y, *h0;
  float*
      carried;  // the gradient of y through the next step, then that of y of the step before but for what w brings; [batch, H]
  void *dgates, *dhidden;
};

// first: of all that the gradient goes through: nothing is carried to it.
template <class T>
__global__ void __launch_bounds__(kStepThreads)
    gru_step_grad(StepSizes z, int64_t at, int64_t before, bool first, GruGradient g) {
  const State s = own_state(z, at);
  if (s.own >= z.states()) return;
  const T* const saved = static_cast<const T*>(g.saved) + s.row * kSaved * z.hidden + s.unit;
  const float reset = load(saved), keep = load(saved + z.hidden), fresh = load(saved + 2 * z.hidden),
              hidden = load(saved + 3 * z.hidden);
  const float last = state_before(z, s, at, before, static_cast<const T*>(g.y), static_cast<const T*>(g.h0));
  float dy = load(static_cast<const T*>(g.dy) + s.row * z.hidden + s.unit);
  if (!first) dy += g.carried[s.own];
  const float dfresh = tanh_grad(dy * (1.0f - keep), fresh), dreset = sigmoid_grad(dfresh * hidden, reset),
              dkeep = sigmoid_grad(dy * (last - fresh), keep);
  const int64_t to = s.row * kGates * z.hidden + s.unit;
  const auto give = [&](void* out, float of_fresh) {
    if (out == nullptr) return;
    store(static_cast<T*>(out) + to, dreset);
    store(static_cast<T*>(out) + to + z.hidden, dkeep);
    store(static_cast<T*>(out) + to + 2 * z.hidden, of_fresh);
  };
  give(g.dgates, dfresh);
  give(g.dhidden, dfresh * reset);
  g.carried[s.own] = dy * keep;
}

}  // namespace

std::unique_ptr<Kernel> make_gru(const Signature& s) {
  const DType type = s.in[0].dtype;
  if (!fast_float(s.in[0]) || !WeightReader::takes(s.in[1], type) || !is_state(s, 2, DType::kF32) ||
      !is_state(s, 3, type) || s.out[0].dtype != type)
    return nullptr;
  const StepSizes z = step_sizes(s, s.out[0], s.in[1]);
  Workspace space;
  const WeightReader weight(s.in[1], type, &space);
  const StepProduct product(z, type, false, &space);
  const int64_t products_at = space.add(z.states() * kGates * 4);
  const int64_t y_at = s.has_out(0) ? -1 : space.add(z.states() * z.time * dtype_bytes(type));
  return with_float(type, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel(
        [=](const Call& call) {
          const void* const w = weight.read(call, 1);
          T* const y = y_at < 0 ? output<T>(call, 0) : Workspace::at<T>(call, y_at);
          auto* const products = Workspace::at<float>(call, products_at);
          const auto* h0 = input<const T>(call, 3);
          for (int64_t i = 0; i < z.time; ++i) {
            const int64_t at = z.at(i), before = z.at(i - 1);
            const T* const last = before < 0 ? h0 : y + before * z.hidden;
            if (last != nullptr) product.run(call, before >= 0, last, w, products);
            launch(stream_of(call), gru_step<T>, z.size(), z, at, before, input<const T>(call, 0),
                   last != nullptr ? products : nullptr, input<const float>(call, 2), h0, y,
                   output<T>(call, 1));
          }
        },
        space.bytes());
  });
}

std::unique_ptr<Kernel> make_gru_grad(const Signature& s) {
  const DType type = s.in[1].dtype;
  if (!fast_float(s.in[1]) || !WeightReader::takes(s.in[3], type) || !is_state(s, 0, type) ||
      !is_state(s, 2, type) || !is_state(s, 4, type))
    return nullptr;
  for (const TensorDesc& d : s.out)
    if (d.shape.rank > 0 && d.dtype != type) return nullptr;
  const StepSizes z = step_sizes(s, s.in[2], s.in[3]);
  Workspace space;
  const WeightReader weight(s.in[3], type, &space);
  const StepProduct product(z, type, true, &space);
  const int64_t carried_at = space.add(z.states() * 4);
  const int64_t dhidden_at = s.has_out(1) ? -1 : space.add(z.states() * z.time * kGates * dtype_bytes(type));
  return with_float(type, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel(
        [=](const Call& call) {
          const cudaStream_t stream = stream_of(call);
          const void* const w = weight.read(call, 3);
          T* const dhidden = dhidden_at < 0 ? output<T>(call, 1) : Workspace::at<T>(call, dhidden_at);
          auto* const carried = Workspace::at<float>(call, carried_at);
          T* const dh0 = output<T>(call, 2);
          const GruGradient g{data_of(call.in, 0),
                              data_of(call.in, 1),
                              data_of(call.in, 2),
                              data_of(call.in, 4),
                              carried,
                              data_of(call.out, 0),
                              dhidden};
          for (int64_t i = z.time - 1; i >= 0; --i) {
            const int64_t at = z.at(i);
            launch(stream, gru_step_grad<T>, z.size(), z, at, z.at(i - 1), i == z.time - 1, g);
            if (i > 0 || dh0 != nullptr)
              product.run(call, true, dhidden + at * kGates * z.hidden, w, carried, true);
          }
          if (dh0 != nullptr) launch(stream, round_states<T>, z.size(), z, carried, dh0);
        },
        space.bytes());
  });
}

}  // namespace cairn::kernels::cuda
