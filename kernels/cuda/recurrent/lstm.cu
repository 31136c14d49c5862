// lstm and its gradient: for each step a product with the weight, then a kernel with a thread for each unit of each sample.
#include "kernels/cuda/common/activations.h"
#include "kernels/cuda/recurrent/steps.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int64_t kGates = 4;  // i f g o

// products: w y of the step before, [batch, 4H]; nullptr: 0. before: the time of the step before, -1: c0 is c before this one.
template <class T>
__global__ void __launch_bounds__(kStepThreads)
    lstm_step(StepSizes z, int64_t at, int64_t before, const T* gates, const float* products, const float* c0,
              T* y, float* c, T* saved) {
  const State s = own_state(z, at);
  if (s.own >= z.states()) return;
  float sums[kGates];
  CAIRN_UNROLL
  for (int64_t k = 0; k < kGates; ++k) {
    sums[k] = load(gates + (s.row * kGates + k) * z.hidden + s.unit);
    if (products != nullptr) sums[k] += products[((s.own - s.unit) * kGates) + k * z.hidden + s.unit];
  }
  const float in = sigmoid(sums[0]), forget = sigmoid(sums[1]), fresh = tanhf(sums[2]),
              out = sigmoid(sums[3]);
  const float last = before >= 0     ? c[(s.row - at + before) * z.hidden + s.unit]
                     : c0 != nullptr ? c0[s.own]
                                     : 0.0f;
  const float now = fmaf(forget, last, in * fresh);
  c[s.row * z.hidden + s.unit] = now;
  store(y + s.row * z.hidden + s.unit, out * tanhf(now));
  if (saved == nullptr) return;
  const float all[kGates] = {in, forget, fresh, out};
  CAIRN_UNROLL
  for (int64_t k = 0; k < kGates; ++k) store(saved + (s.row * kGates + k) * z.hidden + s.unit, all[k]);
}

struct LstmGradient {
  const void *dy, *saved;
  const float *dc, *c, *c0;
  const float* from_next;  // the gradient of y through the next step, [batch, H]; nullptr: 0
  float* carried;          // that of c; read unless `first`
  void* dgates;
};

// before: as lstm_step's. first: of all that the gradient goes through.
template <class T>
__global__ void __launch_bounds__(kStepThreads)
    lstm_step_grad(StepSizes z, int64_t at, int64_t before, bool first, LstmGradient g) {
  const State s = own_state(z, at);
  if (s.own >= z.states()) return;
  const int64_t own = s.row * z.hidden + s.unit;
  const T* const saved = static_cast<const T*>(g.saved) + s.row * kGates * z.hidden + s.unit;
  const float in = load(saved), forget = load(saved + z.hidden), fresh = load(saved + 2 * z.hidden),
              out = load(saved + 3 * z.hidden), squashed = tanhf(g.c[own]);
  float dy = g.dy != nullptr ? load(static_cast<const T*>(g.dy) + own) : 0.0f;
  if (g.from_next != nullptr) dy += g.from_next[s.own];
  float dc = dy * out * fmaf(-squashed, squashed, 1.0f);
  if (!first) dc += g.carried[s.own];
  if (g.dc != nullptr) dc += g.dc[own];
  const float last = before >= 0       ? g.c[(s.row - at + before) * z.hidden + s.unit]
                     : g.c0 != nullptr ? g.c0[s.own]
                                       : 0.0f;
  const float all[kGates] = {sigmoid_grad(dc * fresh, in), sigmoid_grad(dc * last, forget),
                             tanh_grad(dc * in, fresh), sigmoid_grad(dy * squashed, out)};
  T* const dgates = static_cast<T*>(g.dgates) + s.row * kGates * z.hidden + s.unit;
  CAIRN_UNROLL
  for (int64_t k = 0; k < kGates; ++k) store(dgates + k * z.hidden, all[k]);
  g.carried[s.own] = dc * forget;
}

}  // namespace

