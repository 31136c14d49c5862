#include <gtest/gtest.h>

#include <set>

#include "runtime/data/data.h"
#include "runtime/data/token_file.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::data {
namespace {

std::string numbered(size_t bytes) {
  std::string text(bytes, ' ');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 7 + i / 256);
  return text;
}

std::filesystem::path token_file(const test::Scratch& scratch, const std::string& text) {
  write_tokens(scratch.put("text", text), *bytes_tokenizer(), scratch / "tokens");
  return scratch / "tokens";
}

TEST(Permute, IsAPermutationForManySizes) {
  for (int64_t count : {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 1000, 4097}) {
    std::set<int64_t> seen;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = permute(5, 1, i, count);
      ASSERT_GE(at, 0);
      ASSERT_LT(at, count);
      seen.insert(at);
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), count);
  }
}

TEST(Permute, DependsOnSeedAndEpoch) {
  int same_epoch = 0, same_seed = 0, fixed = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    same_epoch += permute(1, 0, i, 1000) == permute(1, 1, i, 1000);
    same_seed += permute(1, 0, i, 1000) == permute(2, 0, i, 1000);
    fixed += permute(1, 0, i, 1000) == i;
  }
  EXPECT_LT(same_epoch, 10);
  EXPECT_LT(same_seed, 10);
  EXPECT_LT(fixed, 10);
}

// Neighbours must not stay neighbours, and every place must be reached from everywhere: chi-square of first
// halves.
TEST(Permute, Mixes) {
  int low = 0, neighbours = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    low += permute(seed, 0, 0, 1000) < 500;
    neighbours += std::abs(permute(seed, 0, 0, 1000) - permute(seed, 0, 1, 1000)) == 1;
  }
  EXPECT_NEAR(low, 1000, 150);
  EXPECT_LT(neighbours, 20);
}

TEST(Permute, RefusesOutside) {
  EXPECT_THROW(permute(0, 0, -1, 5), Error);
  EXPECT_THROW(permute(0, 0, 5, 5), Error);
  EXPECT_THROW(permute(0, 0, 0, 0), Error);
}

TEST(Dataset, EveryWindowOncePerEpochAndTargetsAreTheNextToken) {
  const test::Scratch scratch;
  const std::string text = numbered(1000);
  const auto set = Dataset::open(token_file(scratch, text), 16);
  EXPECT_EQ(set->vocabulary(), 256);
  EXPECT_EQ(set->tokens(), 1000);
  EXPECT_EQ(set->windows(), 62);
  for (uint64_t epoch : {0, 3}) {
    std::set<int64_t> starts;
    for (int64_t i = 0; i < set->windows(); ++i) {
      int32_t in[16], out[16];
      set->window(9, epoch, i, in, out);
      for (int t = 0; t + 1 < 16; ++t) ASSERT_EQ(in[t + 1], out[t]);
      const int64_t start = permute(9, epoch, i, 62) * 16;
      starts.insert(start);
      for (int t = 0; t < 16; ++t) {
        ASSERT_EQ(in[t], static_cast<uint8_t>(text[start + t]));
        ASSERT_EQ(out[t], static_cast<uint8_t>(text[start + t + 1]));
      }
    }
    EXPECT_EQ(starts.size(), 62u);
  }
}

TEST(Dataset, BatchesFollowEpochsAndMaskTheRemainder) {
  const test::Scratch scratch;
  const auto set = Dataset::open(token_file(scratch, numbered(16 * 10 + 1)), 16);
  ASSERT_EQ(set->windows(), 10);
  EXPECT_EQ(set->batches_per_epoch(4), 3);
  std::vector<int32_t> in(4 * 16), out(4 * 16), want_in(16), want_out(16);
  for (uint64_t index = 0; index < 7; ++index) {
    const int64_t rows = set->batch(1, index, 4, in.data(), out.data(), -100);
    EXPECT_EQ(rows, index % 3 == 2 ? 2 : 4);
    for (int64_t row = 0; row < 4; ++row)
      if (row < rows) {
        set->window(1, index / 3, static_cast<int64_t>(index % 3) * 4 + row, want_in.data(), want_out.data());
        EXPECT_TRUE(std::equal(want_in.begin(), want_in.end(), in.begin() + row * 16));
        EXPECT_TRUE(std::equal(want_out.begin(), want_out.end(), out.begin() + row * 16));
      } else {
        for (int t = 0; t < 16; ++t) EXPECT_TRUE(in[row * 16 + t] == 0 && out[row * 16 + t] == -100);
      }
  }
  EXPECT_THROW(set->batch(1, 0, 0, in.data(), out.data(), -100), Error);
}

TEST(Dataset, RandomTokensCoverTheVocabularyAndRepeat) {
  const auto a = Dataset::random(4, 50, 33), b = Dataset::random(4, 50, 33), c = Dataset::random(5, 50, 33);
  std::vector<int32_t> in(8 * 33), out(8 * 33), in2(8 * 33), out2(8 * 33);
  std::vector<int> seen(50);
  for (uint64_t index = 0; index < 40; ++index) {
    EXPECT_EQ(a->batch(0, index, 8, in.data(), out.data(), -1), 8);
    b->batch(0, index, 8, in2.data(), out2.data(), -1);
    EXPECT_EQ(in, in2);
    EXPECT_EQ(out, out2);
    c->batch(0, index, 8, in2.data(), out2.data(), -1);
    EXPECT_NE(in, in2);
    for (int32_t token : in) {
      ASSERT_TRUE(token >= 0 && token < 50);
      ++seen[token];
    }
  }
  for (int count : seen) EXPECT_NEAR(count, 8 * 33 * 40 / 50, 90);
}

