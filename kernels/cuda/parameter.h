// The parameter of an update as kernels read and write it, in groups of neighbouring elements: float32, or bfloat16
// that is rounded stochastically (runtime/base/optimizers/stochastic.h).
#pragma once
#include <optional>

#include "kernels/cuda/common/group.h"
#include "runtime/base/optimizers/stochastic.h"
#include "runtime/base/optimizers/update.h"

namespace cairn::kernels::cuda {

// The random numbers of a call.
struct RandomSource {
  RandomKey key;
  const RandomKey* replayed;  // where a recording finds seed and step instead

  static RandomSource of(const Call& call) { return {call.key, lane_of(call).key}; }
};

// Elements that are rounded to nearest, of T.
template <class T>
struct Nearest {
  T* at;

  template <int kCount>
  __device__ __forceinline__ void put(int64_t i, const Group<kCount>& group) const {
    write(at + i, group);
  }
};

struct PlainParameter : Nearest<float> {
  struct Entry {  // as the host knows it
    float* at;
  };
  static Entry entry(const Call& call, size_t operand, const std::optional<RandomPlace>&) {
    return {output<float>(call, operand)};
  }
  static __device__ __forceinline__ PlainParameter of(const Entry& entry, const RandomSource&) {
    return {{entry.at}};
  }
  __device__ __forceinline__ PlainParameter from(int64_t element) const { return {{at + element}}; }
};

struct RoundedParameter {
  struct Entry {
    bf16* at;
    int64_t first;
    uint32_t stream;
  };
  bf16* at;
  int64_t first;  // the place of `at` in the stream of random numbers
  RandomKey key;

  static Entry entry(const Call& call, size_t operand, const std::optional<RandomPlace>& random) {
    return {output<bf16>(call, operand), random->first, random->stream};
  }
  static __device__ __forceinline__ RoundedParameter of(const Entry& entry, const RandomSource& random) {
    RandomKey key = update_key(random.key, entry.stream);
    if (random.replayed != nullptr) {
      key.seed = random.replayed->seed;
      key.step = random.replayed->step;
    }
    return {entry.at, entry.first, key};
  }
  __device__ __forceinline__ RoundedParameter from(int64_t element) const {
    return {at + element, first + element, key};
  }

  template <int kCount>
  __device__ __forceinline__ void put(int64_t i, const Group<kCount>& group) const {
    PhiloxBlock bits{};
    int64_t block = -1;
    unsigned rounded[kCount];
    CAIRN_UNROLL for (int k = 0; k < kCount; ++k) {
      const int64_t place = first + i + k;
      if (place / kHalvesPerBlock != block) {
        block = place / kHalvesPerBlock;
        bits = random_block(key, static_cast<uint64_t>(block));
      }
      const uint32_t random = random_half(bits, static_cast<int>(place % kHalvesPerBlock));
      rounded[k] = round_stochastic(group.at[k], random).bits;
    }
    if constexpr (kCount == 4)
      *reinterpret_cast<uint2*>(at + i) =
          make_uint2(rounded[0] | rounded[1] << 16, rounded[2] | rounded[3] << 16);
    else
      CAIRN_UNROLL for (int k = 0; k < kCount; ++k) at[i + k].bits = static_cast<uint16_t>(rounded[k]);
  }
};

// body(std::type_identity<P>()) of what the update's parameter is.
template <class Body>
auto with_parameter(const Signature& s, const Body& body) {
  return rounds(s) ? body(std::type_identity<RoundedParameter>())
                   : body(std::type_identity<PlainParameter>());
}

}  // namespace cairn::kernels::cuda
