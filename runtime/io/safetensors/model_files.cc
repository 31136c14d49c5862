#include "runtime/io/safetensors/model_files.h"

#include <set>

#include "runtime/io/gguf/gguf.h"
#include "runtime/io/limits.h"
#include "runtime/plan/json/parse.h"

namespace cairn::io {
namespace fs = std::filesystem;
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

constexpr std::string_view kFileEnding = ".safetensors";

bool there(const fs::path& path) {
  std::error_code failed;
  return fs::exists(fs::symlink_status(path, failed));
}

// A name that an index gives a file: of a file next to it, never of one elsewhere.
bool is_plain(std::string_view name) {
  return name.size() > kFileEnding.size() && name.size() <= kMaxFileNameBytes &&
         name.ends_with(kFileEnding) && name.find('/') == name.npos && name.find('\0') == name.npos;
}

// By tensor, the file that has it.
std::map<std::string, std::string> read_index(const fs::path& path) {
  const std::string where = "'" + path.string() + "'";
  const FileContent content(path, kMaxSafetensorsHeader);
  const auto bytes = content.bytes();
  std::string padded;
  simdjson::dom::parser parser(kMaxSafetensorsHeader);
  element root;
  const auto error =
      plan::parse_json(parser, padded, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, root);
  require(!error, Code::kCorruptFile, where, " is not JSON: ", simdjson::error_message(error));
  object index, weights;
  require(!root.get_object().get(index), Code::kCorruptFile, where, " is not a JSON object");
  bool found = false;
  for (const auto& [key, value] : index) {
    if (key != "weight_map") continue;
    require(!std::exchange(found, true), Code::kCorruptFile, where, ": weight_map is there twice");
    require(!value.get_object().get(weights), Code::kCorruptFile, where, ": weight_map is not an object");
  }
  require(found, Code::kCorruptFile, where, " has no weight_map, which names the file of each tensor");
  std::map<std::string, std::string> files;
  for (const auto& [name, value] : weights) {
    std::string_view file;
    require(!value.get_string().get(file), Code::kCorruptFile, where, ": the file of '", name,
            "' is not a text");
    require(is_plain(file), Code::kCorruptFile, where, ": the file of '", name, "' is '", file,
            "'; wanted: the name of a safetensors file next to the index");
    require(files.emplace(name, file).second, Code::kCorruptFile, where, ": tensor '", name,
            "' is there twice");
  }
  return files;
}

std::string safetensors_in(const fs::path& directory) {
  std::set<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator at(directory, failed), end; !failed && at != end; at.increment(failed))
    if (at->path().extension() == kFileEnding) names.insert(at->path().filename().string());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "; it has " : ", ") + name;
  return text;
}

SafeTensors tensors_of_gguf(const fs::path& path) {
  const Gguf gguf(path);
  std::vector<SafeTensor> tensors;
  for (const GgufTensor& tensor : gguf.tensors()) {
    SafeTensor& made = tensors.emplace_back();
    made.name = tensor.name;
    made.offset = tensor.offset;
    made.dtype = tensor.block->name;
    made.shape = tensor.shape;
    made.bytes = tensor.bytes;
    if (const auto dtype = gguf_dtype(*tensor.block))
      made.desc = {*dtype, Shape(std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end()))};
    else
      made.unusable = made.dtype;
  }
  return {gguf.file(), std::move(tensors)};
}

}  // namespace

bool is_model_directory(const fs::path& path) { return there(path / kModelName) || there(path / kIndexName); }

ModelFiles::ModelFiles(const fs::path& path) {
  std::error_code failed;
  if (is_gguf(path)) {
    take(files_.emplace_back(tensors_of_gguf(path)));
  } else if (!fs::is_directory(path, failed)) {
    open(path);
  } else if (there(path / kModelName)) {
    open(path / kModelName);
  } else {
    require(there(path / kIndexName), Code::kNotFound, "there is no model in '", path.string(), "': neither ",
            kModelName, " nor ", kIndexName, safetensors_in(path));
    open_index(path / kIndexName);
  }
}

void ModelFiles::open(const fs::path& path) { take(files_.emplace_back(path)); }

void ModelFiles::take(const SafeTensors& file) {
  for (const SafeTensor& tensor : file.tensors()) {
    const auto [at, added] = tensors_.emplace(tensor.name, Found{&file, &tensor});
    require(added, Code::kCorruptFile, "tensor '", tensor.name, "' is in both ", where(at->second), " and '",
            file.path().string(), "'");
  }
}

void ModelFiles::open_index(const fs::path& path) {
  const std::string where = "'" + path.string() + "'";
  const std::map<std::string, std::string> named = read_index(path);
  std::map<std::string_view, std::string_view> first;  // by file, a tensor of it
  for (const auto& [tensor, file] : named) first.emplace(file, tensor);
  require(first.size() <= kMaxModelFiles, Code::kCorruptFile, where, " names ", first.size(),
          " files, more than ", kMaxModelFiles);
  for (const auto& [file, tensor] : first) {
    const fs::path beside = path.parent_path() / file;
    require(there(beside), Code::kNotFound, "there is no file '", beside.string(), "', which ", where,
            " names for tensor '", tensor, "'");
    open(beside);
  }
  for (const auto& [tensor, file] : named) {
    const auto at = tensors_.find(tensor);
    const bool right = at != tensors_.end() && at->second.file->path().filename() == file;
    require(right, Code::kCorruptFile, where, " says that tensor '", tensor, "' is in '", file,
            "', which has no ", "such tensor");
  }
  for (const auto& [tensor, found] : tensors_)
    require(named.contains(std::string(tensor)), Code::kCorruptFile, this->where(found), " has a tensor '",
            tensor, "', which ", where, " does not name");
}

}  // namespace cairn::io
