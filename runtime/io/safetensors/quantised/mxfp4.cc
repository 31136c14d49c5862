// MXFP4 as gpt-oss has it: NAME_blocks [..., rows, blocks, 16 bytes], value 2 * j in the lower 4 bits of byte j, and
// NAME_scales [..., rows, blocks].
#include "runtime/formats/codecs.h"
#include "runtime/io/safetensors/quantised/kinds.h"

namespace cairn::io::quantised {
namespace {

using formats::Mxfp4;

class Blocks : public Quantised {
 public:
  explicit Blocks(Group& group)
      : codes_(group.take(group.name() + "_blocks", "U8")),
        scales_(group.take(group.name() + "_scales", "U8")) {
    std::vector<int64_t> dims = dims_of(scales_), all = dims;
    all.push_back(Mxfp4::kBlock / 2);
    if (dims.size() < 2 || dims_of(codes_) != all)
      group.refuse(Code::kCorruptFile, "'", codes_.tensor->name, "' is ", shown(codes_), " and '",
                   scales_.tensor->name, "' ", shown(scales_), "; wanted: 16 bytes for each scale");
    dims.back() *= Mxfp4::kBlock;
    shape = Shape(std::span<const int64_t>(dims));
    format = DType::kMxfp4;
  }

  void read(int64_t first, int64_t count, void* to) const override {
    const int64_t begin = first / Mxfp4::kBlock, blocks = (count + Mxfp4::kBlock - 1) / Mxfp4::kBlock;
    std::vector<uint8_t> codes(static_cast<size_t>(blocks * 16)), scales(static_cast<size_t>(blocks));
    codes_.read(static_cast<uint64_t>(begin * 16), codes.data(), codes.size());
    scales_.read(static_cast<uint64_t>(begin), scales.data(), scales.size());
    for (int64_t b = 0; b < blocks; ++b) {
      Mxfp4::Block& block = static_cast<Mxfp4::Block*>(to)[b];
      const uint8_t* const pairs = codes.data() + b * 16;
      block.exponent = scales[static_cast<size_t>(b)];
      const auto code = [pairs](int i) { return formats::nibble(pairs[i / 2], i % 2 == 1); };
      for (int i = 0; i < 16; ++i) block.codes[i] = static_cast<uint8_t>(code(i) | code(i + 16) << 4);
    }
  }

 private:
  const ModelFiles::Found &codes_, &scales_;
};

}  // namespace

std::unique_ptr<Quantised> open_mxfp4(Group& group) { return std::make_unique<Blocks>(group); }

}  // namespace cairn::io::quantised