class Chars final : public Tokenizer {  // a vocabulary above 65536, to see the wide form
 public:
  int32_t vocabulary() const override { return 70000; }
  std::string kind() const override { return "chars"; }
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    for (char c : text) tokens.push_back(static_cast<uint8_t>(c) + 69700);
    return tokens;
  }
  std::string decode(std::span<const int32_t>) const override { return {}; }
  void save(const std::filesystem::path&) const override {}
};

TEST(TokenFile, WideVocabularies) {
  const test::Scratch scratch;
  write_tokens(scratch.put("text", "abcdefgh"), Chars(), scratch / "wide");
  const auto set = Dataset::open(scratch / "wide", 7);
  EXPECT_EQ(set->vocabulary(), 70000);
  int32_t in[7], out[7];
  set->window(0, 0, 0, in, out);
  EXPECT_EQ(in[0], 'a' + 69700);
  EXPECT_EQ(out[6], 'h' + 69700);
}

TEST(TokenFile, LongTextIsStreamedWithoutSeams) {
  const test::Scratch scratch;
  std::string text = numbered((size_t{4} << 20) + 100000);  // more than one chunk
  const auto set = Dataset::open(token_file(scratch, text), static_cast<int32_t>(text.size()) - 1);
  std::vector<int32_t> in(text.size() - 1), out(text.size() - 1);
  set->window(0, 0, 0, in.data(), out.data());
  for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(in[i], static_cast<uint8_t>(text[i]));
}

TEST(TokenFile, EveryTruncationAndEveryFlippedBitIsFound) {
  const test::Scratch scratch;
  const std::string good = test::slurp(token_file(scratch, numbered(100)));
  ASSERT_EQ(good.size(), 64u + 200u);
  for (size_t size = 0; size < good.size(); ++size) {
    scratch.put("bad", good.substr(0, size));
    ASSERT_EQ(test::failure([&] { Dataset::open(scratch / "bad", 4); }).code, Code::kCorruptFile) << size;
  }
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] ^= static_cast<char>(1u << bit % 8);
    scratch.put("bad", bad);
    ASSERT_EQ(test::failure([&] { Dataset::open(scratch / "bad", 4); }).code, Code::kCorruptFile) << bit;
  }
  scratch.put("bad", good + "x");
  EXPECT_EQ(test::failure([&] { Dataset::open(scratch / "bad", 4); }).code, Code::kCorruptFile);
}

// What happens to a file while it is open is an error and no signal; a token that is none never gets out.
TEST(TokenFile, AFileThatChangesWhileItIsOpen) {
  const test::Scratch scratch;
  const auto path = token_file(scratch, numbered(5000));
  const auto set = Dataset::open(path, 4);
  std::vector<int32_t> in(4), out(4);
  const auto all = [&] {
    return test::failure([&] {
      for (int64_t i = 0; i < set->windows(); ++i) set->window(1, 0, i, in.data(), out.data());
    });
  };
  EXPECT_EQ(all().code, Code::kOk);
  std::string changed = test::slurp(path);
  changed[64 + 2 * 1000 + 1] = '\x7f';  // token 32000 and more, of a vocabulary of 256
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << changed;
  const auto strange = all();
  EXPECT_EQ(strange.code, Code::kCorruptFile);
  EXPECT_NE(strange.message.find("was changed while it was in use"), std::string::npos) << strange.message;
  std::filesystem::resize_file(path, 1000);
  const auto cut = all();
  EXPECT_EQ(cut.code, Code::kIo);
  EXPECT_NE(cut.message.find("was cut short while it was in use"), std::string::npos) << cut.message;
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(all().code, Code::kIo);
}

class Liar final : public Tokenizer {  // says a smaller vocabulary than it uses
 public:
  int32_t vocabulary() const override { return 100; }
  std::string kind() const override { return "liar"; }
  std::vector<int32_t> encode(std::string_view text) const override {
    return std::vector<int32_t>(text.begin(), text.end());
  }
  std::string decode(std::span<const int32_t>) const override { return {}; }
  void save(const std::filesystem::path&) const override {}
};

TEST(TokenFile, ATokenOutsideTheVocabularyIsNamed) {
  const test::Scratch scratch;
  write_tokens(scratch.put("text", "AAAAzAAA"), Liar(), scratch / "bad");
  const auto bad = test::failure([&] { Dataset::open(scratch / "bad", 4); });
  EXPECT_EQ(bad.code, Code::kCorruptFile);
  EXPECT_NE(bad.message.find("token 122 at position 4 is outside the vocabulary of 100"), std::string::npos)
      << bad.message;
}

TEST(TokenFile, BadArguments) {
  const test::Scratch scratch;
  const auto bytes = bytes_tokenizer();
  EXPECT_EQ(test::failure([&] { write_tokens(scratch / "none", *bytes, scratch / "out"); }).code,
            Code::kNotFound);
  EXPECT_EQ(test::failure([&] { write_tokens(scratch.put("empty", ""), *bytes, scratch / "out"); }).code,
            Code::kInvalidArgument);
  EXPECT_EQ(test::failure([&] { Dataset::open(scratch / "none", 4); }).code, Code::kNotFound);
  const auto file = token_file(scratch, numbered(10));
  EXPECT_EQ(Dataset::open(file, 9)->windows(), 1);
  EXPECT_EQ(test::failure([&] { Dataset::open(file, 10); }).code, Code::kInvalidArgument);
  EXPECT_EQ(test::failure([&] { Dataset::open(file, 0); }).code, Code::kInvalidArgument);
  EXPECT_EQ(test::failure([&] { Dataset::random(0, 0, 4); }).code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace cairn::data
