#include "runtime/io/own.h"

#include "runtime/base/os/file.h"
#include "runtime/io/envelope.h"
#include "runtime/io/manifest.h"

namespace cairn::io {
namespace fs = std::filesystem;
namespace {

constexpr const char* kTokenizerKey =
    "tokenizer.file";  // the command's word for the one file it added in 1.0

// The manifest of an open directory; none if there is no such file.
std::optional<FileContent> read_manifest(int directory, const fs::path& path) {
  try {
    const InputFile file(directory, kManifestName, path / kManifestName);
    return FileContent(file, kMaxFlatBufferBytes);
  } catch (const Error& error) {
    if (error.code() == Code::kNotFound) return std::nullopt;
    throw;
  }
}

std::vector<std::string> files_of(const Manifest& manifest, const std::vector<std::string>& brought) {
  std::vector<std::string> files;
  if (manifest.files) {
    for (const Extra& extra : *manifest.files) files.push_back(extra.name);
    return files;
  }
  files = brought;
  const auto tokenizer = manifest.metadata.find(kTokenizerKey);
  if (tokenizer != manifest.metadata.end() && tokenizer->second.find('/') == std::string::npos &&
      tokenizer->second != ".." && tokenizer->second != ".")
    files.push_back(tokenizer->second);
  return files;
}

}  // namespace

OwnFiles own_files(std::vector<std::string> brought) {
  return [brought = std::move(brought)](int directory, const fs::path& path,
                                        bool abandoned) -> std::vector<std::string> {
    const std::string refused = cat("cannot save to '", path.string(), "': ");
    const std::optional<FileContent> content = [&]() -> std::optional<FileContent> {
      try {
        return read_manifest(directory, path);
      } catch (const Error& error) {
        if (abandoned || error.code() == Code::kOutOfMemory) throw;
        fail(error.code() == Code::kIo ? Code::kIo : Code::kInvalidArgument, refused, error.what());
      }
    }();
    std::vector<std::string> files;
    if (content) try {
        files = files_of(decode_manifest(content->bytes()), brought);
      } catch (const Error& error) {
        // A damaged manifest names no files: all but the manifest and the tensors are kept.
        require(abandoned || has_identifier(content->bytes(), kManifestIdentifier), Code::kInvalidArgument,
                refused, "its '", kManifestName, "' is not of a checkpoint; save under another name");
      }
    else
      require(abandoned || entries_of(directory, path).empty(), Code::kInvalidArgument, refused,
              "it holds other files and is not a checkpoint; save under another name");
    files.insert(files.begin(), kTensorsName);
    if (abandoned) files.push_back(cat(kManifestName, ".new"));
    files.push_back(kManifestName);
    return files;
  };
}

}  // namespace cairn::io
