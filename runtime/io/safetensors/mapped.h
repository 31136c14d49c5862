// Parameters as safetensors files have them. Private to runtime/io/safetensors.
#pragma once
#include <string>
#include <vector>

#include "runtime/io/safetensors/names.h"

namespace cairn::io {

struct Mapped {
  std::string ours;
  std::vector<std::string> theirs;  // the tensors of the file that it is made of, one after the other
  bool transposed = false;          // each of them
  int32_t value = -1;
  TensorDesc desc;       // ours, as the file has it
  Shape part;            // of ours, what one of theirs holds
  bool encoded = false;  // it is stored in a format that no other library reads: the file has its numbers
  bool frozen = false;

  Shape shape_there() const { return transposed ? Shape{part[1], part[0]} : part; }  // of one of theirs
};

// In the order of the graph, but for those that are `kept`.
std::vector<Mapped> map_parameters(const engine::Session& session, const std::vector<NameRow>& names);

// body(T()) of what a parameter is saved as.
template <class Body>
void with_type(DType type, const Body& body) {
  if (type == DType::kF64) return body(double());
  type == DType::kBF16 ? body(bf16()) : body(float());
}

}  // namespace cairn::io
