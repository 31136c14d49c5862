// l2_normalize and its gradient: a warp for each row.
#include "kernels/cuda/common/support.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 128, kRows = kThreads / kWarp;

struct Rows {
  int64_t count, columns;
  float eps;

  LaunchSize size() const { return {.blocks = (count + kRows - 1) / kRows, .threads = kThreads}; }
  __device__ __forceinline__ int64_t own() const {
    return static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kWarp;
  }
  // body(i) for the lane's elements of a row.
  template <class Body>
  __device__ __forceinline__ void each(const Body& body) const {
    for (int64_t i = threadIdx.x % kWarp; i < columns; i += kWarp) body(i);
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads) l2_normalize(Rows z, const T* x, T* y, float* norms) {
  const int64_t row = z.own();
  if (row >= z.count) return;
  x += row * z.columns;
  // Squares of numbers between -1 and 1: none is too large.
  float most = 0, squares = 0;
  z.each([&](int64_t i) { most = fmaxf(most, fabsf(load(x + i))); });
  most = warp_max(most);
  const float scale = most > 0 && most < INFINITY ? most : 1.0f;
  z.each([&](int64_t i) {
    const float v = load(x + i) / scale;
    squares = fmaf(v, v, squares);
  });
  const float norm = scale * sqrtf(warp_sum(squares));
  if (norms != nullptr && threadIdx.x % kWarp == 0) norms[row] = norm;
  if (y == nullptr) return;
  y += row * z.columns;
  const float divisor = norm < z.eps ? z.eps : norm;  // of a NaN: NaN
  z.each([&](int64_t i) { store(y + i, load(x + i) / divisor); });
}

// dx = (dy - y (y dy)) / norm; dy / eps where the norm is less than that.
template <class T>
__global__ void __launch_bounds__(kThreads)
    l2_normalize_grad(Rows z, const T* dy, const T* y, const float* norms, T* dx) {
  const int64_t row = z.own();
  if (row >= z.count) return;
  dy += row * z.columns, y += row * z.columns, dx += row * z.columns;
  const float norm = norms[row];
  const bool small = norm < z.eps;
  float along = 0;
  z.each([&](int64_t i) { along = fmaf(load(dy + i), load(y + i), along); });
  along = small ? 0.0f : warp_sum(along);
  const float divisor = small ? z.eps : norm;
  z.each([&](int64_t i) { store(dx + i, (load(dy + i) - load(y + i) * along) / divisor); });
}

Rows rows_of(const Signature& s) {
  return {s.in[0].shape.rows(), s.in[0].shape.last(),
          static_cast<float>(s.attrs != nullptr ? s.attrs->real("eps", 1e-12) : 1e-12)};
}

}  // namespace

std::unique_ptr<Kernel> make_l2_normalize(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != s.in[0].dtype || (s.has_out(1) && !plain_f32(s.out[1])))
    return nullptr;
  const Rows z = rows_of(s);
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), l2_normalize<T>, z.size(), z, input<const T>(call, 0), output<T>(call, 0),
             output<float>(call, 1));
    });
  });
}

std::unique_ptr<Kernel> make_l2_normalize_grad(const Signature& s) {
  if (!fast_float(s.in[0]) || s.in[1].dtype != s.in[0].dtype || s.out[0].dtype != s.in[0].dtype ||
      !plain_f32(s.in[2]))
    return nullptr;
  const Rows z = rows_of(s);
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), l2_normalize_grad<T>, z.size(), z, input<const T>(call, 0),
             input<const T>(call, 1), input<const float>(call, 2), output<T>(call, 0));
    });
  });
}

}  // namespace cairn::kernels::cuda