std::unique_ptr<Kernel> make_lstm(const Signature& s) {
  const DType type = s.in[0].dtype;
  if (!fast_float(s.in[0]) || !WeightReader::takes(s.in[1], type) || !is_state(s, 2, type) ||
      !is_state(s, 3, DType::kF32) || s.out[0].dtype != type)
    return nullptr;
  const StepSizes z = step_sizes(s, s.out[0], s.in[1]);
  Workspace space;
  const WeightReader weight(s.in[1], type, &space);
  const StepProduct product(z, type, false, &space);
  const int64_t products_at = space.add(z.states() * kGates * 4);
  // Steps read y and c of the step before, whoever else wants them.
  const int64_t count = z.states() * z.time;
  const int64_t y_at = s.has_out(0) ? -1 : space.add(count * dtype_bytes(type)),
                c_at = s.has_out(1) ? -1 : space.add(count * 4);
  return with_float(type, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel(
        [=](const Call& call) {
          const void* const w = weight.read(call, 1);
          T* const y = y_at < 0 ? output<T>(call, 0) : Workspace::at<T>(call, y_at);
          float* const c = c_at < 0 ? output<float>(call, 1) : Workspace::at<float>(call, c_at);
          auto* const products = Workspace::at<float>(call, products_at);
          for (int64_t i = 0; i < z.time; ++i) {
            const int64_t at = z.at(i), before = z.at(i - 1);
            const T* const last = before < 0 ? input<const T>(call, 2) : y + before * z.hidden;
            if (last != nullptr) product.run(call, before >= 0, last, w, products);
            launch(stream_of(call), lstm_step<T>, z.size(), z, at, before, input<const T>(call, 0),
                   last != nullptr ? products : nullptr, input<const float>(call, 3), y, c,
                   output<T>(call, 2));
          }
        },
        space.bytes());
  });
}

std::unique_ptr<Kernel> make_lstm_grad(const Signature& s) {
  const DType type = s.in[2].dtype;
  if (!fast_float(s.in[2]) || !WeightReader::takes(s.in[4], type) || !is_state(s, 0, type) ||
      !is_state(s, 1, DType::kF32) || !plain_f32(s.in[3]) || !is_state(s, 5, DType::kF32) ||
      s.out[0].dtype != type)
    return nullptr;
  const StepSizes z = step_sizes(s, s.in[3], s.in[4]);
  Workspace space;
  const WeightReader weight(s.in[4], type, &space);
  const StepProduct product(z, type, true, &space);
  const int64_t from_next_at = space.add(z.states() * 4), carried_at = space.add(z.states() * 4);
  const int64_t dgates_at = s.has_out(0) ? -1 : space.add(z.states() * z.time * kGates * dtype_bytes(type));
  return with_float(type, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel(
        [=](const Call& call) {
          const cudaStream_t stream = stream_of(call);
          const void* const w = weight.read(call, 4);
          T* const dgates = dgates_at < 0 ? output<T>(call, 0) : Workspace::at<T>(call, dgates_at);
          auto* const from_next = Workspace::at<float>(call, from_next_at);
          float* const dc0 = output<float>(call, 2);
          LstmGradient g{data_of(call.in, 0),
                         data_of(call.in, 2),
                         input<const float>(call, 1),
                         input<const float>(call, 3),
                         input<const float>(call, 5),
                         nullptr,
                         dc0 != nullptr ? dc0 : Workspace::at<float>(call, carried_at),
                         dgates};
          const auto through = [&](int64_t at) {
            product.run(call, true, dgates + at * kGates * z.hidden, w, from_next);
          };
          for (int64_t i = z.time - 1; i >= 0; --i) {
            const int64_t next = z.at(i + 1);
            if (next >= 0) through(next);
            g.from_next = next >= 0 ? from_next : nullptr;
            launch(stream, lstm_step_grad<T>, z.size(), z, z.at(i), z.at(i - 1), next < 0, g);
          }
          if (auto* dh0 = output<T>(call, 1)) {
            through(z.at(0));
            launch(stream, round_states<T>, z.size(), z, from_next, dh0);
          }
        },
        space.bytes());
  });
}

}  // namespace cairn::kernels::cuda
