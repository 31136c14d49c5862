// Chapter 8: tokens and batches.
#include <fstream>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

struct DataTest : testing::Test {
  DataTest() {
    std::ofstream text(folder / "text");
    for (int i = 0; i < 400; ++i) text << "stone " << i << " marks the way back home\n";
  }
  Folder folder;
  cairn::Instance instance = cairn::Instance::create();
  Failure failure;
};

TEST_F(DataTest, Tokenizers) {
  const auto bytes = cairn::Tokenizer::bytes(instance);
  EXPECT_EQ(bytes.vocabulary(), 256u);
  const std::string any("a\0\xff z", 5);
  EXPECT_EQ(bytes.encode(any).size(), 5u);
  EXPECT_EQ(bytes.decode(bytes.encode(any)), any);
  cairn::Tokenizer::train(instance, folder / "text", 300, folder / "bpe.model");
  const auto bpe = cairn::Tokenizer::bpe(instance, folder / "bpe.model");
  EXPECT_EQ(bpe.vocabulary(), 300u);
  const std::string words = "stone 7 marks  the way\n";
  EXPECT_LT(bpe.encode(words).size(), words.size());
  EXPECT_EQ(bpe.decode(bpe.encode(words)), words);
  EXPECT_TRUE(bpe.encode("").empty());

  cairn_tokenizer_t* none = nullptr;
  cairn_text_t* text = nullptr;
  expect_failure(cairn_tokenizer_open(instance.get(), "words", nullptr, &none, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"'words'", "bytes", "bpe"});
  expect_failure(cairn_tokenizer_open(instance.get(), "bytes", "file", &none, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"path"});
  expect_failure(cairn_tokenizer_open(instance.get(), "bpe", nullptr, &none, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"path"});
  expect_failure(cairn_tokenizer_open(instance.get(), "bpe", (folder / "none").c_str(), &none, failure),
                 CAIRN_STATUS_NOT_FOUND, failure, {"none"});
  expect_failure(cairn_tokenizer_open(instance.get(), "bpe", (folder / "text").c_str(), &none, failure),
                 CAIRN_STATUS_CORRUPT_FILE, failure);
  const int32_t outside = 256;
  expect_failure(cairn_tokenizer_decode(bytes.get(), &outside, 1, &text, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"256"});
  EXPECT_EQ(cairn_tokenizer_encode(bytes.get(), nullptr, 3, &text, failure), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(text, nullptr);
  EXPECT_NE(
      cairn_tokenizer_train(instance.get(), (folder / "none").c_str(), 300, (folder / "m").c_str(), failure),
      CAIRN_STATUS_OK);
  EXPECT_EQ(
      cairn_tokenizer_train(instance.get(), (folder / "text").c_str(), 0, (folder / "m").c_str(), failure),
      CAIRN_STATUS_INVALID_ARGUMENT);
}

TEST_F(DataTest, TokenizersOfPublishedModels) {
  const std::string golden = CAIRN_SOURCE_DIR "/tests/runtime/data/tokenizer/golden/";
  const auto bert = cairn::Tokenizer::pretrained(instance, golden + "bert_cased.json");
  std::vector<cairn::Tokenizer::Offset> offsets;
  const std::string text = "the way back";
  const auto tokens = bert.encode(text, CAIRN_ENCODE_SPECIAL, &offsets);
  ASSERT_EQ(offsets.size(), tokens.size());
  EXPECT_EQ(bert.token(tokens.front()), "[CLS]");
  EXPECT_EQ(tokens.back(), bert.find("[SEP]"));
  EXPECT_EQ(offsets[1].begin, 0u);
  EXPECT_EQ(offsets[tokens.size() - 2].end, text.size());
  EXPECT_EQ(bert.encode(text), std::vector<int32_t>(tokens.begin() + 1, tokens.end() - 1));
  EXPECT_EQ(bert.decode({tokens.data(), tokens.size()}, CAIRN_DECODE_SKIP_SPECIAL), text);
  const auto gpt2 = cairn::Tokenizer::pretrained(instance, golden + "gpt2.json");
  const int32_t half = gpt2.encode("\xC3\xA9")[0];
  EXPECT_EQ(gpt2.decode({&half, 1}, CAIRN_DECODE_BYTES), gpt2.decode({&half, 1}));

  cairn_tokenizer_t* none = nullptr;
  expect_failure(cairn_tokenizer_open(instance.get(), "pretrained", folder.path.c_str(), &none, failure),
                 CAIRN_STATUS_NOT_FOUND, failure, {"tokenizer.json"});
  expect_failure(
      cairn_tokenizer_open(instance.get(), "pretrained", (folder / "text").c_str(), &none, failure),
      CAIRN_STATUS_CORRUPT_FILE, failure, {"text"});
  cairn_text_t* made = nullptr;
  int32_t id = 0;
  EXPECT_EQ(cairn_tokenizer_encode_with(bert.get(), "a", 1, 8, &made, nullptr, failure),
            CAIRN_STATUS_INVALID_ARGUMENT);
  expect_failure(cairn_tokenizer_find(bert.get(), "no such", 7, &id, failure), CAIRN_STATUS_NOT_FOUND,
                 failure, {"no such"});
  EXPECT_EQ(cairn_tokenizer_token(bert.get(), -1, &made, failure), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(made, nullptr);
}

TEST_F(DataTest, BatchesAreAFunctionOfSeedAndIndex) {
  cairn::Tokenizer::bytes(instance).write(folder / "text", folder / "tokens");
  const auto dataset = cairn::Dataset::open(instance, folder / "tokens", 32);
  const auto info = dataset.info();
  EXPECT_EQ(info.vocabulary, 256u);
  EXPECT_EQ(info.length, 32u);
  std::vector<int32_t> a, b, targets, others;
  const uint64_t per_epoch = (info.windows + 4) / 5;
  for (uint64_t index : {uint64_t{7}, uint64_t{0}, per_epoch}) {
    EXPECT_EQ(dataset.batch(1, index, 5, a, targets), 5u);
    EXPECT_EQ(dataset.batch(1, index, 5, b, others), 5u);
    EXPECT_EQ(a, b);
    EXPECT_EQ(targets, others);
    EXPECT_EQ(std::vector<int32_t>(a.begin() + 1, a.begin() + 32),
              std::vector<int32_t>(targets.begin(), targets.begin() + 31));
  }
  dataset.batch(2, 7, 5, b, others);
  EXPECT_NE(dataset.batch(1, 7, 5, a, targets), 0u);
  EXPECT_NE(a, b) << "another seed, another order";
  if (const uint64_t left = info.windows % 5; left != 0) {  // the end of an epoch
    EXPECT_EQ(dataset.batch(1, per_epoch - 1, 5, a, targets), left);
    EXPECT_EQ(targets.back(), -100);
  }
}

TEST_F(DataTest, FilesThatAreNot) {
  const auto bytes = cairn::Tokenizer::bytes(instance);
  cairn_dataset_t* none = nullptr;
  const auto open = [&](const std::string& path, uint32_t length) {
    return cairn_dataset_open(instance.get(), path.c_str(), length, &none, failure);
  };
  expect_failure(open(folder / "none", 8), CAIRN_STATUS_NOT_FOUND, failure, {"none"});
  expect_failure(open(folder / "text", 8), CAIRN_STATUS_CORRUPT_FILE, failure, {"text"});
  bytes.write(folder / "text", folder / "tokens");
  expect_failure(open(folder / "tokens", 0), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"length"});
  expect_failure(open(folder / "tokens", 1u << 30), CAIRN_STATUS_INVALID_ARGUMENT, failure);
  std::ofstream(folder / "empty").close();
  EXPECT_EQ(cairn_tokenizer_write(bytes.get(), (folder / "empty").c_str(), (folder / "t").c_str(), failure),
            CAIRN_STATUS_INVALID_ARGUMENT);
  const cairn_status_t missing =
      cairn_tokenizer_write(bytes.get(), (folder / "none").c_str(), (folder / "t").c_str(), failure);
  EXPECT_TRUE(missing == CAIRN_STATUS_NOT_FOUND || missing == CAIRN_STATUS_IO) << cairn_status_name(missing);
  EXPECT_FALSE(std::filesystem::exists(folder / "t"));
  std::filesystem::resize_file(folder / "tokens", std::filesystem::file_size(folder / "tokens") - 1);
  expect_failure(open(folder / "tokens", 8), CAIRN_STATUS_CORRUPT_FILE, failure, {"tokens"});
  EXPECT_EQ(none, nullptr);
}

TEST_F(DataTest, RandomTokens) {
  const auto dataset = cairn::Dataset::random(instance, 3, 50, 16);
  std::vector<int32_t> inputs, targets;
  EXPECT_EQ(dataset.batch(1, 1000, 4, inputs, targets), 4u);
  for (int32_t token : inputs) EXPECT_TRUE(token >= 0 && token < 50);
  cairn_dataset_t* none = nullptr;
  EXPECT_EQ(cairn_dataset_random(instance.get(), 1, 0, 16, &none, failure), CAIRN_STATUS_INVALID_ARGUMENT);
  uint32_t rows = 0;
  // Refused before memory is taken for them.
  for (const uint32_t impossible : {uint32_t{0}, UINT32_MAX}) {
    try {
      (void)dataset.batch(1, 0, impossible, inputs, targets);
      ADD_FAILURE() << impossible << " rows";
    } catch (const cairn::Error& error) {
      EXPECT_NE(std::string(error.what()).find("1..2^31-1"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(cairn_dataset_batch(dataset.get(), 1, 0, 0, inputs.data(), targets.data(), &rows, failure),
            CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(cairn_dataset_batch(dataset.get(), 1, 0, 1, nullptr, targets.data(), &rows, failure),
            CAIRN_STATUS_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace cairn_test
