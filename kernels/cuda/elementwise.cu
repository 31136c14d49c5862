// Ops that are elementwise: activations and their gradients, add, mul, scale, cast, accumulate,
// fill.
#include <bit>

#include "kernels/cuda/common/activations.h"
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/rows.h"
#include "runtime/base/broadcast.h"
#include "runtime/base/glu.h"

namespace cairn::kernels::cuda {
namespace {

struct Scale {
  float factor;
  __device__ float operator()(float x) const { return x * factor; }
};
struct Same {
  __device__ float operator()(float x) const { return x; }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Product {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct Swiglu {
  __device__ float operator()(float gate, float up) const { return gate * sigmoid(gate) * up; }
};

// From dy, gate and up: dup and dgate, in the place of dy and gate.
struct SwigluGradients {
  __device__ void operator()(float& d, float& g, float u) const {
    const float s = sigmoid(g), derivative = s * fmaf(g, 1.0f - s, 1.0f), for_up = d * (g * s);
    g = d * u * derivative;
    d = for_up;
  }
};

template <class Function>
struct Gated {
  __device__ float operator()(float gate, float up) const { return Function{}(gate)*up; }
};
template <class Function, class Gradient>
struct GatedGradients {
  __device__ void operator()(float& d, float& g, float u) const {
    const float for_up = d * Function{}(g);
    g = Gradient{}(d * u, g);
    d = for_up;
  }
};

struct SwishClamped {
  static constexpr float kSlope = static_cast<float>(kSwishSlope);
  float limit;
  __device__ float least(float x) const { return x > limit ? limit : x; }
  __device__ float within(float x) const { return x < -limit ? -limit : least(x); }
  __device__ float operator()(float gate, float up) const {
    const float g = least(gate);
    return g * sigmoid(kSlope * g) * (within(up) + 1.0f);
  }
  __device__ void operator()(float& d, float& gate, float up) const {
    const float g = least(gate), s = sigmoid(kSlope * g);
    const float for_up = up > limit || up < -limit ? 0.0f : d * (g * s);
    gate = gate > limit ? 0.0f : d * (within(up) + 1.0f) * (s * fmaf(kSlope * g, 1.0f - s, 1.0f));
    d = for_up;
  }
};

// dgate may lie on any input; either output may be left out.
template <class T, class F>
__global__ void __launch_bounds__(kElementwiseThreads)
    gated_grad(F gradients, int64_t count, const T* dy, const T* gate, const T* up, T* dgate, T* dup) {
  constexpr int kCount = kGroupOf<T>;
  const int64_t groups = count / kCount, first = elementwise_first();
  for (int v = 0; v < kElementwiseGroups; ++v) {
    const int64_t g = first + v * kElementwiseThreads, i = g * kCount;
    if (g >= groups) break;
    Group<kCount> d = read<kCount>(dy + i), of_gate = read<kCount>(gate + i);
    const Group<kCount> u = read<kCount>(up + i);
    for (int e = 0; e < kCount; ++e) gradients(d.at[e], of_gate.at[e], u.at[e]);
    if (dgate != nullptr) write(dgate + i, of_gate);
    if (dup != nullptr) write(dup + i, d);
  }
  const int64_t rest = elementwise_rest<kCount>(count);
  if (rest < 0) return;
  float d = load(dy + rest), g = load(gate + rest);
  gradients(d, g, load(up + rest));
  if (dgate != nullptr) store(dgate + rest, g);
  if (dup != nullptr) store(dup + rest, d);
}

constexpr int kRowsEach = 4;

// y = f(a, b) with b[row] repeated; row is a multiple of kCount. A thread has the same columns of kRowsEach rows.
// Places are multiples of kCount to the compiler's eye as well: it splits vectors where it cannot prove that.
template <int kCount, class F, class A, class B>
__global__ void __launch_bounds__(kElementwiseThreads)
    map_rows(F f, int64_t rows, int64_t row, A* y, const A* a, const B* b) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kElementwiseThreads + threadIdx.x,
                groups = row / kCount;
  constexpr int64_t kUnsigned = int64_t{1} << 32;  // a division of 32 bits is much faster
  const int64_t lot =
      rows * groups < kUnsigned ? static_cast<uint32_t>(i) / static_cast<uint32_t>(groups) : i / groups;
  const int64_t first = lot * kRowsEach, column = i - lot * groups, from = first * groups + column;
  if (first >= rows) return;
  const Group<kCount> right = read<kCount>(b + column * kCount);
  Group<kCount> left[kRowsEach];
  for (int u = 0; u < kRowsEach; ++u)
    if (first + u < rows) left[u] = read<kCount>(a + (from + u * groups) * kCount);
  for (int u = 0; u < kRowsEach; ++u) {
    for (int e = 0; e < kCount; ++e) left[u].at[e] = f(left[u].at[e], right.at[e]);
    if (first + u < rows) write(y + (from + u * groups) * kCount, left[u]);
  }
}

// `bytes` (even) of a pattern that repeats within 8.
__global__ void __launch_bounds__(kElementwiseThreads) fill(uint4 pattern, int64_t bytes, uint4* y) {
  const int64_t groups = bytes / 16, first = elementwise_first();
  for (int u = 0; u < kElementwiseGroups; ++u)
    if (first + u * kElementwiseThreads < groups) y[first + u * kElementwiseThreads] = pattern;
  const int64_t rest = elementwise_rest<8>(bytes / 2);
  if (rest < 0) return;
  const unsigned word = rest / 2 % 2 == 0 ? pattern.x : pattern.y;
  reinterpret_cast<uint16_t*>(y)[rest] = static_cast<uint16_t>(rest % 2 == 0 ? word : word >> 16);
}

// All operands present are of the float type of the first one.
bool uniform(const Signature& s) {
  bool ok = fast_float(s.in[0]);
  for (size_t i = 0; i < s.in.size(); ++i) ok = ok && s.has_in(i) && s.in[i] == s.in[0];
  for (size_t i = 0; i < s.out.size(); ++i) ok = ok && (!s.has_out(i) || s.out[i] == s.in[0]);
  return ok;
}

template <class F>
std::unique_ptr<Kernel> make_unary(const Signature& s, F f) {
  if (!uniform(s)) return nullptr;
  return with_float(s.in[0].dtype, [&, count = s.in[0].shape.elements()](auto zero) {
    using T = decltype(zero);
    return make_kernel(
        [=](const Call& call) { launch_map(call, f, count, output<T>(call, 0), input<const T>(call, 0)); });
  });
}

template <class F>
std::unique_ptr<Kernel> make_binary(const Signature& s, F f) {
  if (!uniform(s)) return nullptr;
  return with_float(s.in[0].dtype, [&, count = s.in[0].shape.elements()](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch_map(call, f, count, output<T>(call, 0), input<const T>(call, 0), input<const T>(call, 1));
    });
  });
}

// The gradients of a gated unit.
template <class F>
std::unique_ptr<Kernel> make_gated(const Signature& s, F f) {
  if (!uniform(s)) return nullptr;
  return with_float(s.in[0].dtype, [&, count = s.in[0].shape.elements()](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), gated_grad<T, F>, elementwise_size(count / kGroupOf<T>), f, count,
             input<const T>(call, 0), input<const T>(call, 1), input<const T>(call, 2), output<T>(call, 0),
             output<T>(call, 1));
    });
  });
}

