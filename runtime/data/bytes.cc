#include "runtime/data/data.h"

namespace cairn::data {

std::vector<int32_t> Tokenizer::encode_with(std::string_view text, bool, std::vector<Offset>* offsets) const {
  const std::vector<int32_t> tokens = encode(text);
  if (offsets == nullptr) return tokens;
  offsets->clear();
  uint32_t at = 0;
  for (const int32_t token : tokens) {
    const auto size = static_cast<uint32_t>(decode({&token, 1}).size());
    offsets->push_back({at, at + size});
    at += size;
  }
  return tokens;
}

std::string Tokenizer::decode_with(std::span<const int32_t> tokens, bool, bool) const {
  return decode(tokens);
}

std::string Tokenizer::token(int32_t id) const {
  return id >= 0 && id < vocabulary() ? decode({&id, 1}) : std::string();
}

int32_t Tokenizer::find(std::string_view token) const {
  for (int32_t id = 0; id < vocabulary(); ++id)
    if (!token.empty() && decode({&id, 1}) == token) return id;
  return -1;
}

namespace {

class BytesTokenizer final : public Tokenizer {
 public:
  int32_t vocabulary() const override { return 256; }
  std::string kind() const override { return "bytes"; }
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens(text.size());
    for (size_t i = 0; i < text.size(); ++i) tokens[i] = static_cast<uint8_t>(text[i]);
    return tokens;
  }
  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text(tokens.size(), '\0');
    for (size_t i = 0; i < tokens.size(); ++i) {
      require(tokens[i] >= 0 && tokens[i] < 256, Code::kInvalidArgument, "token ", tokens[i], " at position ",
              i, " is outside the vocabulary of 256");
      text[i] = static_cast<char>(tokens[i]);
    }
    return text;
  }
  void save(const std::filesystem::path&) const override {}
};

}  // namespace

std::unique_ptr<Tokenizer> bytes_tokenizer() { return std::make_unique<BytesTokenizer>(); }

}  // namespace cairn::data
