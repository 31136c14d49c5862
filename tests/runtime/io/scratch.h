// A folder that goes away with the test, and small helpers to read and write files in it.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "runtime/base/error.h"

namespace cairn::test {

class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "cairn-test-XXXXXX").string();
    require(::mkdtemp(name.data()) != nullptr, Code::kIo, "cannot make ", name);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path put(const std::string& name, const std::string& content) const {
    std::filesystem::remove(path_ / name);  // some file systems flush when a file is cut and written again
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The code an action fails with (kOk: it does not) and its message.
struct Failure {
  Code code = Code::kOk;
  std::string message;
};
template <class Action>
Failure failure(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

}  // namespace cairn::test
