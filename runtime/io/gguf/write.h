// Writing a GGUF file: version 3, little-endian. All or nothing, durable.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/io/gguf/types.h"

namespace cairn::io {

struct GgufSource {
  std::string name;
  Shape shape;  // row-major
  const GgufBlock* block = nullptr;
  // Gives the tensor's bytes, in order, in pieces, when it is written.
  std::function<void(const std::function<void(const void* bytes, uint64_t count)>& append)> write;
};

// The block type that llama.cpp's converter gives a tensor of a file of `wanted`: vectors, norms, routers and positions are
// F32, and F16 what does not divide by the block.
const GgufBlock& gguf_block_for(std::string_view name, const Shape& shape, const GgufBlock& wanted);

// text: a JSON object {"metadata": {key: value}, "tensors": {name: [numbers]}}. A value is a text, a bool, an array of
// texts, or an object that names a type: {"u32": 22}, {"f32": [0.5, 1]}, {"text": []}. Tensors there are F32 vectors, before those
// of `sources`. kInvalidArgument: the text is none of that.
void write_gguf(const std::filesystem::path& path, std::string_view text, std::vector<GgufSource> sources);

}  // namespace cairn::io
