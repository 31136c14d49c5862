// Dropout with the bits of runtime/base/random.h: block b of four elements is Philox of (key, b).
#include <cmath>

#include "kernels/cuda/common/group.h"
#include "kernels/cuda/rows.h"
#include "runtime/base/random.h"

namespace cairn::kernels::cuda {
namespace {

// An element is kept if its 24 random bits are at least `least`.
template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    dropout(RandomKey key, const RandomKey* replayed, uint32_t least, float factor, int64_t count, const T* x,
            T* y) {
  constexpr int kCount = kGroupOf<T>, kBlocks = kCount / 4;
  if (replayed != nullptr) {
    key.seed = replayed->seed;
    key.step = replayed->step;
    key.micro = replayed->micro;
  }
  if (const int64_t rest = elementwise_rest<kCount>(count); rest >= 0) {
    const PhiloxBlock last = random_block(key, static_cast<uint64_t>(rest / 4));
    const uint32_t own =
        rest % 4 < 2 ? (rest % 4 == 0 ? last[0] : last[1]) : (rest % 4 == 2 ? last[2] : last[3]);
    store(y + rest, own >> 8 >= least ? load(x + rest) * factor : 0.0f);
  }
  const int64_t groups = count / kCount, first = elementwise_first();
  if (first >= groups) return;
  // They are unpacked only when the random bits are there, so that nothing waits for the loads before. Threads with fewer groups
  // read their first one again: without a branch, the bits need not wait, either.
  Vector<T> packed[kElementwiseGroups];
  for (int u = 0; u < kElementwiseGroups; ++u) {
    const int64_t g = first + u * kElementwiseThreads;
    packed[u] = load_vector(x + (g < groups ? g : first) * kCount);
  }
  PhiloxBlock bits[kElementwiseGroups * kBlocks];
  for (int b = 0; b < kElementwiseGroups * kBlocks; ++b) {
    const int64_t g = first + b / kBlocks * kElementwiseThreads;
    bits[b] = random_counter(key, static_cast<uint64_t>(g * kBlocks + b % kBlocks));
  }
  philox(bits, static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32));
  for (int u = 0; u < kElementwiseGroups; ++u) {
    const int64_t g = first + u * kElementwiseThreads;
    if (g >= groups) break;
    Group<kCount> group = read<kCount>(packed[u].at);
    for (int i = 0; i < kCount; ++i) {
      const uint32_t own = bits[u * kBlocks + i / 4][static_cast<size_t>(i % 4)] >> 8;
      group.at[i] = own >= least ? group.at[i] * factor : 0.0f;
    }
    write(y + g * kCount, group);
  }
}

}  // namespace

std::unique_ptr<Kernel> make_dropout(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0] != s.in[0] || s.attrs->integer("first", 0) != 0) return nullptr;
  const double rate = s.attrs->real("rate");
  // uniform = k / 2^24 >= rate exactly when k >= ceil(rate 2^24)
  const auto least = static_cast<uint32_t>(std::ceil(rate * 0x1p24));
  const auto factor = static_cast<float>(1.0 / (1.0 - rate));
  const auto op = static_cast<uint32_t>(s.attrs->integer("rng"));
  return with_float(s.in[0].dtype, [&, count = s.in[0].shape.elements()](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      const StreamContext lane = lane_of(call);
      RandomKey key = call.key;
      key.op = op;
      launch(lane.stream, dropout<T>, elementwise_size(count / kGroupOf<T>), key, lane.key, least, factor,
             count, input<const T>(call, 0), output<T>(call, 0));
    });
  });
}

}  // namespace cairn::kernels::cuda
