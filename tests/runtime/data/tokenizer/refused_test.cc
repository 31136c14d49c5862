// Files that are no tokenizers, or hostile ones, are refused by name; nothing takes time without bound.
#include <chrono>
#include <fstream>

#include "runtime/base/error.h"
#include "runtime/data/data.h"
#include "runtime/data/tokenizer/pipeline.h"
#include "runtime/data/tokenizer/unicode/scanners.h"
#include "tests/runtime/data/tokenizer/rig.h"

namespace cairn::data {
namespace {

using tokenizer::huggingface_tokenizer;

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Refusal {
  std::string file;
  Code code;
  std::string says;
};

std::string with(std::string_view model, std::string_view more = "") {
  return cat(R"({"version":"1.0",)", more, R"("model":)", model, "}");
}
constexpr std::string_view kModel = R"({"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]})";

std::string nested(int depth) {
  std::string open, close;
  for (int i = 0; i < depth; ++i) {
    open += R"({"type":"Sequence","normalizers":[)";
    close += "]}";
  }
  return with(kModel, cat(R"("normalizer":)", open, close, ","));
}

TEST(Refused, ByName) {
  const Refusal rows[] = {
      {"", Code::kCorruptFile, "JSON"},
      {"[]", Code::kCorruptFile, "object"},
      {"{}", Code::kCorruptFile, "'model'"},
      {R"({"version":"2.0"})", Code::kUnsupported, "2.0"},
      {with(R"({"type":"Lattice"})"), Code::kUnsupported, "'Lattice'"},
      {with(kModel, R"("normalizer":{"type":"Rot13"},)"), Code::kUnsupported, "'Rot13'"},
      {with(kModel, R"("pre_tokenizer":{"type":"UnicodeScripts"},)"), Code::kUnsupported, "'UnicodeScripts'"},
      {with(kModel, R"("decoder":{"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"X"}]},)"),
       Code::kUnsupported, "decoders[1]"},
      {with(kModel, R"("post_processor":{"type":"X"},)"), Code::kUnsupported, "post-processor 'X'"},
      {with(kModel, R"("post_processor":{"type":"BertProcessing","cls":["a",9],"sep":["b",1]},)"),
       Code::kCorruptFile, "9"},
      {with(
           kModel,
           R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"(("},"behavior":"Isolated","invert":false},)"),
       Code::kUnsupported, "regular expression"},
      {with(
           kModel,
           R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"a"},"behavior":"Halved","invert":false},)"),
       Code::kCorruptFile, "'Halved'"},
      {with(kModel, R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"/////w=="},)"),
       Code::kCorruptFile, "charsmap"},
      {with(R"({"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a c"]})"), Code::kCorruptFile,
       "'c' is not in the vocabulary"},
      {with(R"({"type":"BPE","vocab":{"a":0,"b":1},"merges":[["a","b"]]})"), Code::kCorruptFile,
       "'ab' is not in the vocabulary"},
      {with(R"({"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b","a b"]})"), Code::kCorruptFile,
       "twice"},
      {with(R"({"type":"BPE","vocab":{"a":0,"":1},"merges":[["","a"]]})"), Code::kCorruptFile,
       "adds nothing"},
      {with(R"({"type":"BPE","vocab":{"a":0,"b":1},"merges":["a b c"]})"), Code::kCorruptFile, "'a b c'"},
      {with(R"({"type":"BPE","vocab":{"a":0,"a":1},"merges":[]})"), Code::kCorruptFile, "appears twice"},
      {with(R"({"type":"BPE","vocab":{"a":0,"b":0},"merges":[]})"), Code::kCorruptFile, "one number"},
      {with(R"({"type":"BPE","vocab":{"a":2147483647},"merges":[]})"), Code::kCorruptFile, "2147483647"},
      {with(R"({"type":"BPE","vocab":{"a":-1},"merges":[]})"), Code::kCorruptFile, "-1"},
      {with(R"({"type":"BPE","dropout":0.1,"vocab":{"a":0},"merges":[]})"), Code::kUnsupported, "dropout"},
      {with(R"({"type":"Unigram","unk_id":5,"vocab":[["a",0]]})"), Code::kCorruptFile, "unk_id"},
      {with(R"({"type":"WordPiece","unk_token":"x","continuing_subword_prefix":"##","vocab":{}})"),
       Code::kCorruptFile, "max_input_chars"},
      {nested(200), Code::kCorruptFile, "nested"},
      {std::string(5000, '['), Code::kCorruptFile, "JSON"},
  };
  for (const Refusal& row : rows) {
    try {
      huggingface_tokenizer(row.file, "'file'");
      ADD_FAILURE() << row.file.substr(0, 200) << " was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), row.code) << error.what();
      EXPECT_NE(std::string(error.what()).find(row.says), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).rfind("'file'", 0), 0u) << error.what();
    }
  }
  EXPECT_NO_THROW(huggingface_tokenizer(nested(3), "'file'"));
}

TEST(Refused, TokensOutside) {
  const auto tokenizer = load_pretrained(kGolden / "llama3.json");
  for (const int32_t token : {-1, tokenizer->vocabulary(), INT32_MAX}) {
    try {
      tokenizer->decode_with({&token, 1}, false, false);
      ADD_FAILURE() << token;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
    }
    EXPECT_EQ(tokenizer->token(token), "");
  }
}

TEST(Refused, FilesCutShort) {
  for (const char* name : {"sp_unigram.model", "tekken.json", "bert_cased.json"}) {
    const std::string file = bytes_of(kGolden / name);
    for (size_t at = 0; at < file.size(); at += file.size() / 40 + 1) {
      const std::string part = file.substr(0, at);
      try {
        const std::string where = name;
        if (where.ends_with(".model"))
          tokenizer::sentencepiece_tokenizer(part, where);
        else
          huggingface_tokenizer(part, where);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::kCorruptFile) << error.what();
      }
    }
  }
}

// A text that is one word: nothing is quadratic in it.
TEST(Speed, OneWordOfAMegabyte) {
  const std::string word(1 << 20, 'e');
  for (const char* name : {"gpt2.json", "llama2.json", "t5.json", "bert_cased.json", "sp_bpe.model",
                           "tekken.json", "o200k.json"}) {
    const auto tokenizer = load_pretrained(kGolden / name);
    const auto begin = std::chrono::steady_clock::now();
    std::vector<Offset> offsets;
    const std::vector<int32_t> tokens = tokenizer->encode_with(word, false, &offsets);
    EXPECT_EQ(tokens.size(), offsets.size());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60)) << name;
  }
}

TEST(Scanners, OfTheCommonExpressions) {
  int found = 0;
  for (const char* name : {"llama3.json", "qwen2.json", "qwen35.json", "o200k.json", "mistral.json"}) {
    const tokenizer::JsonFile json(bytes_of(kGolden / name), name);
    const auto split = json.root().at("pre_tokenizer").at("pretokenizers").list()[0];
    found += tokenizer::scanner_of(split.at("pattern").text("Regex")) != nullptr;
  }
  EXPECT_EQ(found, 5);
  EXPECT_NE(tokenizer::scanner_of(tokenizer::kGpt2Expression), nullptr);
}

}  // namespace
}  // namespace cairn::data
