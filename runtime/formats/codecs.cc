#include "runtime/formats/codecs.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace cairn::formats {
namespace {

template <class Of>
constexpr Scope scope_of() {
  if constexpr (requires { Of::kScope; })
    return Of::kScope;
  else
    return Scope::kBlock;
}

template <class Of>
void measure(const float* from, int64_t count, Known& known) {
  if constexpr (scope_of<Of>() != Scope::kBlock) Of::measure(from, count, known);
}

template <class Of>
bool encode(const float* from, int64_t count, const Known& known, void* to) {
  auto* block = static_cast<typename Of::Block*>(to);
  for (int64_t at = 0; at < count; at += Of::kBlock, ++block) {
    const int64_t here = std::min<int64_t>(Of::kBlock, count - at);
    if constexpr (scope_of<Of>() == Scope::kBlock) {
      if (!Of::encode(from + at, here, *block)) return false;
    } else {
      if (!Of::encode(from + at, here, known, *block)) return false;
    }
  }
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
             ? Codec{scope_of<Of>(), measure<Of>, encode<Of>,
                     decode<Of>,     Of::kBlock,  sizeof(typename Of::Block)}
             : throw "a row of formats.def differs from its codec";
}
template <>
constexpr Codec made<None>(int, int64_t, int64_t) {
  return {};
}

constexpr Codec kCodecs[] = {
#define FORMAT(id, name, bits, block, row, scale_bytes, computed_as, codec, read, trains) \
  made<codec>(bits, block, scale_bytes),
#include "runtime/formats/formats.def"
#undef FORMAT
};
static_assert(std::size(kCodecs) == kDTypeCount);

}  // namespace

const Codec& codec(DType type) { return kCodecs[static_cast<int>(type)]; }

}  // namespace cairn::formats
