// layernorm, rmsnorm: rows in registers, or element by element where rows do not go by vectors.
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/rowwise.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// What a norm reads and writes besides x and y; kCentered: layernorm. Any of the four may be nullptr.
struct Extras {
  const float *gamma, *beta;
  float *mean, *rstd;
  float offset = 0;  // added to gamma
};

// The row is kept in registers in its own format. Elements of 16 bits need half as many registers, so that more warps can run
// and more loads are under way.
template <class T, int kVectors, bool kWarpRow, bool kCentered>
__global__ void __launch_bounds__(kRowThreads<T, kWarpRow>)
    norm(const T* x, T* y, Extras extras, int64_t rows, int columns, float eps) {
  CAIRN_SHARED float scratch[kWarp];
  constexpr int kCount = Vector<T>::kCount;
  const RowPlace place = row_place<kWarpRow>();
  if (place.row >= rows) return;
  const int vectors = columns / kCount;
  const auto inside = [&](int i) { return i * place.lanes + place.lane < vectors; };
  const T* const from = x + place.row * columns + place.lane * kCount;
  Vector<T> held[kVectors];
  CAIRN_UNROLL for (int i = 0; i < kVectors; ++i) {
    held[i] = {};
    if (inside(i)) held[i] = load_vector(from + i * place.lanes * kCount);
  }
  float mean = 0, squares = 0;
  if constexpr (kCentered) {
    float sum = 0;
    CAIRN_UNROLL for (int i = 0; i < kVectors; ++i) {
      const Group<kCount> v = read<kCount>(held[i].at);
      for (int j = 0; j < kCount; ++j) sum += v.at[j];
    }
    mean = row_sum<kWarpRow>(sum, scratch) / static_cast<float>(columns);
  }
  CAIRN_UNROLL for (int i = 0; i < kVectors; ++i) {
    if (!inside(i)) continue;
    const Group<kCount> v = read<kCount>(held[i].at);
    for (int j = 0; j < kCount; ++j) {
      const float centered = v.at[j] - mean;
      squares += centered * centered;
    }
  }
  squares = row_sum<kWarpRow>(squares, scratch);
  const float rstd = 1.0f / sqrtf(squares / static_cast<float>(columns) + eps);
  if (place.lane == 0) {
    if (extras.mean != nullptr) extras.mean[place.row] = mean;
    if (extras.rstd != nullptr) extras.rstd[place.row] = rstd;
  }
  T* const to = y + place.row * columns + place.lane * kCount;
  CAIRN_UNROLL for (int i = 0; i < kVectors; ++i) {
    if (!inside(i)) continue;
    const int at = i * place.lanes + place.lane;
    float gamma[kCount], beta[kCount];
    load_floats(extras.gamma, at * kCount, 1.0f, gamma);
    if (extras.offset != 0)
      for (int j = 0; j < kCount; ++j) gamma[j] += extras.offset;
    load_floats(extras.beta, at * kCount, 0.0f, beta);
    Group<kCount> v = read<kCount>(held[i].at);
    for (int j = 0; j < kCount; ++j) v.at[j] = (v.at[j] - mean) * rstd * gamma[j] + beta[j];
    write(to + i * place.lanes * kCount, v);
  }
}

// A block per row, an element at a time.
template <class T, bool kCentered>
__global__ void __launch_bounds__(kThreads)
    norm_any(const T* rows, T* to, Extras extras, int64_t columns, float eps) {
  CAIRN_SHARED float scratch[kWarp];
  const T* x = rows + blockIdx.x * columns;
  T* y = to + blockIdx.x * columns;
  float mean = 0, squares = 0;
  if constexpr (kCentered) {
    float sum = 0;
    for (int64_t i = threadIdx.x; i < columns; i += kThreads) sum += load(x + i);
    mean = block_sum(sum, scratch) / static_cast<float>(columns);
  }
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) {
    const float centered = load(x + i) - mean;
    squares += centered * centered;
  }
  squares = block_sum(squares, scratch);
  const float rstd = 1.0f / sqrtf(squares / static_cast<float>(columns) + eps);
  if (threadIdx.x == 0) {
    if (extras.mean != nullptr) extras.mean[blockIdx.x] = mean;
    if (extras.rstd != nullptr) extras.rstd[blockIdx.x] = rstd;
  }
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) {
    const float h = (load(x + i) - mean) * rstd;
    const float gamma = extras.gamma != nullptr ? extras.gamma[i] : 1.0f;
    store(y + i, h * (extras.offset != 0 ? gamma + extras.offset : gamma) +
                     (extras.beta != nullptr ? extras.beta[i] : 0.0f));
  }
}

template <bool kCentered>
std::unique_ptr<Kernel> make_norm(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != s.in[0].dtype) return nullptr;
  for (size_t i = 1; i < s.in.size(); ++i)
    if (s.has_in(i) && !plain_f32(s.in[i])) return nullptr;
  for (size_t i = 1; i < s.out.size(); ++i)
    if (s.has_out(i) && !plain_f32(s.out[i])) return nullptr;
  const int64_t rows = s.in[0].shape.rows(), columns = s.in[0].shape.last();
  const auto eps = static_cast<float>(s.attrs != nullptr ? s.attrs->real("eps", 1e-5) : 1e-5);
  const auto offset = static_cast<float>(s.attrs != nullptr ? s.attrs->real("offset") : 0);
  const auto extras = [offset](const Call& call) {
    return Extras{input<const float>(call, 1), kCentered ? input<const float>(call, 2) : nullptr,
                  kCentered ? output<float>(call, 1) : nullptr, output<float>(call, kCentered ? 2 : 1),
                  offset};
  };
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    std::unique_ptr<Kernel> made;
    const bool fits =
        with_row_in_registers<T, true>(rows, columns, [&](auto vectors, auto warp, RowLaunch size) {
          constexpr int kVectors = decltype(vectors)::value;
          constexpr bool kWarpRow = decltype(warp)::value;
          made = make_kernel([=](const Call& call) {
            launch(stream_of(call), norm<T, kVectors, kWarpRow, kCentered>,
                   {.blocks = size.blocks, .threads = size.threads}, input<const T>(call, 0),
                   output<T>(call, 0), extras(call), rows, static_cast<int>(columns), eps);
          });
        });
    if (!fits)
      made = make_kernel([=](const Call& call) {
        launch(stream_of(call), norm_any<T, kCentered>, {.blocks = rows, .threads = kThreads},
               input<const T>(call, 0), output<T>(call, 0), extras(call), columns, eps);
      });
    return made;
  });
}

}  // namespace

std::unique_ptr<Kernel> make_layernorm(const Signature& s) { return make_norm<true>(s); }
std::unique_ptr<Kernel> make_rmsnorm(const Signature& s) { return make_norm<false>(s); }

}  // namespace cairn::kernels::cuda
