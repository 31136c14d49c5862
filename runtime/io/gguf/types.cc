#include "runtime/io/gguf/types.h"

#include <algorithm>

namespace cairn::io {
namespace {

constexpr GgufTypeRow kTypes[] = {{"u8", 1},  {"i8", 1},  {"u16", 2},  {"i16", 2},  {"u32", 4},
                                  {"i32", 4}, {"f32", 4}, {"bool", 1}, {"text", 0}, {"array", 0},
                                  {"u64", 8}, {"i64", 8}, {"f64", 8}};

// As ggml has them; numbers that are not here were given up by it.
constexpr GgufBlock kBlocks[] = {
    {0, "F32", 1, 4, "f32", 0},
    {1, "F16", 1, 2, "f16", 1},
    {2, "Q4_0", 32, 18, "q4_0", 2},
    {3, "Q4_1", 32, 20, "", 3},
    {6, "Q5_0", 32, 22, "", 8},
    {7, "Q5_1", 32, 24, "", 9},
    {8, "Q8_0", 32, 34, "q8_0", 7},
    {9, "Q8_1", 32, 40, "", 0},
    {10, "Q2_K", 256, 84, "", 10},
    {11, "Q3_K", 256, 110, "", 12},
    {12, "Q4_K", 256, 144, "q4_k", 15},
    {13, "Q5_K", 256, 176, "q5_k", 17},
    {14, "Q6_K", 256, 210, "q6_k", 18},
    {15, "Q8_K", 256, 292, "", 0},
    {16, "IQ2_XXS", 256, 66, "", 19},
    {17, "IQ2_XS", 256, 74, "", 20},
    {18, "IQ3_XXS", 256, 98, "", 23},
    {19, "IQ1_S", 256, 50, "", 24},
    {20, "IQ4_NL", 32, 18, "iq4_nl", 25},
    {21, "IQ3_S", 256, 110, "", 26},
    {22, "IQ2_S", 256, 82, "", 28},
    {23, "IQ4_XS", 256, 136, "iq4_xs", 30},
    {24, "I8", 1, 1, "", 0},
    {25, "I16", 1, 2, "", 0},
    {26, "I32", 1, 4, "i32", 0},
    {27, "I64", 1, 8, "i64", 0},
    {28, "F64", 1, 8, "f64", 0},
    {29, "IQ1_M", 256, 56, "", 31},
    {30, "BF16", 1, 2, "bf16", 32},
    {34, "TQ1_0", 256, 54, "", 36},
    {35, "TQ2_0", 256, 66, "", 37},
    {39, "MXFP4", 32, 17, "mxfp4", 38},
    {40, "NVFP4", 64, 36, "", 39},
    {41, "Q1_0", 128, 18, "", 0},
};

}  // namespace

const GgufTypeRow* gguf_type(uint32_t number) {
  return number < std::size(kTypes) ? &kTypes[number] : nullptr;
}

std::optional<GgufType> gguf_type(std::string_view name) {
  for (uint32_t i = 0; i < std::size(kTypes); ++i)
    if (kTypes[i].name == name) return static_cast<GgufType>(i);
  return std::nullopt;
}

const GgufBlock* gguf_block(uint32_t number) {
  const auto found = std::ranges::find(kBlocks, number, &GgufBlock::number);
  return found == std::end(kBlocks) ? nullptr : found;
}

const GgufBlock* gguf_block(DType dtype) {
  const auto found = std::ranges::find(kBlocks, dtype_name(dtype), &GgufBlock::ours);
  return found == std::end(kBlocks) ? nullptr : found;
}

std::optional<DType> gguf_dtype(const GgufBlock& block) {
  const auto found =
      std::ranges::find_if(kDTypes, [&](DType type) { return dtype_name(type) == block.ours; });
  return found == std::end(kDTypes) ? std::nullopt : std::optional(*found);
}

std::string gguf_blocks() {
  std::string all;
  for (const GgufBlock& block : kBlocks)
    all += cat(all.empty() ? "" : ", ", block.name, " (", block.number, ")");
  return all;
}

}  // namespace cairn::io
