// sentencepiece as a lossless BPE: it sees only text that it returns unchanged, everything else goes by byte
// tokens, and pieces are turned back into bytes here.
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "runtime/base/file.h"
#include "runtime/data/data.h"
#include "runtime/data/utf8.h"

namespace cairn::data {
namespace sp = ::sentencepiece;
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";
constexpr int32_t kFixedPieces = 257;  // unknown + one per byte
constexpr size_t kMaxModelBytes = size_t{1} << 28;
constexpr int32_t kMaxVocabulary = 1 << 24;

class BpeTokenizer final : public Tokenizer {
 public:
  // kCorruptFile naming `where`.
  BpeTokenizer(std::string model, const std::string& where) : model_(std::move(model)) {
    const auto status = processor_.LoadFromSerializedProto(model_);
    require(status.ok(), Code::kCorruptFile, where, ": not a sentencepiece model: ", status.message());
    const int count = processor_.GetPieceSize();
    require(count >= 1 && count <= kMaxVocabulary, Code::kCorruptFile, where, ": ", count, " pieces");
    byte_token_.fill(-1);
    pieces_.resize(count);
    for (int id = 0; id < count; ++id) {
      const std::string& piece = processor_.IdToPiece(id);
      unsigned byte = 0;
      if (processor_.IsByte(id) && std::sscanf(piece.c_str(), "<0x%02X>", &byte) == 1 && byte < 256) {
        byte_token_[byte] = id;
        pieces_[id] = static_cast<char>(byte);
      } else if (!processor_.IsControl(id) && !processor_.IsUnknown(id)) {
        pieces_[id] = with_spaces(piece);
      }
    }
    for (int byte = 0; byte < 256; ++byte)
      require(byte_token_[byte] >= 0, Code::kCorruptFile, where, ": the model has no piece for byte ", byte,
              "; it needs byte fallback to be lossless");
  }

  int32_t vocabulary() const override { return static_cast<int32_t>(pieces_.size()); }
  std::string kind() const override { return "bpe"; }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    tokens.reserve(text.size() / 3);
    std::vector<int> ids;
    const auto raw = [&](std::string_view bytes) {
      for (char c : bytes) tokens.push_back(byte_token_[static_cast<uint8_t>(c)]);
    };
    const auto plain = [&](std::string_view piece) {
      const auto status = processor_.Encode({piece.data(), piece.size()}, &ids);
      require(status.ok(), Code::kInternal, "sentencepiece cannot encode: ", status.message());
      // A model trained elsewhere may normalise; then the piece goes by bytes, and nothing is lost.
      if (gives_back(ids, piece))
        tokens.insert(tokens.end(), ids.begin(), ids.end());
      else
        raw(piece);
    };
    split_text(text, plain, raw);
    return tokens;
  }

  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (size_t i = 0; i < tokens.size(); ++i) {
      require(tokens[i] >= 0 && tokens[i] < vocabulary(), Code::kInvalidArgument, "token ", tokens[i],
              " at position ", i, " is outside the vocabulary of ", vocabulary());
      text += pieces_[tokens[i]];
    }
    return text;
  }

  void save(const std::filesystem::path& path) const override {
    write_file_durably(path, std::as_bytes(std::span(model_.data(), model_.size())));
  }

 private:
  static std::string with_spaces(std::string_view piece) {
    std::string text;
    for (size_t at = 0; at < piece.size();) {
      const bool mark = piece.substr(at, kSpaceMark.size()) == kSpaceMark;
      text += mark ? ' ' : piece[at];
      at += mark ? kSpaceMark.size() : 1;
    }
    return text;
  }
  bool gives_back(const std::vector<int>& ids, std::string_view text) const {
    for (int id : ids) {
      const std::string& piece = pieces_[id];
      if (text.substr(0, piece.size()) != piece || piece.empty()) return false;
      text.remove_prefix(piece.size());
    }
    return text.empty();
  }

  std::string model_;
  sp::SentencePieceProcessor processor_;
  std::vector<std::string> pieces_;  // what a token stands for
  std::array<int32_t, 256> byte_token_;
};

