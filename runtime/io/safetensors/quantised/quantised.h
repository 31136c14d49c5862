// Matrices that files have quantised, as several tensors: codes, scales and what else their kind has. By the names that
// programs write: bitsandbytes (NF4, LLM.int8), FP8, MXFP4, GPTQ and AWQ.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/io/safetensors/model_files.h"

namespace cairn::io {

class Quantised {
 public:
  virtual ~Quantised() = default;
  // `count` values from value `first` on, where a block of `format` begins, as blocks.
  virtual void read(int64_t first, int64_t count, void* to) const = 0;
  // Frees what `read` keeps of the files, such as scales, from call to call.
  virtual void forget() const {}
  // Values from any one on, as numbers.
  void read_floats(int64_t first, std::span<float> to) const;

  DType format = DType::kF32;  // the row of formats.def that holds it bit by bit; f32 where there is none
  Shape shape;                 // as the matrix has it
  std::string note;            // why its format is f32, if it is
  std::vector<std::string> tensors;  // that it is made of
  uint64_t bytes = 0;                // of them
};

// By the name that the matrix would have. kCorruptFile: one is incomplete or of a kind that is not known; the
// message names a tensor.
using QuantisedTensors = std::map<std::string, std::unique_ptr<Quantised>, std::less<>>;
QuantisedTensors find_quantised(const ModelFiles& files);

}  // namespace cairn::io
