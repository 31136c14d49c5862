// Tokenizers of published models: any file is refused or cuts any text into tokens of its vocabulary.
#include "runtime/data/tokenizer/pipeline.h"
#include "tests/fuzz/families.h"
#include "tests/fuzz/tools.h"

namespace cairn::fuzz {
namespace {

constexpr std::string_view kText =
    "The way \xE2\x96\x81 ba\xCC\x81"
    "ck, 12 d'\xEF\xAC\x81n\xFF <s>ab\n\n  \xF0\x9F\x98\x80 ";

void use(const data::Tokenizer& tokenizer, const std::string& text) {
  std::vector<data::Offset> offsets;
  const std::vector<int32_t> tokens = tokenizer.encode_with(text, true, &offsets);
  if (offsets.size() != tokens.size()) throw std::logic_error("offsets of other tokens");
  for (const int32_t token : tokens)
    if (token < 0 || token >= tokenizer.vocabulary())
      throw std::logic_error("a token outside the vocabulary");
  if (tokenizer.encode_with(text, true, nullptr) != tokens)
    throw std::logic_error("other tokens the second time");
  tokenizer.decode_with(tokens, true, false);
}

std::string parts(std::string_view rows) {
  return cat(
      R"({"version":"1.0","added_tokens":[{"id":9,"content":"<s>","special":true,"normalized":false,"rstrip":true}],)",
      rows, "}");
}

}  // namespace

void pretrained(std::span<const std::byte> input) {
  std::string file = text(input);
  if (file.size() < 2) return;
  const int reader = static_cast<uint8_t>(file[0]) % 4;
  const size_t size = std::min<size_t>(static_cast<uint8_t>(file[1]), file.size() - 2);
  const std::string words = file.substr(2, size);
  file.erase(0, 2 + size);
  expect_declared(
      [&] {
        const auto made = reader == 0   ? tokenizer::huggingface_tokenizer(file, "input")
                          : reader == 1 ? tokenizer::tekken_tokenizer(file, "input")
                          : reader == 2 ? tokenizer::sentencepiece_tokenizer(file, "input")
                                        : tokenizer::gpt2_tokenizer(file, "a b\n", "input");
        use(*made, words);
      },
      {Code::kCorruptFile, Code::kUnsupported, Code::kInvalidArgument});
}

std::vector<std::string> pretrained_seeds() {
  const auto seed = [](char reader, const std::string& file) {
    return std::string(1, reader) + static_cast<char>(kText.size()) + std::string(kText) + file;
  };
  const std::string bpe =
      R"("model":{"type":"BPE","unk_token":"u","byte_fallback":true,"vocab":{"u":0,"a":1,"b":2,"ab":3,"<0x20>":4},)"
      R"("merges":["a b"]})";
  return {
      seed(
          0,
          parts(
              R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Prepend","prepend":"_"},)"
              R"({"type":"Replace","pattern":{"Regex":" +"},"content":"_"}]},"decoder":{"type":"ByteFallback"},)" +
              bpe)),
      seed(
          0,
          parts(
              R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\s+|[ab]"},"behavior":"MergedWithNext","invert":true},)"
              R"("post_processor":{"type":"ByteLevel","trim_offsets":true,"add_prefix_space":true},)" +
              bpe)),
      seed(
          0,
          parts(
              R"("normalizer":{"type":"BertNormalizer"},"pre_tokenizer":{"type":"BertPreTokenizer"},"decoder":{"type":"WordPiece",)"
              R"("prefix":"##","cleanup":true},"model":{"type":"WordPiece","unk_token":"u","continuing_subword_prefix":"##",)"
              R"("max_input_chars_per_word":100,"vocab":{"u":0,"a":1,"##b":2,"the":3}})")),
      seed(
          0,
          parts(
              R"("pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"first"},"model":{"type":"Unigram",)"
              R"("unk_id":0,"vocab":[["u",0],["a",-1.5],["ab",-2],["_",-3]]})")),
      seed(
          1,
          R"({"config":{"pattern":"\\w+|\\W","default_num_special_tokens":2,"default_vocab_size":6},"vocab":[)"
          R"({"rank":0,"token_bytes":"YQ=="},{"rank":1,"token_bytes":"YWE="}]})"),
      seed(3, R"({"a":0,"b":1,"ab":2})"),
  };
}

}  // namespace cairn::fuzz
