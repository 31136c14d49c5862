// GPTQ and AWQ of 4 bits: eight codes in a word of 32 bits. GPTQ packs along a row of the matrix [out, in] (qweight [in / 8,
// out]), AWQ (its `gemm` form) across 8 rows, in an order of its own (qweight [in, out / 8]); both have zeros (packed
// across rows) and scales for groups of values of a row: qzeros [groups, out / 8], scales [groups, out].
#include <algorithm>

#include "runtime/formats/codecs.h"
#include "runtime/io/safetensors/quantised/kinds.h"

namespace cairn::io::quantised {
namespace {

using formats::U4;

constexpr int kOrder[8] = {0, 4, 1, 5, 2, 6, 3, 7};  // of AWQ: where in a word row j of 8 is

class Packed : public Quantised {
 public:
  explicit Packed(Group& group)
      : codes_(group.take(group.stem() + "qweight", "I32")),
        zeros_(group.take(group.stem() + "qzeros", "I32")),
        scales_(group.take(group.stem() + "scales", "F16|BF16|F32")),
        places_(group.take_if(group.stem() + "g_idx", "I32")) {
    const std::vector<int64_t> packed = dims_of(codes_), zeros = dims_of(zeros_), scales = dims_of(scales_);
    const bool known = packed.size() == 2 && zeros.size() == 2 && scales.size() == 2 && packed[0] > 0 &&
                       packed[1] > 0 && scales[0] > 0 && zeros[0] == scales[0] && zeros[1] * 8 == scales[1];
    awq_ = known && packed[1] == zeros[1] && packed[1] != scales[1];
    if (!known || (!awq_ && packed[1] != scales[1]))
      group.refuse(Code::kCorruptFile, "qweight is ", shown(codes_), ", qzeros ", shown(zeros_), ", scales ",
                   shown(scales_), "; that is neither GPTQ nor AWQ of 4 bits");
    const int64_t out = scales[1], in = awq_ ? packed[0] : packed[0] * 8;
    shape = Shape{out, in};
    groups_ = scales[0];
    each_ = (in + groups_ - 1) / groups_;
    if (const std::string size = group.config("group_size"); !size.empty() && std::atoll(size.c_str()) > 0)
      each_ = std::atoll(size.c_str());
    if ((in + each_ - 1) / each_ != groups_)
      group.refuse(Code::kCorruptFile, "rows of ", in, " values in groups of ", each_, ", and '",
                   scales_.tensor->name, "' is ", shown(scales_));
    more_ = awq_ || group.config("checkpoint_format") == "gptq_v2" ? 0 : 1;
    bool in_order = true;
    if (places_ != nullptr) {
      group.expect(*places_, static_cast<uint64_t>(in) * 4);
      place_ = all_of<int32_t>(*places_);
      for (int64_t i = 0; i < in; ++i) {
        const int32_t place = place_[static_cast<size_t>(i)];
        if (place < 0 || place >= groups_)
          group.refuse(Code::kCorruptFile, "'", places_->tensor->name, "' names group ", place, " of ",
                       groups_);
        in_order = in_order && place == i / each_;
      }
    }
    note = !in_order ? "its groups are not in order (desc_act)"
           : in % U4::kBlock || each_ % U4::kBlock
               ? cat("its groups of ", each_, " values are no blocks of 32")
           : scales_.tensor->dtype != "F16" ? cat("its scales are ", scales_.tensor->dtype)
                                            : "";
    format = note.empty() ? DType::kU4 : DType::kF32;
  }

  void read(int64_t first, int64_t count, void* to) const override {
    if (words_.empty()) {
      words_ = all_of<uint32_t>(codes_);
      zero_words_ = all_of<uint32_t>(zeros_);
      numbers_ = floats_of(scales_);
    }
    if (format == DType::kU4) {
      auto* block = static_cast<U4::Block*>(to);
      for (int64_t at = first; at < first + count; at += U4::kBlock, ++block) {
        const int64_t row = at / shape.last(), column = at % shape.last(), group = column / each_;
        block->scale = to_f16(scale(row, group));
        block->zero = to_f16(zero(row, group));
        for (int64_t i = 0; i < U4::kBlock / 2; ++i)
          block->codes[i] =
              static_cast<uint8_t>(code(row, column + i) | code(row, column + i + U4::kBlock / 2) << 4);
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = (first + i) / shape.last(), column = (first + i) % shape.last();
      const int64_t group = place_.empty() ? column / each_ : place_[static_cast<size_t>(column)];
      static_cast<float*>(to)[i] =
          (static_cast<float>(code(row, column)) - zero(row, group)) * scale(row, group);
    }
  }

  void forget() const override {
    words_ = {};
    zero_words_ = {};
    numbers_ = {};
  }

 private:
  uint32_t code(int64_t row, int64_t column) const {
    const int64_t out = shape[0];
    if (awq_) return words_[static_cast<size_t>(column * (out / 8) + row / 8)] >> kOrder[row % 8] * 4 & 15u;
    return words_[static_cast<size_t>(column / 8 * out + row)] >> column % 8 * 4 & 15u;
  }
  float zero(int64_t row, int64_t group) const {
    const int64_t at = awq_ ? kOrder[row % 8] : row % 8;
    const uint32_t stored =
        zero_words_[static_cast<size_t>(group * (shape[0] / 8) + row / 8)] >> at * 4 & 15u;
    return static_cast<float>(stored + more_);
  }
  float scale(int64_t row, int64_t group) const {
    return numbers_[static_cast<size_t>(group * shape[0] + row)];
  }

  const ModelFiles::Found &codes_, &zeros_, &scales_;
  const ModelFiles::Found* places_;
  bool awq_ = false;
  uint32_t more_ = 0;  // than what is stored a zero of the first version of GPTQ's files is
  int64_t groups_ = 0, each_ = 0;
  std::vector<int32_t> place_;                        // the group of each value of a row
  mutable std::vector<uint32_t> words_, zero_words_;  // read with the first values
  mutable std::vector<float> numbers_;
};

}  // namespace

std::unique_ptr<Quantised> open_packed(Group& group) { return std::make_unique<Packed>(group); }

}  // namespace cairn::io::quantised
