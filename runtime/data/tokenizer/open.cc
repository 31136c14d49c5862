// Which file of a model's directory says how it is tokenized.
#include "runtime/base/os/file.h"
#include "runtime/data/tokenizer/pipeline.h"

namespace cairn::tokenizer {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  const FileContent file(path, kMostFileBytes);
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

std::string where_of(const fs::path& path) { return "'" + path.string() + "'"; }

std::unique_ptr<data::Tokenizer> open_huggingface(const fs::path& path) {
  return huggingface_tokenizer(content_of(path), where_of(path));
}
std::unique_ptr<data::Tokenizer> open_tekken(const fs::path& path) {
  return tekken_tokenizer(content_of(path), where_of(path));
}
std::unique_ptr<data::Tokenizer> open_gpt2(const fs::path& path) {
  return gpt2_tokenizer(content_of(path), content_of(path.parent_path() / "merges.txt"), where_of(path));
}
std::unique_ptr<data::Tokenizer> open_sentencepiece(const fs::path& path) {
  std::string file = content_of(path);
  // Llama 3's original file is of that name, too, and begins with "IQ== 0": a token in base64 and its rank.
  require(file.find("== 0\n") > 8, Code::kUnsupported, where_of(path),
          ": a list of tokens by rank, as tiktoken has them; take the "
          "model's tokenizer.json, which also says how text is cut");
  return sentencepiece_tokenizer(std::move(file), where_of(path));
}

struct Row {
  std::string_view name;
  std::unique_ptr<data::Tokenizer> (*open)(const fs::path&);
};
// The first of a directory that is there counts.
constexpr Row kRows[] = {
    {"tokenizer.json", open_huggingface},
    {"tekken.json", open_tekken},
    {"tokenizer.model", open_sentencepiece},
    {"spiece.model", open_sentencepiece},
    {"sentencepiece.bpe.model", open_sentencepiece},
    {"vocab.json", open_gpt2},
};

std::unique_ptr<data::Tokenizer> open_directory(const fs::path& directory) {
  std::string names;
  for (const Row& row : kRows) {
    if (fs::exists(directory / row.name)) return row.open(directory / row.name);
    names.append(names.empty() ? "" : ", ").append(row.name);
  }
  fail(Code::kNotFound, where_of(directory), " has no tokenizer: none of ", names);
}

std::unique_ptr<data::Tokenizer> open_file(const fs::path& path) {
  const std::string name = path.filename().string();
  for (const Row& row : kRows)
    if (row.name == name) return row.open(path);
  if (name.ends_with(".model")) return open_sentencepiece(path);
  const std::string file = content_of(path);
  return file.find("\"token_bytes\"") == std::string::npos ? huggingface_tokenizer(file, where_of(path))
                                                           : tekken_tokenizer(file, where_of(path));
}

}  // namespace
}  // namespace cairn::tokenizer

namespace cairn::data {

std::unique_ptr<Tokenizer> load_pretrained(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? tokenizer::open_directory(path)
                                                      : tokenizer::open_file(path);
}

std::unique_ptr<Tokenizer> pretrained_tokenizer(std::string json, const std::string& where) {
  return tokenizer::huggingface_tokenizer(std::move(json), where);
}

}  // namespace cairn::data
