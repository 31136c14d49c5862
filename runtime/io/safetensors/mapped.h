// Parameters as safetensors files have them. Private to runtime/io/safetensors.
#pragma once
#include <string>
#include <vector>

#include "runtime/io/safetensors/names.h"

namespace cairn::io {

struct Mapped {
  std::string ours, theirs;
  bool transposed = false;
  int32_t value = -1;
  TensorDesc desc;       // ours, as the file has it
  bool encoded = false;  // it is stored in a format that no other library reads: the file has its numbers
  bool frozen = false;
};

// In the order of the graph, but for those that are `kept`.
std::vector<Mapped> map_parameters(const engine::Session& session, const std::vector<NameRow>& names);

inline Shape turned(const Shape& shape) { return {shape[1], shape[0]}; }

// body(T()) of what a parameter is saved as.
template <class Body>
void with_type(DType type, const Body& body) {
  if (type == DType::kF64) return body(double());
  type == DType::kBF16 ? body(bf16()) : body(float());
}

}  // namespace cairn::io
