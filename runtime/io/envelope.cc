#include "runtime/io/envelope.h"

#include <xxhash.h>

#include <cstring>

namespace cairn::io {
namespace {
constexpr size_t kTrailer = 16;
}

std::vector<std::byte> seal(const flatbuffers::FlatBufferBuilder& builder) {
  const size_t size = builder.GetSize(), padded = (size + 15) / 16 * 16;
  std::vector<std::byte> file(padded + kTrailer);
  std::memcpy(file.data(), builder.GetBufferPointer(), size);
  const XXH128_hash_t hash = XXH3_128bits(file.data(), padded);
  std::memcpy(file.data() + padded, &hash.low64, 8);
  std::memcpy(file.data() + padded + 8, &hash.high64, 8);
  return file;
}

bool has_identifier(std::span<const std::byte> file, const char* identifier) {
  return file.size() >= 8 + kTrailer && std::memcmp(file.data() + 4, identifier, 4) == 0;
}

Opened::Opened(std::span<const std::byte> file, const char* identifier, std::string_view what)
    : identifier_(identifier), what_(what) {
  require(has_identifier(file, identifier), Code::kCorruptFile, what, ": not a ", what, " file");
  require(file.size() <= kMaxFlatBufferBytes, Code::kCorruptFile, what, ": ", file.size(),
          " bytes are above ", kMaxFlatBufferBytes);
  buffer_ = file.first(file.size() - kTrailer);
  const XXH128_hash_t hash = XXH3_128bits(buffer_.data(), buffer_.size());
  uint64_t stored[2];
  std::memcpy(stored, file.data() + buffer_.size(), sizeof stored);
  require(stored[0] == hash.low64 && stored[1] == hash.high64, Code::kCorruptFile, what,
          ": the digest differs; the file is damaged or cut off");
  if (reinterpret_cast<uintptr_t>(buffer_.data()) % alignof(std::max_align_t) != 0) {
    aligned_.resize(buffer_.size() / sizeof(std::max_align_t) + 1);
    std::memcpy(aligned_.data(), buffer_.data(), buffer_.size());
    buffer_ = {reinterpret_cast<const std::byte*>(aligned_.data()), buffer_.size()};
  }
}

std::string text_of(const flatbuffers::String* text, Budget& budget, uint64_t limit) {
  if (text == nullptr) return {};
  require(text->size() <= limit, Code::kCorruptFile, budget.what(), ": a text of ", text->size(),
          " bytes is longer than ", limit);
  budget.take(text->size());
  return text->str();
}

TensorDesc desc_of(uint8_t dtype, const flatbuffers::Vector<int64_t>* shape, Budget& budget) {
  require(dtype < kDTypeCount && dtype != static_cast<uint8_t>(DType::kOpaque), Code::kCorruptFile,
          budget.what(), ": unknown dtype ", static_cast<int>(dtype));
  const std::vector<int64_t> dims = list_of(shape, budget);
  try {
    TensorDesc desc{static_cast<DType>(dtype), Shape(std::span<const int64_t>(dims))};
    desc.bytes();
    return desc;
  } catch (const Error& error) {
    fail_as(Code::kCorruptFile, error, budget.what(), ": ");
  }
}

}  // namespace cairn::io
