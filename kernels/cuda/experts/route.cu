// route and its gradient: a warp has a row. The next choice is the first of those that come after the last one, so
// nothing has to be marked as taken, and there may be any number of experts and choices.
#include <cmath>

#include "kernels/cuda/common/support.h"
#include "kernels/cuda/experts/experts.h"
#include "kernels/cuda/rows.h"
#include "runtime/base/experts.h"

namespace cairn::kernels::cuda {
namespace {

struct Choice {
  float logit;
  int expert;

  // Of two experts one comes before the other one, in a single order for all.
  __device__ __forceinline__ bool before(const Choice& other) const {
    if (experts::ahead(logit, other.logit)) return true;
    return !experts::ahead(other.logit, logit) && expert < other.expert;
  }
};

template <class T>
__global__ void __launch_bounds__(kRowsThreads)
    route(const T* all, int64_t rows, int experts, int k, bool normalise, float* weights, int32_t* chosen) {
  const int64_t row = row_of_warp();
  const int lane = lane_of_row();
  if (row >= rows) return;
  const T* logits = all + row * experts;
  weights += row * k;
  chosen += row * k;
  constexpr int kNobody = 0x7fffffff;
  Choice last{0, -1};
  float top = 0;
  for (int j = 0; j < k; ++j) {
    Choice best{-INFINITY, kNobody};
    for (int e = lane; e < experts; e += kWarp) {
      const Choice one{load(logits + e), e};
      if ((j == 0 || last.before(one)) && one.before(best)) best = one;
    }
    for (int by = kWarp / 2; by > 0; by /= 2) {
      const Choice other{__shfl_xor_sync(kAllLanes, best.logit, by),
                         __shfl_xor_sync(kAllLanes, best.expert, by)};
      if (other.before(best)) best = other;
    }
    last = best;
    if (j == 0) top = best.logit;
    if (lane == 0) chosen[j] = best.expert;
  }
  __syncwarp();
  float sum = 0;
  for (int i = lane; i < (normalise ? k : experts); i += kWarp)
    sum += expf(load(logits + (normalise ? chosen[i] : i)) - top);
  sum = warp_sum(sum);
  for (int j = lane; j < k; j += kWarp) weights[j] = expf(load(logits + chosen[j]) - top) / sum;
}

// T: of the logits, which are there unless normalise is set.
template <class T>
__global__ void __launch_bounds__(kRowsThreads)
    route_grad(const float* dweights, const float* weights, const int32_t* chosen, const T* all, int64_t rows,
               int experts, int k, bool normalise, float* dlogits) {
  const int64_t row = row_of_warp();
  const int lane = lane_of_row();
  if (row >= rows) return;
  dweights += row * k;
  weights += row * k;
  chosen += row * k;
  const T* logits = all + (normalise ? 0 : row * experts);
  float mean = 0, largest = -INFINITY, sum = 0;
  for (int j = lane; j < k; j += kWarp) mean += dweights[j] * weights[j];
  mean = warp_sum(mean);
  if (!normalise) {
    for (int e = lane; e < experts; e += kWarp) largest = fmaxf(largest, load(logits + e));
    largest = warp_max(largest);
    for (int e = lane; e < experts; e += kWarp) sum += expf(load(logits + e) - largest);
    sum = warp_sum(sum);
  }
  for (int e = lane; e < experts; e += kWarp) {
    float v = normalise ? 0 : -mean * (expf(load(logits + e) - largest) / sum);
    for (int j = 0; j < k; ++j)
      if (chosen[j] == e) v += weights[j] * (dweights[j] - (normalise ? mean : 0));
    dlogits[row * experts + e] = v;
  }
}

}  // namespace

std::unique_ptr<Kernel> make_route(const Signature& s) {
  if (!fast_float(s.in[0]) || !plain_f32(s.out[0]) || !plain_i32(s.out[1])) return nullptr;
  const int64_t rows = s.in[0].shape.rows();
  const int experts = static_cast<int>(s.in[0].shape.last()), k = static_cast<int>(s.out[0].shape.last());
  const bool normalise = s.attrs->integer("normalise", 1) != 0;
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), route<T>, size_of_rows(rows), input<const T>(call, 0), rows, experts, k,
             normalise, output<float>(call, 0), output<int32_t>(call, 1));
    });
  });
}

std::unique_ptr<Kernel> make_route_grad(const Signature& s) {
  if (!plain_f32(s.in[0]) || !plain_f32(s.in[1]) || !plain_i32(s.in[2]) || !plain_f32(s.out[0]))
    return nullptr;
  if (s.has_in(3) && !fast_float(s.in[3])) return nullptr;
  const int64_t rows = s.in[0].shape.rows();
  const int experts = static_cast<int>(s.out[0].shape.last()), k = static_cast<int>(s.in[0].shape.last());
  const bool normalise = s.attrs->integer("normalise", 1) != 0;
  return with_float(s.has_in(3) ? s.in[3].dtype : DType::kF32, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), route_grad<T>, size_of_rows(rows), input<const float>(call, 0),
             input<const float>(call, 1), input<const int32_t>(call, 2), input<const T>(call, 3), rows,
             experts, k, normalise, output<float>(call, 0));
    });
  });
}

}  // namespace cairn::kernels::cuda
