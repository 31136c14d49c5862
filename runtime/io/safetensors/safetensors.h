// safetensors (https://github.com/huggingface/safetensors: the format): strict reader, durable writer.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/os/file.h"
#include "runtime/base/tensor.h"

namespace cairn::io {

struct SafeTensor {
  std::string name;
  TensorDesc desc;      // meaningless unless usable
  uint64_t offset = 0;  // in the file
  // Why cairn computes with no such tensor: its type, as "BOOL", or "empty"; nothing: it does.
  std::string unusable;
  std::string dtype;            // as the file spells it
  std::vector<uint64_t> shape;  // as in the file
  uint64_t bytes = 0;

  bool usable() const { return unusable.empty(); }
};
class SafeTensors {
 public:
  explicit SafeTensors(const std::filesystem::path& path);
  // Tensors of a file of another form.
  SafeTensors(std::shared_ptr<const InputFile> file, std::vector<SafeTensor> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}
  const std::vector<SafeTensor>& tensors() const { return tensors_; }
  const SafeTensor* find(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const { return file_->path(); }
  uint64_t size() const { return file_->size(); }
  // Bytes `at`.. of a tensor. kIo: the file was cut short since it was opened.
  void read(const SafeTensor& tensor, uint64_t at, void* to, uint64_t bytes) const {
    file_->read(tensor.offset + at, to, bytes);
  }
  const std::shared_ptr<const InputFile>& file() const { return file_; }

 private:
  std::shared_ptr<const InputFile> file_;
  std::vector<SafeTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

struct SafeTensorSource {  // data is asked for when it is written
  std::string name;
  TensorDesc desc;
  std::function<void(void* to)> read;
};
void write_safetensors(const std::filesystem::path& path, const std::vector<SafeTensorSource>& tensors,
                       const std::map<std::string, std::string>& metadata);
// A file of a directory that is written.
void write_safetensors(DurableDirectory& directory, const std::string& name,
                       std::span<const SafeTensorSource> tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace cairn::io
