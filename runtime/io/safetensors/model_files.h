// The tensors of a model: in one safetensors file, in several that an index names, or in a GGUF file.
#pragma once
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "runtime/io/safetensors/safetensors.h"

namespace cairn::io {

inline constexpr const char* kModelName = "model.safetensors";
inline constexpr const char* kIndexName = "model.safetensors.index.json";

class ModelFiles {
 public:
  struct Found {
    const SafeTensors* file;
    const SafeTensor* tensor;
    // Bytes `at`.. of the tensor. kIo: the file was cut short since it was opened.
    void read(uint64_t at, void* to, uint64_t bytes) const { file->read(*tensor, at, to, bytes); }
  };
  // A safetensors or GGUF file, or a directory with kModelName, or else kIndexName and the files that it names.
  // kNotFound: a file is not there. kCorruptFile: index and files contradict each other, or a tensor is in two.
  explicit ModelFiles(const std::filesystem::path& path);
  const std::deque<SafeTensors>& files() const { return files_; }
  const std::map<std::string_view, Found>& tensors() const { return tensors_; }
  std::string where(const Found& found) const { return "'" + found.file->path().string() + "'"; }

 private:
  void open(const std::filesystem::path& path);
  void take(const SafeTensors& file);
  void open_index(const std::filesystem::path& path);

  std::deque<SafeTensors> files_;
  std::map<std::string_view, Found> tensors_;
};

// Whether a directory has a model in it, by the names of its files.
bool is_model_directory(const std::filesystem::path& path);

}  // namespace cairn::io
