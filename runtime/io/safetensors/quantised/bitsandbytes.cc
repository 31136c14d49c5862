// NF4 and LLM.int8 as bitsandbytes writes them.
#include <algorithm>
#include <cstring>

#include "runtime/formats/codecs.h"
#include "runtime/io/safetensors/quantised/kinds.h"
#include "runtime/plan/json/parse.h"

namespace cairn::io::quantised {
namespace {

using formats::LlmInt8;
using formats::Nf4;
using formats::Nf4Nested;

// What quant_state, a JSON text in a tensor, says.
struct State {
  std::string type;
  int64_t block = 0, nested_block = 0;
  std::vector<int64_t> shape;
  std::optional<double> offset;
};

State read_state(const Group& group, const ModelFiles::Found& found) {
  constexpr size_t kMost = 1 << 16;
  if (found.tensor->bytes > kMost)
    group.refuse(Code::kCorruptFile, "'", found.tensor->name, "' has ", found.tensor->bytes, " bytes");
  const auto text = all_of<char>(found);
  std::string padded;
  simdjson::dom::parser parser(kMost);
  simdjson::dom::element root;
  simdjson::dom::array dims;
  State state;
  std::string_view type;
  const bool read = !plan::parse_json(parser, padded, {text.data(), text.size()}, root) &&
                    !root["quant_type"].get_string().get(type) &&
                    !root["blocksize"].get_int64().get(state.block) && !root["shape"].get_array().get(dims);
  if (!read)
    group.refuse(Code::kCorruptFile, "'", found.tensor->name,
                 "' is no JSON object with quant_type, blocksize and shape");
  state.type = type;
  for (const simdjson::dom::element dim : dims) {
    int64_t number = 0;
    if (dim.get_int64().get(number) || number < 1)
      group.refuse(Code::kCorruptFile, "the shape in '", found.tensor->name, "' is no list of sizes");
    state.shape.push_back(number);
  }
  double offset = 0;
  if (!root["nested_blocksize"].get_int64().get(state.nested_block) &&
      !root["nested_offset"].get_double().get(offset))
    state.offset = offset;
  return state;
}

class FourBits : public Quantised {
 public:
  FourBits(Group& group, const State& state)
      : codes_(group.take(group.name(), "U8|F32|F16|BF16|I8|F8_E4M3")),
        absmax_(group.take(group.name() + ".absmax", state.offset ? "U8" : "F32")) {
    shape = Shape(state.shape);
    const auto count = static_cast<uint64_t>(shape.elements());
    blocks_ = static_cast<int64_t>((count + Nf4::kBlock - 1) / Nf4::kBlock);
    group.expect(codes_, (count + 1) / 2);
    group.expect(absmax_, static_cast<uint64_t>(blocks_) * (state.offset ? 1 : 4));
    expect_numbers(group, group.take(group.name() + ".quant_map", "F32"));
    if (state.offset) {
      offset_ = static_cast<float>(*state.offset);
      const ModelFiles::Found& scales = group.take(group.name() + ".nested_absmax", "F32");
      group.expect(scales, static_cast<uint64_t>((blocks_ + 255) / 256) * 4);
      scales_ = &scales;
      const ModelFiles::Found& map = group.take(group.name() + ".nested_quant_map", "F32");
      group.expect(map, 256 * 4);
      map_ = all_of<float>(map);
    }
    const bool same_map = std::equal(map_.begin(), map_.end(), std::begin(kDynamicMap.values));
    const bool complete = shape.last() % Nf4::kBlock == 0;
    format = !complete ? DType::kF32 : scales_ != nullptr && same_map ? DType::kNf4Nested : DType::kNf4;
    if (!complete) note = cat("its rows of ", shape.last(), " values are no blocks of ", Nf4::kBlock);
  }

