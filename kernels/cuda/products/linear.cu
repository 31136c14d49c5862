// linear. Products are the library's; what it cannot do on the way, a pass over its result does.
#include "kernels/cuda/common/activations.h"
#include "kernels/cuda/products/linear.h"
#include "kernels/cuda/products/product.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ float apply(Activation act, float x) {
  switch (act) {
#define FUNCTION(name, ...)  \
  case Activation::k_##name: \
    return name(x);
#include "runtime/base/elementwise.def"
    default:
      return x;
  }
}

// y = act(x + bias); pre takes the argument. x may be y or pre, so vectors are read before they are written.
template <class T>
__global__ void __launch_bounds__(kThreads)
    activate_vectors(const T* x, const float* bias, T* pre, T* y, int64_t vectors, int64_t columns,
                     Activation act) {
  constexpr int kCount = Vector<T>::kCount;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= vectors) return;
  const Vector<T> v = load_vector(x + i * kCount);
  const int64_t column = bias != nullptr ? i * kCount % columns : 0;
  Vector<T> argument, value;
  float added[kCount];
  load_floats(bias, column, 0.0f, added);
  for (int j = 0; j < kCount; ++j) {
    const float a = load(&v.at[j]) + added[j];
    store(&argument.at[j], a);
    store(&value.at[j], apply(act, a));
  }
  if (pre != nullptr && (pre != x || bias != nullptr)) store_vector(pre + i * kCount, argument);
  store_vector(y + i * kCount, value);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    activate_elements(const T* x, const float* bias, T* pre, T* y, int64_t count, int64_t columns,
                      Activation act) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const float a = load(x + i) + (bias != nullptr ? bias[i % columns] : 0.0f);
  if (pre != nullptr) store(pre + i, a);
  store(y + i, apply(act, a));
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    round_elements(const float* from, T* to, int64_t eights, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < eights) {
    const Vector<float> low = load_vector(from + 8 * i), high = load_vector(from + 8 * i + 4);
    Vector<T> v;
    for (int j = 0; j < 4; ++j) {
      store(&v.at[j], low.at[j]);
      store(&v.at[4 + j], high.at[j]);
    }
    store_vector(to + 8 * i, v);
  } else if (const int64_t at = 8 * eights + (i - eights); at < count) {
    store(to + at, from[at]);
  }
}

// The product, and what is left to do after it.
struct Linear {
  std::shared_ptr<Product> product;
  bool bias_left = false, pass = false;  // the pass adds the bias; there is one

  Linear(ProductShape shape, Activation act, bool bias, bool pre, Chooser chooser) {
    if (act == Activation::k_gelu_tanh) {
      shape.epilogue = bias ? Epilogue::kGeluBias : Epilogue::kGelu;
      shape.pre = pre;
      product = try_product(shape, chooser);
      if (product != nullptr) return;
      shape.pre = false;
    }
    pass = act != Activation::kNone || pre;
    if (bias) {
      shape.epilogue = Epilogue::kBias;
      product = try_product(shape, chooser);
      if (product != nullptr) return;
      bias_left = pass = true;
    }
    shape.epilogue = Epilogue::kNone;
    product = make_product(shape, chooser);
  }
};

template <class T>
void run_pass(cudaStream_t stream, const T* x, const float* bias, T* pre, T* y, int64_t count,
              int64_t columns, Activation act) {
  const bool vectors = columns % Vector<T>::kCount == 0;
  const int64_t threads = vectors ? count / Vector<T>::kCount : count;
  launch(stream, vectors ? activate_vectors<T> : activate_elements<T>,
         {.blocks = (threads + kThreads - 1) / kThreads, .threads = kThreads}, x, bias, pre, y, threads,
         columns, act);
}