// Calls use(function, gradients) with those of the unit that glu's attributes name.
template <class Use>
std::unique_ptr<Kernel> with_glu(const Signature& s, const Use& use) {
  const GluRow& row = kGlus[glu_of(s.attrs)];
  if (row.limited) {
    const SwishClamped f{static_cast<float>(glu_limit(s.attrs))};
    return use(f, f);
  }
#define GLU(word_, function) \
  if (row.word == #word_)    \
    return use(Gated<Function_##function>{}, GatedGradients<Function_##function, Gradient_##function>{});
#define GLU_LIMITED(word_)
  CAIRN_GLUS(GLU, GLU_LIMITED)
#undef GLU
#undef GLU_LIMITED
  return nullptr;
}

// The dtypes of a (and y) and b.
template <class A, class B, class F>
std::unique_ptr<Kernel> make_combined(F f, int64_t count, int64_t row) {
  return make_kernel([=](const Call& call) {
    const A* a = input<const A>(call, 0);
    const B* b = input<const B>(call, 1);
    A* y = output<A>(call, 0);
    if (row == count) return launch_map(call, f, count, y, a, b);
    const auto rows = [&]<int kCount>(std::integral_constant<int, kCount>) {
      const int64_t items = (count / row + kRowsEach - 1) / kRowsEach * (row / kCount);
      launch(
          stream_of(call), map_rows<kCount, F, A, B>,
          {.blocks = (items + kElementwiseThreads - 1) / kElementwiseThreads, .threads = kElementwiseThreads},
          f, count / row, row, y, a, b);
    };
    if (row % kGroupOf<A> == 0)
      rows(std::integral_constant<int, kGroupOf<A>>{});
    else
      rows(std::integral_constant<int, 1>{});
  });
}
template <class F>
std::unique_ptr<Kernel> make_combine(const Signature& s, F f) {
  if (!fast_float(s.in[0]) || !fast_float(s.in[1]) || s.out[0].dtype != s.in[0].dtype) return nullptr;
  if (!are_suffixes(s.in)) return nullptr;
  const int64_t count = s.in[0].shape.elements(), row = s.in[1].shape.elements();
  if (s.in[1].dtype != s.in[0].dtype && !plain_f32(s.in[1])) return nullptr;
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return s.in[1].dtype == s.in[0].dtype ? make_combined<T, T>(f, count, row)
                                          : make_combined<T, float>(f, count, row);
  });
}

