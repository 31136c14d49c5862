// Puts the right digest under a changed file, so that what lies behind the digest check is reached.
#pragma once
#include <xxhash.h>

#include <cstring>
#include <string>

namespace cairn::test {

inline std::string reseal(std::string file) {
  if (file.size() < 16) return file;
  const XXH128_hash_t hash = XXH3_128bits(file.data(), file.size() - 16);
  std::memcpy(file.data() + file.size() - 16, &hash.low64, 8);
  std::memcpy(file.data() + file.size() - 8, &hash.high64, 8);
  return file;
}

}  // namespace cairn::test
