// The token file's header. Private to runtime/data; the byte layout is in README.md.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <span>

namespace cairn::data {

inline constexpr std::array<char, 8> kTokenMagic = {'C', 'A', 'I', 'R', 'N', 'T', 'O', 'K'};
inline constexpr uint32_t kTokenVersion = 1;
inline constexpr int64_t kMaxVocabularyOfU16 = 65536;

// Little-endian, 64 bytes, no padding.
struct TokenHeader {
  std::array<char, 8> magic = kTokenMagic;
  uint32_t version = kTokenVersion;
  uint32_t token_bytes = 2;  // 2: u16, 4: i32
  uint32_t vocabulary = 0;
  uint32_t reserved = 0;
  uint64_t count = 0;
  uint64_t digest_low = 0, digest_high = 0;  // XXH3-128 of the tokens' bytes
  uint64_t reserved2 = 0;
  uint64_t header_digest = 0;  // XXH3-64 of the 56 bytes before
};
static_assert(sizeof(TokenHeader) == 64);
static_assert(std::endian::native == std::endian::little, "files are little-endian and read as they are");

uint64_t header_digest(const TokenHeader& header);

}  // namespace cairn::data
