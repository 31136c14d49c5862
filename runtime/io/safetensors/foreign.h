// Files of other programs, told by their first bytes.
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace cairn::io {

// What a file that begins so is, and how to make a safetensors file of it: "a GGUF file; ..."; nothing if it is none
// of those that people take for one.
std::string foreign_file(std::span<const std::byte> head);

}  // namespace cairn::io