template <class T>
std::unique_ptr<Kernel> make_linear_of(const Signature& s, Activation act) {
  constexpr bool kHalf = sizeof(T) == 2;
  const int64_t m = s.in[0].shape.rows(), k = s.in[0].shape.last(), n = s.out[0].shape.last();
  const bool bias = s.has_in(2), pre = s.has_out(1);
  ProductShape shape;
  shape.m = m, shape.n = n, shape.k = k;
  shape.in = shape.out = s.in[0].dtype;
  shape.transpose_b = true;
  const Linear linear(shape, act, bias, pre, Chooser(s));
  // The library takes a bias of the output's type.
  const bool fused_bias = bias && !linear.bias_left, fused_pre = pre && !linear.pass;
  Workspace space;
  const WeightReader weight(s.in[1], s.in[0].dtype, &space);
  const int64_t bias_at = fused_bias && kHalf ? space.add(2 * n) : -1;
  const int64_t product_at = space.add(linear.product->workspace_bytes());
  return make_kernel(
      [=](const Call& call) {
        const cudaStream_t stream = stream_of(call);
        const float* b = input<const float>(call, 2);
        T *y = output<T>(call, 0), *argument = output<T>(call, 1);
        // Where a pass follows, the product writes the activation's argument into its own output if that is kept, else into y.
        T* sums = linear.pass && argument != nullptr ? argument : y;
        ProductCall product{.stream = stream,
                            .a = data_of(call.in, 0),
                            .b = weight.read(call, 1),
                            .c = sums,
                            .bias = fused_bias ? b : nullptr,
                            .pre = fused_pre ? argument : nullptr,
                            .workspace = Workspace::at(call, product_at)};
        if (bias_at >= 0) {
          round_copy(stream, b, shape.out, Workspace::at(call, bias_at), n);
          product.bias = Workspace::at(call, bias_at);
        }
        linear.product->run(product);
        if (linear.pass)
          run_pass<T>(stream, sums, linear.bias_left ? b : nullptr, argument, y, m * n, n, act);
      },
      space.bytes());
}

}  // namespace

bool parse(std::string_view word, Activation* to) {
  constexpr std::pair<std::string_view, Activation> kWords[] = {
      {"", Activation::kNone},
#define FUNCTION(name, ...) {#name, Activation::k_##name},
#include "runtime/base/elementwise.def"
  };
  for (const auto& [known, activation] : kWords)
    if (word == known) {
      *to = activation;
      return true;
    }
  return false;
}

void round_copy(cudaStream_t stream, const float* from, DType type, void* to, int64_t count) {
  const bool aligned = (reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) % 16 == 0;
  const int64_t eights = aligned ? count / 8 : 0, threads = eights + (count - 8 * eights);
  with_half(type, [&](auto zero) {
    using T = decltype(zero);
    launch(stream, round_elements<T>, {.blocks = (threads + kThreads - 1) / kThreads, .threads = kThreads},
           from, static_cast<T*>(to), eights, count);
  });
}

std::unique_ptr<Kernel> make_pack_weight(const Signature& s) {
  const DType type = dtype_from_name(s.attrs->word("dtype"));
  if (!is_half(type) || !plain_f32(s.in[0])) return nullptr;
  const int64_t count = s.in[0].shape.elements();
  if (s.out[0].packed_bytes != 2 * count) return nullptr;
  return make_kernel([=](const Call& call) {
    round_copy(stream_of(call), input<const float>(call, 0), type, data_of(call.out, 0), count);
  });
}

std::unique_ptr<Kernel> make_linear(const Signature& s) {
  Activation act;
  const DType t = s.in[0].dtype;
  if (!fast_float(s.in[0]) || s.out[0].dtype != t || !WeightReader::takes(s.in[1], t)) return nullptr;
  if ((s.has_in(2) && !plain_f32(s.in[2])) || (s.has_out(1) && s.out[1].dtype != t)) return nullptr;
  if (!parse(s.attrs != nullptr ? s.attrs->word("activation") : "", &act)) return nullptr;
  return with_float(t, [&](auto zero) { return make_linear_of<decltype(zero)>(s, act); });
}

}  // namespace cairn::kernels::cuda
