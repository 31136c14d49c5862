#include "runtime/data/subword.h"

#include "runtime/base/os/file.h"
#include "runtime/data/utf8.h"

namespace cairn::data {
namespace {

// Lossless, since text is segmented as it is, and what no piece may contain goes by bytes.
class SubwordTokenizer final : public Tokenizer {
 public:
  SubwordTokenizer(std::string file, const Model& model, const std::string& where)
      : file_(std::move(file)),
        vocabulary_(model),
        segmenter_(model.algorithm == Algorithm::kBpe ? merge_segmenter(vocabulary_, where)
                                                      : unigram_segmenter(vocabulary_, where)) {}

  int32_t vocabulary() const override { return vocabulary_.size(); }
  std::string kind() const override { return "bpe"; }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    tokens.reserve(text.size() / 3);
    split_text(
        text, vocabulary_.reserved_in_pieces(),
        [&](std::string_view plain) { segmenter_->append(plain, tokens); },
        [&](std::string_view bytes) {
          for (char byte : bytes) tokens.push_back(vocabulary_.byte_token(byte));
        });
    return tokens;
  }

  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (size_t i = 0; i < tokens.size(); ++i) {
      require(tokens[i] >= 0 && tokens[i] < vocabulary(), Code::kInvalidArgument, "token ", tokens[i],
              " at position ", i, " is outside the vocabulary of ", vocabulary());
      text += vocabulary_.text(tokens[i]);
    }
    return text;
  }

  void save(const std::filesystem::path& path) const override {
    write_file_durably(path, std::as_bytes(std::span(file_.data(), file_.size())));
  }

 private:
  std::string file_;
  Vocabulary vocabulary_;
  std::unique_ptr<Segmenter> segmenter_;
};

}  // namespace

std::unique_ptr<Tokenizer> subword_tokenizer(std::string file, const std::string& where) {
  const Model model = parse_model(file, where);
  return std::make_unique<SubwordTokenizer>(file, model, where);
}

std::unique_ptr<Tokenizer> load_bpe(const std::filesystem::path& model) {
  const FileContent file(model);
  const std::string where = "'" + model.string() + "'";
  require(file.bytes().size() <= kMaxModelBytes, Code::kCorruptFile, where, ": ", file.bytes().size(),
          " bytes are too many for a tokenizer; the most is ", kMaxModelBytes);
  return subword_tokenizer(
      std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()), where);
}

}  // namespace cairn::data
