// NF4 with double quantisation, as bitsandbytes has it on GPUs: the scales of 256 blocks of 64 values, less the mean of
// all scales of the tensor, are themselves codes of 8 bits of the dynamic map (dynamic8.h) with a scale in float32.
#pragma once
#include "runtime/formats/dynamic8.h"
#include "runtime/formats/nf4.h"
#include "runtime/formats/scope.h"

namespace cairn::formats {
namespace nf4 {

// The code of the dynamic map that is nearest to x; of two that are as near, the even one, where the binary search of
// bitsandbytes ends.
constexpr uint8_t nearest_dynamic(const DynamicMap& map, float x) {
  const auto middle = [&map](int code) { return (map.values[code] + map.values[code + 1]) * 0.5f; };
  int code = 0;
  for (int step = 128; step > 0; step /= 2)
    if (code + step < kDynamicCodes && x > middle(code + step - 1)) code += step;
  if (code % 2 == 1 && code + 1 < kDynamicCodes && x == middle(code)) ++code;
  return static_cast<uint8_t>(code);
}

#ifdef __CUDACC__
static __device__ const DynamicMap kDeviceMap{true};  // the host's has no address there
#endif
template <class Code>
constexpr float dynamic_number(Code code) {
#ifdef __CUDA_ARCH__
  return kDeviceMap.values[code];
#else
  return kDynamicMap.values[code];
#endif
}

}  // namespace nf4

struct Nf4Nested {
  static constexpr Scope kScope = Scope::kTensor;
  static constexpr int kScales = kDynamicBlock, kBlock = kScales * nf4::kBlock;
  struct Block {
    uint8_t codes[kBlock / 2];
    uint8_t scales[kScales];
    float scale, offset;
  };

  static constexpr void measure(const float* from, int64_t count, Known& known) {
    for (int64_t at = 0; at < count; at += nf4::kBlock, ++known.count) {
      float largest = 0;
      find_largest(from + at, values_at(count, at), largest);
      known.number += static_cast<double>(largest);
    }
  }
  static constexpr bool encode(const float* from, int64_t count, const Known& known, Block& to) {
    to.offset = static_cast<float>(known.number / static_cast<double>(known.count));
    float largest[kScales] = {}, apart[kScales] = {};  // of each 64; the same less the offset
    for (int j = 0; j < kScales; ++j) {
      const int64_t at = static_cast<int64_t>(j) * nf4::kBlock, here = values_at(count, at);
      if (!find_largest(from + at, here, largest[j])) return false;
      if (here > 0) apart[j] = largest[j] - to.offset;
      nf4::encode(from + at, here, largest[j], to.codes + at / 2);
    }
    if (!find_largest(apart, kScales, to.scale)) return false;
    constexpr float kLeast = 1e-38f;
    const float factor = to.scale > 0 ? 1.0f / (to.scale > kLeast ? to.scale : kLeast) : 0.0f;
    for (int j = 0; j < kScales; ++j) to.scales[j] = nf4::nearest_dynamic(kDynamicMap, apart[j] * factor);
    return true;
  }
  // The scale of values 64 * j and those after it.
  static constexpr float scale(const Block& from, int j) {
    return product_plus(nf4::dynamic_number(from.scales[j]), from.scale, from.offset);
  }
  static constexpr float decode(const Block& from, int i) {
    return nf4::decode(from.codes, i) * scale(from, i / nf4::kBlock);
  }

 private:
  static constexpr int64_t values_at(int64_t count, int64_t at) {
    return count <= at ? 0 : count - at < nf4::kBlock ? count - at : nf4::kBlock;
  }
};
static_assert(sizeof(Nf4Nested::Block) == 8456);

}  // namespace cairn::formats
