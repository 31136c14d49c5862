// The codecs of formats.def: how values of a format come from float32 numbers and become such again. A codec is a struct
// with a `Block`, the number kBlock of its values, `encode` of a block and `decode` of one value of it: plain functions for
// the host, for kernels of every backend and, as constexpr functions, for GPUs.
#pragma once
#include <cstdint>

#include "runtime/formats/dtype.h"
#include "runtime/formats/dynamic8.h"
#include "runtime/formats/fp8.h"
#include "runtime/formats/gguf/iq4.h"
#include "runtime/formats/gguf/k.h"
#include "runtime/formats/gguf/q4_q8.h"
#include "runtime/formats/half.h"
#include "runtime/formats/int8.h"
#include "runtime/formats/llm_int8.h"
#include "runtime/formats/mxfp4.h"
#include "runtime/formats/nf4.h"
#include "runtime/formats/nf4_nested.h"
#include "runtime/formats/scope.h"
#include "runtime/formats/u4.h"

namespace cairn::formats {

// Formats whose values stand alone.
template <class T>
struct Plain {
  static constexpr int kBlock = 1;
  using Block = T;
  static bool encode(const float* from, int64_t, Block& to) {
    to = round_to<T>(*from);
    return true;
  }
  static float decode(const Block& from, int) { return to_float(from); }
};
using F32 = Plain<float>;
using BF16 = Plain<bf16>;
using F16 = Plain<f16>;
struct None {};

template <bool kWithSign>
struct Dynamic {
  static constexpr int kBlock = kDynamicBlock;
  using Block = DynamicBlock;
  static const DynamicMap& map() { return kWithSign ? kDynamicMap : kUnsignedDynamicMap; }
  static bool encode(const float* from, int64_t count, Block& to) {
    encode_dynamic(map(), from, count, to);
    return true;
  }
  static float decode(const Block& from, int i) { return map().values[from.codes[i]] * from.scale; }
};
using Dynamic8 = Dynamic<true>;
using UDynamic8 = Dynamic<false>;

inline constexpr int kMostBlock = 16384;  // values of a block, of any format

// A codec for the host; its functions are null of a format without one.
struct Codec {
  // What numbers are encoded by: their block, or all of a row or tensor, of which `known` is what `measure` found in its
  // parts, one after the other; each but the last one is of full blocks.
  Scope scope = Scope::kBlock;
  void (*measure)(const float* from, int64_t count, Known& known) = nullptr;
  // `count` values from the beginning of a block on. False: a number is none that the format can store; what was
  // written is of no use.
  bool (*encode_part)(const float* from, int64_t count, const Known& known, void* to) = nullptr;
  void (*decode)(const void* from, int64_t count, float* to) = nullptr;
  int64_t block = 1, block_bytes = 0;

  // A tensor of one row.
  bool encode(const float* from, int64_t count, void* to) const {
    Known known;
    measure(from, count, known);
    return encode_part(from, count, known, to);
  }
  explicit operator bool() const { return decode != nullptr; }
};
const Codec& codec(DType);

namespace detail {
template <Read kRead, class Of, class Body>
constexpr bool visit(const Body& body) {
  if constexpr (kRead == Read::kDequantised) body(Of{});
  return kRead == Read::kDequantised;
}
}  // namespace detail

// body(Of{}) with the codec of a format that is read through `dequantise`. False: the format is none of these.
template <class Body>
constexpr bool with_dequantised(DType type, const Body& body) {
  switch (type) {
#define FORMAT(id, name, bits, block, row, scale_bytes, computed_as, codec, read, trains) \
  case DType::k##id:                                                                      \
    return detail::visit<Read::k##read, codec>(body);
#include "runtime/formats/formats.def"
#undef FORMAT
  }
  return false;
}

}  // namespace cairn::formats
