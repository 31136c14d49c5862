// Parameters as safetensors files have them. Private to runtime/io/safetensors.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/io/safetensors/names.h"

namespace cairn::io {

struct Mapped {
  std::string ours;
  std::vector<std::string> theirs;  // the tensors of the file that it is made of, one after the other
  bool transposed = false;          // each of them: of three axes and more, the last stands second there
  int32_t value = -1;
  TensorDesc desc;       // ours, as the file has it
  Shape part;            // of ours, what one of theirs holds
  bool encoded = false;  // it is stored in a format that no other library reads: the file has its numbers
  bool frozen = false;
  std::span<float> matrix = {};  // where it is imported to, before it is stored
  TensorDesc stored;             // ours, as the session has it
  LayoutRow layout;

  bool reordered() const { return layout.ways > 1; }
  // Values of a row that stays together: each of a vector is one.
  int64_t columns() const { return part.rank == 1 && reordered() ? 1 : part.last(); }
  // The row of theirs that is row `row` of ours.
  int64_t row_there(int64_t row) const;
  int64_t row_here(int64_t row) const;  // and back
  Shape shape_there() const;            // of one of theirs
  // Transposed: where element `place` of one of theirs is there.
  int64_t place_there(int64_t place) const {
    const int64_t columns = part.last(), each = part.rank > 2 ? part.elements() / part[0] : part.elements();
    const int64_t rows = each / columns, here = place % each;
    return place - here + here % columns * rows + here / columns;
  }
};

// In the order of the graph, but for those that are `kept`.
std::vector<Mapped> map_parameters(const engine::Session& session, const std::vector<NameRow>& names,
                                   const std::vector<LayoutRow>& layouts = {});

// body(T()) of what a parameter is saved as.
template <class Body>
void with_type(DType type, const Body& body) {
  if (type == DType::kF64) return body(double());
  if (type == DType::kF16) return body(f16());
  type == DType::kBF16 ? body(bf16()) : body(float());
}

}  // namespace cairn::io
