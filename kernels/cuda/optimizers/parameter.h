// The parameter of an update as kernels read and write it, in groups of neighbouring elements: float32, bfloat16
// that is rounded stochastically (runtime/base/optimizers/stochastic.h), or bfloat16 beside the 16 bits below
// (runtime/formats/split.h). `at` is what read() and load() take.
#pragma once
#include "kernels/cuda/common/group.h"
#include "runtime/base/optimizers/stochastic.h"
#include "runtime/base/optimizers/update.h"
#include "runtime/formats/split.h"

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
  static constexpr int kMinBlocks = 5;  // that a multiprocessor holds at once: 48 registers a thread

  struct Entry {  // as the host knows it
    float* at;
  };
  static Entry entry(const Call& call, size_t parameter, const ParameterForm&) {
    return {output<float>(call, parameter)};
  }
  static __device__ __forceinline__ PlainParameter of(const Entry& entry, const RandomSource&) {
    return {{entry.at}};
  }
  __device__ __forceinline__ PlainParameter from(int64_t element) const { return {{at + element}}; }
};

struct RoundedParameter {
  static constexpr int kMinBlocks = 4;

  struct Entry {
    bf16* at;
    int64_t first;
    uint32_t stream;
  };
  bf16* at;
  int64_t first;  // the place of `at` in the stream of random numbers
  RandomKey key;

  static Entry entry(const Call& call, size_t parameter, const ParameterForm& form) {
    return {output<bf16>(call, parameter), form.random->first, form.random->stream};
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

// Where both halves of elements lie.
struct Halves {
  bf16* high;
  uint16_t* low;

  __device__ __forceinline__ Halves operator+(int64_t element) const {
    return {high + element, low + element};
  }
};
__device__ __forceinline__ float load(const Halves& p) { return join_halves(*p.high, *p.low); }
template <int kCount>
__device__ __forceinline__ Group<kCount> read(const Halves& p) {
  Group<kCount> group;
  if constexpr (kCount == 4) {
    const uint2 high = *reinterpret_cast<const uint2*>(p.high), low = *reinterpret_cast<const uint2*>(p.low);
    const unsigned upper[2] = {high.x, high.y}, lower[2] = {low.x, low.y};
    CAIRN_UNROLL for (int k = 0; k < kCount; ++k) {
      const bf16 half = {static_cast<uint16_t>(upper[k / 2] >> (16 * (k % 2)))};
      group.at[k] = join_halves(half, static_cast<uint16_t>(lower[k / 2] >> (16 * (k % 2))));
    }
  } else {
    CAIRN_UNROLL for (int k = 0; k < kCount; ++k) group.at[k] = load(p + k);
  }
  return group;
}

struct SplitParameter {
  static constexpr int kMinBlocks = 4;  // 48 registers are one too few

  struct Entry {
    Halves at;
  };
  Halves at;

  static Entry entry(const Call& call, size_t parameter, const ParameterForm& form) {
    return {{output<bf16>(call, parameter),
             output<uint16_t>(call, parameter - update_op::kParameter + form.low)}};
  }
  static __device__ __forceinline__ SplitParameter of(const Entry& entry, const RandomSource&) {
    return {entry.at};
  }
  __device__ __forceinline__ SplitParameter from(int64_t element) const { return {at + element}; }

  template <int kCount>
  __device__ __forceinline__ void put(int64_t i, const Group<kCount>& group) const {
    const Halves to = at + i;
    if constexpr (kCount == 4) {
      unsigned upper[2] = {}, lower[2] = {};
      CAIRN_UNROLL for (int k = 0; k < kCount; ++k) {
        upper[k / 2] |= static_cast<unsigned>(high_half(group.at[k]).bits) << (16 * (k % 2));
        lower[k / 2] |= static_cast<unsigned>(low_half(group.at[k])) << (16 * (k % 2));
      }
      *reinterpret_cast<uint2*>(to.high) = make_uint2(upper[0], upper[1]);
      *reinterpret_cast<uint2*>(to.low) = make_uint2(lower[0], lower[1]);
    } else {
      CAIRN_UNROLL for (int k = 0; k < kCount; ++k) {
        to.high[k] = high_half(group.at[k]);
        to.low[k] = low_half(group.at[k]);
      }
    }
  }
};

// body(std::type_identity<P>()) of what the update's parameter is.
template <class Body>
auto with_parameter(const Signature& s, const Body& body) {
  switch (stored(s)) {
    case Stored::kRounded:
      return body(std::type_identity<RoundedParameter>());
    case Stored::kSplit:
      return body(std::type_identity<SplitParameter>());
    default:
      return body(std::type_identity<PlainParameter>());
  }
}

}  // namespace cairn::kernels::cuda
