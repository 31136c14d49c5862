#include "kernels/cuda/attention/attention.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kLanes = 8;  // lanes per row

// Rows in the order in which dy and y hold them.
template <class T, int kCount>
__global__ __launch_bounds__(kThreads) void row_numbers(AttentionShape a, const T* dy, const T* y,
                                                        const float* lse, float factor, float* to_lse,
                                                        float* to_delta, int64_t padded) {
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int h = static_cast<int>(row % a.heads);
  const int64_t t = row / a.heads % padded, b = row / a.heads / padded;
  const bool there = b < a.batch && t < a.length;
  float sum = 0;
  if (there) {
    const int64_t at = a.y_at(static_cast<int>(b), h, static_cast<int>(t));
    CAIRN_UNROLL_BY(1)  // one step for the usual 64 columns
    for (int i = lane * kCount; i < a.dim; i += kLanes * kCount) {
      if constexpr (kCount > 1) {
        const Vector<T> u = load_vector(dy + at + i), v = load_vector(y + at + i);
        for (int j = 0; j < kCount; ++j) sum += load(&u.at[j]) * load(&v.at[j]);
      } else {
        sum += load(dy + at + i) * load(y + at + i);
      }
    }
  }
  for (int by = kLanes / 2; by > 0; by /= 2) sum += __shfl_xor_sync(kAllLanes, sum, by);
  if (lane != 0 || b >= a.batch) return;
  const int64_t at = (b * a.heads + h) * padded + t;
  to_delta[at] = sum;
  to_lse[at] = there ? factor * lse[a.row_at(static_cast<int>(b), h, static_cast<int>(t))] : 0.0f;
}

int64_t padded_length(const AttentionShape& a) {
  return (a.length + int64_t{kRowPadding} - 1) / kRowPadding * kRowPadding;
}

}  // namespace

std::optional<AttentionShape> attention_shape(const Signature& s, size_t first) {
  const TensorDesc& q = s.in[first];
  if (!fast_float(q)) return std::nullopt;
  for (size_t i = 0; i < first + 3; ++i)
    if (s.has_in(i) && (s.in[i].dtype != q.dtype || s.in[i].packed_bytes != 0)) return std::nullopt;
  constexpr int64_t kLargest = 1 << 30;
  AttentionShape a{};
  a.sinks = first == 0 ? 3 : 6;
  const auto sinks = static_cast<size_t>(a.sinks);
  for (const size_t i : {sinks, sinks + 4})
    if (s.has_in(i) && !plain_f32(s.in[i])) return std::nullopt;
  a.added = s.has_in(sinks + 4);
  const int64_t heads = s.attrs->integer("heads"), kv_heads = s.attrs->integer("kv_heads", heads);
  a.packed = !s.has_in(first + 1);
  const int64_t dim = q.shape.last() / (a.packed ? heads + 2 * kv_heads : heads);
  if (q.shape[0] > kLargest || q.shape[1] > kLargest || q.shape.last() > kLargest) return std::nullopt;
  a.batch = static_cast<int>(q.shape[0]);
  a.length = static_cast<int>(q.shape[1]);
  const int64_t keys = a.packed ? q.shape[1] : s.in[first + 1].shape[1];
  if (keys > kLargest) return std::nullopt;
  a.keys = static_cast<int>(keys);
  a.heads = static_cast<int>(heads);
  a.kv_heads = static_cast<int>(kv_heads);
  a.dim = static_cast<int>(dim);
  a.q_ld = static_cast<int>(q.shape.last());
  a.kv_ld = a.packed ? a.q_ld : a.kv_heads * a.dim;
  a.y_ld = a.heads * a.dim;
  a.causal = s.attrs->integer("causal", 1) != 0;
  a.scale = static_cast<float>(s.attrs->real("scale", 1.0 / std::sqrt(static_cast<double>(dim))));
  a.scale_log2 = a.scale * kLog2E;
  a.softcap = static_cast<float>(s.attrs->real("softcap", 0));
  a.window = static_cast<int>(std::min(s.attrs->integer("window", kLargest), kLargest));
  a.masked = a.softcap > 0 || a.window < kLargest || a.keys != a.length;
  for (size_t i = static_cast<size_t>(a.sinks); i < s.in.size(); ++i) a.masked = a.masked || s.has_in(i);
  return a;
}

RowNumbers::RowNumbers(void* workspace, const AttentionShape& a)
    : lse(static_cast<float*>(workspace)), padded(padded_length(a)) {
  delta = lse + int64_t{a.batch} * a.heads * padded;
}
int64_t RowNumbers::bytes(const AttentionShape& a) {
  return 2 * int64_t{a.batch} * a.heads * padded_length(a) * static_cast<int64_t>(sizeof(float));
}

void launch_row_numbers(cudaStream_t stream, const AttentionShape& a, DType dtype, const void* dy,
                        const void* y, const float* lse, float factor, const RowNumbers& to) {
  const LaunchSize size{.blocks = (int64_t{a.batch} * a.heads * to.padded * kLanes + kThreads - 1) / kThreads,
                        .threads = kThreads};
  with_float(dtype, [&](auto zero) {
    using T = decltype(zero);
    constexpr int kCount = Vector<T>::kCount;
    const auto kernel = a.dim % kCount == 0 ? row_numbers<T, kCount> : row_numbers<T, 1>;
    launch(stream, kernel, size, a, static_cast<const T*>(dy), static_cast<const T*>(y), lse, factor, to.lse,
           to.delta, to.padded);
    return 0;
  });
}

}  // namespace cairn::kernels::cuda
