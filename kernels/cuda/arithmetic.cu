// The ops of arithmetic.def, whose operands are repeated where shapes broadcast; what takes float64, too, in which losses
// are added up.
#include <algorithm>
#include <type_traits>

#include "kernels/cuda/common/group.h"
#include "kernels/cuda/rows.h"
#include "runtime/base/broadcast.h"

namespace cairn::kernels::cuda {
namespace {

// The constants of a function's parameters, in the type R that it is computed in.
template <class R>
struct Parameters {
  R p, q;
};

template <class R>
__device__ __forceinline__ R square(R x) {
  return x * x;
}

// Functions of up to three operands a, b and c, computed in float or double.
#define FUNCTION(name, value)                                                                 \
  struct Op_##name {                                                                          \
    template <class R>                                                                        \
    __device__ R operator()(R a, R b, R c, const Parameters<R>& m) const {                    \
      static_cast<void>(a), static_cast<void>(b), static_cast<void>(c), static_cast<void>(m); \
      return value;                                                                           \
    }                                                                                         \
  };
FUNCTION(add, a + b)
FUNCTION(sub, a - b)
FUNCTION(mul, a* b)
FUNCTION(div, a / b)
FUNCTION(div_grad, -(a* b) / c)
// If a or b is NaN, so is the result.
FUNCTION(minimum, a != a || a < b ? a : b)
FUNCTION(maximum, a != a || a > b ? a : b)
FUNCTION(greater_grad, b > c ? a : b == c ? a / R(2) : R(0))
FUNCTION(less, R(a < b ? 1 : 0))
FUNCTION(less_equal, R(a <= b ? 1 : 0))
FUNCTION(greater, R(a > b ? 1 : 0))
FUNCTION(greater_equal, R(a >= b ? 1 : 0))
FUNCTION(equal, R(a == b ? 1 : 0))
FUNCTION(not_equal, R(a != b ? 1 : 0))
FUNCTION(where, a != R(0) ? b : c)
FUNCTION(where_grad, (b != R(0)) == (m.p == R(0)) ? a : R(0))
FUNCTION(clamp, a<m.p ? m.p : a> m.q ? m.q : a)
FUNCTION(clamp_grad, b<m.p || b> m.q ? R(0) : a)
FUNCTION(softcap, m.p* static_cast<R>(tanh(a / m.p)))
FUNCTION(softcap_grad, a*(R(1) - square(static_cast<R>(tanh(b / m.p)))))
FUNCTION(pow, static_cast<R>(pow(a, m.p)))
FUNCTION(pow_grad, m.p == R(0) ? R(0) : a * m.p * static_cast<R>(pow(b, m.p - R(1))))
FUNCTION(scale, a* m.p)
FUNCTION(same, a)
#undef FUNCTION

// An operand of any float type; read and written in R.
struct Place {
  void* data;
  DType type;
};
template <class R>
__device__ __forceinline__ R read_as(const Place& x, int64_t i) {
  if (x.type == DType::kF32) return static_cast<R>(static_cast<const float*>(x.data)[i]);
  if (x.type == DType::kBF16) return static_cast<R>(load(static_cast<const bf16*>(x.data) + i));
  if (x.type == DType::kF16) return static_cast<R>(load(static_cast<const f16*>(x.data) + i));
  return static_cast<R>(static_cast<const double*>(x.data)[i]);
}
template <class R>
__device__ __forceinline__ void write_as(const Place& y, int64_t i, R v) {
  if (y.type == DType::kF32)
    static_cast<float*>(y.data)[i] = static_cast<float>(v);
  else if (y.type == DType::kBF16)
    store(static_cast<bf16*>(y.data) + i, static_cast<float>(v));
  else if (y.type == DType::kF16)
    store(static_cast<f16*>(y.data) + i, static_cast<float>(v));
  else
    static_cast<double*>(y.data)[i] = static_cast<double>(v);
}

struct Operands {
  Place in[kMostOperands], out;
};

constexpr int kThreads = 256, kEach = 4;  // elements of a thread, a block's width apart

template <class F, class R, int kOperands>
__global__ void __launch_bounds__(kThreads)
    arithmetic(CAIRN_TABLE(Broadcast, walk), Operands operands, int64_t count, Parameters<R> m) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kThreads * kEach) + threadIdx.x;
  for (int u = 0; u < kEach; ++u) {
    const int64_t e = first + u * kThreads;
    if (e >= count) return;
    int64_t at[kOperands] = {}, rest = e;
    for (int axis = walk.rank - 1; axis >= 0; --axis) {
      const int64_t above = axis > 0 ? rest / walk.sizes[axis] : 0, index = rest - above * walk.sizes[axis];
      CAIRN_UNROLL for (int o = 0; o < kOperands; ++o) at[o] += index * walk.strides[o][axis];
      rest = above;
    }
    R x[3] = {};
    CAIRN_UNROLL for (int o = 0; o < kOperands; ++o) x[o] = read_as<R>(operands.in[o], at[o]);
    write_as<R>(operands.out, e, F{}(x[0], x[1], x[2], m));
  }
}