class Sentences final : public sp::SentenceIterator {
 public:
  explicit Sentences(const std::vector<std::string_view>& pieces) : pieces_(pieces) { load(); }
  bool done() const override { return at_ >= pieces_.size(); }
  void Next() override {
    ++at_;
    load();
  }
  const std::string& value() const override { return value_; }
  sp::util::Status status() const override { return {}; }

 private:
  void load() {
    if (!done()) value_ = pieces_[at_];
  }
  const std::vector<std::string_view>& pieces_;
  size_t at_ = 0;
  std::string value_;
};

}  // namespace

// Learning merges is one thread's work, and sentencepiece writes the number of threads into the model: one,
// so that the same text gives the same model.
std::unique_ptr<Tokenizer> train_bpe(const std::filesystem::path& text, int32_t vocabulary, int /*threads*/) {
  const MappedFile file(text);
  const std::string where = "'" + text.string() + "'";
  require(!file.bytes().empty(), Code::kInvalidArgument, "text ", where, " is empty");
  require(vocabulary <= kMaxVocabulary, Code::kInvalidArgument, "a vocabulary of ", vocabulary, " is above ",
          kMaxVocabulary);

  std::vector<std::string_view> pieces;
  std::unordered_set<std::string_view> characters = {kSpaceMark};
  const auto plain = [&](std::string_view piece) {
    pieces.push_back(piece);
    for (size_t at = 0, length = 0; at < piece.size(); at += length) {
      length = utf8_length(piece.substr(at));
      if (piece[at] != ' ') characters.insert(piece.substr(at, length));
    }
  };
  split_text({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, plain,
             [](std::string_view) {});
  require(!pieces.empty(), Code::kInvalidArgument, "text ", where,
          " has no printable characters to learn from");
  const int64_t smallest = kFixedPieces + static_cast<int64_t>(characters.size());
  require(vocabulary >= smallest, Code::kInvalidArgument, "a vocabulary of ", vocabulary,
          " is too small for ", where, ": it has ", characters.size(),
          " different characters; the smallest possible is ", smallest);

  const std::unordered_map<std::string, std::string> options = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(vocabulary)},
      {"num_threads", "1"},
      {"normalization_rule_name", "identity"},
      {"add_dummy_prefix", "false"},
      {"remove_extra_whitespaces", "false"},
      {"byte_fallback", "true"},
      {"character_coverage", "1.0"},
      {"bos_id", "-1"},
      {"eos_id", "-1"},
      {"pad_id", "-1"},
      {"max_sentence_length", std::to_string(8 * kPieceBytes)},
      {"hard_vocab_limit", "false"},  // too large is told below, with the number
      {"minloglevel", "3"},
  };
  Sentences sentences(pieces);
  std::string model;
  const auto status = sp::SentencePieceTrainer::Train(options, &sentences, &model);
  require(status.ok(), Code::kInvalidArgument, "cannot train a tokenizer on ", where, ": ", status.message());
  auto tokenizer = std::make_unique<BpeTokenizer>(std::move(model), where);
  require(tokenizer->vocabulary() == vocabulary, Code::kInvalidArgument, "a vocabulary of ", vocabulary,
          " is too large for ", where, ": the largest possible is ", tokenizer->vocabulary());
  return tokenizer;
}

std::unique_ptr<Tokenizer> load_bpe(const std::filesystem::path& model) {
  const MappedFile file(model);
  const std::string where = "'" + model.string() + "'";
  require(!file.bytes().empty(), Code::kCorruptFile, where, " is empty");
  require(file.bytes().size() <= kMaxModelBytes, Code::kCorruptFile, where, ": ", file.bytes().size(),
          " bytes are too many for a tokenizer");
  return std::make_unique<BpeTokenizer>(
      std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()), where);
}

}  // namespace cairn::data
