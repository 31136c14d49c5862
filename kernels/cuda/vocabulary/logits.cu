#include "kernels/cuda/common/group.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/vocabulary/logits.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256;

struct LogitShape {
  float inner, outer, cap;  // cap: 0 where there is none
};
struct Logit {
  __device__ float operator()(const LogitShape& s, float product, float) const {
    const float v = s.inner * product;
    return s.cap > 0 ? s.cap * tanhf(v) : v;
  }
};
struct Slope {
  __device__ float operator()(const LogitShape& s, float product, float gradient) const {
    const float t = s.cap > 0 ? tanhf(s.inner * product) : 0.0f;
    return s.outer * gradient * fmaf(-t, t, 1.0f);
  }
};

// to = f(products, other), a block a row; rows are `ld` elements apart and begin at multiples of 16 bytes.
template <class F, class T>
__global__ void __launch_bounds__(kThreads)
    each_logit(F f, LogitShape shape, int64_t ld, int columns, const T* products, const T* other, T* to) {
  constexpr int kCount = kGroupOf<T>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * ld;
  const int thread = static_cast<int>(threadIdx.x), whole = columns / kCount;
  for (int g = thread; g < whole; g += kThreads) {
    const int64_t at = row + g * kCount;
    Group<kCount> p = read<kCount>(products + at);
    const Group<kCount> o = read<kCount>(other + at);
    for (int i = 0; i < kCount; ++i) p.at[i] = f(shape, p.at[i], o.at[i]);
    write(to + at, p);
  }
  for (int i = whole * kCount + thread; i < columns; i += kThreads)
    store(to + row + i, f(shape, load(products + row + i), load(other + row + i)));
}

template <class F>
void run(const Call& call, F f, const LogitShape& shape, const HeadSizes& z, int64_t count,
         const char* products, const char* other, char* to) {
  with_float(z.type, [&](auto zero) {
    using T = decltype(zero);
    launch(stream_of(call), each_logit<F, T>, {.blocks = count, .threads = kThreads}, f, shape, z.ld,
           static_cast<int>(z.n), reinterpret_cast<const T*>(products), reinterpret_cast<const T*>(other),
           reinterpret_cast<T*>(to));
  });
}

}  // namespace

LogitRows::LogitRows(const Signature& s, const HeadSizes& z, bool gradients, Workspace* space)
    : scale_(s.attrs != nullptr ? static_cast<float>(s.attrs->real("scale", 1)) : 1.0f),
      cap_(s.attrs != nullptr ? static_cast<float>(s.attrs->real("softcap")) : 0.0f) {
  if (gradients && cap_ > 0) own_at_ = space->add(z.chunk * z.ld * dtype_bytes(z.type));
}

char* LogitRows::make(const Call& call, const HeadSizes& z, int64_t count, char* products) const {
  if (plain()) return products;
  char* const to = own_at_ >= 0 ? Workspace::at<char>(call, own_at_) : products;
  run(call, Logit{}, {cap_ > 0 ? scale_ / cap_ : scale_, scale_, cap_}, z, count, products, products, to);
  return to;
}

void LogitRows::slope(const Call& call, const HeadSizes& z, int64_t count, const char* gradients,
                      char* products) const {
  if (plain()) return;
  run(call, Slope{}, {cap_ > 0 ? scale_ / cap_ : scale_, scale_, cap_}, z, count, products, gradients,
      products);
}

}  // namespace cairn::kernels::cuda