template <class F, int kOperands>
std::unique_ptr<Kernel> make_arithmetic(const Signature& s, const ArithmeticRow& row) {
  const auto plain_float = [](const TensorDesc& d) { return is_float(d.dtype) && d.packed_bytes == 0; };
  if (!std::all_of(s.in.begin(), s.in.end(), plain_float) || !plain_float(s.out[0])) return nullptr;
  bool wide = s.out[0].dtype == DType::kF64;
  Operands types = {};
  types.out.type = s.out[0].dtype;
  for (int o = 0; o < kOperands; ++o) {
    types.in[o].type = s.in[static_cast<size_t>(o)].dtype;
    wide = wide || types.in[o].type == DType::kF64;
  }
  const Broadcast walk = make_broadcast(s.out[0].shape, s.in);
  const int64_t count = s.out[0].shape.elements(),
                blocks = (count + kThreads * kEach - 1) / (kThreads * kEach);
  const double p = row.p.in(s.attrs), q = row.q.in(s.attrs);
  const auto make = [&](auto zero) {
    using R = decltype(zero);
    const Parameters<R> m{static_cast<R>(p), static_cast<R>(q)};
    return make_kernel([=](const Call& call) {
      Operands operands = types;
      for (int o = 0; o < kOperands; ++o) operands.in[o].data = data_of(call.in, static_cast<size_t>(o));
      operands.out.data = data_of(call.out, 0);
      launch(stream_of(call), arithmetic<F, R, kOperands>, {.blocks = blocks, .threads = kThreads}, walk,
             operands, count, m);
    });
  };
  return wide ? make(double{}) : make(float{});
}

constexpr double kInfinity = ArithmeticRow::kInfinity;

// Left to the kernels that are made for this.
bool others_take(const Signature& s) {
  return fast_float(s.in[0]) && are_suffixes(s.in) && (s.op == "add" || s.op == "mul");
}

}  // namespace

#define ARITHMETIC(op, operands, ...)                                                         \
  std::unique_ptr<Kernel> make_##op##_broadcast(const Signature& s) {                         \
    if (others_take(s)) return nullptr;                                                       \
    return make_arithmetic<Op_##op, operands>(s, {#op, operands __VA_OPT__(, ) __VA_ARGS__}); \
  }
#include "runtime/base/arithmetic.def"

std::unique_ptr<Kernel> make_scale_f64(const Signature& s) {
  if (s.in[0].dtype != DType::kF64) return nullptr;
  return make_arithmetic<Op_scale, 1>(s, {"scale", 1, {"factor", 1}});
}

std::unique_ptr<Kernel> make_cast_f64(const Signature& s) {
  if (s.in[0].dtype != DType::kF64 && s.out[0].dtype != DType::kF64) return nullptr;
  return make_arithmetic<Op_same, 1>(s, {"cast", 1});
}

}  // namespace cairn::kernels::cuda
