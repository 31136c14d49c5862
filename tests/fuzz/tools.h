// What the targets share: inputs as text and as files, digests put under them, and which errors are expected.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>

#include "runtime/base/error.h"
#include "tests/runtime/io/reseal.h"
#include "tests/runtime/io/samples.h"

namespace cairn::fuzz {

inline std::string text(std::span<const std::byte> input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

inline std::string sealed(std::span<const std::byte> input) {
  std::string file = text(input);
  file.resize((file.size() + 15) / 16 * 16 + 16);
  return test::reseal(file);
}

inline std::string unsealed(std::span<const std::byte> file) { return text(file.first(file.size() - 16)); }

// A loader that takes a path gets the bytes as a file in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::byte> content) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (fd_ < 0 || ::write(fd_, content.data(), content.size()) != static_cast<ssize_t>(content.size()))
      throw std::logic_error("cannot make a file in memory");
  }
  ~MemoryFile() { ::close(fd_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

template <class Action>
void expect_declared(const Action& action, std::initializer_list<Code> declared) {
  try {
    action();
  } catch (const Error& error) {
    for (Code code : declared)
      if (error.code() == code) return;
    throw std::logic_error(cat("undeclared error ", static_cast<int>(error.code()), ": ", error.what()));
  }
}

}  // namespace cairn::fuzz
