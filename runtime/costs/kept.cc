#include "runtime/costs/kept.h"

#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <span>

#include "runtime/base/error.h"

namespace cairn::costs {
namespace {

// How long to wait for another process that is measuring. It needs a second, on a busy machine a few; after ten it hangs.
constexpr int kLooks = 500;
constexpr useconds_t kBetweenLooks = 20'000;

// FNV-1a: the name of a file, nothing that must withstand an attack.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

std::string kept_directory(const std::string& named) {
  if (!named.empty()) return named;
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return cat(cache, "/cairn");
  const char* const home = std::getenv("HOME");  // one that is missing is not ours to make
  std::error_code ignored;
  return home != nullptr && *home == '/' && std::filesystem::is_directory(home, ignored)
             ? cat(home, "/.cache/cairn")
             : "";
}

std::string kept_name(std::string_view kind, std::string_view of) {
  std::string digits;
  for (uint64_t hash = hash_of(of), i = 0; i < 16; ++i, hash >>= 4)
    digits.insert(digits.begin(), "0123456789abcdef"[hash & 15]);
  return cat(kind, '-', digits, ".json");
}

std::string keep(const std::string& path, const std::string& text) {
  try {
    write_file_durably(path, std::as_bytes(std::span(text)));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

MeasuringTurn::MeasuringTurn(const std::string& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) return;
  try {
    lock_ = open_directory(directory);
  } catch (const Error&) {
    return;
  }
  for (int look = 0; look < kLooks && ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0; ++look)
    ::usleep(kBetweenLooks);
}

}  // namespace cairn::costs
