// FP8 (e4m3) with a scale for each square of 128 values, for each row, or for all: weight_scale_inv and weight_scale.
#include <cstring>

#include "runtime/formats/codecs.h"
#include "runtime/io/safetensors/quantised/kinds.h"

namespace cairn::io::quantised {
namespace {

using formats::Fp8;

class Scaled : public Quantised {
 public:
  Scaled(Group& group, const ModelFiles::Found& codes, const ModelFiles::Found& scales)
      : codes_(codes), scales_(scales) {
    const std::vector<int64_t> dims = dims_of(codes_);
    if (dims.size() != 2 || dims[0] < 1 || dims[1] < 1)
      group.refuse(Code::kCorruptFile, "'", group.name(), "' is ", shown(codes_), "; wanted: a matrix");
    shape = Shape(dims);
    std::vector<int64_t> of = dims_of(scales_);
    while (of.size() < 2) of.push_back(1);
    const auto squares = [](int64_t values) { return (values + Fp8::kBlock - 1) / Fp8::kBlock; };
    if (of.size() == 2 && of[0] == squares(dims[0]) && of[1] == squares(dims[1]))
      rows_ = columns_ = Fp8::kBlock;
    else if (of.size() == 2 && of[0] == dims[0] && of[1] == 1)
      columns_ = dims[1];
    else if (of.size() == 2 && of[0] == 1 && of[1] == 1)
      rows_ = dims[0], columns_ = dims[1];
    else
      group.refuse(Code::kCorruptFile, "'", scales_.tensor->name, "' is ", shown(scales_),
                   ", and the matrix ", to_string(shape),
                   "; wanted: a scale for each 128 x 128 values, each row, or all");
    const bool complete = shape.last() % Fp8::kBlock == 0;
    format = complete ? DType::kFp8 : DType::kF32;
    if (!complete) note = cat("its rows of ", shape.last(), " values are no blocks of ", Fp8::kBlock);
  }

  void read(int64_t first, int64_t count, void* to) const override {
    if (numbers_.empty()) numbers_ = floats_of(scales_);
    std::vector<uint8_t> codes(static_cast<size_t>(count));
    codes_.read(static_cast<uint64_t>(first), codes.data(), codes.size());
    if (format == DType::kFp8) {
      auto* block = static_cast<Fp8::Block*>(to);
      for (int64_t at = 0; at < count; at += Fp8::kBlock, ++block) {
        std::memcpy(block->codes, codes.data() + at, sizeof block->codes);
        block->scale = scale(first + at);
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      static_cast<float*>(to)[i] = formats::e4m3::decode(codes[static_cast<size_t>(i)]) * scale(first + i);
  }

  void forget() const override { numbers_ = {}; }

 private:
  float scale(int64_t at) const {
    const int64_t row = at / shape.last() / rows_, column = at % shape.last() / columns_;
    return numbers_[static_cast<size_t>(row * ((shape.last() + columns_ - 1) / columns_) + column)];
  }

  const ModelFiles::Found &codes_, &scales_;
  int64_t rows_ = 1, columns_ = 1;  // that share a scale
  mutable std::vector<float> numbers_;
};

}  // namespace

std::unique_ptr<Quantised> open_fp8(Group& group) {
  const ModelFiles::Found& codes = group.take(group.name(), "F8_E4M3");
  const ModelFiles::Found* scales = group.take_if(group.stem() + "weight_scale_inv", kScaleTypes);
  if (scales == nullptr) scales = &group.take(group.stem() + "weight_scale", kScaleTypes);
  for (const char* of_activations : {"input_scale", "activation_scale"})
    group.take_if(group.stem() + of_activations, kScaleTypes);
  return std::make_unique<Scaled>(group, codes, *scales);
}

}  // namespace cairn::io::quantised
