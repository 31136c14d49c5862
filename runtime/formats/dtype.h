// The formats by name: an enumerator per row of formats.def.
#pragma once
#include <cstdint>
#include <iterator>

namespace cairn {

// Values are part of the ABI and of files. kOpaque: bytes in a layout only the backend knows (packed weights).
enum class DType : uint8_t {
#define FORMAT(id, ...) k##id,
#include "runtime/formats/formats.def"
#undef FORMAT
};
inline constexpr DType kDTypes[] = {
#define FORMAT(id, ...) DType::k##id,
#include "runtime/formats/formats.def"
#undef FORMAT
};
inline constexpr int kDTypeCount = static_cast<int>(std::size(kDTypes));

// How ops read a parameter of a format: the column `read` of formats.def.
enum class Read : uint8_t { kAsItLies, kDequantised, kByUpdates };

}  // namespace cairn
