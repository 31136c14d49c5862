// A GGUF file as `cairn inspect` gives it.
#include "runtime/io/json.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "runtime/io/gguf/gguf.h"

namespace cairn::io {
namespace {

template <class T>
T stored(const GgufValue& value, uint64_t index) {
  T number;
  std::memcpy(&number, value.bytes.data() + index * sizeof number, sizeof number);
  return number;
}

// The shortest text that is this float32 again.
std::string shortest(float value) {
  char text[32];
  if (!std::isfinite(value)) return "null";
  return {text, std::to_chars(text, std::end(text), value).ptr};
}

// One number, text or bool.
std::string one(const GgufValue& value, uint64_t index) {
  switch (value.scalar()) {
    case GgufType::kText:
      return json_text(value.text(index));
    case GgufType::kBool:
      return stored<uint8_t>(value, index) ? "true" : "false";
    case GgufType::kF32:
      return shortest(stored<float>(value, index));
    case GgufType::kU64:
      return std::to_string(stored<uint64_t>(value, index));
    case GgufType::kI64:
      return std::to_string(stored<int64_t>(value, index));
    default:
      return number(*value.number(index));
  }
}

std::string json(const GgufValue& value) {
  if (!value.is_array()) return one(value, 0);
  std::string out = "[";
  for (uint64_t i = 0; i < value.count; ++i) {
    if (i > 0) out += ", ";
    out += value.element == GgufType::kArray ? json(value.inner[i]) : one(value, i);
  }
  return out + "]";
}

}  // namespace

std::string gguf_json(const Gguf& file) {
  Json metadata('{'), tensors('{');
  uint64_t bytes = 0;
  for (const auto& [key, value] : file.metadata()) metadata.add(key, json(value));
  for (const GgufTensor& tensor : file.tensors()) {
    Json shape('['), row('{');
    for (const uint64_t d : tensor.shape) shape.add(std::to_string(d));
    const auto dtype = gguf_dtype(*tensor.block);
    row.add("dtype", json_text(dtype ? dtype_name(*dtype) : tensor.block->name))
        .add("shape", shape.text())
        .add("bytes", std::to_string(tensor.bytes))
        .add("offset", std::to_string(tensor.offset));
    if (!dtype) row.add("unusable", json_text(tensor.block->name));
    if (dtype && tensor.block->values > 1) row.add("quantised", "true");
    tensors.add(tensor.name, row.text());
    bytes += tensor.bytes;
  }
  return Json('{')
      .add("kind", json_text("gguf"))
      .add("version", std::to_string(file.version()))
      .add("alignment", std::to_string(file.alignment()))
      .add("metadata", metadata.text())
      .add("tensors_bytes", std::to_string(bytes))
      .add("tensors", tensors.text())
      .text();
}

}  // namespace cairn::io
