// Token files, tokenizer models and texts to learn from.
#include "runtime/data/data.h"
#include "runtime/data/model.h"
#include "runtime/data/subword.h"
#include "runtime/data/token_file.h"
#include "runtime/data/wire.h"
#include "tests/fuzz/families.h"
#include "tests/fuzz/tools.h"

namespace cairn::fuzz {
namespace {

// The number in the first two bytes of an input, which are taken away; 0 if there are none.
size_t take_number(std::string& input) {
  if (input.size() < 2) return 0;
  uint16_t number;
  std::memcpy(&number, input.data(), sizeof number);
  input.erase(0, sizeof number);
  return number;
}

std::string with_number(size_t number, const std::string& rest) {
  const auto short_number = static_cast<uint16_t>(number);
  return std::string(reinterpret_cast<const char*>(&short_number), sizeof short_number) + rest;
}

void expect_lossless(const data::Tokenizer& tokenizer, const std::string& text) {
  const std::vector<int32_t> tokens = tokenizer.encode(text);
  if (tokenizer.decode(tokens) != text) throw std::logic_error("text is lost");
  for (int32_t token : {-1, tokenizer.vocabulary()})
    expect_declared([&] { tokenizer.decode({&token, 1}); }, {Code::kInvalidArgument});
}

std::string all_bytes(data::Algorithm algorithm) {
  data::WireWriter file, trainer, unknown;
  file.bytes(1, unknown.bytes(1, "<unk>").varint(3, 2).message());
  for (int byte = 0; byte < 256; ++byte) {
    data::WireWriter piece;
    file.bytes(1, piece.bytes(1, data::byte_piece(byte)).varint(3, 6).message());
  }
  trainer.varint(3, static_cast<uint64_t>(algorithm)).varint(35, 1);
  return file.bytes(2, trainer.message()).message();
}

void load(const std::string& model, const std::string& text) {
  expect_declared([&] { expect_lossless(*data::subword_tokenizer(model, "input"), text); },
                  {Code::kCorruptFile, Code::kUnsupported});
}

}  // namespace

void tokens(std::span<const std::byte> input) {
  std::string bytes = text(input);
  data::TokenHeader header;
  if (bytes.size() >= sizeof header) {  // right digests, so that what lies behind them is reached
    std::memcpy(&header, bytes.data(), sizeof header);
    const XXH128_hash_t hash = XXH3_128bits(bytes.data() + sizeof header, bytes.size() - sizeof header);
    header.digest_low = hash.low64;
    header.digest_high = hash.high64;
    header.header_digest = data::header_digest(header);
    std::memcpy(bytes.data(), &header, sizeof header);
  }
  const MemoryFile file(test::bytes_of(bytes));
  expect_declared(
      [&] {
        const auto set = data::Dataset::open(file.path(), 4);
        std::vector<int32_t> in(8), out(8);
        for (uint64_t i = 0; i < 8; ++i) set->batch(1, i, 2, in.data(), out.data(), -100);
      },
      {Code::kCorruptFile, Code::kInvalidArgument});
}

void tokenizer(std::span<const std::byte> input) {
  static const std::string kBpe = all_bytes(data::Algorithm::kBpe),
                           kUnigram = all_bytes(data::Algorithm::kUnigram);
  std::string model = text(input);
  const size_t size = std::min(take_number(model), model.size());
  const std::string words = model.substr(0, size);
  model.erase(0, size);
  load(model, words);
  load(model + kBpe, words);
  load(model + kUnigram, words);
}

void tokenizer_train(std::span<const std::byte> input) {
  std::string words = text(input);
  const auto vocabulary = static_cast<int32_t>(257 + take_number(words));
  const MemoryFile file(test::bytes_of(words));
  expect_declared(
      [&] {
        const auto trained = data::train_bpe(file.path(), vocabulary);
        if (trained->vocabulary() != vocabulary) throw std::logic_error("another vocabulary");
        expect_lossless(*trained, words);
      },
      {Code::kInvalidArgument});
}

std::vector<std::string> token_seeds() {
  std::vector<std::string> seeds;
  for (const uint32_t width : {2u, 4u}) {
    data::TokenHeader header;
    header.token_bytes = width;
    header.vocabulary = 256;
    header.count = 20;
    std::string file(sizeof header + 20 * width, '\0');
    std::memcpy(file.data(), &header, sizeof header);
    for (size_t i = 0; i < 20; ++i) file[sizeof header + i * width] = static_cast<char>(i * 9);
    seeds.push_back(file);
  }
  return seeds;
}

std::vector<std::string> tokenizer_seeds() {
  const std::string words = "the way back <s>  and ab\xC3\xA9\xE6\x97\xA5\n abab";
  std::vector<std::string> seeds;
  for (const int types : {0, 1}) {
    data::WireWriter file;
    float score = 0;
    for (const char* piece : {"\xE2\x96\x81", "a", "b", "ab",
                              "\xE2\x96\x81"
                              "a",
                              "th", "the", "<s>", "aba", "\xC3\xA9", "way back"}) {
      data::WireWriter row;
      row.bytes(1, piece).real(2, score -= 1);
      if (types == 1)
        row.varint(3, static_cast<uint64_t>(-score) % 5 == 0   ? 4
                      : static_cast<uint64_t>(-score) % 3 == 0 ? 5
                                                               : 1);
      file.bytes(1, row.message());
    }
    data::WireWriter normalizer;
    file.bytes(3, normalizer.bytes(1, "nmt_nfkc")
                      .bytes(2, std::string("\x08\0\0\0abcdefgh\0", 13))
                      .varint(3, 1)
                      .message());
    seeds.push_back(with_number(words.size(), words + file.message()));
    seeds.push_back(with_number(words.size(), words + file.message() + all_bytes(data::Algorithm::kBpe)));
  }
  return seeds;
}

std::vector<std::string> tokenizer_train_seeds() {
  return {with_number(20, "the way back, the way there\naaaa bbb\n"),
          with_number(40,
                      "na\xC3\xAFve \xE6\x97\xA5\xE6\x9C\xAC <unk> <0x41>\xFF 12.5 \xD0\xB1"
                      "a e\xCC\x81 e\xCC\x81 aa aa")};
}

}  // namespace cairn::fuzz
