// Numbers of the format: types of metadata values, and block types of tensors.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/tensor.h"

namespace cairn::io {

inline constexpr std::string_view kGgufMagic = "GGUF";
inline constexpr uint32_t kGgufVersion = 3;
inline constexpr uint32_t kGgufAlignment = 32;  // of tensors, where the metadata say nothing

enum class GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kText,
  kArray,
  kU64,
  kI64,
  kF64
};

// What a number, or a bool, of metadata takes; 0: of a text or an array.
struct GgufTypeRow {
  std::string_view name;  // "u32"
  uint32_t bytes;
};
const GgufTypeRow* gguf_type(uint32_t number);  // nullptr: the format has no such type
std::optional<GgufType> gguf_type(std::string_view name);

// A block type of tensors.
struct GgufBlock {
  uint32_t number;
  std::string_view name;   // "Q4_K"
  uint32_t values, bytes;  // of a block
  std::string_view ours;   // the row of formats.def with the same bytes; "": there is none
  uint32_t file_type;      // of a file whose matrices are of it (general.file_type)
};
const GgufBlock* gguf_block(uint32_t number);  // nullptr: the format has no such type
const GgufBlock* gguf_block(DType dtype);      // nullptr: the format has none for it
std::optional<DType> gguf_dtype(const GgufBlock& block);
std::string gguf_blocks();  // names and numbers of all, for messages

}  // namespace cairn::io
