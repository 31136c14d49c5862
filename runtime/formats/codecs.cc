#include "runtime/formats/codecs.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace cairn::formats {
namespace {

template <class Of>
bool encode(const float* from, int64_t count, void* to) {
  auto* block = static_cast<typename Of::Block*>(to);
  for (int64_t at = 0; at < count; at += Of::kBlock)
    if (!Of::encode(from + at, std::min<int64_t>(Of::kBlock, count - at), *block++)) return false;
  return true;
}

template <class Of>
void decode(const void* from, int64_t count, float* to) {
  const auto* block = static_cast<const typename Of::Block*>(from);
  for (int64_t at = 0; at < count; at += Of::kBlock, ++block) {
    const int here = static_cast<int>(std::min<int64_t>(Of::kBlock, count - at));
    for (int i = 0; i < here; ++i) to[at + i] = Of::decode(*block, i);
  }
}

// What a row says and what its codec does are the same bytes.
template <class Of>
constexpr Codec made(int bits, int64_t block, int64_t scale_bytes) {
  static_assert(alignof(typename Of::Block) <= alignof(std::max_align_t) && Of::kBlock <= kMostBlock);
  return Of::kBlock == block &&
                 static_cast<int64_t>(sizeof(typename Of::Block)) == block * bits / 8 + scale_bytes
             ? Codec{encode<Of>, decode<Of>}
             : throw "a row of formats.def differs from its codec";
}
template <>
constexpr Codec made<None>(int, int64_t, int64_t) {
  return {};
}

constexpr Codec kCodecs[] = {
#define FORMAT(id, name, bits, block, scale_bytes, computed_as, codec, read, trains) \
  made<codec>(bits, block, scale_bytes),
#include "runtime/formats/formats.def"
#undef FORMAT
};
static_assert(std::size(kCodecs) == kDTypeCount);

}  // namespace

const Codec& codec(DType type) { return kCodecs[static_cast<int>(type)]; }

}  // namespace cairn::formats
