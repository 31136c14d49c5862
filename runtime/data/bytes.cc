#include "runtime/data/data.h"

namespace cairn::data {
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
