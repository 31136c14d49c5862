// Semantic limits of files: every count that drives an allocation or a loop is bounded before it is used.
// Beyond these, what a file makes us allocate is bounded by its own size (Budget): FlatBuffers may name one
// vector from many places, so a small file could otherwise stand for a huge one. Our encoder never does that.
#pragma once
#include <cstdint>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/text/name.h"

namespace cairn::io {

inline constexpr uint64_t kMaxFlatBufferBytes = (uint64_t{1} << 31) - 1 - 64;
inline constexpr uint32_t kMaxDepth = 8;  // nesting of tables; the schemas need 4
inline constexpr uint32_t kMaxTables = 1u << 23;
inline constexpr uint64_t kMaxValues = 1u << 20;  // also ops and tensors
inline constexpr uint64_t kMaxSteps = 1u << 23;
inline constexpr uint64_t kMaxRegions = 20000;  // adding a region looks at all others
inline constexpr uint64_t kMaxCustoms = 1024;   // as well
inline constexpr uint64_t kMaxLinks = 16;
inline constexpr uint64_t kMaxAttrs = 32;    // of one op
inline constexpr uint64_t kMaxFiles = 1024;  // not counting the tensors
inline constexpr uint64_t kMaxFileNameBytes = 255;
inline constexpr uint64_t kMaxMetadata = 1024;
inline constexpr uint64_t kMaxMetadataBytes = 1u << 20;         // of one value
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // as the format's own reader
inline constexpr uint64_t kMaxGgufBytes = uint64_t{1} << 28;    // before the tensors
inline constexpr uint64_t kMaxGgufKeys = 1u << 16;
inline constexpr uint64_t kMaxGgufKeyBytes = (1u << 16) - 1;  // as the format says
inline constexpr uint64_t kMaxGgufNameBytes = 1024;           // of a tensor; llama.cpp takes 63
inline constexpr uint32_t kMaxGgufRank = 4;                   // as the format says
inline constexpr int kMaxGgufDepth = 4;                       // of arrays in arrays
inline constexpr uint64_t kMaxGgufArrays = 1u << 16;          // in arrays, of a file
inline constexpr uint32_t kMaxGgufAlignment = 1u << 20;
inline constexpr uint64_t kMaxModelFiles = 4096;  // that an index names

// Counts what is taken out of a file; more than the file has is kCorruptFile.
class Budget {
 public:
  Budget(std::string_view what, uint64_t bytes) : what_(what), left_(bytes) {}
  void take(uint64_t bytes) {
    require(bytes <= left_, Code::kCorruptFile, what_, ": its parts are larger than the file");
    left_ -= bytes;
  }
  std::string_view what() const { return what_; }

 private:
  std::string_view what_;
  uint64_t left_;
};

}  // namespace cairn::io
