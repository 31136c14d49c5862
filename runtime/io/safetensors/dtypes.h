// Names of element types in safetensors files, and what such a file looks like. Private to runtime/io.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/tensor.h"

namespace cairn::io {

std::optional<DType> safetensors_dtype(std::string_view name);  // "F32", ...
int safetensors_bits(std::string_view name);     // of an element, cairn's type or not; 0: no such type
std::string_view safetensors_name(DType dtype);  // kUnsupported if the format has none
std::string safetensors_dtypes();                // all that are known, for messages
bool looks_like_safetensors(std::span<const std::byte> head, uint64_t file_bytes);

}  // namespace cairn::io