// Is `choice` what the attribute says?
bool chosen(const Signature& s, std::string_view choice) {
  return s.attrs != nullptr && s.attrs->word("approximate") == choice;
}

// Calls use(function, gradient) with those of the op that its attribute names, else with the op's first.
template <class Use>
std::unique_ptr<Kernel> with_function(const Signature& s, std::string_view op, const Use& use) {
#define FUNCTION(name, of, choice) \
  if (op == #of && chosen(s, choice)) return use(Function_##name{}, Gradient_##name{});
#include "runtime/base/elementwise.def"
#define FUNCTION(name, of, choice) \
  if (op == #of) return use(Function_##name{}, Gradient_##name{});
#define PLAIN(name, of) FUNCTION(name, of, "")
#include "runtime/base/elementwise.def"
  return nullptr;
}
std::unique_ptr<Kernel> make_function(const Signature& s, std::string_view op) {
  return with_function(s, op, [&](auto f, auto) { return make_unary(s, f); });
}
std::unique_ptr<Kernel> make_gradient(const Signature& s, std::string_view op) {
  return with_function(s, op, [&](auto, auto f) { return make_binary(s, f); });
}

}  // namespace

#define UNARY(op, ...)                                                                    \
  std::unique_ptr<Kernel> make_##op(const Signature& s) { return make_function(s, #op); } \
  std::unique_ptr<Kernel> make_##op##_grad(const Signature& s) { return make_gradient(s, #op); }
#include "runtime/base/elementwise.def"

std::unique_ptr<Kernel> make_swiglu(const Signature& s) { return make_binary(s, Swiglu{}); }
std::unique_ptr<Kernel> make_scale(const Signature& s) {
  return make_unary(s, Scale{static_cast<float>(s.attrs->real("factor", 1.0))});
}
std::unique_ptr<Kernel> make_add(const Signature& s) { return make_combine(s, Sum{}); }
std::unique_ptr<Kernel> make_mul(const Signature& s) { return make_combine(s, Product{}); }

std::unique_ptr<Kernel> make_swiglu_grad(const Signature& s) { return make_gated(s, SwigluGradients{}); }

std::unique_ptr<Kernel> make_glu(const Signature& s) {
  return with_glu(s, [&](auto f, auto) { return make_binary(s, f); });
}
std::unique_ptr<Kernel> make_glu_grad(const Signature& s) {
  return with_glu(s, [&](auto, auto f) { return make_gated(s, f); });
}

std::unique_ptr<Kernel> make_cast(const Signature& s) {
  if (!fast_float(s.in[0]) || !fast_float(s.out[0])) return nullptr;
  const int64_t count = s.in[0].shape.elements();
  return with_float(s.in[0].dtype, [&](auto x) {
    return with_float(s.out[0].dtype, [&](auto y) {
      using X = decltype(x);
      using Y = decltype(y);
      return make_kernel([=](const Call& call) {
        launch_map(call, Same{}, count, output<Y>(call, 0), input<const X>(call, 0));
      });
    });
  });
}

std::unique_ptr<Kernel> make_accumulate(const Signature& s) {
  if (!fast_float(s.in[0]) || !plain_f32(s.out[0])) return nullptr;
  const int64_t count = s.in[0].shape.elements();
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      float* sum = output<float>(call, 0);
      const T* x = input<const T>(call, 0);
      if (accumulates(call, 0))
        launch_map(call, Sum{}, count, sum, static_cast<const float*>(sum), x);
      else
        launch_map(call, Same{}, count, sum, x);
    });
  });
}

std::unique_ptr<Kernel> make_fill(const Signature& s) {
  const TensorDesc& y = s.out[0];
  if ((!fast_float(y) && y.dtype != DType::kF64) || y.packed_bytes != 0) return nullptr;
  const double value = s.attrs->real("value", 0);
  const auto word = std::bit_cast<unsigned>(static_cast<float>(value));
  const auto wide = std::bit_cast<uint64_t>(value);
  unsigned low = word, high = word;
  if (is_half(y.dtype)) {
    const unsigned half = with_half(
        y.dtype, [&](auto zero) { return round_to<decltype(zero)>(static_cast<float>(value)).bits; });
    low = high = half | half << 16;
  }
  if (y.dtype == DType::kF64) low = static_cast<unsigned>(wide), high = static_cast<unsigned>(wide >> 32);
  return make_kernel([pattern = make_uint4(low, high, low, high), bytes = y.bytes()](const Call& call) {
    launch(stream_of(call), fill, elementwise_size(bytes / 16), pattern, bytes, output<uint4>(call, 0));
  });
}

}  // namespace cairn::kernels::cuda
