// GGUF, llama.cpp's model file: a strict reader of versions 2 and 3, little-endian. Read piece by piece: of the tensors
// only what is asked for, of the metadata at most kMaxGgufBytes.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/os/file.h"
#include "runtime/io/gguf/types.h"

namespace cairn::io {

struct GgufValue {
  GgufType type = GgufType::kU32;
  GgufType element = GgufType::kU32;  // of an array
  uint64_t count = 1;                 // of an array's elements
  std::string bytes;                  // numbers as in the file; a text; texts one after the other
  std::vector<uint64_t> ends;         // of an array's texts, in bytes
  std::vector<GgufValue> inner;       // an array's arrays

  bool is_array() const { return type == GgufType::kArray; }
  GgufType scalar() const { return is_array() ? element : type; }
  std::string_view text(uint64_t index = 0) const;  // of a text, or of an array of texts
  // As a number, or nothing of what is none. What a double does not hold exactly is rounded.
  std::optional<double> number(uint64_t index = 0) const;
};

struct GgufTensor {
  std::string name;
  std::vector<uint64_t> shape;  // row-major: the reverse of the file's
  const GgufBlock* block = nullptr;
  uint64_t offset = 0, bytes = 0;  // in the file
};

class Gguf {
 public:
  // kCorruptFile; kUnsupported: another version, big-endian, a type that the format does not have, by its number.
  explicit Gguf(const std::filesystem::path& path);
  const std::filesystem::path& path() const { return file_->path(); }
  const std::shared_ptr<const InputFile>& file() const { return file_; }
  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  const std::map<std::string, GgufValue>& metadata() const { return metadata_; }
  const GgufValue* find(std::string_view key) const;
  const std::vector<GgufTensor>& tensors() const { return tensors_; }

 private:
  std::shared_ptr<const InputFile> file_;
  uint32_t version_ = 0;
  uint64_t alignment_ = kGgufAlignment;
  std::map<std::string, GgufValue> metadata_;
  std::vector<GgufTensor> tensors_;
};

bool looks_like_gguf(std::span<const std::byte> head, uint64_t file_bytes);
bool is_gguf(const std::filesystem::path& path);  // a regular file that begins as one
// For `cairn inspect`: version, metadata as plain values, tensors.
std::string gguf_json(const Gguf& file);

}  // namespace cairn::io