  void read(int64_t first, int64_t count, void* to) const override {
    if (absmax_bytes_.empty()) {
      absmax_bytes_ = all_of<uint8_t>(absmax_);
      if (scales_ != nullptr) absmax2_ = all_of<float>(*scales_);
    }
    if (format == DType::kNf4Nested) return read_nested(first, count, static_cast<Nf4Nested::Block*>(to));
    std::vector<uint8_t> codes(static_cast<size_t>(count + 1) / 2 + 1);
    const int64_t begin = first / 2, end = (first + count + 1) / 2;
    codes_.read(static_cast<uint64_t>(begin), codes.data(), static_cast<uint64_t>(end - begin));
    if (format == DType::kNf4) {
      auto* block = static_cast<Nf4::Block*>(to);
      for (int64_t at = 0; at < count; at += Nf4::kBlock, ++block) {
        std::memcpy(block->codes, codes.data() + at / 2, sizeof block->codes);
        block->scale = scale((first + at) / Nf4::kBlock);
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      static_cast<float*>(to)[i] = formats::nf4::decode(codes.data(), static_cast<int>(first % 2 + i)) *
                                   scale((first + i) / Nf4::kBlock);
  }

  void forget() const override {
    absmax_bytes_ = {};
    absmax2_ = {};
  }

 private:
  static void expect_numbers(const Group& group, const ModelFiles::Found& map) {
    group.expect(map, 16 * 4);
    const auto numbers = all_of<float>(map);
    for (int code = 0; code < 16; ++code)
      if (numbers[static_cast<size_t>(code)] != formats::nf4::number(code))
        group.refuse(Code::kCorruptFile, "'", map.tensor->name, "' has other numbers than NF4");
  }

  float scale(int64_t block) const {
    if (scales_ == nullptr) {
      float absmax;
      std::memcpy(&absmax, absmax_bytes_.data() + block * 4, 4);
      return absmax;
    }
    return formats::product_plus(map_[absmax_bytes_[static_cast<size_t>(block)]],
                                 absmax2_[static_cast<size_t>(block / 256)], offset_);
  }

  void read_nested(int64_t first, int64_t count, Nf4Nested::Block* block) const {
    for (int64_t at = first; at < first + count; at += Nf4Nested::kBlock, ++block) {
      const int64_t here = std::min<int64_t>(Nf4Nested::kBlock, first + count - at), j = at / Nf4::kBlock;
      std::memset(block->codes, formats::nf4::kZero << 4 | formats::nf4::kZero, sizeof block->codes);
      codes_.read(static_cast<uint64_t>(at / 2), block->codes, static_cast<uint64_t>((here + 1) / 2));
      std::memset(block->scales, kDynamicMap.zero, sizeof block->scales);
      std::copy_n(absmax_bytes_.begin() + j, (here + Nf4::kBlock - 1) / Nf4::kBlock, block->scales);
      block->scale = absmax2_[static_cast<size_t>(j / Nf4Nested::kScales)];
      block->offset = offset_;
    }
  }

  const ModelFiles::Found &codes_, &absmax_;
  const ModelFiles::Found* scales_ = nullptr;  // of the scales, where these are codes
  int64_t blocks_ = 0;
  float offset_ = 0;
  std::vector<float> map_;
  mutable std::vector<uint8_t> absmax_bytes_;  // read with the first values
  mutable std::vector<float> absmax2_;
};

class EightBits : public Quantised {
 public:
  explicit EightBits(Group& group)
      : codes_(group.take(group.name(), "I8")), scales_(group.take(group.stem() + "SCB", "F32")) {
    const std::vector<int64_t> dims = dims_of(codes_);
    if (dims.size() != 2 || dims[0] < 1 || dims[1] < 1)
      group.refuse(Code::kCorruptFile, "'", group.name(), "' is ", shown(codes_), "; wanted: a matrix");
    shape = Shape(dims);
    group.expect(scales_, static_cast<uint64_t>(dims[0]) * 4);
    if (const ModelFiles::Found* order = group.take_if(group.stem() + "weight_format", "U8")) {
      for (const uint8_t word : all_of<uint8_t>(*order))
        if (word != 0)
          group.refuse(Code::kCorruptFile, "'", order->tensor->name, "' is ", int{word}, "; wanted: 0, rows");
    }
    const bool complete = shape.last() % LlmInt8::kBlock == 0;
    format = complete ? DType::kLlmInt8 : DType::kF32;
    if (!complete) note = cat("its rows of ", shape.last(), " values are no blocks of ", LlmInt8::kBlock);
  }

  void read(int64_t first, int64_t count, void* to) const override {
    if (absmax_.empty()) absmax_ = all_of<float>(scales_);
    std::vector<int8_t> codes(static_cast<size_t>(count));
    codes_.read(static_cast<uint64_t>(first), codes.data(), codes.size());
    if (format == DType::kLlmInt8) {
      auto* block = static_cast<LlmInt8::Block*>(to);
      for (int64_t at = 0; at < count; at += LlmInt8::kBlock, ++block) {
        std::memcpy(block->codes, codes.data() + at, sizeof block->codes);
        block->scale = absmax_[static_cast<size_t>((first + at) / shape.last())];
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      LlmInt8::Block one{};
      one.codes[0] = codes[static_cast<size_t>(i)];
      one.scale = absmax_[static_cast<size_t>((first + i) / shape.last())];
      static_cast<float*>(to)[i] = LlmInt8::decode(one, 0);
    }
  }

  void forget() const override { absmax_ = {}; }

 private:
  const ModelFiles::Found &codes_, &scales_;
  mutable std::vector<float> absmax_;
};

}  // namespace

std::unique_ptr<Quantised> open_nf4(Group& group) {
  const std::string state = group.name() + ".quant_state.bitsandbytes__";
  if (group.find(state + "fp4") != nullptr)
    group.refuse(Code::kCorruptFile, "quant_type fp4 is not known; wanted: nf4");
  const State read = read_state(group, group.take(state + "nf4", "U8"));
  if (read.type != "nf4")
    group.refuse(Code::kCorruptFile, "quant_type ", read.type, " is not known; wanted: nf4");
  if (read.block != Nf4::kBlock || (read.offset && read.nested_block != Nf4Nested::kScales))
    group.refuse(Code::kCorruptFile, "blocks of ", read.block, " values and ", read.nested_block,
                 " scales; wanted: 64 and 256");
  return std::make_unique<FourBits>(group, read);
}
std::unique_ptr<Quantised> open_llm_int8(Group& group) { return std::make_unique<EightBits>(group); }

}  // namespace cairn::io::quantised
